//! Where a text may be cut so that each part can be cleaned alone.
//!
//! A segment ends behind a blank, a sign that is part of no token, or a character of a script that puts no blanks between its
//! words, where nothing that may have to be hidden goes over that place: no known root or value, no
//! name of a secret with its value, no path of another machine. Whether a place is such an end
//! depends on the text around it and on nothing else, so a stream and a whole text are cut at the
//! same places, however the stream came. Where only more text can tell, a stream waits.

use super::across::is_sign;
use super::clean::{Cleaner, floor};
use super::secret::{MAX_SPAN, OPEN};
use super::view::{View, complete, invisible};
use memchr::{memchr2, memrchr2};
use std::ops::Range;

/// A segment without an end is cut at this length.
pub(super) const MAX_SEGMENT: usize = 8 * 1024;
/// How much must be known beyond such a cut, to see what it would cut through.
pub(super) const AHEAD: usize = 1024;
/// How much must be known behind a place, to see whether it is an end.
pub(super) const LOOK: usize = MAX_SPAN;
/// How far the beginning of a word is looked for.
const WORD: usize = 64;

/// What goes over places of a text, as far as it was looked at.
#[derive(Debug, Default)]
pub(super) struct Ends {
    /// The places for which the spans are known.
    known: Range<usize>,
    spans: Vec<(usize, usize)>,
}

impl Cleaner {
    /// Whether a segment ends right before `p`; `more` says that the text may go on.
    fn ends_at(&self, ends: &mut Ends, text: &str, p: usize, more: bool) -> bool {
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
        if self.goes_on(text, p) {
            return false;
        }
        if !ends.known.contains(&p) {
            self.look_around(ends, text, p, more);
        }
        !ends.spans.iter().any(|(from, to)| *from < p && p < *to)
    }

    /// Finds what goes over the places around `p`, within its line.
    fn look_around(&self, ends: &mut Ends, text: &str, p: usize, more: bool) {
        let b = text.as_bytes();
        let low = p.saturating_sub(3 * LOOK);
        let start = memrchr2(b'\n', b'\r', &b[low..p]).map_or(low, |i| low + i + 1);
        let high = b.len().min(p.saturating_add(2 * LOOK));
        let end = memchr2(b'\n', b'\r', &b[p..high]).map_or(high, |i| p + i);
        let whole = start == 0 || matches!(b[start - 1], b'\n' | b'\r');
        // What lies too far away for its own surroundings to be seen is looked at again.
        let from = if whole { start } else { p - LOOK };
        let to = if end < high || end == b.len() { end + 1 } else { p + LOOK };
        ends.known = from..to;
        ends.spans.clear();
        let start = if whole { start } else { next_word(text, start) };
        let line = &text[start..floor(text, end).max(start)];
        let more = more && end == b.len();
        // What an escape says that has only begun is not known.
        let line = if more { &line[..complete(line)] } else { line };
        let spans = &mut ends.spans;
        let view = View::new(line);
        self.secrets.spans(&view.b, more, |from, to| spans.push(source(&view, start, from, to)));
        if !view.is_source()
            && let Some(view) = View::literal(line)
        {
            let tell = |from, to| spans.push(source(&view, start, from, to));
            self.secrets.spans(&view.b, more, tell);
        }
    }

    /// The end of the last segment that ends behind `from`, and not behind `to`.
    pub(super) fn last_end(
        &self,
        ends: &mut Ends,
        text: &str,
        Range { start: from, end: to }: Range<usize>,
        more: bool,
    ) -> Option<usize> {
        let b = &text.as_bytes()[..to];
        let mut at = to;
        loop {
            at = from + 1 + b.get(from..at)?.iter().rposition(|c| is_last(*c))?;
            if self.ends_at(ends, text, at, more) {
                return Some(at);
            }
            at -= 1;
        }
    }

    /// The end of the first segment that ends behind `at`, within `reach` bytes.
    pub(super) fn next_end(
        &self,
        ends: &mut Ends,
        text: &str,
        at: usize,
        reach: usize,
        more: bool,
    ) -> Option<usize> {
        let to = text.len().min(at.saturating_add(reach));
        let b = &text.as_bytes()[..to];
        let mut at = at;
        loop {
            at += 1 + b.get(at..)?.iter().position(|c| is_last(*c))?;
            if self.ends_at(ends, text, at, more) {
                return Some(at);
            }
        }
    }
}

/// A span of a view, in the text whose part from `start` on it shows.
fn source(view: &View<'_>, start: usize, from: usize, to: usize) -> (usize, usize) {
    if to == OPEN {
        return (start + view.source(from, from).0, OPEN);
    }
    let (at, end) = view.source(from, to.min(view.b.len()));
    // It may reach beyond what there is of the line.
    (start + at, start + end + to.saturating_sub(view.b.len()))
}

