//! Text that arrives in pieces: the tail that something to hide could still continue is held back.
//!
//! Law: whatever the pieces, what comes out joins to the cleaned whole. It holds because pieces
//! are put together to the same segments as the whole text has, and segments are cleaned alone.

use super::begun::Begun;
use super::clean::{Cleaner, Flow, Kind, floor};
use super::escape::{self, Escapes};
use super::paths::Mode;
use super::segment::{AHEAD, Ends, LOOK, MAX_SEGMENT, has_end};
use super::text::Clean;
use ecow::EcoString;

/// One stream of text.
#[derive(Default)]
pub(super) struct Seam {
    mode: Mode,
    escapes: Escapes,
    held: String,
    /// Where in `held` begins what was not told; what stands before is only looked back at.
    start: usize,
    /// More text may show that a segment ends in `held`.
    waits: bool,
    flow: Flow,
    /// What was shown of `held` already, when the stream paused there.
    shown: Clean,
    /// Nothing of it was held back when it paused, and nothing came since.
    is_told: bool,
    /// The last sign that came is none of those that tokens and paths are made of.
    is_word_over: bool,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for Seam {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Seam({} bytes held)", self.held.len() - self.start)
    }
}

impl Seam {
    pub(super) fn new(mode: Mode) -> Self {
        Seam { mode, ..Seam::default() }
    }

    /// A text that comes behind a secret, the rest of which it may begin with.
    pub(super) fn behind_secret(mode: Mode) -> Self {
        Seam { mode, flow: Flow::behind_secret(), ..Seam::default() }
    }

    /// Whether everything that came is told, and nothing of it matters for what comes.
    pub(super) fn is_at_rest(&self) -> bool {
        let told = self.held.is_empty() && self.shown.is_empty();
        told && self.escapes.is_idle() && self.flow.is_idle()
    }

    /// Whether all of it was shown at the last pause, and nothing came since: what comes next cannot be
    /// the rest of something that must be hidden.
    pub(super) fn is_told(&self) -> bool {
        self.is_told
    }

    /// Whether the last sign that came ends a word, so that what comes is not the rest of a token.
    pub(super) fn is_word_over(&self) -> bool {
        self.is_word_over
    }

    /// Bytes that are held back.
    pub(super) fn weight(&self) -> usize {
        self.held.len()
    }

    /// Takes the next piece; returns what is now safe to show.
    pub(super) fn push(&mut self, cleaner: &mut Cleaner, piece: &str) -> Option<Clean> {
        self.is_told = false;
        if let Some(last) = piece.chars().next_back() {
            let is_part = last.is_ascii_alphanumeric() || "_-~+/\\=:@%&$#*".contains(last);
            self.is_word_over = !is_part;
        }
        if self.held.is_empty() && self.shown.is_empty() && self.escapes.is_idle() {
            return self.push_first(cleaner, piece);
        }
        let paused = if self.shown.is_empty() { self.start } else { self.held.len() };
        let odd = !self.escapes.is_idle() || escape::has_any(piece);
        self.push_more(cleaner, piece, paused, odd)
    }

    fn push_more(
        &mut self,
        cleaner: &mut Cleaner,
        piece: &str,
        paused: usize,
        odd: bool,
    ) -> Option<Clean> {
        let before = self.held.len();
        if odd {
            cleaner.removed.escapes += self.escapes.push(piece, false, &mut self.held);
        } else {
            self.held.push_str(piece);
        }
        let mut out = EcoString::new();
        if self.waits || has_end(&self.held[before..]) {
            let all = self.start..self.held.len();
            let end = cleaner.last_end(&mut Ends::default(), &self.held, all, true);
            // One that lies in what was shown at a pause does not count: the next one does.
            if let Some(end) = end.filter(|end| *end >= paused) {
                let part = self.start..end;
                match cleaner.run(&mut self.flow, &self.held, part.clone(), self.mode, false) {
                    Some(clean) => out.push_str(&clean),
                    None => out.push_str(&self.held[part]),
                }
                self.start = end;
                self.drop_before(end);
            }
            self.waits = has_end(&self.held[self.start..]);
        }
        while self.held.len() - self.start > MAX_SEGMENT + AHEAD + LOOK
            && let Some((end, through)) = cleaner.forced_end(&self.held, self.start, self.mode)
        {
            let text = &self.held[self.start..end];
            match cleaner.segment(
                &mut self.flow,
                text,
                self.mode,
                Kind { ends: false, secrets: true },
            ) {
                Some(clean) => out.push_str(&clean),
                None => out.push_str(text),
            }
            if through {
                self.flow.go_on();
            }
            self.start = end;
            self.drop_before(end.saturating_sub(2 * LOOK));
        }
        self.told(out)
    }

