//! Cleaning: the only way from [`Raw`] to [`Clean`].
//!
//! [`Sanitizer::push`] takes an event of the adapter and gives clean ones. Streamed text passes a
//! seam, so that a path cut over two packets does not slip through. Knows nothing of formats and
//! nothing of items (invariants I3, I4).

mod across;
mod again;
mod begun;
mod clean;
mod escape;
mod event;
mod field;
mod growing;
mod hits;
mod memo;
mod paths;
mod pem;
mod preview;
mod removed;
mod scan;
mod seam;
mod secret;
mod segment;
mod short;
mod snapshot;
mod stream;
mod suspend;
mod text;
mod tree;
mod view;
mod walk;
mod whole;

pub use paths::{Mode, Paths};
pub use removed::Removed;
pub use secret::{MIN_KEYWORD, MIN_KNOWN, Rule, RuleError, Secrets, UserRule};
pub use stream::TextStream;
pub(crate) use suspend::Shown;
pub use text::{Clean, Raw, Tree};
pub use whole::{TextCleaner, sanitize_paths_in_text, strip_session_prefix};

use crate::event::{Body, Event};
use crate::id::EventId;
use crate::time::Time;
use crate::tool::ToolKind;
use crate::tool::{Output, ToolStatus};
use clean::Cleaner;
use growing::Growing;
use seam::Seam;
use snapshot::Snapshots;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Streams of tool output that may be open at once; the oldest is ended when there are more.
const MAX_STREAMS: usize = 256;
/// Roots that are remembered to go on with.
const MAX_ROOTS: usize = 64;

/// The cleaning stage of the pipeline.
#[derive(Debug)]
pub struct Sanitizer {
    cleaner: Cleaner,
    roots: Vec<String>,
    text: Option<OpenText>,
    outputs: HashMap<String, OpenOutput>,
    /// The calls of `outputs`, oldest first.
    order: VecDeque<String>,
    growing: Growing,
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
    shell: Event,
    seam: Seam,
    /// Whether something of it came out, and how many bytes of text.
    told: bool,
    told_len: usize,
    /// When its turn was answered.
    answered: Option<i64>,
    /// Its turn was answered, and nothing of it came since.
    is_over: bool,
}

/// What comes so many milliseconds after the answer is another text than the one before it.
const LATE_MS: i64 = 3000;

impl OpenText {
    /// Whether what comes next is a block of its own.
    fn is_at_rest(&self) -> bool {
        self.is_over && self.seam.is_told() && self.seam.is_word_over()
    }

    /// Tells the next part of the text.
    fn tell(&mut self, part: Option<Clean>, out: &mut Vec<Event>) {
        let Some(part) = part else { return };
        self.told_len += part.len();
        let mut event = self.shell.clone();
        if let Some(text) = event.body.text_mut() {
            *text = part;
        }
        self.told = true;
        out.push(event);
    }
}

/// A call's output that comes in pieces.
#[derive(Debug)]
struct OpenOutput {
    /// An event of the call that says nothing, to be filled likewise.
    shell: Event,
    seam: Seam,
    /// The event that opened it.
    began: EventId,
    /// Bytes that came out.
    told_len: usize,
}

impl OpenOutput {
    /// An event with the next part of the output.
    fn more(&mut self, part: Clean) -> Option<Event> {
        self.told_len += part.len();
        let mut event = self.shell.clone();
        let Body::ToolCallProgress(tool) = &mut event.body else { return None };
        tool.call.output = Some(Output::More(part));
        Some(event)
    }
}

