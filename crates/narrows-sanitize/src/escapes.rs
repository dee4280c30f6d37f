//! Terminal control: colors stay, every other escape sequence is removed.
//!
//! The output of an agent may move the cursor, set the window title or hide the target of a link,
//! and clean text may be printed to a terminal later. Only `ESC [ … m` passes.

use crate::normalize::color;
use memchr::memchr2;

/// Longest sequence that is held back; of a longer one, only the introducer is removed.
const MAX_SEQUENCE_BYTES: usize = 4096;

/// Removes escape sequences from a stream of text.
#[derive(Default)]
pub(crate) struct EscapeFilter {
    /// A sequence whose end has not arrived.
    held: String,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for EscapeFilter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EscapeFilter({} bytes held)", self.held.len())
    }
}

/// Returns whether the text contains a sequence of any kind, colors included.
pub(crate) fn has_any(text: &str) -> bool {
    next(text.as_bytes()).is_some()
}

/// The first control character that introduces a sequence: `ESC` or a C1 control (U+0080 to
/// U+009F).
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

    /// Appends `piece` to `out` without its sequences; `last` marks the end of the text. Returns
    /// the number of removed sequences.
    pub(crate) fn push(&mut self, piece: &str, last: bool, out: &mut String) -> u64 {
        let held = std::mem::take(&mut self.held);
        let joined;
        let text = if held.is_empty() {
            piece
        } else {
            joined = held + piece;
            joined.as_str()
        };
        let mut removed = 0;
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
                    removed += 1;
                    rest = &rest[len..];
                }
                EscapeSequence::Open if !last => {
                    rest.clone_into(&mut self.held);
                    return removed;
                }
                EscapeSequence::Open => {
                    removed += 1;
                    let first = rest.chars().next().map_or(0, char::len_utf8);
                    rest = &rest[first..];
                }
            }
        }
        out.push_str(rest);
        removed
    }
}

enum EscapeSequence {
    Color(usize),
    Other(usize),
    /// The sequence is incomplete.
    Open,
}

/// Classifies the sequence at the start of `text`.
fn sequence(text: &str) -> EscapeSequence {
    let b = text.as_bytes();
    if let Some(len) = color(b) {
        return EscapeSequence::Color(len);
    }
    // A C1 control is one character for `ESC` and a letter.
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
        // Character sets: `ESC ( B`. A separator starts a path, not a sequence.
        b' ' | b'#' | b'%' | b'('..=b'+' if !single => match b.get(2) {
            None => EscapeSequence::Open,
            Some(b'0'..=b'9' | b'A'..=b'Z' | b'@') => EscapeSequence::Other(3),
            Some(_) => EscapeSequence::Other(1),
        },
        b'0'..=b'[' | b']'..=b'~' => EscapeSequence::Other(2),
        _ if single => EscapeSequence::Other(2),
        // The next character belongs to no sequence.
        _ => EscapeSequence::Other(1),
    }
}

/// `ESC [`, parameters, one final letter.
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

/// A window title, a link and the like: up to a bell or `ESC \`.
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
                // A new sequence starts: this one has no end.
                Some(_) => return EscapeSequence::Other(start),
            },
            0xC2 if b.get(at + 1) == Some(&0x9C) => return EscapeSequence::Other(at + 2),
            // Titles and links end at the end of a line.
            b'\n' | b'\r' => return EscapeSequence::Other(start),
            _ => at += 1,
        }
    }
    EscapeSequence::Open
}
