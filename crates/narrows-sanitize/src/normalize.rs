//! Normalized text: colors, invisible characters and escapes are undone.
//!
//! A root or a token may be written as `%2Fsrv`, `\/srv`, `\u002fsrv`, with a color in the middle,
//! or plainly. Rules search the normalized text only; each of its bytes maps to bytes of the
//! source.

use memchr::{memchr, memchr2, memchr3};
use std::borrow::Cow;

/// Longest escape.
const MAX_ESCAPE_BYTES: usize = 96;

/// A text as a reader sees it, with a map to its source.
pub(crate) struct NormalizedText<'a> {
    pub(crate) b: Cow<'a, [u8]>,
    /// The source range of each byte; empty when the text is the source itself.
    map: Vec<(u32, u32)>,
}

impl<'a> NormalizedText<'a> {
    /// Normalizes everything.
    pub(crate) fn new(text: &'a str) -> NormalizedText<'a> {
        let b = text.as_bytes();
        if memchr3(b'\\', b'%', 0x1b, b).is_none() && !has_invisible(b) {
            return NormalizedText { b: Cow::Borrowed(b), map: Vec::new() };
        }
        NormalizedText::build(b, true)
    }

    /// Removes colors and invisible characters only; `None` when [`NormalizedText::new`] does the
    /// same. An escape may be literal text: `%9c` can be the start of an id.
    pub(crate) fn literal(text: &'a str) -> Option<NormalizedText<'a>> {
        let b = text.as_bytes();
        memchr2(b'\\', b'%', b)?;
        if memchr(0x1b, b).is_none() && !has_invisible(b) {
            return Some(NormalizedText { b: Cow::Borrowed(b), map: Vec::new() });
        }
        Some(NormalizedText::build(b, false))
    }

    fn build(b: &[u8], decode: bool) -> NormalizedText<'a> {
        let (out, map) = (Vec::with_capacity(b.len()), Vec::with_capacity(b.len()));
        let mut builder = Normalizer { b: out, map, decode };
        let mut at = 0;
        while at < b.len() {
            at = builder.step(b, at);
        }
        NormalizedText { b: Cow::Owned(builder.b), map: builder.map }
    }

    /// Returns whether the text is the source itself.
    pub(crate) fn is_source(&self) -> bool {
        matches!(self.b, Cow::Borrowed(_))
    }

    /// Maps a range of the normalized text to the source.
    pub(crate) fn source(&self, from: usize, to: usize) -> (usize, usize) {
        if self.map.is_empty() {
            return (from, to);
        }
        let all = self.map.last().map_or(0, |m| m.1 as usize);
        let start = self.map.get(from).map_or(all, |m| m.0 as usize);
        let end = to.checked_sub(1).and_then(|i| self.map.get(i)).map_or(0, |m| m.1 as usize);
        (start, end.max(start))
    }
}

struct Normalizer {
    b: Vec<u8>,
    map: Vec<(u32, u32)>,
    /// Decode the escapes of URLs, JSON and shells.
    decode: bool,
}

impl Normalizer {
    fn push(&mut self, bytes: &[u8], from: usize, to: usize) {
        for byte in bytes {
            self.b.push(*byte);
            self.map.push((from as u32, to as u32));
        }
    }

    /// Reads the character or escape at `at`; returns its end.
    fn step(&mut self, b: &[u8], at: usize) -> usize {
        let rest = &b[at..];
        match rest[0] {
            b'%' if self.decode => {
                if let Some((byte, len)) = percent(rest) {
                    self.push(&[byte], at, at + len);
                    return at + len;
                }
            }
            b'\\' if self.decode => return self.backslashes(b, at),
            0x1b => {
                if let Some(len) = color(rest) {
                    return at + len;
                }
            }
            0xC2 | 0xE2 | 0xEF | 0xF3 => {
                if let Some(len) = invisible(rest) {
                    return at + len;
                }
            }
            _ => {}
        }
        self.push(&rest[..1], at, at + 1);
        at + 1
    }

    fn backslashes(&mut self, b: &[u8], at: usize) -> usize {
        let run = b[at..].iter().take_while(|c| **c == b'\\').count();
        let next = at + run;
        match b.get(next) {
            // `\/` and `\"` of JSON, `\ ` and `\(` of a shell. A dot may start a folder name.
            Some(c) if *c == b' ' || (c.is_ascii_punctuation() && !b".-_~%@+".contains(c)) => {
                self.push(&[*c], at, next + 1);
                next + 1
            }
            Some(b'u') => match unicode(&b[next..]) {
                Some((c, len)) => self.escaped(c, b, at, next + len),
                None => self.plain(at, next),
            },
            Some(b'x') => match hex(&b[next + 1..], 2).filter(|c| *c < 0x80) {
                Some(c) => self.escaped(char::from(c as u8), b, at, next + 3),
                None => self.plain(at, next),
            },
            _ => self.plain(at, next),
        }
    }

    fn plain(&mut self, at: usize, next: usize) -> usize {
        self.push(b"\\", at, next);
        next
    }

