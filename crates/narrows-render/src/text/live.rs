//! Texts that are printed while they grow.

use super::stream::MarkdownStream;
use super::{Placement, TranscriptPrinter};
use crate::text_parts;
use crate::wrap::StyledLine;
use narrows::Item;
use narrows::item::ItemBody;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Write};

/// The text that is being printed.
#[derive(Debug)]
pub(super) struct StreamingText {
    placement: Placement,
    stream: MarkdownStream,
    /// Whether the item is complete; the next item may still continue it.
    is_complete: bool,
    /// Whether some of its lines are printed.
    has_output: bool,
}

/// The length and the hash of the text of an item that is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RenderedState {
    length: usize,
    hash: u64,
}

impl RenderedState {
    fn of(text: &str) -> RenderedState {
        RenderedState { length: text.len(), hash: hash(&text) }
    }

    /// Returns what follows the printed text; none if the text was replaced.
    fn suffix_of(self, text: &str) -> Option<&str> {
        let (before, rest) = text.split_at_checked(self.length)?;
        (hash(&before) == self.hash).then_some(rest)
    }
}

/// Returns the text of an item that is printed while it grows, and whether it still grows.
pub(super) fn text_of(item: &Item) -> Option<(&str, bool)> {
    match &item.body {
        ItemBody::Text { content, is_streaming, images, .. } if images.is_empty() => {
            Some((content, *is_streaming))
        }
        _ => None,
    }
}

pub(super) fn hash(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
}

/// Hashes the text of lines.
pub(super) fn hash_lines(lines: &[StyledLine]) -> u64 {
    let texts: Vec<&str> = lines.iter().flatten().map(|s| s.text.as_str()).collect();
    hash(&texts)
}

impl<W: Write> TranscriptPrinter<W> {
    /// Prints what is new of a text.
    pub(super) fn print_growth(
        &mut self,
        item: &Item,
        text: &str,
        is_streaming: bool,
    ) -> io::Result<()> {
        let mut is_current = self.live.as_ref().is_some_and(|l| l.placement.id == *item.id);
        if !is_current && self.adopt_continuation(item) {
            is_current = true;
        }
        // Of several concurrent streams, one is printed as it grows, the others when complete.
        if is_streaming && !is_current && self.live.as_ref().is_some_and(|l| !l.is_complete) {
            return Ok(());
        }
        let before = self.printed_texts.get(&item.id).copied().unwrap_or(RenderedState::of(""));
        let rest = before.suffix_of(text);
        if rest.is_some_and(str::is_empty) && (before.length > 0 && !is_current || text.is_empty())
        {
            return Ok(());
        }
        // A replaced text is printed below the old one.
        if !is_current || rest.is_none() {
            self.end_streaming()?;
            let depth = self.depth(item);
            let stream = MarkdownStream::new(self.columns_at(depth), self.options.colour);
            let placement = Placement::of(item, &self.options, depth);
            self.live =
                Some(StreamingText { placement, stream, is_complete: false, has_output: false });
        }
        let Some(live) = &mut self.live else { return Ok(()) };
        let mut lines = live.stream.push(rest.unwrap_or(text));
        live.is_complete = !is_streaming;
        // The next item may continue it.
        if !is_streaming && !text_parts::may_continue(item) {
            lines.extend(live.stream.finish());
        }
        self.printed_texts.put(&item.id, RenderedState::of(text));
        let (placement, first) = (live.placement.clone(), !live.has_output && !lines.is_empty());
        live.has_output |= first;
        self.print_lines(&placement, first, lines)
    }

    /// Returns whether an item continues the text that is being printed, and adopts its placement.
    fn adopt_continuation(&mut self, item: &Item) -> bool {
        let depth = self.depth(item);
        let placement = Placement::of(item, &self.options, depth);
        let live = self.live.as_mut().filter(|l| {
            item.continues.as_ref().is_some_and(|before| l.placement.id == *before.as_str())
        });
        live.is_some_and(|live| {
            live.placement = placement;
            true
        })
    }

    /// Prints a text that the next item may continue, or that continues the last one; returns false
    /// for any other item.
    pub(super) fn print_part(&mut self, item: &Item) -> io::Result<bool> {
        let Some((text, _)) = text_of(item) else { return Ok(false) };
        if !self.adopt_continuation(item) {
            if !text_parts::may_continue(item) {
                return Ok(false);
            }
            self.end_streaming()?;
            let depth = self.depth(item);
            let stream = MarkdownStream::new(self.columns_at(depth), self.options.colour);
            let placement = Placement::of(item, &self.options, depth);
            self.live =
                Some(StreamingText { placement, stream, is_complete: true, has_output: false });
        }
        let Some(live) = &mut self.live else { return Ok(false) };
        let lines = live.stream.push(text);
        let (placement, first) = (live.placement.clone(), !live.has_output && !lines.is_empty());
        live.has_output |= first;
        self.print_lines(&placement, first, lines)?;
        Ok(true)
    }

    /// Prints the held-back lines of the open text, before another item is printed.
    pub(super) fn end_streaming(&mut self) -> io::Result<()> {
        let Some(mut live) = self.live.take() else { return Ok(()) };
        let lines = live.stream.finish();
        self.print_lines(&live.placement, !live.has_output && !lines.is_empty(), lines)
    }

    fn print_lines(
        &mut self,
        placement: &Placement,
        first: bool,
        lines: Vec<StyledLine>,
    ) -> io::Result<()> {
        if first {
            self.start_item(placement)?;
        }
        lines.into_iter().try_for_each(|line| self.write_indented(placement.depth, line))
    }
}
