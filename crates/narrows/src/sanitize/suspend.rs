//! A source that is silent: at its end for now, or a while after its turn was answered. What has clearly
//! begun to be something to hide stays held back, as what goes on would complete it.

use super::Clean;
use super::begun::Begun;
use super::{OpenText, Sanitizer, event};
use crate::change::Items;
use crate::event::{Body, Event};
use crate::item::{Item, ItemBody};

impl Sanitizer {
    /// The input is over for now, without an answer to the turn. What has clearly begun to be something
    /// to hide is not shown, and what goes on is understood together with it. Where all of it can be
    /// read `again`, texts stay open, and what may have begun is not shown either: what goes on then
    /// reads as if it had never ended.
    pub(crate) fn suspend(&mut self, again: bool, out: &mut Vec<Event>) {
        let cleaner = &mut self.cleaner;
        let is_over =
            |t: &OpenText| t.is_over || !(again || t.seam.has_begun(cleaner, Begun::CLEAR));
        if self.text.as_ref().is_some_and(is_over) {
            self.end_text(out);
        } else if let Some(open) = &mut self.text {
            let rest = if again {
                open.seam.pause(cleaner)
            } else {
                open.seam.suspend(cleaner, Begun::CLEAR)
            };
            open.tell(rest, out);
        }
        let calls = if again { 0 } else { self.order.len() };
        for _ in 0..calls {
            let Some(id) = self.order.pop_front() else { break };
            let Some(mut open) = self.outputs.remove(&id) else { continue };
            let goes_on = open.seam.has_begun(&self.cleaner, Begun::CLEAR);
            let rest = if goes_on {
                open.seam.suspend(&mut self.cleaner, Begun::CLEAR)
            } else {
                open.seam.finish(&mut self.cleaner)
            };
            out.extend(rest.and_then(|rest| open.more(rest)));
            if goes_on {
                self.order.push_back(id.clone());
                self.outputs.insert(id, open);
            }
        }
        let mut aside = self.growing.suspend(&self.cleaner);
        aside.extend(self.snapshots.suspend(&self.cleaner));
        out.extend(aside.into_iter().map(|event| event::clean(&mut self.cleaner, event, None)));
    }

    /// Whether something of a text is held back though its turn was answered.
    pub(crate) fn waits_answered(&self) -> bool {
        self.text.as_ref().is_some_and(|open| open.is_over && !open.is_at_rest())
    }

    /// A while has passed since the turn was answered, and nothing came: the text is over, unless
    /// something to hide stands there in part.
    pub(crate) fn settle_answered(&mut self, out: &mut Vec<Event>) {
        let Some(open) = self.text.as_mut().filter(|open| open.is_over) else { return };
        if !open.seam.has_begun(&self.cleaner, Begun::IN_PART) {
            return self.end_text(out);
        }
        let rest = open.seam.suspend(&mut self.cleaner, Begun::IN_PART);
        open.tell(rest, out);
    }

    /// Packets were read again: of the text that is open now, the items had this. What was shown when the
    /// source was silent is more than what the packets alone give.
    pub(crate) fn recall_shown(&mut self, shown: &Shown) {
        let Some(open) = &mut self.text else { return };
        let block = match &open.shell.body {
            Body::UserMessage(message) => &message.block_id,
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => &chunk.block_id,
            _ => &None,
        };
        let is_same = shown.id.ends_with(&format!("-{}", open.shell.began))
            || (block.is_some() && *block == shown.block);
        let Some(more) = shown.text.get(open.told_len..).filter(|_| is_same) else { return };
        if open.seam.recall(&mut self.cleaner, more) {
            (open.told, open.told_len) = (true, shown.text.len());
        }
    }
}

/// The last text of a session, as far as it was shown.
#[derive(Debug)]
pub(crate) struct Shown {
    id: Clean,
    block: Option<Clean>,
    text: Clean,
}

impl Shown {
    /// Of the last item with a text.
    pub(crate) fn last(items: &Items) -> Option<Shown> {
        let text = |item: &Item| match &item.body {
            ItemBody::Text { content: text, block_id, .. }
            | ItemBody::Thinking { content: text, block_id, .. }
            | ItemBody::UserMessage { text, block_id, .. } => {
                Some(Shown { id: item.id.clone(), block: block_id.clone(), text: text.clone() })
            }
            _ => None,
        };
        let last = items.iter().filter(|item| text(item).is_some()).max_by_key(|item| item.order);
        last.and_then(text)
    }
}
