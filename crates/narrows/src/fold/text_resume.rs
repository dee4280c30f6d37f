//! Restores open texts and the last prompt from the items of a session.

use super::Fold;
use super::blocks::{OpenBlock, block_item_id};
use super::prompts::{LastPrompt, text_to_echo};
use super::text::{MAX_RETAINED_TEXT, StreamingText};
use super::text_items::{TextItems, TextKind, is_streaming};
use crate::model::item::{Item, ItemBody};
use crate::model::time::Time;

impl Fold {
    pub(super) fn resume_text(&mut self, item: &Item) {
        let items = match &item.body {
            ItemBody::Text { content: text, .. }
            | ItemBody::Thinking { content: text, .. }
            | ItemBody::UserMessage { text, .. } => TextItems::ending_in(item, text),
            _ => return,
        };
        self.last_started = Some(items.clone());
        let parent = item.parent.clone();
        let is_last = item.order + 1 == self.next_order;
        let shown_as_done = self.info.answered && is_last;
        if let ItemBody::Text { block_id: Some(block_id), content, .. }
        | ItemBody::Thinking { block_id: Some(block_id), content, .. } = &item.body
        {
            let kinds = [TextKind::Text, TextKind::Thinking];
            if kinds.iter().any(|kind| block_item_id(*kind, block_id) == *items.first_id()) {
                if is_streaming(&item.body) {
                    let retains = items.is_single() && content.len() <= MAX_RETAINED_TEXT;
                    let text = retains.then(|| content.to_string());
                    self.open_blocks.push(OpenBlock { items, text });
                }
                return;
            }
        }
        let (kind, content, block_id, images) = match &item.body {
            ItemBody::Text { content, block_id, images, .. } => {
                (TextKind::Text, content, block_id.clone(), images.clone())
            }
            ItemBody::Thinking { content, block_id, .. } => {
                (TextKind::Thinking, content, block_id.clone(), Vec::new())
            }
            ItemBody::UserMessage { text, images, origin, block_id }
                if is_last && !self.info.answered =>
            {
                self.last_prompt = Some(LastPrompt {
                    items,
                    block_id: block_id.clone(),
                    parent,
                    origin: *origin,
                    text: text_to_echo(text, *origin),
                    images: images.clone(),
                });
                return;
            }
            _ => return,
        };
        let retains = !shown_as_done && items.is_single() && content.len() <= MAX_RETAINED_TEXT;
        let open = StreamingText {
            items,
            order: item.order,
            kind,
            block_id,
            parent,
            text: retains.then(|| content.to_string()),
            images,
            shown_as_done,
            started_ms: item.time.as_ref().map(Time::millis),
        };
        if is_last {
            self.last_text =
                Some(StreamingText { text: None, shown_as_done: true, ..open.clone() });
        }
        if shown_as_done || is_streaming(&item.body) {
            self.open_text = Some(open);
        }
    }
}
