//! A source that is silent: at its end for now, or a while after its turn was answered. What has clearly
//! begun to be something to hide stays held back, as what goes on would complete it.

use super::{EmittedText, RedactionStage, redact_event};
use crate::change::Items;
use crate::event::{Body, Event};
use crate::item::ItemBody;
use crate::tool::Output;
use narrows_sanitize::{Clean, PartialLevel, StreamRedactor, ends_with_placeholder};

/// Tool outputs that a preview shows, the newest ones.
const MAX_PREVIEW_OUTPUTS: usize = 16;

impl RedactionStage {
    /// The input is over for now. Texts whose turn was not answered stay open, so that what goes on is
    /// understood together with them, and what has clearly begun to be something to hide is not shown;
    /// where all of it can be read `again`, neither is what may have begun: what goes on then reads as
    /// if it had never ended.
    pub(crate) fn suspend(&mut self, again: bool, out: &mut Vec<Event>) {
        let RedactionStage { redactor, text, outputs, order, .. } = self;
        let mut show = |stream: &mut StreamRedactor| {
            if again {
                stream.flush_for_replay(redactor)
            } else {
                stream.flush_without_partial(redactor, PartialLevel::EVIDENT)
            }
        };
        if let Some(open) = text.as_mut().filter(|open| !open.is_answered) {
            let rest = show(&mut open.stream);
            open.emit(rest, out);
        }
        for id in order.iter() {
            let Some(open) = outputs.get_mut(id) else { continue };
            let rest = show(&mut open.stream);
            out.extend(rest.and_then(|rest| open.delta(rest)));
        }
        self.settle_answered(out);
        let mut aside = self.growing.release_unless_partial(&self.redactor);
        aside.extend(self.snapshots.release_unless_partial(&self.redactor));
        out.extend(aside.into_iter().map(|event| redact_event(&mut self.redactor, event, None)));
    }

    /// Whether something of a text is held back though its turn was answered.
    pub(crate) fn waits_answered(&self) -> bool {
        self.text.as_ref().is_some_and(|open| open.is_answered && !open.is_at_rest())
    }

    /// A while has passed since the turn was answered, and nothing came: the text is over, unless
    /// something to hide stands there in part and would be seen.
    pub(crate) fn settle_answered(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.text.as_mut().filter(|open| open.is_answered) else { return };
        if let Some(begun) = open.stream.can_end(&mut self.redactor, PartialLevel::SUBSTANTIAL) {
            self.behind = begun.then(|| open.template.body.kind());
            return self.end_text(out);
        }
        let rest = open.stream.flush_without_partial(&mut self.redactor, PartialLevel::SUBSTANTIAL);
        open.emit(rest, out);
    }

    /// The session goes on behind these items, and its last turn was answered.
    pub(crate) fn resume_answered(&mut self, items: &Items) {
        self.snapshots.is_answered = true;
        let last = items.iter().max_by_key(|item| item.order);
        self.behind = last.and_then(|item| match &item.body {
            ItemBody::Text { content, .. } if ends_with_placeholder(content) => Some("text_chunk"),
            ItemBody::Thinking { content, .. } if ends_with_placeholder(content) => {
                Some("thinking_chunk")
            }
            _ => None,
        });
    }

    /// Packets were read again. What was shown when the source was silent is more than what the packets
    /// alone give: it is known by the log, or by the items.
    pub(crate) fn recall_shown(&mut self, shown: &EmittedText) {
        if let Some(open) = &mut self.text {
            let (kind, parent) = (open.template.body.kind(), &open.template.parent);
            let is_of = |e: &Event| e.body.kind() == kind && e.parent == *parent;
            let began = open.template.began;
            if let Some(text) = shown.in_log(began, |e| text(&e.body).filter(|_| is_of(e))) {
                open.stream.restore_emitted(&mut self.redactor, &text, open.emitted_bytes);
                (open.has_emitted, open.emitted_bytes) =
                    (open.has_emitted || !text.is_empty(), text.len());
            } else if let Some(text) = shown.in_items(&open.template)
                && let Some(more) = text.get(open.emitted_bytes..)
                && open.stream.restore_emitted_suffix(&mut self.redactor, more)
            {
                (open.has_emitted, open.emitted_bytes) = (true, text.len());
            }
        }
        for (id, open) in &mut self.outputs {
            if let Some(text) = shown.in_log(open.began, |piece| output(piece, id)) {
                open.stream.restore_emitted(&mut self.redactor, &text, open.emitted_bytes);
                open.emitted_bytes = text.len();
            }
        }
    }
}

impl RedactionStage {
    /// The texts that pause, as far as they can be shown: events as they would come if the text ended
    /// there, and ids of calls with the end of their output. Nothing changes by it.
    pub(crate) fn preview(&mut self) -> (Option<Event>, Vec<(Clean, Clean)>) {
        let redactor = &mut self.redactor;
        let text = self.text.as_ref().and_then(|open| {
            let part = open.stream.preview(redactor)?;
            let mut event = open.template.clone();
            *event.body.text_mut()? = part;
            Some(event)
        });
        let mut outputs = Vec::new();
        for id in self.order.iter().rev().take(MAX_PREVIEW_OUTPUTS).rev() {
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

/// The next part of a call's output; the first one is the whole of it up to there.
fn output<'a>(event: &'a Event, call: &str) -> Option<&'a Clean> {
    match event.body.tool().filter(|tool| *tool.id == *call)?.call.output.as_ref()? {
        Output::More(part) | Output::Whole(part) => Some(part),
    }
}

fn text(body: &Body) -> Option<&Clean> {
    match body {
        Body::UserMessage(message) => Some(&message.text),
        Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => Some(&chunk.text),
        _ => None,
    }
}
