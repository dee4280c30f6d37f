//! The text that a session had emitted before a restart, as its log and its items know it.

use crate::model::change::Items;
use crate::model::event::{Body, Event, ToolEvent};
use crate::model::id::EventId;
use crate::model::item::{Item, ItemBody};
use narrows_sanitize::Clean;

/// Text that a session had emitted before a restart.
#[derive(Debug, Default)]
pub(crate) struct EmittedText {
    /// The last item with text: its id, its block id and its text.
    last: Option<(Clean, Option<Clean>, Clean)>,
    /// The last log events with text or output.
    events: Vec<Event>,
    /// The oldest log event that was added.
    oldest: Option<EventId>,
}

impl EmittedText {
    /// Takes the last text of the items.
    pub(crate) fn from_items(items: &Items) -> EmittedText {
        let text = |item: &Item| match &item.body {
            ItemBody::Text { content: text, block_id, .. }
            | ItemBody::Thinking { content: text, block_id, .. }
            | ItemBody::UserMessage { text, block_id, .. } => {
                Some((item.id.clone(), block_id.clone(), text.clone()))
            }
            _ => None,
        };
        let last = items.iter().filter(|item| text(item).is_some()).max_by_key(|item| item.order);
        EmittedText { last: last.and_then(text), ..EmittedText::default() }
    }

    /// Adds one of the last events of the log, in order.
    pub(crate) fn add(&mut self, event: &Event, is_first: bool) {
        if self.oldest.is_none() {
            // The first event of the log is among them, so they are the whole log.
            self.oldest = Some(if is_first { EventId::default() } else { event.id });
        }
        let is_output = |tool: &ToolEvent| tool.call.output.is_some();
        if event.body.is_streamed() || event.body.tool().is_some_and(is_output) {
            self.events.push(event.clone());
        }
    }

    /// Joins what the log has of an open text or output; `None` when the log may lack a part of it.
    pub(super) fn in_log<'a>(
        &'a self,
        began: EventId,
        text_of: impl Fn(&'a Event) -> Option<&'a Clean>,
    ) -> Option<Clean> {
        self.oldest.filter(|oldest| oldest.source == began.source && *oldest < began)?;
        let is_of_source = |event: &&Event| event.id.source == began.source && event.id >= began;
        let parts: Vec<_> = self.events.iter().filter(is_of_source).filter_map(text_of).collect();
        Some(Clean::concat(&parts))
    }

    /// Returns the item text of an open text block.
    pub(super) fn in_items(&self, open: &Event) -> Option<Clean> {
        let (id, block, text) = self.last.as_ref()?;
        let own = match &open.body {
            Body::UserMessage(message) => &message.block_id,
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => &chunk.block_id,
            _ => &None,
        };
        let is_same = id.ends_with(&format!("-{}", open.began)) || (own.is_some() && own == block);
        is_same.then(|| text.clone())
    }
}
