//! Cleaning: the only way from [`Raw`] to [`Clean`].
//!
//! [`RedactionStage::push`] takes an event of the adapter and gives clean ones. Streamed text passes a
//! stream, so that a path cut over two packets does not slip through. Knows nothing of formats and
//! nothing of items (invariants I3, I4).

mod emitted;
mod fields;
mod growing_fields;
mod pause;
mod snapshots;

pub(crate) use emitted::EmittedText;

use crate::event::{Body, Event};
use crate::id::EventId;
use crate::time::Time;
use crate::tool::{Output, ToolKind, ToolStatus};
use fields::{empty_tool_event, redact_event};
use growing_fields::GrowingFields;
use narrows_sanitize::{
    Clean, Mode, Paths, Raw, RedactionCounts, Redactor, Secrets, StreamRedactor,
};
use snapshots::Snapshots;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Streams of tool output that may be open at once; the oldest is ended when there are more.
const MAX_OUTPUT_STREAMS: usize = 256;
/// Roots that are remembered to go on with.
const MAX_ROOTS: usize = 64;

/// The cleaning stage of the pipeline.
#[derive(Debug)]
pub struct RedactionStage {
    redactor: Redactor,
    roots: Vec<String>,
    text: Option<OpenText>,
    outputs: HashMap<String, OpenOutput>,
    /// The calls of `outputs`, oldest first.
    order: VecDeque<String>,
    growing: GrowingFields,
    snapshots: Snapshots,
    /// The kind of the last text, if it was over with a secret of which the rest may still come.
    behind: Option<&'static str>,
}

/// The text block whose end may still be held back.
#[derive(Debug)]
struct OpenText {
    /// The event that opened it, to recognise its block.
    raw: Event<Raw>,
    /// An empty event of the block, to be filled with the rest at its end.
    template: Event,
    stream: StreamRedactor,
    /// Whether something of it came out, and how many bytes of text.
    has_emitted: bool,
    emitted_bytes: usize,
    /// When its turn was answered.
    answered_at: Option<i64>,
    /// Its turn was answered, and nothing of it came since.
    is_answered: bool,
}

/// What comes so many milliseconds after the answer is another text than the one before it.
const NEW_TEXT_GAP_MS: i64 = 3000;

impl OpenText {
    /// Whether what comes next is a block of its own.
    fn is_at_rest(&self) -> bool {
        self.is_answered && self.stream.is_fully_emitted() && self.stream.is_at_word_end()
    }

    /// Tells the next part of the text.
    fn emit(&mut self, part: Option<Clean>, out: &mut Vec<Event>) {
        let Some(part) = part else { return };
        self.emitted_bytes += part.len();
        let mut event = self.template.clone();
        if let Some(text) = event.body.text_mut() {
            *text = part;
        }
        self.has_emitted = true;
        out.push(event);
    }
}

/// A call's output that comes in pieces.
#[derive(Debug)]
struct OpenOutput {
    /// An event of the call that says nothing, to be filled likewise.
    template: Event,
    stream: StreamRedactor,
    /// The event that opened it.
    began: EventId,
    /// Bytes that came out.
    emitted_bytes: usize,
}

impl OpenOutput {
    /// An event with the next part of the output.
    fn delta(&mut self, part: Clean) -> Option<Event> {
        self.emitted_bytes += part.len();
        let mut event = self.template.clone();
        let Body::ToolCallProgress(tool) = &mut event.body else { return None };
        tool.call.output = Some(Output::More(part));
        Some(event)
    }
}

