//! Texts that are too long for one item: they go on in the next one.
//!
//! Where a part ends depends on the bytes of the text alone, and not on the pieces in which they came.

use super::Fold;
use crate::limits::TEXT_PART;
use crate::model::change::{Change, Set};
use crate::model::event::{Chunk, Event, Message};
use crate::model::item::{Item, ItemBody};
use crate::sanitize::Clean;

/// Which text grows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Thinking,
}

impl Kind {
    pub(super) fn name(self) -> &'static str {
        match self {
            Kind::Text => "text",
            Kind::Thinking => "thinking",
        }
    }
}

/// Where a text ends: in its item, or in the last of its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The first item.
    base: Clean,
    /// How many items there are.
    parts: u64,
    /// Bytes of the last one.
    bytes: usize,
}

impl Place {
    /// A text that begins.
    pub(super) fn new(base: Clean) -> Place {
        Place { base, parts: 1, bytes: 0 }
    }

    /// The place where the text of an item ends, if the item is the last part of it.
    pub(super) fn of(item: &Item, text: &str) -> Place {
        let parts = item.continues.as_ref().and_then(|_| {
            let (base, number) = item.id.rsplit_once('~')?;
            Some((item.id.before(base.len())?, number.parse().ok()?))
        });
        let (base, parts) = parts.unwrap_or((item.id.clone(), 1));
        Place { base, parts, bytes: text.len() }
    }

    /// The item in which it began.
    pub(super) fn base(&self) -> &Clean {
        &self.base
    }

    /// The item in which it ends.
    pub(super) fn id(&self) -> Clean {
        self.part(self.parts)
    }

    /// Whether it is in one item.
    pub(super) fn is_one(&self) -> bool {
        self.parts == 1
    }

    fn part(&self, number: u64) -> Clean {
        match number {
            0 | 1 => self.base.clone(),
            n => Clean::concat(&[&self.base, &Clean::literal("~"), &Clean::number(n)]),
        }
    }

    /// The next part, and which item it continues.
    fn next(&mut self) -> (Clean, Clean) {
        let before = self.id();
        self.parts += 1;
        self.bytes = 0;
        (self.id(), before)
    }

    /// Takes what the last item has room for.
    fn fit(&mut self, rest: &mut Rest<'_>) -> Clean {
        let room = TEXT_PART.saturating_sub(self.bytes);
        let until = rest.text.as_str().floor_char_boundary(rest.at.saturating_add(room));
        let all = rest.at == 0 && until == rest.text.len();
        let fits = if all { Some(rest.text.clone()) } else { rest.text.between(rest.at, until) };
        let fits = fits.unwrap_or_default();
        rest.at = until;
        self.bytes += fits.len();
        fits
    }
}

/// What is left of a text.
struct Rest<'a> {
    text: &'a Clean,
    at: usize,
}

impl Rest<'_> {
    fn of(text: &Clean) -> Rest<'_> {
        Rest { text, at: 0 }
    }

    fn is_empty(&self) -> bool {
        self.at >= self.text.len()
    }
}

/// A text as the body of an item; the flag says whether it is the last part, for now.
pub(super) type MakeBody<'a> = &'a dyn Fn(Clean, bool) -> ItemBody;

impl Fold {
    /// Puts a text, in parts where it is too long for one item. Returns where it ends.
    pub(super) fn put_text(
        &mut self,
        event: &Event,
        base: Clean,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) -> Place {
        let mut place = Place::new(base);
        let mut rest = Rest::of(text);
        let first = place.fit(&mut rest);
        self.put(event, place.id(), make(first, rest.is_empty()), out);
        self.put_rest(event, &mut place, rest, make, out);
        place
    }

    /// Adds text at the end of a field; what has no room makes the next parts. Returns whether there
    /// are any.
    pub(super) fn grow(
        &mut self,
        event: &Event,
        place: &mut Place,
        field: &'static str,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) -> bool {
        let mut rest = Rest::of(text);
        let fits = place.fit(&mut rest);
        if !fits.is_empty() {
            out.push(Change::Append { id: place.id(), field, text: fits });
        }
        if rest.is_empty() {
            return false;
        }
        if is_streaming(&make(Clean::default(), true)) {
            out.push(Change::Set { id: place.id(), set: Set::IsStreaming(false) });
        }
        self.put_rest(event, place, rest, make, out);
        true
    }