    /// Takes a piece when nothing is held back: what is safe is not copied.
    fn push_first(&mut self, cleaner: &mut Cleaner, piece: &str) -> Option<Clean> {
        let end = cleaner.last_end(&mut Ends::default(), piece, 0..piece.len(), true).unwrap_or(0);
        let odd = escape::has_any(piece);
        if odd || piece.len() - end > MAX_SEGMENT + AHEAD {
            // The usual way, with nothing in it yet.
            self.held.reserve(piece.len());
            return self.push_more(cleaner, piece, 0, odd);
        }
        let safe = &piece[..end];
        let clean = cleaner.run(&mut self.flow, piece, 0..end, self.mode, false);
        self.held.push_str(&piece[end..]);
        self.waits = has_end(&self.held);
        match clean {
            Some(clean) => self.told(clean),
            None => (!safe.is_empty()).then(|| Clean(safe.into())),
        }
    }

    /// Whether what is held back can be told as one that ended here: nothing of what has begun to be
    /// something to hide would be seen. Then, whether it has begun.
    pub(super) fn can_end(&self, cleaner: &mut Cleaner, level: Begun) -> Option<bool> {
        if !self.flow.is_idle() {
            return self.flow.can_end().then_some(false);
        }
        let text = &self.held[self.start..];
        let begun = &text[cleaner.settled_end(text, level)..];
        if begun.is_empty() {
            return Some(false);
        }
        // A folder of which no name is shown may end here; of a token, a mark must be left.
        let is_path = begun.contains(['/', '\\']) && !begun.contains("://");
        let clean = self.held_clean(cleaner)?;
        let hidden = if is_path { !clean.ends_with(begun) } else { ends_in_mark(&clean) };
        hidden.then_some(!is_path)
    }

    /// Shows what is held back, without ending the stream, but for what may have begun to be
    /// something to hide.
    pub(super) fn pause(&mut self, cleaner: &mut Cleaner) -> Option<Clean> {
        let end = cleaner.may_begin(&self.held[self.start..]);
        self.show_until(cleaner, end)
    }

    /// The same, where all of it can be read again.
    pub(super) fn pause_reread(&mut self, cleaner: &mut Cleaner) -> Option<Clean> {
        let end = cleaner.may_begin_or_start(&self.held[self.start..]);
        self.show_until(cleaner, end)
    }

    /// The same, but for what has begun.
    pub(super) fn suspend(&mut self, cleaner: &mut Cleaner, level: Begun) -> Option<Clean> {
        let end = cleaner.settled_end(&self.held[self.start..], level);
        self.show_until(cleaner, end)
    }

    /// Shows the first `end` bytes of what is held back, without ending the stream.
    fn show_until(&mut self, cleaner: &mut Cleaner, end: usize) -> Option<Clean> {
        if self.start == self.held.len() || !self.flow.is_idle() {
            self.is_told = self.flow.is_idle() && self.escapes.is_idle();
            return None;
        }
        let text = &self.held[self.start..];
        let whole = text.len();
        let text = &text[..end];
        self.is_told = text.len() == whole && self.escapes.is_idle();
        let counted = cleaner.removed.clone();
        let all = cleaner.run(&mut Flow::default(), text, 0..text.len(), self.mode, true);
        cleaner.removed = counted;
        let all = all.unwrap_or_else(|| text.into());
        // What was shown at a pause before stays so, though more may have begun there by now.
        if all.len() <= self.shown.len() {
            return None;
        }
        let out = self.told(all.clone());
        self.shown = Clean(all);
        out
    }