    /// A character that was written as an escape; it may start a color.
    fn escaped(&mut self, c: char, b: &[u8], at: usize, next: usize) -> usize {
        let mut bytes = [0; 4];
        if c == '\u{1b}' {
            let mut seen = vec![0x1b];
            seen.extend_from_slice(b.get(next..(next + 24).min(b.len())).unwrap_or_default());
            if let Some(len) = color(&seen) {
                return next + len - 1;
            }
        }
        let bytes = c.encode_utf8(&mut bytes).as_bytes();
        if invisible(bytes).is_none() {
            self.push(bytes, at, next);
        }
        next
    }
}

/// Length of the part of a text without an incomplete escape at its end.
pub(crate) fn complete(text: &str) -> usize {
    let b = text.as_bytes();
    let mut at = b.len().saturating_sub(MAX_ESCAPE_BYTES);
    // Nothing starts inside a run of backslashes.
    while at > 0 && b[at - 1] == b'\\' {
        at -= 1;
    }
    while let Some(i) = b.get(at..).and_then(|rest| memchr3(b'\\', b'%', 0x1b, rest)) {
        at += i;
        match escape_len(&b[at..]) {
            Some(len) => at += len,
            None => return at,
        }
    }
    b.len()
}

/// Length of the escape at the start, or of the part that is none; `None` when more text could
/// extend it.
fn escape_len(b: &[u8]) -> Option<usize> {
    let is_hex = |c: &u8| c.is_ascii_hexdigit();
    match b[0] {
        b'%' => {
            let mut at = 1;
            while b.get(at..at + 2) == Some(b"25") {
                at += 2;
            }
            let digits = b[at..].iter().take(2).take_while(|c| is_hex(c)).count();
            (digits == 2 || at + digits < b.len()).then_some(at + digits)
        }
        0x1b => color_len(&b[1..]).map(|len| len + 1),
        _ => {
            let run = b.iter().take_while(|c| **c == b'\\').count();
            let wanted = match b.get(run)? {
                b'u' => 4,
                b'x' => 2,
                _ => return Some(run + 1),
            };
            let digits = b[run + 1..].iter().take(wanted).take_while(|c| is_hex(c)).count();
            let end = run + 1 + digits;
            if digits < wanted {
                return (end < b.len()).then_some(end);
            }
            match u32::from_str_radix(str::from_utf8(&b[run + 1..end]).ok()?, 16).ok()? {
                0x1b => color_len(&b[end..]).map(|len| end + len),
                // A high surrogate: the low one may follow.
                0xD800..0xDC00 => (end + run + 5 <= b.len()).then_some(end),
                _ => Some(end),
            }
        }
    }
}

/// The same for the part of a color after `ESC`.
fn color_len(b: &[u8]) -> Option<usize> {
    if *b.first()? != b'[' {
        return Some(0);
    }
    let part = |c: &&u8| matches!(c, b'0'..=b'9' | b';' | b':');
    let len = b[1..].iter().take(64).take_while(part).count();
    (len == 64 || len + 1 < b.len()).then_some(len + 1)
}

/// `%2F`, also when it is encoded repeatedly (`%252F`).
fn percent(b: &[u8]) -> Option<(u8, usize)> {
    let mut at = 1;
    while b.get(at..at + 2) == Some(b"25") && hex(&b[at + 2..], 2).is_some() {
        at += 2;
    }
    let byte = hex(&b[at..], 2).filter(|c| *c >= 0x20 && *c != 0x7f)?;
    Some((byte as u8, at + 2))
}

fn hex(b: &[u8], digits: usize) -> Option<u32> {
    let mut value = 0;
    for c in b.get(..digits)? {
        value = value * 16 + char::from(*c).to_digit(16)?;
    }
    Some(value)
}

/// `u002f` after a backslash, or a pair of surrogates.
fn unicode(b: &[u8]) -> Option<(char, usize)> {
    let first = hex(b.get(1..)?, 4)?;
    if let Some(c) = char::from_u32(first) {
        return Some((c, 5));
    }
    let gap = b.get(5..)?.iter().take_while(|c| **c == b'\\').count();
    let low = b.get(5 + gap..).filter(|r| gap > 0 && r.first() == Some(&b'u'))?;
    let second = hex(low.get(1..)?, 4)?.checked_sub(0xDC00).filter(|c| *c < 0x400)?;
    let c = char::from_u32(0x10000 + ((first.checked_sub(0xD800)? & 0x3FF) << 10) + second)?;
    Some((c, 5 + gap + 5))
}

/// Length of the color sequence (`ESC [ … m`) at the start.
pub(crate) fn color(b: &[u8]) -> Option<usize> {
    let rest = b.strip_prefix(b"\x1b[")?;
    let len = rest.iter().take(64).take_while(|c| matches!(c, b'0'..=b'9' | b';' | b':')).count();
    (rest.get(len) == Some(&b'm')).then_some(len + 3)
}

/// Length of the character at the start when it is invisible.
pub(crate) fn invisible(b: &[u8]) -> Option<usize> {
    match *b {
        // Soft hyphen.
        [0xC2, 0xAD, ..] => Some(2),
        // Zero-width space, joiners, direction marks.
        [0xE2, 0x80, 0x8B..=0x8F | 0xAA..=0xAE, ..] => Some(3),
        [0xE2, 0x81, 0xA0..=0xAF, ..] => Some(3),
        // Byte order mark, variation selectors.
        [0xEF, 0xBB, 0xBF, ..] | [0xEF, 0xB8, 0x80..=0x8F, ..] => Some(3),
        // Tags.
        [0xF3, 0xA0, _, _, ..] => Some(4),
        _ => None,
    }
}

fn has_invisible(b: &[u8]) -> bool {
    if b.is_ascii() {
        return false;
    }
    let mut rest = b;
    while let Some(lead) = rest.iter().position(|c| *c >= 0x80) {
        rest = &rest[lead..];
        if invisible(rest).is_some() {
            return true;
        }
        rest = &rest[1..];
    }
    false
}
