//! Silent sources: at the end of their input for now, or some time after the end of a turn.
//!
//! Evident partial matches stay held back, because later text would complete them.

use super::{EmittedText, RedactionStage, redact_event};
use crate::model::change::Items;
use crate::model::event::{Body, Event};
use crate::model::item::ItemBody;
use crate::model::tool::ToolOutput;
use narrows_sanitize::{Clean, PartialLevel, StreamRedactor, ends_with_placeholder};

/// Tool outputs in a preview, the newest ones.
const MAX_PREVIEW_OUTPUTS: usize = 16;

impl RedactionStage {
    /// Handles an input that has ended for now. Texts whose turn has not ended stay open, so that
    /// later text continues them, and evident partial matches are held back. When the source can be
    /// read `again` from its start, possible partial matches are held back too: later text then
    /// reads as if the input had never ended.
    pub(crate) fn pause(&mut self, again: bool, out: &mut Vec<Event>) {
        let RedactionStage { redactor, text, outputs, output_order, .. } = self;
        let mut flush = |stream: &mut StreamRedactor| {
            if again {
                stream.flush_for_replay(redactor)
            } else {
                stream.flush_without_partial(redactor, PartialLevel::EVIDENT)
            }
        };
        if let Some(open) = text.as_mut().filter(|open| !open.is_answered) {
            let held = flush(&mut open.stream);
            open.emit(held, out);
        }
        for id in output_order.iter() {
            let Some(open) = outputs.get_mut(id) else { continue };
            let held = flush(&mut open.stream);
            out.extend(held.and_then(|held| open.delta(held)));
        }
        self.end_answered_text(out);
        let mut released = self.growing_fields.release_unless_partial(&self.redactor);
        released.extend(self.snapshots.release_unless_partial(&self.redactor));
        out.extend(released.into_iter().map(|event| redact_event(&mut self.redactor, event, None)));
    }

    /// Returns whether text of an ended turn is still held back.
    pub(crate) fn holds_answered_text(&self) -> bool {
        self.text.as_ref().is_some_and(|open| open.is_answered && !open.is_quiescent())
    }

    /// Ends the text of an ended turn after a silence, unless that would show a part of something
    /// to redact.
    pub(crate) fn end_answered_text(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.text.as_mut().filter(|open| open.is_answered) else { return };
        if let Some(has_partial) =
            open.stream.can_end(&mut self.redactor, PartialLevel::SUBSTANTIAL)
        {
            self.ended_after_secret = has_partial.then(|| open.template.body.kind());
            return self.end_text(out);
        }
        let held = open.stream.flush_without_partial(&mut self.redactor, PartialLevel::SUBSTANTIAL);
        open.emit(held, out);
    }

    /// Continues a session with these items, whose last turn has ended.
    pub(crate) fn resume_after_turn(&mut self, items: &Items) {
        self.snapshots.is_answered = true;
        let last = items.iter().max_by_key(|item| item.order);
        self.ended_after_secret = last.and_then(|item| match &item.body {
            ItemBody::Text { content, .. } if ends_with_placeholder(content) => Some("text_chunk"),
            ItemBody::Thinking { content, .. } if ends_with_placeholder(content) => {
                Some("thinking_chunk")
            }
            _ => None,
        });
    }

    /// Restores what was emitted before a restart, after packets were replayed: pauses emit more
    /// than the packets alone give, and only the log or the items know it.
    pub(crate) fn restore_emitted(&mut self, emitted: &EmittedText) {
        if let Some(open) = &mut self.text {
            let (kind, parent) = (open.template.body.kind(), &open.template.parent);
            let is_same_block = |e: &Event| e.body.kind() == kind && e.parent == *parent;
            let began = open.template.began;
            if let Some(text) =
                emitted.in_log(began, |e| text(&e.body).filter(|_| is_same_block(e)))
            {
                open.stream.restore_emitted(&mut self.redactor, &text, open.emitted_bytes);
                (open.has_emitted, open.emitted_bytes) =
                    (open.has_emitted || !text.is_empty(), text.len());
            } else if let Some(text) = emitted.in_items(&open.template)
                && let Some(more) = text.get(open.emitted_bytes..)
                && open.stream.restore_emitted_suffix(&mut self.redactor, more)
            {
                (open.has_emitted, open.emitted_bytes) = (true, text.len());
            }
        }
        for (id, open) in &mut self.outputs {
            if let Some(text) = emitted.in_log(open.began, |event| output(event, id)) {
                open.stream.restore_emitted(&mut self.redactor, &text, open.emitted_bytes);
                open.emitted_bytes = text.len();
            }
        }
    }
}

impl RedactionStage {
    /// Returns the previews of held-back text: an event as if the text ended here, and call ids
    /// with the end of their output. The state does not change.
    pub(crate) fn preview(&mut self) -> (Option<Event>, Vec<(Clean, Clean)>) {
        let redactor = &mut self.redactor;
        let text = self.text.as_ref().and_then(|open| {
            let part = open.stream.preview(redactor)?;
            let mut event = open.template.clone();
            *event.body.text_mut()? = part;
            Some(event)
        });
        let mut outputs = Vec::new();
        for id in self.output_order.iter().rev().take(MAX_PREVIEW_OUTPUTS).rev() {
            if let Some(open) = self.outputs.get(id)
                && let Body::ToolCallProgress(tool) = &open.template.body
                && let Some(part) = open.stream.preview(redactor)
            {
                outputs.push((tool.id.clone(), part));
            }
        }
        (text, outputs)
    }
}

/// The output part of an event of a call.
fn output<'a>(event: &'a Event, call: &str) -> Option<&'a Clean> {
    match event.body.tool().filter(|tool| *tool.id == *call)?.call.output.as_ref()? {
        ToolOutput::More(part) | ToolOutput::Whole(part) => Some(part),
    }
}

fn text(body: &Body) -> Option<&Clean> {
    match body {
        Body::UserMessage(message) => Some(&message.text),
        Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => Some(&chunk.text),
        _ => None,
    }
}
