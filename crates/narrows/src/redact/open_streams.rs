//! The text block and the tool outputs that are open, each with its hold-back buffer.

use crate::model::event::{Body, Event};
use crate::model::id::EventId;
use crate::model::tool::ToolOutput;
use narrows_sanitize::{Clean, Raw, StreamRedactor};

/// The text block whose end may still be held back.
#[derive(Debug)]
pub(super) struct OpenText {
    /// The event that opened the block, to recognize its later events.
    pub(super) raw: Event<Raw>,
    /// An event of the block without text, as a template for its later events.
    pub(super) template: Event,
    pub(super) stream: StreamRedactor,
    /// Text of the block was emitted, and how many bytes.
    pub(super) has_emitted: bool,
    pub(super) emitted_bytes: usize,
    /// When the turn of the block ended, in Unix milliseconds.
    pub(super) answered_at: Option<i64>,
    /// The turn ended and no text of the block arrived since.
    pub(super) is_answered: bool,
}

/// Text that arrives this many milliseconds after the end of the turn is a new block.
pub(super) const NEW_TEXT_GAP_MS: i64 = 3000;

impl OpenText {
    /// Returns whether the next text starts a new block.
    pub(super) fn is_quiescent(&self) -> bool {
        self.is_answered && self.stream.is_fully_emitted() && self.stream.is_at_word_end()
    }

    /// Emits the next part of the text.
    pub(super) fn emit(&mut self, part: Option<Clean>, out: &mut Vec<Event>) {
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

/// Output of a call that arrives as deltas.
#[derive(Debug)]
pub(super) struct OpenOutput {
    /// An event of the call without content, as a template for later output.
    pub(super) template: Event,
    pub(super) stream: StreamRedactor,
    /// The event that opened the output.
    pub(super) began: EventId,
    /// Emitted bytes.
    pub(super) emitted_bytes: usize,
}

impl OpenOutput {
    /// Creates an event with the next part of the output.
    pub(super) fn delta(&mut self, part: Clean) -> Option<Event> {
        self.emitted_bytes += part.len();
        let mut event = self.template.clone();
        let Body::ToolCallProgress(tool) = &mut event.body else { return None };
        tool.call.output = Some(ToolOutput::More(part));
        Some(event)
    }
}
