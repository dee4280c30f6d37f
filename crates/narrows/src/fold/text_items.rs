//! Texts that are too long for one item: they continue in the next one.
//!
//! Where an item ends depends on the bytes of the text alone, not on the chunks in which they came.

use super::Fold;
use crate::limits::MAX_ITEM_TEXT_BYTES;
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Event, TextChunk, UserMessage};
use crate::model::item::{Item, ItemBody};
use crate::sanitize::Clean;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextKind {
    Text,
    Thinking,
}

impl TextKind {
    pub(super) fn name(self) -> &'static str {
        match self {
            TextKind::Text => "text",
            TextKind::Thinking => "thinking",
        }
    }
}

/// The items of one text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TextItems {
    first: Clean,
    count: u64,
    /// Bytes of text in the last item.
    last_bytes: usize,
}

impl TextItems {
    /// The items of a text that starts in `first`.
    pub(super) fn new(first: Clean) -> TextItems {
        TextItems { first, count: 1, last_bytes: 0 }
    }

    /// The items of a text whose last item is `item`.
    pub(super) fn ending_in(item: &Item, text: &str) -> TextItems {
        let continued = item.continues.as_ref().and_then(|_| {
            let (first, number) = item.id.rsplit_once('~')?;
            Some((item.id.before(first.len())?, number.parse().ok()?))
        });
        let (first, count) = continued.unwrap_or((item.id.clone(), 1));
        TextItems { first, count, last_bytes: text.len() }
    }

    pub(super) fn first_id(&self) -> &Clean {
        &self.first
    }

    pub(super) fn last_id(&self) -> Clean {
        self.id(self.count)
    }

    /// Whether the text is in one item.
    pub(super) fn is_single(&self) -> bool {
        self.count == 1
    }

    /// The id of an item, by its number from 1.
    fn id(&self, number: u64) -> Clean {
        match number {
            0 | 1 => self.first.clone(),
            n => Clean::concat(&[&self.first, &Clean::literal("~"), &Clean::number(n)]),
        }
    }

    /// Adds an item. Returns its id and that of the item which it continues.
    fn add(&mut self) -> (Clean, Clean) {
        let before = self.last_id();
        self.count += 1;
        self.last_bytes = 0;
        (self.last_id(), before)
    }

    /// Moves the text that fits into the last item out of `rest`.
    fn fill(&mut self, rest: &mut Remaining<'_>) -> Clean {
        let room = MAX_ITEM_TEXT_BYTES.saturating_sub(self.last_bytes);
        let until = rest.text.as_str().floor_char_boundary(rest.from.saturating_add(room));
        let is_all = rest.from == 0 && until == rest.text.len();
        let fits =
            if is_all { Some(rest.text.clone()) } else { rest.text.between(rest.from, until) };
        let fits = fits.unwrap_or_default();
        rest.from = until;
        self.last_bytes += fits.len();
        fits
    }
}

/// The part of a text that is not yet in an item.
struct Remaining<'a> {
    text: &'a Clean,
    from: usize,
}

impl Remaining<'_> {
    fn all(text: &Clean) -> Remaining<'_> {
        Remaining { text, from: 0 }
    }

    fn is_empty(&self) -> bool {
        self.from >= self.text.len()
    }
}

/// Makes the body of an item from its text; the flag is set for the last item of the text so far.
pub(super) type MakeBody<'a> = &'a dyn Fn(Clean, bool) -> ItemBody;

impl Fold {
    /// Puts a text, in several items where it is too long for one.
    pub(super) fn put_text(
        &mut self,
        event: &Event,
        first: Clean,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) -> TextItems {
        let mut items = TextItems::new(first);
        let mut rest = Remaining::all(text);
        let fits = items.fill(&mut rest);
        self.put_item(event, items.last_id(), make(fits, rest.is_empty()), out);
        self.put_remaining(event, &mut items, rest, make, out);
        items
    }

