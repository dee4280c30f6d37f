//! Truncated answers, and text of the program that may be the error of a turn.

use super::assistant::BlockPosition;
use super::{ClaudeParser, record::ClaudeRecord};
use crate::adapter::output::AdapterOutput;
use crate::adapter::stop_notice;
use crate::json::Json;
use crate::model::change::Items;
use crate::model::event::Body;
use crate::model::item::ItemBody;
use crate::model::time::Time;
use crate::sanitize::Raw;

/// The longest text that is held until the next record, in bytes.
const MAX_HELD_BYTES: usize = 64 << 10;
/// The prefix with which the program asks the model to continue a truncated answer.
const CONTINUE_PREFIX: &str = "Output token limit hit.";

/// The last truncation that was emitted: the parent and the id of the message.
#[derive(Debug, Default)]
pub(super) struct TruncationState(Option<(Option<Raw>, Box<str>)>);

impl TruncationState {
    /// A part of this message arrived: an earlier message has ended.
    pub(super) fn continue_with(&mut self, message: &str, parent: Option<&Raw>) {
        self.0.take_if(|(owner, truncated)| owner.as_ref() == parent && **truncated != *message);
    }

    fn is_emitted(&self, parent: Option<&Raw>) -> bool {
        self.0.as_ref().is_some_and(|(owner, _)| owner.as_ref() == parent)
    }

    /// Restores the state from the items before a restart.
    pub(super) fn restore(&mut self, items: &Items) {
        let mut last = None;
        for item in items.iter() {
            let parent = item.parent.as_ref().map(|p| Raw::new(p.as_str()));
            match &item.body {
                ItemBody::Text { block_id: Some(block), .. }
                | ItemBody::Thinking { block_id: Some(block), .. } => {
                    last = block.rsplit_once(':').map(|(message, _)| message);
                    self.continue_with(last.unwrap_or_default(), parent.as_ref());
                }
                ItemBody::Notice { kind, .. } if stop_notice::is_truncation(kind) => {
                    self.0 = Some((parent, last.unwrap_or_default().into()));
                }
                _ => {}
            }
        }
    }
}

/// Text of the program in the model's role that is held back: the next record decides whether it is
/// the error of the turn.
#[derive(Debug)]
pub(super) struct HeldProgramText {
    message: Option<String>,
    number: u32,
    text: String,
    time: Option<Time>,
}

impl ClaudeParser {
    /// Emits the truncation of an answer, once for all its records.
    pub(super) fn check_truncation(
        &mut self,
        message: &str,
        reason: Option<Json<'_>>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        self.truncation.continue_with(message, parent);
        let note = reason.and_then(Json::str).and_then(|reason| stop_notice::notice_for(&reason));
        if let Some(note) = note.filter(|note| stop_notice::is_truncation(note.kind.peek()))
            && !self.truncation.is_emitted(parent)
        {
            self.truncation.0 = Some((parent.cloned(), message.into()));
            out.push_in(parent.cloned(), Body::Notice(note));
        }
    }

    /// Emits the truncation at the end of the turn, unless a record of the answer did.
    pub(super) fn end_truncation(&mut self, reason: Option<&str>, out: &mut AdapterOutput) {
        let note = reason
            .and_then(stop_notice::notice_for)
            .filter(|note| stop_notice::is_truncation(note.kind.peek()));
        if let Some(note) = note.filter(|_| !self.truncation.is_emitted(None)) {
            out.push(Body::Notice(note));
        }
        self.truncation.0.take_if(|(owner, _)| owner.is_none());
    }

    /// Handles the program's request to continue a truncated answer; returns false for other text.
    pub(super) fn continuation_request(
        &mut self,
        text: &str,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) -> bool {
        if !text.starts_with(CONTINUE_PREFIX) {
            return false;
        }
        let note =
            stop_notice::notice_for("max_tokens").filter(|_| !self.truncation.is_emitted(parent));
        if note.is_none() {
            out.ignore();
        }
        if let Some(note) = note {
            self.truncation.0 = Some((parent.cloned(), "".into()));
            out.push_in(parent.cloned(), Body::Notice(note));
        }
        true
    }

    /// Handles text of the program in the model's role.
    pub(super) fn program_text(
        &mut self,
        text: &str,
        is_history: bool,
        position: &BlockPosition<'_>,
        out: &mut AdapterOutput,
    ) {
        if text == "No response requested." {
            return;
        }
        self.release_held_text(out);
        if is_history || position.parent.is_some() || text.len() > MAX_HELD_BYTES {
            return self.block("text", Raw::new(text), false, position, out);
        }
        self.held_text = Some(HeldProgramText {
            message: position.message.map(str::to_owned),
            number: position.number,
            text: text.to_owned(),
            time: out.time.clone(),
        });
    }

    /// Decides about held text by the record that follows it: drops it if the result of the turn
    /// repeats it as the error.
    pub(super) fn resolve_held_text(
        &mut self,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        out: &mut AdapterOutput,
    ) {
        let Some(held) = &self.held_text else { return };
        let is_error = r.kind.as_deref() == Some("result") && is_error_result(object);
        if is_error && object.text("result").is_some_and(|result| *result == *held.text) {
            self.held_text = None;
        }
        self.release_held_text(out);
    }

    /// Emits the held text, with the time at which it arrived.
    pub(super) fn release_held_text(&mut self, out: &mut AdapterOutput) {
        let Some(held) = self.held_text.take() else { return };
        let HeldProgramText { message, number, text, time } = held;
        let now = std::mem::replace(&mut out.time, time);
        let position = BlockPosition { message: message.as_deref(), number, parent: None };
        self.block("text", Raw::new(text), false, &position, out);
        out.time = now;
    }
}

/// Whether the result of a turn is an error.
pub(super) fn is_error_result(result: Json<'_>) -> bool {
    result.get("is_error").and_then(Json::bool) == Some(true)
}
