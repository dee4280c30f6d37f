//! Terminal control: colors stay, every other escape sequence goes.
//!
//! An agent's output may move the cursor, set the window's title or hide a link's target. CandidateKind is
//! shown later may be printed to a terminal: only `ESC [ … m` is let through.

use crate::normalize::color;
use memchr::memchr2;

/// Longest sequence that is waited for; a longer one was none, and only its beginning goes.
const MAX_SEQUENCE_BYTES: usize = 4096;

/// Takes escape sequences out of a stream of text.
#[derive(Default)]
pub(crate) struct EscapeFilter {
    /// A sequence whose end has not come yet.
    held: String,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for EscapeFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EscapeFilter({} bytes held)", self.held.len())
    }
}

/// Whether the text has anything to take out, or to let through knowingly.
pub(crate) fn has_any(text: &str) -> bool {
    next(text.as_bytes()).is_some()
}

/// Where the first control character that begins a sequence stands: `ESC`, or one of the second
/// set (U+0080 to U+009F).
fn next(b: &[u8]) -> Option<usize> {
    let mut at = 0;
    while let Some(i) = b.get(at..).and_then(|rest| memchr2(0x1b, 0xC2, rest)) {
        at += i;
        if b[at] == 0x1b || matches!(b.get(at + 1), Some(0x80..=0x9F)) {
            return Some(at);
        }
        at += 1;
    }
    None
}

impl EscapeFilter {
    pub(crate) fn is_idle(&self) -> bool {
        self.held.is_empty()
    }

    /// Adds `piece` to `out` without its sequences; `last` says that nothing follows. Returns how
    /// many were taken out.
    pub(crate) fn push(&mut self, piece: &str, last: bool, out: &mut String) -> u64 {
        let held = std::mem::take(&mut self.held);
        let joined;
        let text = if held.is_empty() {
            piece
        } else {
            joined = held + piece;
            joined.as_str()
        };
        let mut taken = 0;
        let mut rest = text;
        while let Some(at) = next(rest.as_bytes()) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            match sequence(rest) {
                EscapeSequence::Color(len) => {
                    out.push_str(&rest[..len]);
                    rest = &rest[len..];
                }
                EscapeSequence::Other(len) => {
                    taken += 1;
                    rest = &rest[len..];
                }
                EscapeSequence::Open if !last => {
                    rest.clone_into(&mut self.held);
                    return taken;
                }
                EscapeSequence::Open => {
                    taken += 1;
                    let first = rest.chars().next().map_or(0, char::len_utf8);
                    rest = &rest[first..];
                }
            }
        }
        out.push_str(rest);
        taken
    }
}

enum EscapeSequence {
    Color(usize),
    Other(usize),
    /// Its end is not there.
    Open,
}

/// CandidateKind begins with the control character at the beginning of `text`.
fn sequence(text: &str) -> EscapeSequence {
    let b = text.as_bytes();
    if let Some(len) = color(b) {
        return EscapeSequence::Color(len);
    }
    // The second set has one character for `ESC` and a letter.
    let (kind, start) = match b {
        [0x1b] => return EscapeSequence::Open,
        [0x1b, kind, ..] => (*kind, 2),
        [0xC2, c, ..] => (c - 0x40, 2),
        _ => return EscapeSequence::Open,
    };
    let single = b.first() == Some(&0xC2);
    match kind {
        b'[' => control(b, start),
        b']' | b'P' | b'X' | b'^' | b'_' => string(b, start),
        // Character sets: `ESC ( B`. A separator begins a path, not a sequence.
        b' ' | b'#' | b'%' | b'('..=b'+' if !single => match b.get(2) {
            None => EscapeSequence::Open,
            Some(b'0'..=b'9' | b'A'..=b'Z' | b'@') => EscapeSequence::Other(3),
            Some(_) => EscapeSequence::Other(1),
        },
        b'0'..=b'[' | b']'..=b'~' => EscapeSequence::Other(2),
        _ if single => EscapeSequence::Other(2),
        // Whatever follows is no part of a sequence.
        _ => EscapeSequence::Other(1),
    }
}

/// `ESC [` parameters, then one letter.
fn control(b: &[u8], start: usize) -> EscapeSequence {
    let part = |c: &&u8| matches!(c, b'0'..=b'?' | b' ' | b'!' | b'"' | b'$' | b'\'' | b'*');
    let len = b[start..].iter().take_while(part).count();
    match b.get(start + len) {
        _ if len > MAX_SEQUENCE_BYTES => EscapeSequence::Other(start),
        None => EscapeSequence::Open,
        Some(b'@'..=b'~') => EscapeSequence::Other(start + len + 1),
        Some(_) => EscapeSequence::Other(start),
    }
}

/// A title, a link and the like: up to a bell or `ESC \`.
fn string(b: &[u8], start: usize) -> EscapeSequence {
    let mut at = start;
    while let Some(c) = b.get(at) {
        if at > start + MAX_SEQUENCE_BYTES {
            return EscapeSequence::Other(start);
        }
        match c {
            0x07 => return EscapeSequence::Other(at + 1),
            0x1b => match b.get(at + 1) {
                None => return EscapeSequence::Open,
                Some(b'\\') => return EscapeSequence::Other(at + 2),
                // A new sequence: this one was never ended.
                Some(_) => return EscapeSequence::Other(start),
            },
            0xC2 if b.get(at + 1) == Some(&0x9C) => return EscapeSequence::Other(at + 2),
            // No title and no link goes over a line's end.
            b'\n' | b'\r' => return EscapeSequence::Other(start),
            _ => at += 1,
        }
    }
    EscapeSequence::Open
}
