//! Where a text may be cut so that each part can be redacted alone.
//!
//! A segment ends after a blank, a sign that belongs to no token, or a character of a script
//! without blanks between words, unless something to redact may span that position: a known root or
//! value, the name of a secret with its value, a path of another machine. A segment end depends
//! only on the text around it, so a stream and a whole text are cut at the same positions, whatever
//! the chunks of the stream were. A stream waits where only more text can decide.

use super::Redactor;
use crate::chars::{
    is_blank, is_line_whitespace, is_standalone, is_standalone_punctuation, may_end_segment,
};
use crate::normalize::{NormalizedText, complete, invisible};
use crate::secrets::{MAX_SPAN_BYTES, OPEN_END};
use memchr::{memchr2, memrchr2};
use std::ops::Range;

/// Segments without an end are split at this length.
pub(crate) const MAX_SEGMENT_BYTES: usize = 8 * 1024;
/// Text that must be known after a forced split, to see what it would cut through.
pub(crate) const LOOKAHEAD_BYTES: usize = 1024;
/// Text that must be known around a position, to decide whether a segment ends there.
pub(crate) const LOOKBACK_BYTES: usize = MAX_SPAN_BYTES;

/// The spans that no segment end may fall into, for a part of a text.
#[derive(Debug, Default)]
pub(crate) struct SpanWindow {
    /// The positions for which `spans` is complete.
    known: Range<usize>,
    spans: Vec<(usize, usize)>,
}

impl Redactor {
    /// Returns whether a segment ends right before `p`; `more` says that the text may continue.
    fn ends_at(&self, window: &mut SpanWindow, text: &str, p: usize, more: bool) -> bool {
        let b = text.as_bytes();
        match p.checked_sub(1).and_then(|i| b.get(i)) {
            Some(b'\n' | b'\r') => return true,
            // Only the first of several blanks: the others add nothing.
            Some(b' ' | b'\t') if p < 2 || !is_blank(b[p - 2]) => {}
            // No token and no path contains it.
            Some(b'|') => {}
            Some(0x80..) if is_word_end(text, p, more) => {}
            _ => return false,
        }
        if self.may_continue(text, p) {
            return false;
        }
        if !window.known.contains(&p) {
            self.find_spans(window, text, p, more);
        }
        !window.spans.iter().any(|(from, to)| *from < p && p < *to)
    }

    /// Finds the spans around `p`, within its line.
    fn find_spans(&self, window: &mut SpanWindow, text: &str, p: usize, more: bool) {
        let b = text.as_bytes();
        let low = p.saturating_sub(3 * LOOKBACK_BYTES);
        let start = memrchr2(b'\n', b'\r', &b[low..p]).map_or(low, |i| low + i + 1);
        let high = b.len().min(p.saturating_add(2 * LOOKBACK_BYTES));
        let end = memchr2(b'\n', b'\r', &b[p..high]).map_or(high, |i| p + i);
        let whole = start == 0 || matches!(b[start - 1], b'\n' | b'\r');
        // Positions too far from `p` for their own context to be in the window are searched later.
        let from = if whole { start } else { p - LOOKBACK_BYTES };
        let to = if end < high || end == b.len() { end + 1 } else { p + LOOKBACK_BYTES };
        window.known = from..to;
        window.spans.clear();
        let start = if whole { start } else { next_word(text, start) };
        let line = &text[start..text.floor_char_boundary(end).max(start)];
        let more = more && end == b.len();
        // An incomplete escape at the end is not decoded yet.
        let line = if more { &line[..complete(line)] } else { line };
        let spans = &mut window.spans;
        let view = NormalizedText::new(line);
        self.secrets
            .each_span(&view.b, more, |from, to| spans.push(source(&view, start, from, to)));
        if !view.is_source()
            && let Some(view) = NormalizedText::literal(line)
        {
            let on_span = |from, to| spans.push(source(&view, start, from, to));
            self.secrets.each_span(&view.b, more, on_span);
        }
    }

    /// Returns the end of the last segment that ends after `from` and not after `to`.
    pub(crate) fn last_end(
        &self,
        window: &mut SpanWindow,
        text: &str,
        Range { start: from, end: to }: Range<usize>,
        more: bool,
    ) -> Option<usize> {
        let b = &text.as_bytes()[..to];
        let mut at = to;
        loop {
            at = from + 1 + b.get(from..at)?.iter().rposition(|c| may_end_segment(*c))?;
            if self.ends_at(window, text, at, more) {
                return Some(at);
            }
            at -= 1;
        }
    }

    /// Returns the end of the first segment that ends after `at`, within `reach` bytes.
    pub(crate) fn next_end(
        &self,
        window: &mut SpanWindow,
        text: &str,
        at: usize,
        reach: usize,
        more: bool,
    ) -> Option<usize> {
        let to = text.len().min(at.saturating_add(reach));
        let b = &text.as_bytes()[..to];
        let mut at = at;
        loop {
            at += 1 + b.get(at..)?.iter().position(|c| may_end_segment(*c))?;
            if self.ends_at(window, text, at, more) {
                return Some(at);
            }
        }
    }
}

/// Maps a span of the normalized line to the text, where the line starts at `start`.
fn source(view: &NormalizedText<'_>, start: usize, from: usize, to: usize) -> (usize, usize) {
    if to == OPEN_END {
        return (start + view.source(from, from).0, OPEN_END);
    }
    let (at, end) = view.source(from, to.min(view.b.len()));
    // A span may end after the line.
    (start + at, start + end + to.saturating_sub(view.b.len()))
}

/// Returns whether any byte of a text may be a segment end.
pub(crate) fn has_end(text: &str) -> bool {
    text.bytes().any(may_end_segment)
}

/// The start of the first word at or after `at`.
fn next_word(text: &str, at: usize) -> usize {
    let near = &text.as_bytes()[at..text.len().min(at + LOOKBACK_BYTES)];
    let ends = |w: &[u8]| is_line_whitespace(w[0]) || (w[0] >= 0x80 && w[1] < 0x80);
    near.windows(2).position(ends).map_or_else(|| text.floor_char_boundary(at), |i| at + i + 1)
}

/// Returns whether the character that ends at `p` may end a word though no blank follows: it is a
/// symbol or belongs to a script without blanks. A name before a separator is part of a path, and
/// may be one before the sign of a flag.
fn is_word_end(text: &str, p: usize, more: bool) -> bool {
    let Some(c) = text.get(..p).and_then(|t| t.chars().next_back()).filter(|c| is_standalone(*c))
    else {
        return false;
    };
    let rest = &text.as_bytes()[p..];
    let continues = |c: u8| b"/\\%-@#+$~".contains(&c) || invisible(rest).is_some();
    is_standalone_punctuation(c) || rest.first().map_or(!more, |c| !continues(*c))
}