    /// Puts what comes after the part where the text ends now.
    fn put_rest(
        &mut self,
        event: &Event,
        place: &mut Place,
        mut rest: Rest<'_>,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        while !rest.is_empty() {
            let (id, before) = place.next();
            let piece = place.fit(&mut rest);
            self.put_after(event, id, Some(before), make(piece, rest.is_empty()), out);
        }
    }

    /// The whole text has come: adds what was not told, or replaces what was told otherwise. `kept` is
    /// what was told, if that is known.
    pub(super) fn complete_text(
        &mut self,
        event: &Event,
        old: &Place,
        kept: Option<&str>,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        let kept = kept.filter(|kept| old.is_one() && text.starts_with(kept));
        let Some(at) = kept.map(str::len) else {
            return self.replace_text(event, old, text, make, out);
        };
        let (mut place, mut rest) = (old.clone(), Rest { text, at });
        let more = place.fit(&mut rest);
        if !more.is_empty() {
            out.push(Change::Append { id: place.id(), field: "content", text: more });
        }
        out.push(Change::Set { id: place.id(), set: Set::IsStreaming(false) });
        self.put_rest(event, &mut place, rest, make, out);
    }

    /// The text anew, as it is at its end: in as many parts as it needs.
    fn replace_text(
        &mut self,
        event: &Event,
        old: &Place,
        text: &Clean,
        make: MakeBody<'_>,
        out: &mut Vec<Change>,
    ) {
        let mut place = Place::new(old.base.clone());
        let mut rest = Rest::of(text);
        loop {
            let set = Set::Content(place.fit(&mut rest));
            out.push(Change::Set { id: place.id(), set });
            if rest.is_empty() || place.parts == old.parts {
                break;
            }
            place.next();
        }
        for gone in place.parts + 1..=old.parts {
            out.push(Change::Remove { id: old.part(gone) });
        }
        out.push(Change::Set { id: place.id(), set: Set::IsStreaming(false) });
        self.put_rest(event, &mut place, rest, make, out);
    }

    /// Takes all of a text back.
    pub(super) fn remove_text(place: &Place, out: &mut Vec<Change>) {
        (1..=place.parts).for_each(|part| out.push(Change::Remove { id: place.part(part) }));
    }
}

/// Whether more of a text is coming.
pub(super) fn is_streaming(body: &ItemBody) -> bool {
    match body {
        ItemBody::Text { is_streaming, .. } | ItemBody::Thinking { is_streaming, .. } => {
            *is_streaming
        }
        _ => false,
    }
}

/// A text; the pictures that came with it stand in its last part.
pub(super) fn text_body(
    chunk: &Chunk,
    kind: Kind,
    content: Clean,
    last: bool,
    is_streaming: bool,
) -> ItemBody {
    let mut body = part_body(chunk, kind, content, is_streaming);
    if let ItemBody::Text { images, .. } = &mut body
        && last
    {
        images.clone_from(&chunk.images);
    }
    body
}

/// A part of a text.
pub(super) fn part_body(chunk: &Chunk, kind: Kind, content: Clean, is_streaming: bool) -> ItemBody {
    let block_id = chunk.block_id.clone();
    match kind {
        Kind::Thinking => {
            ItemBody::Thinking { content, is_streaming, block_id, hidden: chunk.hidden }
        }
        Kind::Text => ItemBody::Text { content, is_streaming, block_id, images: Vec::new() },
    }
}

pub(super) fn prompt_body(message: &Message, text: Clean, last: bool) -> ItemBody {
    ItemBody::UserMessage {
        text,
        images: if last { message.images.clone() } else { Vec::new() },
        origin: message.origin,
        block_id: message.block_id.clone(),
    }
}
