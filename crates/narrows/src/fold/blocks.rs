//! Text blocks with an id of their own: their chunks and their final text are one item, whatever comes
//! in between.

use super::Fold;
use super::text::retain_text;
use super::text_items::{TextItems, TextKind, continuation_body, text_body};
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Event, TextChunk};
use crate::sanitize::Clean;

/// Blocks that may be open at once.
const MAX_OPEN_BLOCKS: usize = 256;

/// A block that is still streaming.
#[derive(Debug)]
pub(super) struct OpenBlock {
    pub(super) items: TextItems,
    /// The text so far; none if it is too long.
    pub(super) text: Option<String>,
}

impl OpenBlock {
    /// Copies everything but the text.
    pub(super) fn without_text(&self) -> OpenBlock {
        OpenBlock { items: self.items.clone(), text: None }
    }
}

impl Fold {
    /// Folds a chunk of a block, or all of it.
    pub(super) fn fold_block_chunk(
        &mut self,
        event: &Event,
        chunk: &TextChunk,
        kind: TextKind,
        block_id: &Clean,
        out: &mut Vec<Change>,
    ) {
        let id = block_item_id(kind, block_id);
        let open = self.open_blocks.iter().position(|open| *open.items.first_id() == id);
        // An empty final text withdraws the block.
        let withdrawn = chunk.whole && chunk.text.is_empty() && !chunk.hidden;
        let streams = !chunk.whole;
        let make = |text, is_last: bool| continuation_body(chunk, kind, text, is_last && streams);
        match open {
            Some(at) if chunk.whole => {
                let OpenBlock { items, text } = self.open_blocks.remove(at);
                if withdrawn {
                    Self::remove_text(&items, out);
                } else {
                    self.complete_text(event, &items, text.as_deref(), &chunk.text, &make, out);
                }
            }
            Some(at) => {
                let mut open = self.open_blocks.remove(at);
                retain_text(&mut open.text, &chunk.text);
                self.append_text(event, &mut open.items, "content", &chunk.text, &make, out);
                self.open_blocks.insert(at, open);
            }
            None if withdrawn => {}
            None => {
                let make =
                    |text, is_last: bool| text_body(chunk, kind, text, is_last, is_last && streams);
                let items = self.put_text(event, id, &chunk.text, &make, out);
                if !chunk.whole {
                    let text = items.is_single().then(|| chunk.text.to_string());
                    self.open_blocks.push(OpenBlock { items, text });
                    if self.open_blocks.len() > MAX_OPEN_BLOCKS {
                        self.close_blocks(1, out);
                    }
                }
            }
        }
    }

    /// Closes the oldest `n` open blocks.
    pub(super) fn close_blocks(&mut self, n: usize, out: &mut Vec<Change>) {
        let n = n.min(self.open_blocks.len());
        for open in self.open_blocks.drain(..n) {
            out.push(Change::Set { id: open.items.last_id(), set: ItemPatch::IsStreaming(false) });
        }
    }
}

/// The item id of a block.
pub(super) fn block_item_id(kind: TextKind, block_id: &Clean) -> Clean {
    Clean::concat(&[&Clean::literal(kind.name()), &Clean::literal("-"), block_id])
}