    /// More of what is held back was shown than this knows; whether that is so.
    pub(super) fn recall_more(&mut self, cleaner: &mut Cleaner, more: &str) -> bool {
        let Some(all) = self.held_clean(cleaner).filter(|_| !more.is_empty()) else { return false };
        let len = self.shown.len() + more.len();
        let Some(shown) = all.before(len).filter(|shown| shown.ends_with(more)) else {
            return false;
        };
        self.is_told = len == all.len() && self.escapes.is_idle();
        self.shown = shown;
        true
    }

    /// Something else was shown than the `known` bytes that came out: the end of `text` is then as much of
    /// what is held back as it says.
    pub(super) fn recall(&mut self, cleaner: &mut Cleaner, text: &str, known: usize) {
        let Some(all) = self.held_clean(cleaner).filter(|_| text.len() != known) else { return };
        let borders = all.char_indices().map(|(at, _)| at).chain([all.len()]);
        let shown = borders.rev().find(|at| text.ends_with(&all[..*at])).unwrap_or(0);
        if shown > self.shown.len() {
            self.is_told = shown == all.len() && self.escapes.is_idle();
            self.shown = all.before(shown).unwrap_or_default();
        }
    }

    /// What is held back, as it would be shown if it ended here.
    fn held_clean(&self, cleaner: &mut Cleaner) -> Option<Clean> {
        if self.start == self.held.len() || !self.flow.is_idle() {
            return None;
        }
        let text = &self.held[self.start..];
        let counted = cleaner.removed.clone();
        let all = cleaner.run(&mut Flow::default(), text, 0..text.len(), self.mode, true);
        cleaner.removed = counted;
        Some(Clean(all.unwrap_or_else(|| text.into())))
    }

    /// What can be shown of what is held back, as long as the stream pauses here.
    pub(super) fn preview(&self, cleaner: &mut Cleaner) -> Option<Clean> {
        if self.start == self.held.len() || !self.flow.is_idle() || !self.escapes.is_idle() {
            return None;
        }
        let all = cleaner.preview(&self.held[self.start..], self.mode)?;
        if self.shown.is_empty() { Some(all) } else { beyond(&all, &self.shown) }
    }

    /// Ends the stream; returns what was held back.
    pub(super) fn finish(&mut self, cleaner: &mut Cleaner) -> Option<Clean> {
        cleaner.removed.escapes += self.escapes.push("", true, &mut self.held);
        let mut out = EcoString::new();
        if self.start < self.held.len() {
            let part = self.start..self.held.len();
            match cleaner.run(&mut self.flow, &self.held, part, self.mode, true) {
                Some(clean) => out.push_str(&clean),
                None => out.push_str(&self.held[self.start..]),
            }
        }
        out.push_str(&self.flow.end());
        (self.start, self.waits) = (0, false);
        self.held.clear();
        self.told(out)
    }

    /// Forgets what stands before `at`.
    fn drop_before(&mut self, at: usize) {
        let at = floor(&self.held, at);
        self.held.drain(..at);
        self.start -= at;
    }

    /// What of `out` was not shown at a pause.
    fn told(&mut self, out: EcoString) -> Option<Clean> {
        if out.is_empty() {
            return None;
        }
        let shown = std::mem::take(&mut self.shown);
        let out = Clean(out);
        if shown.is_empty() {
            return Some(out);
        }
        beyond(&out, &shown)
    }
}

/// Whether the last thing of a clean text is the mark of a secret.
pub(super) fn ends_in_mark(text: &str) -> bool {
    text.ends_with(']') && text.rfind('[').is_some_and(|at| text[at..].starts_with("[redacted:"))
}

/// What of a text comes behind what was shown of it.
fn beyond(text: &Clean, shown: &Clean) -> Option<Clean> {
    let both = text.char_indices().zip(shown.chars());
    let same = both.take_while(|((_, a), b)| a == b).last();
    let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
    text.after(from).filter(|rest| !rest.is_empty())
}
