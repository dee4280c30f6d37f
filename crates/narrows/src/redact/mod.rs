//! The redaction stage of the pipeline: raw events in, clean events out.
//!
//! Streamed text and output pass a [`StreamRedactor`], so a path or secret that is cut over two
//! packets is redacted. `fields` says how each field is redacted; `growing_fields` and `snapshots`
//! treat text that is resent as it grows; `pause` treats silent sources. The stage knows nothing of
//! formats and items.
//!
//! Only clean events reach the later stages and the output:
//!
//! ```compile_fail,E0308
//! fn row(event: &narrows::Event<narrows::Raw>) -> narrows::PrintedEvent<'_> {
//!     narrows::PrintedEvent::new(1, "s", event)
//! }
//! ```
//! ```compile_fail,E0308
//! fn fold(fold: &mut narrows::Fold, event: &narrows::Event<narrows::Raw>) {
//!     fold.push(event, &mut Vec::new());
//! }
//! ```
//! ```compile_fail,E0423
//! let forged = narrows::Clean("/home/me/secret".into());
//! ```
//!
//! The same functions accept clean events:
//!
//! ```
//! fn row(event: &narrows::Event<narrows::Clean>) -> narrows::PrintedEvent<'_> {
//!     narrows::PrintedEvent::new(1, "s", event)
//! }
//! fn fold(fold: &mut narrows::Fold, event: &narrows::Event<narrows::Clean>) {
//!     fold.push(event, &mut Vec::new());
//! }
//! ```
#![cfg_attr(
    not(feature = "stored"),
    doc = r#"
Clean text cannot be read back without the feature `stored`:

```compile_fail,E0277
let text: narrows::Clean = serde_json::from_str("\"text\"").unwrap();
```
"#
)]

mod emitted;
mod fields;
mod growing_fields;
mod open_streams;
mod pause;
mod snapshots;
mod tool_fields;

pub(crate) use emitted::EmittedText;

use crate::model::event::{Body, Event};
use crate::model::time::Time;
use crate::model::tool::{ToolKind, ToolOutput, ToolStatus};
use fields::{empty_tool_event, redact_event};
use growing_fields::GrowingFields;
use narrows_sanitize::{
    Clean, Mode, Paths, Raw, RedactionCounts, Redactor, Secrets, StreamRedactor,
};
use open_streams::{NEW_TEXT_GAP_MS, OpenOutput, OpenText};
use snapshots::Snapshots;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Output streams that may be open at the same time; beyond it, the oldest is ended.
const MAX_OUTPUT_STREAMS: usize = 256;
/// Working directories that are stored for a restart.
const MAX_ROOTS: usize = 64;

/// Redacts the events of one session.
#[derive(Debug)]
pub struct RedactionStage {
    redactor: Redactor,
    roots: Vec<String>,
    text: Option<OpenText>,
    outputs: HashMap<String, OpenOutput>,
    /// The call ids of `outputs`, oldest first.
    output_order: VecDeque<String>,
    growing_fields: GrowingFields,
    snapshots: Snapshots,
    /// The kind of the last text when it ended with a secret whose remainder may still come.
    ended_after_secret: Option<&'static str>,
}

impl RedactionStage {
    /// Creates a stage that redacts `paths` and `secrets`.
    pub fn new(paths: Paths, secrets: Arc<Secrets>) -> Self {
        RedactionStage {
            redactor: Redactor::new(paths, secrets),
            roots: Vec::new(),
            text: None,
            outputs: HashMap::new(),
            output_order: VecDeque::new(),
            growing_fields: GrowingFields::default(),
            snapshots: Snapshots::default(),
            ended_after_secret: None,
        }
    }

