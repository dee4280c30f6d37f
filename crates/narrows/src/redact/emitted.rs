//! What a session had shown when its writer stopped.

use crate::change::Items;
use crate::event::{Body, Event, ToolEvent};
use crate::id::EventId;
use crate::item::{Item, ItemBody};
use narrows_sanitize::Clean;

/// What a session had shown when it was cut.
#[derive(Debug, Default)]
pub(crate) struct EmittedText {
    /// The last item with a text: its id, its block and what it says.
    last: Option<(Clean, Option<Clean>, Clean)>,
    /// The last pieces of text in the log.
    pieces: Vec<Event>,
    /// The first of these events in the log.
    from: Option<EventId>,
}

impl EmittedText {
    /// By the items.
    pub(crate) fn of_items(items: &Items) -> EmittedText {
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

    /// By the last events of the log, one of which is given.
    pub(crate) fn add(&mut self, event: &Event, is_first: bool) {
        if self.from.is_none() {
            // All of the log is given where it begins with this one.
            self.from = Some(if is_first { EventId::default() } else { event.id });
        }
        let is_output = |tool: &ToolEvent| tool.call.output.is_some();
        if event.body.is_streamed() || event.body.tool().is_some_and(is_output) {
            self.pieces.push(event.clone());
        }
    }

    /// What the log has of something that is open, when it has all of it.
    pub(super) fn in_log<'a>(
        &'a self,
        began: EventId,
        of: impl Fn(&'a Event) -> Option<&'a Clean>,
    ) -> Option<Clean> {
        self.from.filter(|from| from.source == began.source && *from < began)?;
        let is_of = |piece: &&Event| piece.id.source == began.source && piece.id >= began;
        let parts: Vec<_> = self.pieces.iter().filter(is_of).filter_map(of).collect();
        Some(Clean::concat(&parts))
    }

    /// What the items have of an open text.
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
