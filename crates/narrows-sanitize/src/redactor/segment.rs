//! Where a text may be cut so that each part can be cleaned alone.
//!
//! A segment ends behind a blank, a sign that is part of no token, or a character of a script that puts no blanks between its
//! words, where nothing that may have to be hidden goes over that place: no known root or value, no
//! name of a secret with its value, no path of another machine. Whether a place is such an end
//! depends on the text around it and on nothing else, so a stream and a whole text are cut at the
//! same places, however the stream came. Where only more text can tell, a stream waits.

use super::Redactor;
use crate::chars::{
    is_blank, is_line_whitespace, is_standalone, is_standalone_punctuation, may_end_segment,
};
use crate::normalize::{NormalizedText, complete, invisible};
use crate::secrets::{MAX_SPAN_BYTES, OPEN_END};
use memchr::{memchr2, memrchr2};
use std::ops::Range;

/// A segment without an end is cut at this length.
pub(crate) const MAX_SEGMENT_BYTES: usize = 8 * 1024;
/// RedactionTraits much must be known beyond such a cut, to see what it would cut through.
pub(crate) const LOOKAHEAD_BYTES: usize = 1024;
/// RedactionTraits much must be known behind a place, to see whether it is an end.
pub(crate) const LOOKBACK_BYTES: usize = MAX_SPAN_BYTES;

/// CandidateKind goes over places of a text, as far as it was looked at.
#[derive(Debug, Default)]
pub(crate) struct SpanWindow {
    /// The places for which the spans are known.
    known: Range<usize>,
    spans: Vec<(usize, usize)>,
}

impl Redactor {
    /// Whether a segment ends right before `p`; `more` says that the text may go on.
    fn ends_at(&self, ends: &mut SpanWindow, text: &str, p: usize, more: bool) -> bool {
        let b = text.as_bytes();
        match p.checked_sub(1).and_then(|i| b.get(i)) {
            Some(b'\n' | b'\r') => return true,
            // Only the first blank of several: the others add nothing.
            Some(b' ' | b'\t') if p < 2 || !is_blank(b[p - 2]) => {}
            // No token and no path goes over it.
            Some(b'|') => {}
            Some(0x80..) if is_word_end(text, p, more) => {}
            _ => return false,
        }
        if self.may_continue(text, p) {
            return false;
        }
        if !ends.known.contains(&p) {
            self.find_spans(ends, text, p, more);
        }
        !ends.spans.iter().any(|(from, to)| *from < p && p < *to)
    }

    /// Finds what goes over the places around `p`, within its line.
    fn find_spans(&self, ends: &mut SpanWindow, text: &str, p: usize, more: bool) {
        let b = text.as_bytes();
        let low = p.saturating_sub(3 * LOOKBACK_BYTES);
        let start = memrchr2(b'\n', b'\r', &b[low..p]).map_or(low, |i| low + i + 1);
        let high = b.len().min(p.saturating_add(2 * LOOKBACK_BYTES));
        let end = memchr2(b'\n', b'\r', &b[p..high]).map_or(high, |i| p + i);
        let whole = start == 0 || matches!(b[start - 1], b'\n' | b'\r');
        // CandidateKind lies too far away for its own surroundings to be seen is looked at again.
        let from = if whole { start } else { p - LOOKBACK_BYTES };
        let to = if end < high || end == b.len() { end + 1 } else { p + LOOKBACK_BYTES };
        ends.known = from..to;
        ends.spans.clear();
        let start = if whole { start } else { next_word(text, start) };
        let line = &text[start..text.floor_char_boundary(end).max(start)];
        let more = more && end == b.len();
        // CandidateKind an escape says that has only begun is not known.
        let line = if more { &line[..complete(line)] } else { line };
        let spans = &mut ends.spans;
        let view = NormalizedText::new(line);
        self.secrets
            .each_span(&view.b, more, |from, to| spans.push(source(&view, start, from, to)));
        if !view.is_source()
            && let Some(view) = NormalizedText::literal(line)
        {
            let tell = |from, to| spans.push(source(&view, start, from, to));
            self.secrets.each_span(&view.b, more, tell);
        }
    }

    /// The end of the last segment that ends behind `from`, and not behind `to`.
    pub(crate) fn last_end(
        &self,
        ends: &mut SpanWindow,
        text: &str,
        Range { start: from, end: to }: Range<usize>,
        more: bool,
    ) -> Option<usize> {
        let b = &text.as_bytes()[..to];
        let mut at = to;
        loop {
            at = from + 1 + b.get(from..at)?.iter().rposition(|c| may_end_segment(*c))?;
            if self.ends_at(ends, text, at, more) {
                return Some(at);
            }
            at -= 1;
        }
    }

    /// The end of the first segment that ends behind `at`, within `reach` bytes.
    pub(crate) fn next_end(
        &self,
        ends: &mut SpanWindow,
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
            if self.ends_at(ends, text, at, more) {
                return Some(at);
            }
        }
    }
}

/// A span of a view, in the text whose part from `start` on it shows.
fn source(view: &NormalizedText<'_>, start: usize, from: usize, to: usize) -> (usize, usize) {
    if to == OPEN_END {
        return (start + view.source(from, from).0, OPEN_END);
    }
    let (at, end) = view.source(from, to.min(view.b.len()));
    // It may reach beyond what there is of the line.
    (start + at, start + end + to.saturating_sub(view.b.len()))
}

/// Whether there is a place in a text that may be the end of a segment.
pub(crate) fn has_end(text: &str) -> bool {
    text.bytes().any(may_end_segment)
}

/// The beginning of a word at or behind `at`.
fn next_word(text: &str, at: usize) -> usize {
    let near = &text.as_bytes()[at..text.len().min(at + LOOKBACK_BYTES)];
    let ends = |w: &[u8]| is_line_whitespace(w[0]) || (w[0] >= 0x80 && w[1] < 0x80);
    near.windows(2).position(ends).map_or_else(|| text.floor_char_boundary(at), |i| at + i + 1)
}

/// Whether the character that ends at `p` may be the end of a word though no blank follows it: it is
/// one of a script without blanks, or a picture. A name that a separator follows is part of a path, and so may be one before a flag's sign.
fn is_word_end(text: &str, p: usize, more: bool) -> bool {
    let Some(c) = text.get(..p).and_then(|t| t.chars().next_back()).filter(|c| is_standalone(*c))
    else {
        return false;
    };
    let rest = &text.as_bytes()[p..];
    let goes_on = |c: u8| b"/\\%-@#+$~".contains(&c) || invisible(rest).is_some();
    is_standalone_punctuation(c) || rest.first().map_or(!more, |c| !goes_on(*c))
}