impl Sanitizer {
    /// A sanitizer that hides `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Arc<Secrets>) -> Self {
        Sanitizer {
            cleaner: Cleaner::new(paths, secrets),
            roots: Vec::new(),
            text: None,
            outputs: HashMap::new(),
            order: VecDeque::new(),
            growing: Growing::default(),
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
                open.answered = event.time.as_ref().map(Time::millis);
                open.is_over = true;
            }
        }
        match &event.body {
            Body::PromptResponse(_) | Body::Error(_) => self.end_outputs(out),
            // A person is shown what it is about.
            Body::PermissionRequest(ask) => self.settle(ask.tool_call_id.peek(), out),
            Body::QuestionRequest(ask) => self.settle(ask.tool_call_id.peek(), out),
            _ => {}
        }
        self.snapshots.take(&self.cleaner, &mut event);
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
            && self.outputs.values().all(|open| open.seam.is_at_rest())
    }

    /// Bytes that are held back.
    pub(crate) fn weight(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |open| open.seam.weight());
        let outputs = self.outputs.values().map(|open| open.seam.weight()).sum::<usize>();
        text + outputs + self.growing.weight() + self.snapshots.weight()
    }

    /// The paths that are hidden, with those that the session has told.
    pub fn paths(&self) -> &Paths {
        &self.cleaner.paths
    }

    /// Hides one root more from now on.
    pub(crate) fn add_root(&mut self, root: &str) {
        self.cleaner.add_root(root);
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
        let mut plain = Cleaner::new(Paths::default(), Arc::clone(&self.cleaner.secrets));
        let root = self.roots.first()?.trim_end_matches(['/', '\\']);
        // A home directory is called after its owner.
        let is_home = plain.field(root).as_str() == "~";
        let name = if is_home { "~" } else { root.rsplit(['/', '\\']).next()? };
        if name.is_empty() {
            return None;
        }
        Some(Clean(plain.text(name, Mode::Text).unwrap_or_else(|| name.into())))
    }

    /// What was removed so far.
    pub fn removed(&self) -> &Removed {
        &self.cleaner.removed
    }

    fn push_text(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) {
        // A text at once needs no seam.
        if event.body.is_whole() {
            self.end_text(out);
            out.push(event::clean(&mut self.cleaner, event, None));
            return;
        }
        let piece = event.body.text_mut().map(std::mem::take).unwrap_or_default();
        let same = |t: &OpenText| {
            let is_late = t.answered.zip(event.time.as_ref());
            let is_late = is_late.is_some_and(|(at, time)| time.millis() - at >= LATE_MS);
            // What is held back belongs to what comes, whenever that is.
            let apart = (is_late && t.seam.is_told()) || t.is_at_rest();
            t.raw.body.same_block(&event.body) && t.raw.parent == event.parent && !apart
        };
        if !self.text.as_ref().is_some_and(same) {
            self.end_text(out);
        }
        let cleaner = &mut self.cleaner;
        let behind = self.behind.take_if(|_| self.text.is_none()) == Some(event.body.kind());
        let open = self.text.get_or_insert_with(|| {
            let mut raw = event.clone();
            raw.body.drop_images();
            let shell = event::clean(cleaner, raw.clone(), None);
            OpenText {
                raw,
                shell,
                seam: if behind { Seam::behind_secret(Mode::Text) } else { Seam::new(Mode::Text) },
                told: false,
                told_len: 0,
                answered: None,
                is_over: false,
            }
        });
        open.is_over = false;
        let ready = open.seam.push(cleaner, piece.peek()).unwrap_or_default();
        let images = event.body.has_images();
        // The first event of a block tells when the block began.
        if open.told {
            open.shell.time.clone_from(&event.time);
        } else {
            event.time.clone_from(&open.shell.time);
        }
        event.began = open.shell.began;
        if images || !ready.is_empty() {
            let mut shown =
                if images { event::clean(cleaner, event, None) } else { open.shell.clone() };
            if let Some(text) = shown.body.text_mut() {
                *text = ready;
            }
            open.told_len += shown.body.text_mut().map_or(0, |text| text.len());
            open.told = true;
            out.push(shown);
        }
    }

    fn end_text(&mut self, out: &mut Vec<Event>) {
        if let Some(mut open) = self.text.take() {
            let rest = open.seam.finish(&mut self.cleaner);
            open.tell(rest, out);
        }
    }

    /// Lets go of what is held back, but for what may become a path; the block may still go on.
    fn pause_text(&mut self, out: &mut Vec<Event>) {
        if let Some(open) = &mut self.text {
            let rest = open.seam.pause(&mut self.cleaner);
            open.tell(rest, out);
        }
    }

    /// Cleans what is no streamed text. Output in pieces passes a seam of its own call.
    fn push_tool(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) -> Event {
        let Some(tool) = event.body.tool() else {
            return event::clean(&mut self.cleaner, event, None);
        };
        let ends = tool.call.status.is_some_and(ToolStatus::is_final);
        let mut whole = Vec::new();
        self.growing.take(&self.cleaner, &mut event, ends, &mut whole);
        for event in whole {
            out.push(event::clean(&mut self.cleaner, event, None));
        }
        let Some(tool) = event.body.tool() else {
            return event::clean(&mut self.cleaner, event, None);
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
            return event::clean(&mut self.cleaner, event, None);
        }
        let id = tool.id.peek().to_owned();
        let mut open = self.outputs.remove(&id).unwrap_or_else(|| {
            self.order.push_back(id.clone());
            // What is read from a file is the user's own.
            let read = tool.call.kind == ToolKind::Read;
            let mode = if read { Mode::Body } else { Mode::Text };
            let shell = event::clean(&mut self.cleaner, event::shell(&event), None);
            OpenOutput { shell, seam: Seam::new(mode), began: event.began, told_len: 0 }
        });
        let mut ready =
            open.seam.push(&mut self.cleaner, piece.unwrap_or_default()).unwrap_or_default();
        if ends {
            ready.push(&open.seam.finish(&mut self.cleaner).unwrap_or_default());
            self.order.retain(|k| *k != id);
        } else {
            open.told_len += ready.len();
            self.outputs.insert(id, open);
            while self.outputs.len() > MAX_STREAMS {
                self.end_oldest_output(out);
            }
        }
        event::clean(&mut self.cleaner, event, Some(ready))
    }

    fn end_outputs(&mut self, out: &mut Vec<Event>) {
        while !self.order.is_empty() {
            self.end_oldest_output(out);
        }
        while let Some(event) = self.growing.end_oldest(&self.cleaner) {
            out.push(event::clean(&mut self.cleaner, event, None));
        }
        for event in self.snapshots.end(&self.cleaner) {
            out.push(event::clean(&mut self.cleaner, event, None));
        }
    }

    /// Shows all of what is known of a call.
    fn settle(&mut self, id: &str, out: &mut Vec<Event>) {
        if let Some(event) = self.growing.settle(id) {
            out.push(event::clean(&mut self.cleaner, event, None));
        }
    }

    fn end_oldest_output(&mut self, out: &mut Vec<Event>) {
        let Some(id) = self.order.pop_front() else {
            return;
        };
        let Some(mut open) = self.outputs.remove(&id) else {
            return;
        };
        let rest = open.seam.finish(&mut self.cleaner);
        out.extend(rest.and_then(|rest| open.more(rest)));
    }
}