impl RedactionStage {
    /// A sanitizer that hides `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Arc<Secrets>) -> Self {
        RedactionStage {
            redactor: Redactor::new(paths, secrets),
            roots: Vec::new(),
            text: None,
            outputs: HashMap::new(),
            order: VecDeque::new(),
            growing: GrowingFields::default(),
            snapshots: Snapshots::default(),
            behind: None,
        }
    }

    /// Cleans one event. Held text of a block that ends comes before it.
    pub fn push(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) {
        if let Body::SessionInfo(info) = &event.body
            && let Some(root) = &info.cwd
        {
            self.add_root(root.peek());
        }
        if event.body.is_streamed() {
            self.push_text(event, out);
            return;
        }
        if event.body.ends_text() {
            self.behind = None;
            self.end_text(out);
        } else if event.body.pauses_text() {
            self.pause_text(out);
            if let (Body::PromptResponse(_), Some(open)) = (&event.body, &mut self.text) {
                open.answered_at = event.time.as_ref().map(Time::millis);
                open.is_answered = true;
            }
        }
        match &event.body {
            Body::PromptResponse(_) | Body::Error(_) => self.end_outputs(out),
            // A person is shown what it is about.
            Body::PermissionRequest(ask) => self.release_call(ask.tool_call_id.peek(), out),
            Body::QuestionRequest(ask) => self.release_call(ask.tool_call_id.peek(), out),
            _ => {}
        }
        self.snapshots.push(&self.redactor, &mut event);
        let clean = self.push_tool(event, out);
        out.push(clean);
    }

    /// Ends every stream: the input is over.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.end_text(out);
        self.end_outputs(out);
    }

    /// Whether nothing is held back, and the next event can be cleaned without the ones before. An
    /// open block cannot: where and when it began goes with each piece of it. Once its turn is
    /// answered and all of it was shown, what comes is another block, or goes on without it.
    pub fn is_at_rest(&self) -> bool {
        self.text.as_ref().is_none_or(OpenText::is_at_rest)
            && self.growing.is_empty()
            && self.snapshots.is_empty()
            && self.outputs.values().all(|open| open.stream.is_drained())
    }

    /// Bytes that are held back.
    pub(crate) fn weight(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |open| open.stream.held_bytes());
        let outputs = self.outputs.values().map(|open| open.stream.held_bytes()).sum::<usize>();
        text + outputs + self.growing.held_bytes() + self.snapshots.held_bytes()
    }

    /// The paths that are hidden, with those that the session has told.
    pub fn paths(&self) -> &Paths {
        self.redactor.paths()
    }

    /// Hides one root more from now on.
    pub(crate) fn add_root(&mut self, root: &str) {
        self.redactor.add_root(root);
        if self.roots.len() < MAX_ROOTS && !self.roots.iter().any(|known| known == root) {
            self.roots.push(root.to_owned());
        }
    }

    /// Roots that were told.
    pub(crate) fn roots(&self) -> &[String] {
        &self.roots
    }

    /// The last name of the first root that was told: what people call the project.
    pub(crate) fn project(&mut self) -> Option<Clean> {
        let mut plain = Redactor::new(Paths::default(), Arc::clone(self.redactor.secrets()));
        let root = self.roots.first()?.trim_end_matches(['/', '\\']);
        // A home directory is called after its owner.
        let is_home = plain.field(root).as_str() == "~";
        let name = if is_home { "~" } else { root.rsplit(['/', '\\']).next()? };
        if name.is_empty() {
            return None;
        }
        Some(plain.text(name, Mode::Text))
    }

    /// What was removed so far.
    pub fn removed(&self) -> &RedactionCounts {
        self.redactor.removed()
    }

    fn push_text(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) {
        // A text at once needs no stream.
        if event.body.is_whole() {
            self.end_text(out);
            out.push(redact_event(&mut self.redactor, event, None));
            return;
        }
        let piece = event.body.text_mut().map(std::mem::take).unwrap_or_default();
        let same = |t: &OpenText| {
            let is_late = t.answered_at.zip(event.time.as_ref());
            let is_late = is_late.is_some_and(|(at, time)| time.millis() - at >= NEW_TEXT_GAP_MS);
            // What is held back belongs to what comes, whenever that is.
            let apart = (is_late && t.stream.is_fully_emitted()) || t.is_at_rest();
            t.raw.body.same_block(&event.body) && t.raw.parent == event.parent && !apart
        };
        if !self.text.as_ref().is_some_and(same) {
            self.end_text(out);
        }
        let redactor = &mut self.redactor;
        let behind = self.behind.take_if(|_| self.text.is_none()) == Some(event.body.kind());
        let open = self.text.get_or_insert_with(|| {
            let mut raw = event.clone();
            raw.body.drop_images();
            let template = redact_event(redactor, raw.clone(), None);
            OpenText {
                raw,
                template,
                stream: if behind {
                    StreamRedactor::after_secret(Mode::Text)
                } else {
                    StreamRedactor::new(Mode::Text)
                },
                has_emitted: false,
                emitted_bytes: 0,
                answered_at: None,
                is_answered: false,
            }
        });
        open.is_answered = false;
        let ready = open.stream.push(redactor, piece.peek()).unwrap_or_default();
        let images = event.body.has_images();
        // The first event of a block tells when the block began.
        if open.has_emitted {
            open.template.time.clone_from(&event.time);
        } else {
            event.time.clone_from(&open.template.time);
        }
        event.began = open.template.began;
        if images || !ready.is_empty() {
            let mut shown =
                if images { redact_event(redactor, event, None) } else { open.template.clone() };
            if let Some(text) = shown.body.text_mut() {
                *text = ready;
            }
            open.emitted_bytes += shown.body.text_mut().map_or(0, |text| text.len());
            open.has_emitted = true;
            out.push(shown);
        }
    }

    fn end_text(&mut self, out: &mut Vec<Event>) {
        if let Some(mut open) = self.text.take() {
            let rest = open.stream.finish(&mut self.redactor);
            open.emit(rest, out);
        }
    }

    /// Lets go of what is held back, but for what may become a path; the block may still go on.
    fn pause_text(&mut self, out: &mut Vec<Event>) {
        if let Some(open) = &mut self.text {
            let rest = open.stream.flush_safe(&mut self.redactor);
            open.emit(rest, out);
        }
    }

    /// Cleans what is no streamed text. Output in pieces passes a stream of its own call.
    fn push_tool(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) -> Event {
        let Some(tool) = event.body.tool() else {
            return redact_event(&mut self.redactor, event, None);
        };
        let ends = tool.call.status.is_some_and(ToolStatus::is_final);
        let mut whole = Vec::new();
        self.growing.push(&self.redactor, &mut event, ends, &mut whole);
        for event in whole {
            out.push(redact_event(&mut self.redactor, event, None));
        }
        let Some(tool) = event.body.tool() else {
            return redact_event(&mut self.redactor, event, None);
        };
        if let Some(Output::Whole(_)) = &tool.call.output {
            // All of it anew: what was held back of the pieces is in it.
            let id = tool.id.peek();
            if self.outputs.remove(id).is_some() {
                self.order.retain(|k| k != id);
            }
        }
        let piece = match &tool.call.output {
            Some(Output::More(piece)) => Some(piece.peek()),
            _ => None,
        };
        if piece.is_none() && !(ends && self.outputs.contains_key(tool.id.peek())) {
            return redact_event(&mut self.redactor, event, None);
        }
        let id = tool.id.peek().to_owned();
        let mut open = self.outputs.remove(&id).unwrap_or_else(|| {
            self.order.push_back(id.clone());
            // What is read from a file is the user's own.
            let read = tool.call.kind == ToolKind::Read;
            let mode = if read { Mode::Body } else { Mode::Text };
            let template = redact_event(&mut self.redactor, empty_tool_event(&event), None);
            OpenOutput {
                template,
                stream: StreamRedactor::new(mode),
                began: event.began,
                emitted_bytes: 0,
            }
        });
        let mut ready =
            open.stream.push(&mut self.redactor, piece.unwrap_or_default()).unwrap_or_default();
        if ends {
            ready.push(&open.stream.finish(&mut self.redactor).unwrap_or_default());
            self.order.retain(|k| *k != id);
        } else {
            open.emitted_bytes += ready.len();
            self.outputs.insert(id, open);
            while self.outputs.len() > MAX_OUTPUT_STREAMS {
                self.end_oldest_output(out);
            }
        }
        redact_event(&mut self.redactor, event, Some(ready))
    }

    fn end_outputs(&mut self, out: &mut Vec<Event>) {
        while !self.order.is_empty() {
            self.end_oldest_output(out);
        }
        while let Some(event) = self.growing.evict_oldest(&self.redactor) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
        for event in self.snapshots.end(&self.redactor) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
    }

    /// Shows all of what is known of a call.
    fn release_call(&mut self, id: &str, out: &mut Vec<Event>) {
        if let Some(event) = self.growing.release(id) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
    }

    fn end_oldest_output(&mut self, out: &mut Vec<Event>) {
        let Some(id) = self.order.pop_front() else {
            return;
        };
        let Some(mut open) = self.outputs.remove(&id) else {
            return;
        };
        let rest = open.stream.finish(&mut self.redactor);
        out.extend(rest.and_then(|rest| open.delta(rest)));
    }
}