    /// Redacts one event. The held-back text of a block that ends comes before it.
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
            self.ended_after_secret = None;
            self.end_text(out);
        } else if event.body.flushes_held_text() {
            self.pause_text(out);
            if let (Body::PromptResponse(_), Some(open)) = (&event.body, &mut self.text) {
                open.answered_at = event.time.as_ref().map(Time::millis);
                open.is_answered = true;
            }
        }
        match &event.body {
            Body::PromptResponse(_) | Body::Error(_) => self.end_outputs(out),
            // The user must see what the question is about.
            Body::PermissionRequest(ask) => self.release_call(ask.tool_call_id.peek(), out),
            Body::QuestionRequest(ask) => self.release_call(ask.tool_call_id.peek(), out),
            _ => {}
        }
        self.snapshots.push(&self.redactor, &mut event);
        let clean = self.push_tool(event, out);
        out.push(clean);
    }

    /// Ends every stream at the end of the input.
    pub fn finish(&mut self, out: &mut Vec<Event>) {
        self.end_text(out);
        self.end_outputs(out);
    }

    /// Returns whether nothing is held back, so that the next event can be redacted without the
    /// earlier ones. An open block counts as held back, because each of its events carries its
    /// start. Once its turn has ended and all of it was emitted, later text is another block or
    /// continues without it.
    pub fn is_quiescent(&self) -> bool {
        self.text.as_ref().is_none_or(OpenText::is_quiescent)
            && self.growing_fields.is_empty()
            && self.snapshots.is_empty()
            && self.outputs.values().all(|open| open.stream.is_drained())
    }

    /// Bytes that are held back.
    pub(crate) fn held_bytes(&self) -> usize {
        let text = self.text.as_ref().map_or(0, |open| open.stream.held_bytes());
        let outputs = self.outputs.values().map(|open| open.stream.held_bytes()).sum::<usize>();
        text + outputs + self.growing_fields.held_bytes() + self.snapshots.held_bytes()
    }

    /// The redacted paths, including the working directories of the session.
    pub fn paths(&self) -> &Paths {
        self.redactor.paths()
    }

    /// Redacts one more root from now on.
    pub(crate) fn add_root(&mut self, root: &str) {
        self.redactor.add_root(root);
        if self.roots.len() < MAX_ROOTS && !self.roots.iter().any(|added| added == root) {
            self.roots.push(root.to_owned());
        }
    }

    /// The roots that were added.
    pub(crate) fn added_roots(&self) -> &[String] {
        &self.roots
    }

    /// The last name of the first added root, which is the name of the project.
    pub(crate) fn project_name(&mut self) -> Option<Clean> {
        let mut secrets_only = Redactor::new(Paths::default(), Arc::clone(self.redactor.secrets()));
        let root = self.roots.first()?.trim_end_matches(['/', '\\']);
        // A home directory is named after its owner.
        let is_home = secrets_only.field(root).as_str() == "~";
        let name = if is_home { "~" } else { root.rsplit(['/', '\\']).next()? };
        if name.is_empty() {
            return None;
        }
        Some(secrets_only.text(name, Mode::Text))
    }

    /// Counts of everything that was redacted so far.
    pub fn counts(&self) -> &RedactionCounts {
        self.redactor.removed()
    }

    fn push_text(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) {
        // A whole text needs no stream.
        if event.body.is_final_text() {
            self.end_text(out);
            out.push(redact_event(&mut self.redactor, event, None));
            return;
        }
        let delta = event.body.text_mut().map(std::mem::take).unwrap_or_default();
        let same = |t: &OpenText| {
            let answered = t.answered_at.zip(event.time.as_ref());
            let is_late = answered.is_some_and(|(at, time)| time.millis() - at >= NEW_TEXT_GAP_MS);
            // Held-back text is continued by the next text, however late that arrives.
            let is_new_block = (is_late && t.stream.is_fully_emitted()) || t.is_quiescent();
            t.raw.body.is_same_block(&event.body) && t.raw.parent == event.parent && !is_new_block
        };
        if !self.text.as_ref().is_some_and(same) {
            self.end_text(out);
        }
        let redactor = &mut self.redactor;
        let follows_secret =
            self.ended_after_secret.take_if(|_| self.text.is_none()) == Some(event.body.kind());
        let open = self.text.get_or_insert_with(|| {
            let mut raw = event.clone();
            raw.body.drop_images();
            let template = redact_event(redactor, raw.clone(), None);
            OpenText {
                raw,
                template,
                stream: if follows_secret {
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
        let ready = open.stream.push(redactor, delta.peek()).unwrap_or_default();
        let images = event.body.has_images();
        // The first event of a block says when the block started.
        if open.has_emitted {
            open.template.time.clone_from(&event.time);
        } else {
            event.time.clone_from(&open.template.time);
        }
        event.began = open.template.began;
        if images || !ready.is_empty() {
            let mut clean =
                if images { redact_event(redactor, event, None) } else { open.template.clone() };
            if let Some(text) = clean.body.text_mut() {
                *text = ready;
            }
            open.emitted_bytes += clean.body.text_mut().map_or(0, |text| text.len());
            open.has_emitted = true;
            out.push(clean);
        }
    }

    fn end_text(&mut self, out: &mut Vec<Event>) {
        if let Some(mut open) = self.text.take() {
            let held = open.stream.finish(&mut self.redactor);
            open.emit(held, out);
        }
    }

    /// Emits held-back text, except what may become a path; the block stays open.
    fn pause_text(&mut self, out: &mut Vec<Event>) {
        if let Some(open) = &mut self.text {
            let held = open.stream.flush_safe(&mut self.redactor);
            open.emit(held, out);
        }
    }

    /// Redacts an event that is not streamed text. Output deltas pass the stream of their call.
    fn push_tool(&mut self, mut event: Event<Raw>, out: &mut Vec<Event>) -> Event {
        let Some(tool) = event.body.tool() else {
            return redact_event(&mut self.redactor, event, None);
        };
        let ends = tool.call.status.is_some_and(ToolStatus::is_final);
        let mut evicted = Vec::new();
        self.growing_fields.push(&self.redactor, &mut event, ends, &mut evicted);
        for event in evicted {
            out.push(redact_event(&mut self.redactor, event, None));
        }
        let Some(tool) = event.body.tool() else {
            return redact_event(&mut self.redactor, event, None);
        };
        if let Some(ToolOutput::Whole(_)) = &tool.call.output {
            // The full output contains what was held back of its deltas.
            let id = tool.id.peek();
            if self.outputs.remove(id).is_some() {
                self.output_order.retain(|k| k != id);
            }
        }
        let delta = match &tool.call.output {
            Some(ToolOutput::More(delta)) => Some(delta.peek()),
            _ => None,
        };
        if delta.is_none() && !(ends && self.outputs.contains_key(tool.id.peek())) {
            return redact_event(&mut self.redactor, event, None);
        }
        let id = tool.id.peek().to_owned();
        let mut open = self.outputs.remove(&id).unwrap_or_else(|| {
            self.output_order.push_back(id.clone());
            // Text that was read from a file is the user's own.
            let is_read = tool.call.kind == ToolKind::Read;
            let mode = if is_read { Mode::Body } else { Mode::Text };
            let template = redact_event(&mut self.redactor, empty_tool_event(&event), None);
            OpenOutput {
                template,
                stream: StreamRedactor::new(mode),
                began: event.began,
                emitted_bytes: 0,
            }
        });
        let mut ready =
            open.stream.push(&mut self.redactor, delta.unwrap_or_default()).unwrap_or_default();
        if ends {
            ready.push(&open.stream.finish(&mut self.redactor).unwrap_or_default());
            self.output_order.retain(|k| *k != id);
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
        while !self.output_order.is_empty() {
            self.end_oldest_output(out);
        }
        while let Some(event) = self.growing_fields.evict_oldest(&self.redactor) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
        for event in self.snapshots.end(&self.redactor) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
    }

    /// Emits the held fields of a call.
    fn release_call(&mut self, id: &str, out: &mut Vec<Event>) {
        if let Some(event) = self.growing_fields.release(id) {
            out.push(redact_event(&mut self.redactor, event, None));
        }
    }

    fn end_oldest_output(&mut self, out: &mut Vec<Event>) {
        let Some(id) = self.output_order.pop_front() else {
            return;
        };
        let Some(mut open) = self.outputs.remove(&id) else {
            return;
        };
        let held = open.stream.finish(&mut self.redactor);
        out.extend(held.and_then(|held| open.delta(held)));
    }
}
