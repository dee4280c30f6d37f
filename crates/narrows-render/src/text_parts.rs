//! Texts that are split into several items, joined for rendering.
//!
//! A part ends at a byte limit, in the middle of a word or of a code block. Renderers of Markdown
//! get the same text in parts that are each valid Markdown.

use crate::markdown_blocks::Fence;
use crate::nesting::ItemSource;
use narrows::Item;
use narrows::item::ItemBody;
use narrows::limits::TEXT_PART;
use narrows::sanitize::Clean;
use std::io;

/// A longer paragraph or code block is cut at a line.
const MAX_PART_BYTES: usize = 4 * TEXT_PART;

/// Returns whether the next item may continue the text of this one.
pub(crate) fn may_continue(item: &Item) -> bool {
    text_of(item).is_some_and(|text| text.len() + 4 > TEXT_PART)
}

/// Returns the text of an item that can be split into parts.
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

/// An item source whose texts end at block boundaries of Markdown, not at byte limits.
pub(crate) struct JoinedParts<'a>(pub(crate) &'a dyn ItemSource);

impl ItemSource for JoinedParts<'_> {
    fn items(&self, each: &mut dyn FnMut(Item) -> io::Result<()>) -> io::Result<()> {
        // The item that the next one may continue.
        let mut pending: Option<Item> = None;
        self.0.items(&mut |mut item| {
            if let Some(mut before) = pending.take() {
                if item.continues.as_ref() == Some(&before.id)
                    && let Some(carried) = split_tail(&mut before)
                    && let Some(text) = text_mut(&mut item)
                {
                    let mut whole = carried;
                    whole.push(text);
                    *text = whole;
                }
                each(before)?;
            }
            if may_continue(&item) {
                pending = Some(item);
                return Ok(());
            }
            each(item)
        })?;
        pending.into_iter().try_for_each(each)
    }
}

/// Cuts an item's text at its last cut point and returns the rest.
fn split_tail(item: &mut Item) -> Option<Clean> {
    let markdown = matches!(item.body, ItemBody::Text { .. });
    let text = text_mut(item)?;
    let cut = if markdown { markdown_cut_point(text) } else { CutPoint::at_last_line(text) };
    let rest = text.after(cut.at)?;
    let mut head = text.before(cut.at)?;
    let mut carried = Clean::default();
    if let Some((from, until, marker)) = cut.code {
        // A code block that is too long for one part becomes two code blocks.
        let opening = text.before(until).and_then(|t| t.after(from))?;
        let closing = text.before(marker).and_then(|t| t.after(from))?;
        head.push(&closing);
        carried.push(&opening);
    }
    carried.push(&rest);
    *text = head;
    Some(carried)
}

/// A position at which a text can be cut.
struct CutPoint {
    at: usize,
    /// The line that opens the code block at the cut (start and end), and the end of its fence.
    code: Option<(usize, usize, usize)>,
}

impl CutPoint {
    /// Cuts after the last line.
    fn at_last_line(text: &str) -> CutPoint {
        CutPoint { at: text.rfind('\n').map_or(text.len(), |at| at + 1), code: None }
    }
}

/// Finds the last blank line before a new block; a text of [`MAX_PART_BYTES`] without one is cut at
/// any line.
fn markdown_cut_point(text: &str) -> CutPoint {
    let (mut at, mut open, mut blank, mut last_boundary) =
        (0, None::<(Fence, usize, usize)>, false, 0);
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
            // An indented line may belong to the list before it.
            let starts_block = !line.starts_with([' ', '\t', '-', '*', '+', '>', '|'])
                && !line.starts_with(|c: char| c.is_ascii_digit());
            if blank && starts_block {
                last_boundary = at;
            }
            blank = false;
            open = Fence::parse_opening(line.trim_end_matches('\n')).map(|fence| (fence, at, end));
        }
        at = end;
    }
    if last_boundary > 0 || text.len() < MAX_PART_BYTES {
        return CutPoint { at: last_boundary, code: None };
    }
    let cut = CutPoint::at_last_line(text);
    let code = open.filter(|(.., until)| *until <= cut.at).map(|(_, from, until)| {
        let line = &text[from..until];
        let lead = line.len() - line.trim_start_matches(' ').len();
        let marker = line[lead..].chars().next().unwrap_or('`');
        let marker_count = line[lead..].chars().take_while(|c| *c == marker).count();
        (from, until, from + lead + marker_count)
    });
    CutPoint { code, ..cut }
}
