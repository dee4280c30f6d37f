//! Text that arrives in pieces: the tail that a path could still grow into is held back.

use super::paths::{Mode, Paths};
use super::text::Clean;

/// Most text held back; a longer path without an end is let go in parts.
const MAX_HELD: usize = 8 * 1024;

/// One stream of text.
#[derive(Debug, Default)]
pub(super) struct Seam {
    held: String,
}

impl Seam {
    /// Takes the next piece; returns what is now safe to show.
    pub(super) fn push(&mut self, paths: &Paths, piece: &str) -> Option<Clean> {
        if self.held.is_empty() {
            let cut = safe_end(paths, piece);
            self.held.push_str(piece.get(cut..).unwrap_or_default());
            return made(paths, piece.get(..cut).unwrap_or_default());
        }
        self.held.push_str(piece);
        let cut = safe_end(paths, &self.held);
        let out = made(paths, self.held.get(..cut).unwrap_or_default());
        self.held.drain(..cut);
        out
    }

    /// Ends the stream; returns what was held back.
    pub(super) fn finish(&mut self, paths: &Paths) -> Option<Clean> {
        let out = made(paths, &self.held);
        self.held.clear();
        out
    }
}

fn made(paths: &Paths, text: &str) -> Option<Clean> {
    (!text.is_empty()).then(|| Clean(paths.changed(text, Mode::Text).unwrap_or_else(|| text.into())))
}

/// The place up to which later text can change nothing.
///
/// That is the beginning of the last word, or, when one of the few words before it has a
/// separator, of that one: folder names may hold spaces.
fn safe_end(paths: &Paths, text: &str) -> usize {
    let b = text.as_bytes();
    if b.len() <= MAX_HELD {
        let mut end = word_start(b, b.len());
        let mut look = end;
        let mut plain = 0;
        while plain < 4 && look > 0 && b[look - 1] == b' ' {
            let start = word_start(b, look - 1);
            let word = &b[start..look - 1];
            if word.iter().any(|c| matches!(c, b'/' | b'\\' | b'%')) {
                end = start;
                plain = 0;
            } else {
                plain += 1;
            }
            look = start;
        }
        return before_spaced_root(paths, text, end);
    }
    // Too long for a path: keep what one id and its neighbours need, let the rest go.
    let mut end = b.len() - MAX_HELD / 2;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    end
}

fn word_start(b: &[u8], end: usize) -> usize {
    b[..end].iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1)
}

/// A root with spaces in it can begin in an earlier word.
fn before_spaced_root(paths: &Paths, text: &str, end: usize) -> usize {
    let spaced = paths.roots.iter().filter(|r| r.spaced).map(|r| r.len * 3).max();
    let Some(reach) = spaced else { return end };
    let mut start = text.len().saturating_sub(reach).min(end);
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    word_start(text.as_bytes(), start)
}