/// Whether there is a place in a text that may be the end of a segment.
pub(super) fn has_end(text: &str) -> bool {
    text.bytes().any(is_last)
}

/// Whether a byte may be the last one of a segment.
fn is_last(c: u8) -> bool {
    is_white(c) || c == b'|' || c >= 0x80
}

/// The last place up to `at` at which a segment may have begun; not much before it.
pub(super) fn cut_before(b: &[u8], at: usize) -> usize {
    let low = at.saturating_sub(WORD);
    // A name of a secret has no other characters than those of ASCII.
    b[low..at].iter().rposition(|c| is_last(*c)).map_or(low, |i| low + i + 1)
}

/// The beginning of a word at or behind `at`.
fn next_word(text: &str, at: usize) -> usize {
    let near = &text.as_bytes()[at..text.len().min(at + LOOK)];
    let ends = |w: &[u8]| is_white(w[0]) || (w[0] >= 0x80 && w[1] < 0x80);
    near.windows(2).position(ends).map_or_else(|| floor(text, at), |i| at + i + 1)
}

/// Whether the character that ends at `p` may be the end of a word though no blank follows it: it is
/// one of a script without blanks, or a picture. A name that a separator follows is part of a path, and so may be one before a flag's sign.
fn is_word_end(text: &str, p: usize, more: bool) -> bool {
    let Some(c) = text.get(..p).and_then(|t| t.chars().next_back()).filter(|c| is_alone(*c)) else {
        return false;
    };
    let rest = &text.as_bytes()[p..];
    let goes_on = |c: u8| b"/\\%-@#+$~".contains(&c) || invisible(rest).is_some();
    is_sign(c) || rest.first().map_or(!more, |c| !goes_on(*c))
}

/// Whether a character stands for itself.
pub(super) fn is_alone(c: char) -> bool {
    // Joiners and the like are not seen: what reads as one token may go on behind them.
    is_joint(c)
        || matches!(c,
        // Thai, Lao, Tibetan, Burmese; Khmer; Tai Le to Tai Tham; Balinese to Batak.
        '\u{0e00}'..='\u{0fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{1950}'..='\u{1aaf}' | '\u{1b00}'..='\u{1bff}'
        // Arrows, signs and pictures.
        | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}'
        // Chinese, Japanese, Yi and their punctuation.
        | '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ff9f}' | '\u{1b000}'..='\u{1b2ff}' | '\u{20000}'..='\u{3ffff}'
        // Javanese to Tai Viet; Korean.
        | '\u{a980}'..='\u{aadf}' | '\u{ac00}'..='\u{d7af}')
}

/// Blanks, dashes, quotes and dots that are part of no token, though they may be of a path.
pub(super) fn is_joint(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ab}' | '\u{b7}' | '\u{bb}' | '\u{2000}'..='\u{200a}')
        || matches!(c, '\u{2010}'..='\u{2029}' | '\u{202f}'..='\u{205f}')
}

pub(super) fn is_blank(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

pub(super) fn is_white(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

/// Whether a word names a secret: its value may follow, with or without a sign between.
pub(super) fn is_key(word: &[u8]) -> bool {
    const KEYS: [&str; 10] = [
        "secret",
        "passw",
        "passphr",
        "token",
        "key",
        "auth",
        "basic",
        "bearer",
        "credential",
        "pwd",
    ];
    static LETTERS: [u32; KEYS.len()] = {
        let mut all = [0; KEYS.len()];
        let mut i = 0;
        while i < KEYS.len() {
            all[i] = letters(KEYS[i].as_bytes());
            i += 1;
        }
        all
    };
    let has = letters(word);
    let named = |(key, need): (&&str, &u32)| {
        has & need == *need
            && word.windows(key.len()).any(|w| w.eq_ignore_ascii_case(key.as_bytes()))
    };
    word.starts_with(b"-") || KEYS.iter().zip(&LETTERS).any(named) || has_flag(word)
}

/// `--token` behind a quote or a bracket.
fn has_flag(word: &[u8]) -> bool {
    word.windows(2).any(|w| w == b"--")
}

/// Which letters are in a word, one bit each.
const fn letters(word: &[u8]) -> u32 {
    let mut bits = 0;
    let mut i = 0;
    while i < word.len() {
        let c = word[i] | 0x20;
        if c.is_ascii_lowercase() {
            bits |= 1 << (c - b'a');
        }
        i += 1;
    }
    bits
}