    /// Appends text to a field of the last item, and puts further items for what does not fit.
    /// Returns whether it put any.
    pub(super) fn append_text(
        &mut self,
        event: &Event,
        items: &mut TextItems,
        field: &'static str,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) -> bool {
        let mut rest = Remaining::all(text);
        let fits = items.fill(&mut rest);
        if !fits.is_empty() {
            out.push(Change::Append { id: items.last_id(), field, text: fits });
        }
        if rest.is_empty() {
            return false;
        }
        if is_streaming(&make(Clean::default(), true)) {
            out.push(Change::Set { id: items.last_id(), set: ItemPatch::IsStreaming(false) });
        }
        self.put_remaining(event, items, rest, make, out);
        true
    }

    fn put_remaining(
        &mut self,
        event: &Event,
        items: &mut TextItems,
        mut rest: Remaining<'_>,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        while !rest.is_empty() {
            let (id, before) = items.add();
            let fits = items.fill(&mut rest);
            self.put_continuation(event, id, Some(before), make(fits, rest.is_empty()), out);
        }
    }

    /// Completes a streamed text with its final form: appends what was missing, or replaces the text
    /// if it differs. `streamed` is the text so far, if it was retained.
    pub(super) fn complete_text(
        &mut self,
        event: &Event,
        old: &TextItems,
        streamed: Option<&str>,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        let streamed = streamed.filter(|s| old.is_single() && text.starts_with(s));
        let Some(from) = streamed.map(str::len) else {
            return self.replace_text(event, old, text, make, out);
        };
        let (mut items, mut rest) = (old.clone(), Remaining { text, from });
        let more = items.fill(&mut rest);
        if !more.is_empty() {
            out.push(Change::Append { id: items.last_id(), field: "content", text: more });
        }
        out.push(Change::Set { id: items.last_id(), set: ItemPatch::IsStreaming(false) });
        self.put_remaining(event, &mut items, rest, make, out);
    }

    /// Replaces a text in its old items, and adds or removes items as the new length needs.
    fn replace_text(
        &mut self,
        event: &Event,
        old: &TextItems,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        let mut items = TextItems::new(old.first.clone());
        let mut rest = Remaining::all(text);
        loop {
            let set = ItemPatch::Content(items.fill(&mut rest));
            out.push(Change::Set { id: items.last_id(), set });
            if rest.is_empty() || items.count == old.count {
                break;
            }
            items.add();
        }
        for surplus in items.count + 1..=old.count {
            out.push(Change::Remove { id: old.id(surplus) });
        }
        out.push(Change::Set { id: items.last_id(), set: ItemPatch::IsStreaming(false) });
        self.put_remaining(event, &mut items, rest, make, out);
    }

    /// Removes all items of a text.
    pub(super) fn remove_text(items: &TextItems, out: &mut Vec<Change>) {
        (1..=items.count).for_each(|number| out.push(Change::Remove { id: items.id(number) }));
    }
}

pub(super) fn is_streaming(body: &ItemBody) -> bool {
    match body {
        ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. } => {
            *is_streaming
        }
        _ => false,
    }
}

/// The body of a text item; the images of the chunk are in the last item of the text.
pub(super) fn text_body(
    chunk: &TextChunk,
    kind: TextKind,
    content: Clean,
    is_last: bool,
    is_streaming: bool,
) -> ItemBody {
    let mut body = continuation_body(chunk, kind, content, is_streaming);
    if let ItemBody::Text { images, .. } = &mut body
        && is_last
    {
        images.clone_from(&chunk.images);
    }
    body
}

/// The body of an item that continues a text.
pub(super) fn continuation_body(
    chunk: &TextChunk,
    kind: TextKind,
    content: Clean,
    is_streaming: bool,
) -> ItemBody {
    let block_id = chunk.block_id.clone();
    match kind {
        TextKind::Thinking => {
            ItemBody::Thinking { content, is_streaming, block_id, hidden: chunk.hidden }
        }
        TextKind::Text => ItemBody::Text { content, is_streaming, block_id, images: Vec::new() },
    }
}

pub(super) fn prompt_body(message: &UserMessage, text: Clean, is_last: bool) -> ItemBody {
    ItemBody::UserMessage {
        text,
        images: if is_last { message.images.clone() } else { Vec::new() },
        origin: message.origin,
        block_id: message.block_id.clone(),
    }
}
