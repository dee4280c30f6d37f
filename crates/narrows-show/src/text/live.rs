//! Texts that grow on the screen.

use super::flow::Flow;
use super::{Place, Printer};
use crate::parts;
use crate::wrap::Line;
use narrows::Item;
use narrows::item::ItemBody;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

/// The text that is being printed.
#[derive(Debug)]
pub(super) struct Live {
    place: Place,
    flow: Flow,
    /// Whether it was told to be over; more may still come.
    over: bool,
    /// Whether something of it is on the screen.
    begun: bool,
}

/// How much of a text was printed: its length, and what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Printed {
    length: usize,
    hash: u64,
}

impl Printed {
    fn of(text: &str) -> Printed {
        Printed { length: text.len(), hash: hash(&text) }
    }

    /// What of a text comes after it; none where the text has become another one.
    fn rest(self, text: &str) -> Option<&str> {
        let (before, rest) = text.split_at_checked(self.length)?;
        (hash(&before) == self.hash).then_some(rest)
    }
}

/// The text of an item that is printed while it grows, and whether it still does.
pub(super) fn text_of(item: &Item) -> Option<(&str, bool)> {
    match &item.body {
        ItemBody::Text { content, is_streaming, images, .. } if images.is_empty() => {
            Some((content, *is_streaming))
        }
        _ => None,
    }
}

pub(super) fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

/// What lines say, as a number.
pub(super) fn hash_lines(lines: &[Line]) -> u64 {
    let said: Vec<&str> = lines.iter().flatten().map(|s| s.text.as_str()).collect();
    hash(&said)
}

impl<W: Write> Printer<W> {
    /// Prints what is new of a text.
    pub(super) fn grow(&mut self, item: &Item, text: &str, streams: bool) -> io::Result<()> {
        let mut ours = self.live.as_ref().is_some_and(|l| l.place.id == *item.id);
        if !ours && self.goes_on(item) {
            ours = true;
        }
        // Of several texts that come at once one is printed as it comes, the others whole.
        if streams && !ours && self.live.as_ref().is_some_and(|l| !l.over) {
            return Ok(());
        }
        let before = self.texts.get(&item.id).copied().unwrap_or(Printed::of(""));
        let rest = before.rest(text);
        if rest.is_some_and(str::is_empty) && (before.length > 0 && !ours || text.is_empty()) {
            return Ok(());
        }
        // A text that was said anew is printed below its old words.
        if !ours || rest.is_none() {
            self.live_ends()?;
            let depth = self.depth(item);
            let flow = Flow::new(self.room(depth), self.style.colour);
            let place = Place::of(item, &self.style, depth);
            self.live = Some(Live { place, flow, over: false, begun: false });
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        let mut lines = live.flow.push(rest.unwrap_or(text));
        live.over = !streams;
        // The next item may go on with it.
        if !streams && !parts::may_go_on(item) {
            lines.extend(live.flow.finish());
        }
        self.texts.put(&item.id, Printed::of(text));
        let (place, first) = (live.place.clone(), !live.begun && !lines.is_empty());
        live.begun |= first;
        self.print(&place, first, lines)
    }

    /// Whether an item goes on with the text that is being printed: then it is that text.
    fn goes_on(&mut self, item: &Item) -> bool {
        let depth = self.depth(item);
        let place = Place::of(item, &self.style, depth);
        let live = self.live.as_mut().filter(|l| {
            item.continues.as_ref().is_some_and(|before| l.place.id == *before.as_str())
        });
        live.is_some_and(|live| {
            live.place = place;
            true
        })
    }

    /// Prints a text that may go on in the next item, or goes on with the last one; false when it is
    /// another one.
    pub(super) fn part(&mut self, item: &Item) -> io::Result<bool> {
        let Some((text, _)) = text_of(item) else { return Ok(false) };
        if !self.goes_on(item) {
            if !parts::may_go_on(item) {
                return Ok(false);
            }
            self.live_ends()?;
            let depth = self.depth(item);
            let flow = Flow::new(self.room(depth), self.style.colour);
            let place = Place::of(item, &self.style, depth);
            self.live = Some(Live { place, flow, over: true, begun: false });
        }
        let Some(live) = &mut self.live else { return Ok(false) };
        let lines = live.flow.push(text);
        let (place, first) = (live.place.clone(), !live.begun && !lines.is_empty());
        live.begun |= first;
        self.print(&place, first, lines)?;
        Ok(true)
    }

    /// Something else takes the screen: what is held back of a text is printed first.
    pub(super) fn live_ends(&mut self) -> io::Result<()> {
        let Some(mut live) = self.live.take() else { return Ok(()) };
        let lines = live.flow.finish();
        self.print(&live.place, !live.begun && !lines.is_empty(), lines)
    }

    fn print(&mut self, place: &Place, first: bool, lines: Vec<Line>) -> io::Result<()> {
        if first {
            self.begin(place)?;
        }
        lines.into_iter().try_for_each(|line| self.line(place.depth, line))
    }
}
