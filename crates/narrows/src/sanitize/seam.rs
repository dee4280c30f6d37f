//! Text that arrives in pieces: the tail that a path could still grow into is held back.

use super::paths::{Mode, Paths, Root};
use super::text::Clean;

/// Most text held back; a longer path without an end is let go in parts.
const MAX_HELD: usize = 8 * 1024;

/// One stream of text.
#[derive(Debug, Default)]
pub(super) struct Seam {
    held: String,
    /// What was shown of `held` already, when the stream paused there.
    shown: Clean,
}

impl Seam {
    /// Takes the next piece; returns what is now safe to show.
    pub(super) fn push(&mut self, paths: &Paths, piece: &str) -> Option<Clean> {
        if self.held.is_empty() {
            // The usual piece is a few plain words.
            if piece.ends_with(char::is_whitespace) && is_plain(piece) {
                return made(paths, piece);
            }
            let cut = safe_end(paths, piece);
            self.held.push_str(piece.get(cut..).unwrap_or_default());
            return made(paths, piece.get(..cut).unwrap_or_default());
        }
        let paused = if self.shown.is_empty() { 0 } else { self.held.len() };
        self.held.push_str(piece);
        let cut = safe_end(paths, &self.held);
        if cut == 0 || cut < paused {
            return None;
        }
        let out = made(paths, self.held.get(..cut).unwrap_or_default());
        self.held.drain(..cut);
        self.rest(out)
    }

    /// Shows what is held back, without ending the stream: what comes next may show that it was
    /// the beginning of a path.
    pub(super) fn pause(&mut self, paths: &Paths) -> Option<Clean> {
        if self.held.is_empty() {
            return None;
        }
        let all = made(paths, self.held.get(..begun(paths, &self.held, 1)).unwrap_or_default());
        let out = self.rest(all.clone());
        self.shown = all.unwrap_or_default();
        out
    }

    /// Ends the stream; returns what was held back.
    pub(super) fn finish(&mut self, paths: &Paths) -> Option<Clean> {
        let out = made(paths, self.held.get(..begun(paths, &self.held, 2)).unwrap_or_default());
        self.held.clear();
        self.rest(out)
    }

    /// What of `out` was not shown at a pause.
    fn rest(&mut self, out: Option<Clean>) -> Option<Clean> {
        let shown = std::mem::take(&mut self.shown);
        let out = out?;
        if shown.is_empty() {
            return Some(out);
        }
        let both = out.char_indices().zip(shown.chars());
        let same = both.take_while(|((_, a), b)| a == b).last();
        let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
        out.after(from).filter(|rest| !rest.is_empty())
    }
}

/// Where the beginning of a root, of at least so many folders, stands at the end of the text; the
/// text's end when there is none.
fn begun(paths: &Paths, text: &str, folders: usize) -> usize {
    let start = word_start(text.as_bytes(), text.len());
    let last = text.get(start..).unwrap_or_default();
    let Some(slash) = last.find('/') else {
        return text.len();
    };
    let tail = last.get(slash..).unwrap_or_default();
    let begins = |root: &Root| {
        let full: String = root.parts.iter().flat_map(|p| ["/", p.as_str()]).collect();
        tail.len() < full.len() && full.starts_with(tail)
    };
    // An id that may still grow; where no root is known, any path may become one.
    let grows = |(_, id): (&str, &str)| !id.contains('/');
    let id = paths.roots.is_empty() || tail.rsplit_once("/sessions/").is_some_and(grows);
    let root = tail.matches('/').count() >= folders && paths.roots.iter().any(begins);
    let cut = root || (id && folders == 1);
    if cut { start + slash } else { text.len() }
}

/// Whether no path can begin in it.
fn is_plain(text: &str) -> bool {
    memchr::memchr3(b'/', b'\\', b'%', text.as_bytes()).is_none()
}

fn made(paths: &Paths, text: &str) -> Option<Clean> {
    (!text.is_empty())
        .then(|| Clean(paths.changed(text, Mode::Text).unwrap_or_else(|| text.into())))
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
