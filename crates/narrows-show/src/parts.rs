//! Texts that are several items: joined where they are shown as one.
//!
//! A part ends after so many bytes, in the middle of a word or of a code. What reads Markdown gets the
//! same text in other pieces, each of which can be read by itself.

use crate::blocks::Fence;
use crate::order::Source;
use narrows::Item;
use narrows::item::ItemBody;
use narrows::limits::TEXT_PART;
use narrows::sanitize::Clean;
use std::io;

/// A code or a paragraph that is longer is cut.
const MAX_PIECE: usize = 4 * TEXT_PART;

/// Whether a text may go on in another item.
pub(crate) fn may_go_on(item: &Item) -> bool {
    text_of(item).is_some_and(|text| text.len() + 4 > TEXT_PART)
}

/// The text of which an item is a part.
pub(crate) fn text_of(item: &Item) -> Option<&Clean> {
    match &item.body {
        ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. } => Some(content),
        ItemBody::UserMessage { text, .. } => Some(text),
        _ => None,
    }
}

pub(crate) fn text_mut(item: &mut Item) -> Option<&mut Clean> {
    match &mut item.body {
        ItemBody::Text { content, .. } | ItemBody::Thinking { content, .. } => Some(content),
        ItemBody::UserMessage { text, .. } => Some(text),
        _ => None,
    }
}

/// Items whose texts end where Markdown can be cut, wherever their parts ended.
pub(crate) struct Joined<'a>(pub(crate) &'a dyn Source);

impl Source for Joined<'_> {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        // An item that may go on in the next one.
        let mut held: Option<Item> = None;
        self.0.items(&mut |mut item| {
            if let Some(mut before) = held.take() {
                if item.continues.as_ref() == Some(&before.id)
                    && let Some(carried) = cut(&mut before)
                    && let Some(text) = text_mut(&mut item)
                {
                    let mut whole = carried;
                    whole.push(text);
                    *text = whole;
                }
                each(before)?;
            }
            if may_go_on(&item) {
                held = Some(item);
                return Ok(());
            }
            each(item)
        })?;
        held.into_iter().try_for_each(each)
    }
}

/// Takes what follows the last place where an item's text can be cut off it.
fn cut(item: &mut Item) -> Option<Clean> {
    let markdown = matches!(item.body, ItemBody::Text { .. });
    let text = text_mut(item)?;
    let place = if markdown { place(text) } else { Place::at_line(text) };
    let rest = text.after(place.at)?;
    let mut kept = text.before(place.at)?;
    let mut carried = Clean::default();
    if let Some((from, until, sign)) = place.code {
        // A code that is too long for one piece is two.
        let opening = text.before(until).and_then(|t| t.after(from))?;
        let closing = text.before(sign).and_then(|t| t.after(from))?;
        kept.push(&closing);
        carried.push(&opening);
    }
    carried.push(&rest);
    *text = kept;
    Some(carried)
}

/// Where a text can be cut.
struct Place {
    at: usize,
    /// The line that opens the code which is cut there, and where its sign ends.
    code: Option<(usize, usize, usize)>,
}

impl Place {
    /// After the last line.
    fn at_line(text: &str) -> Place {
        Place { at: text.rfind('\n').map_or(text.len(), |at| at + 1), code: None }
    }
}

/// The last blank line after which something new begins; if there is none for long, any line.
fn place(text: &str) -> Place {
    let (mut at, mut open, mut blank, mut found) = (0, None::<(Fence, usize, usize)>, false, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if let Some((fence, ..)) = &open {
            if fence.is_closed_by(line.trim_end_matches('\n')) {
                open = None;
            }
            blank = false;
        } else if line.trim().is_empty() {
            blank = true;
        } else {
            // What is indented may belong to a list before it.
            let begins = !line.starts_with([' ', '\t', '-', '*', '+', '>', '|'])
                && !line.starts_with(|c: char| c.is_ascii_digit());
            if blank && begins {
                found = at;
            }
            blank = false;
            open = Fence::opened_by(line.trim_end_matches('\n')).map(|fence| (fence, at, end));
        }
        at = end;
    }
    if found > 0 || text.len() < MAX_PIECE {
        return Place { at: found, code: None };
    }
    let place = Place::at_line(text);
    let code = open.filter(|(.., until)| *until <= place.at).map(|(_, from, until)| {
        let line = &text[from..until];
        let lead = line.len() - line.trim_start_matches(' ').len();
        let sign = line[lead..].chars().next().unwrap_or('`');
        let signs = line[lead..].chars().take_while(|c| *c == sign).count();
        (from, until, from + lead + signs)
    });
    Place { code, ..place }
}
