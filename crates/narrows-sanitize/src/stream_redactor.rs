//! Text that arrives in pieces: the tail that something to hide could still continue is held back.
//!
//! Law: whatever the pieces, what comes out joins to the cleaned whole. It holds because pieces
//! are put together to the same segments as the whole text has, and segments are cleaned alone.

use crate::escapes::{self, EscapeFilter};
use crate::paths::Mode;
use crate::redactor::partial::PartialLevel;
use crate::redactor::segment::{
    LOOKAHEAD_BYTES, LOOKBACK_BYTES, MAX_SEGMENT_BYTES, SpanWindow, has_end,
};
use crate::redactor::{Redactor, SegmentCarry, SegmentHints};
use crate::text::Clean;
use ecow::EcoString;

/// One stream of text.
#[derive(Default)]
pub struct StreamRedactor {
    mode: Mode,
    escapes: EscapeFilter,
    buffer: String,
    /// Where in `buffer` begins what was not told; what stands before is only looked back at.
    pending_from: usize,
    /// More text may show that a segment ends in `buffer`.
    may_have_end: bool,
    carry: SegmentCarry,
    /// CandidateKind was shown of `buffer` already, when the stream emitted_to there.
    already_emitted: Clean,
    /// Nothing of it was held back when it emitted_to, and nothing came since.
    is_fully_emitted: bool,
    /// The last sign that came is none of those that tokens and paths are made of.
    is_at_word_end: bool,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamRedactor({} bytes buffer)", self.buffer.len() - self.pending_from)
    }
}

impl StreamRedactor {
    pub fn new(mode: Mode) -> Self {
        StreamRedactor { mode, ..StreamRedactor::default() }
    }

    /// A text that comes behind a secret, the rest of which it may begin with.
    pub fn after_secret(mode: Mode) -> Self {
        StreamRedactor { mode, carry: SegmentCarry::after_secret(), ..StreamRedactor::default() }
    }

    /// Whether everything that came is told, and nothing of it matters for what comes.
    pub fn is_drained(&self) -> bool {
        let told = self.buffer.is_empty() && self.already_emitted.is_empty();
        told && self.escapes.is_idle() && self.carry.is_idle()
    }

    /// Whether all of it was shown at the last pause, and nothing came since: what comes next cannot be
    /// the rest of something that must be hidden.
    pub fn is_fully_emitted(&self) -> bool {
        self.is_fully_emitted
    }

    /// Whether the last sign that came ends a word, so that what comes is not the rest of a token.
    pub fn is_at_word_end(&self) -> bool {
        self.is_at_word_end
    }

    /// Bytes that are held back.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Takes the next piece; returns what is now safe to show.
    pub fn push(&mut self, redactor: &mut Redactor, piece: &str) -> Option<Clean> {
        self.is_fully_emitted = false;
        if let Some(last) = piece.chars().next_back() {
            let is_part = last.is_ascii_alphanumeric() || "_-~+/\\=:@%&$#*".contains(last);
            self.is_at_word_end = !is_part;
        }
        if self.buffer.is_empty() && self.already_emitted.is_empty() && self.escapes.is_idle() {
            return self.push_first(redactor, piece);
        }
        let emitted_to =
            if self.already_emitted.is_empty() { self.pending_from } else { self.buffer.len() };
        let odd = !self.escapes.is_idle() || escapes::has_any(piece);
        self.push_more(redactor, piece, emitted_to, odd)
    }

    fn push_more(
        &mut self,
        redactor: &mut Redactor,
        piece: &str,
        emitted_to: usize,
        odd: bool,
    ) -> Option<Clean> {
        let before = self.buffer.len();
        if odd {
            redactor.counts.escapes += self.escapes.push(piece, false, &mut self.buffer);
        } else {
            self.buffer.push_str(piece);
        }
        let mut out = EcoString::new();
        if self.may_have_end || has_end(&self.buffer[before..]) {
            let all = self.pending_from..self.buffer.len();
            let end = redactor.last_end(&mut SpanWindow::default(), &self.buffer, all, true);
            // One that lies in what was shown at a pause does not count: the next one does.
            if let Some(end) = end.filter(|end| *end >= emitted_to) {
                let part = self.pending_from..end;
                match redactor.redact_part(
                    &mut self.carry,
                    &self.buffer,
                    part.clone(),
                    self.mode,
                    false,
                ) {
                    Some(clean) => out.push_str(&clean),
                    None => out.push_str(&self.buffer[part]),
                }
                self.pending_from = end;
                self.drop_before(end);
            }
            self.may_have_end = has_end(&self.buffer[self.pending_from..]);
        }
        while self.buffer.len() - self.pending_from
            > MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES + LOOKBACK_BYTES
            && let Some((end, through)) =
                redactor.forced_split(&self.buffer, self.pending_from, self.mode)
        {
            let text = &self.buffer[self.pending_from..end];
            match redactor.redact_segment(
                &mut self.carry,
                text,
                self.mode,
                SegmentHints { ends: false, secrets: true },
            ) {
                Some(clean) => out.push_str(&clean),
                None => out.push_str(text),
            }
            if through {
                self.carry.go_on();
            }
            self.pending_from = end;
            self.drop_before(end.saturating_sub(2 * LOOKBACK_BYTES));
        }
        self.emit(out)
    }

    /// Takes a piece when nothing is held back: what is safe is not copied.
    fn push_first(&mut self, redactor: &mut Redactor, piece: &str) -> Option<Clean> {
        let end =
            redactor.last_end(&mut SpanWindow::default(), piece, 0..piece.len(), true).unwrap_or(0);
        let odd = escapes::has_any(piece);
        if odd || piece.len() - end > MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES {
            // The usual way, with nothing in it yet.
            self.buffer.reserve(piece.len());
            return self.push_more(redactor, piece, 0, odd);
        }
        let safe = &piece[..end];
        let clean = redactor.redact_part(&mut self.carry, piece, 0..end, self.mode, false);
        self.buffer.push_str(&piece[end..]);
        self.may_have_end = has_end(&self.buffer);
        match clean {
            Some(clean) => self.emit(clean),
            None => (!safe.is_empty()).then(|| Clean(safe.into())),
        }
    }

    /// Whether what is held back can be told as one that ended here: nothing of what has begun to be
    /// something to hide would be seen. Then, whether it has begun.
    pub fn can_end(&self, redactor: &mut Redactor, level: PartialLevel) -> Option<bool> {
        if !self.carry.is_idle() {
            return self.carry.can_end().then_some(false);
        }
        let text = &self.buffer[self.pending_from..];
        let begun = &text[redactor.partial_start(text, level)..];
        if begun.is_empty() {
            return Some(false);
        }
        // A folder of which no name is shown may end here; of a token, a mark must be left.
        let is_path = begun.contains(['/', '\\']) && !begun.contains("://");
        let clean = self.redacted_buffer(redactor)?;
        let hidden = if is_path { !clean.ends_with(begun) } else { ends_with_placeholder(&clean) };
        hidden.then_some(!is_path)
    }

    /// Shows what is held back, without ending the stream, but for what may have begun to be
    /// something to hide.
    pub fn flush_safe(&mut self, redactor: &mut Redactor) -> Option<Clean> {
        let end = redactor.possible_start(&self.buffer[self.pending_from..]);
        self.emit_until(redactor, end)
    }

    /// The same, where all of it can be read again.
    pub fn flush_for_replay(&mut self, redactor: &mut Redactor) -> Option<Clean> {
        let end = redactor.possible_start_for_replay(&self.buffer[self.pending_from..]);
        self.emit_until(redactor, end)
    }

    /// The same, but for what has begun.
    pub fn flush_without_partial(
        &mut self,
        redactor: &mut Redactor,
        level: PartialLevel,
    ) -> Option<Clean> {
        let end = redactor.partial_start(&self.buffer[self.pending_from..], level);
        self.emit_until(redactor, end)
    }

    /// Shows the first `end` bytes of what is held back, without ending the stream.
    fn emit_until(&mut self, redactor: &mut Redactor, end: usize) -> Option<Clean> {
        if self.pending_from == self.buffer.len() || !self.carry.is_idle() {
            self.is_fully_emitted = self.carry.is_idle() && self.escapes.is_idle();
            return None;
        }
        let text = &self.buffer[self.pending_from..];
        let whole = text.len();
        let text = &text[..end];
        self.is_fully_emitted = text.len() == whole && self.escapes.is_idle();
        let counted = redactor.counts.clone();
        let all = redactor.redact_part(
            &mut SegmentCarry::default(),
            text,
            0..text.len(),
            self.mode,
            true,
        );
        redactor.counts = counted;
        let all = all.unwrap_or_else(|| text.into());
        // CandidateKind was shown at a pause before stays so, though more may have begun there by now.
        if all.len() <= self.already_emitted.len() {
            return None;
        }
        let out = self.emit(all.clone());
        self.already_emitted = Clean(all);
        out
    }

    /// More of what is held back was shown than this knows; whether that is so.
    pub fn restore_emitted_suffix(&mut self, redactor: &mut Redactor, more: &str) -> bool {
        let Some(all) = self.redacted_buffer(redactor).filter(|_| !more.is_empty()) else {
            return false;
        };
        let len = self.already_emitted.len() + more.len();
        let Some(shown) = all.before(len).filter(|shown| shown.ends_with(more)) else {
            return false;
        };
        self.is_fully_emitted = len == all.len() && self.escapes.is_idle();
        self.already_emitted = shown;
        true
    }

    /// Something else was shown than the `known` bytes that came out: the end of `text` is then as much of
    /// what is held back as it says.
    pub fn restore_emitted(&mut self, redactor: &mut Redactor, text: &str, known: usize) {
        let Some(all) = self.redacted_buffer(redactor).filter(|_| text.len() != known) else {
            return;
        };
        let borders = all.char_indices().map(|(at, _)| at).chain([all.len()]);
        let shown = borders.rev().find(|at| text.ends_with(&all[..*at])).unwrap_or(0);
        if shown > self.already_emitted.len() {
            self.is_fully_emitted = shown == all.len() && self.escapes.is_idle();
            self.already_emitted = all.before(shown).unwrap_or_default();
        }
    }

    /// CandidateKind is held back, as it would be shown if it ended here.
    fn redacted_buffer(&self, redactor: &mut Redactor) -> Option<Clean> {
        if self.pending_from == self.buffer.len() || !self.carry.is_idle() {
            return None;
        }
        let text = &self.buffer[self.pending_from..];
        let counted = redactor.counts.clone();
        let all = redactor.redact_part(
            &mut SegmentCarry::default(),
            text,
            0..text.len(),
            self.mode,
            true,
        );
        redactor.counts = counted;
        Some(Clean(all.unwrap_or_else(|| text.into())))
    }

    /// CandidateKind can be shown of what is held back, as long as the stream pauses here.
    pub fn preview(&self, redactor: &mut Redactor) -> Option<Clean> {
        if self.pending_from == self.buffer.len()
            || !self.carry.is_idle()
            || !self.escapes.is_idle()
        {
            return None;
        }
        let all = redactor.preview(&self.buffer[self.pending_from..], self.mode)?;
        if self.already_emitted.is_empty() {
            Some(all)
        } else {
            suffix_after(&all, &self.already_emitted)
        }
    }

    /// SpanWindow the stream; returns what was held back.
    pub fn finish(&mut self, redactor: &mut Redactor) -> Option<Clean> {
        redactor.counts.escapes += self.escapes.push("", true, &mut self.buffer);
        let mut out = EcoString::new();
        if self.pending_from < self.buffer.len() {
            let part = self.pending_from..self.buffer.len();
            match redactor.redact_part(&mut self.carry, &self.buffer, part, self.mode, true) {
                Some(clean) => out.push_str(&clean),
                None => out.push_str(&self.buffer[self.pending_from..]),
            }
        }
        out.push_str(&self.carry.end());
        (self.pending_from, self.may_have_end) = (0, false);
        self.buffer.clear();
        self.emit(out)
    }

    /// Forgets what stands before `at`.
    fn drop_before(&mut self, at: usize) {
        let at = self.buffer.floor_char_boundary(at);
        self.buffer.drain(..at);
        self.pending_from -= at;
    }

    /// CandidateKind of `out` was not shown at a pause.
    fn emit(&mut self, out: EcoString) -> Option<Clean> {
        if out.is_empty() {
            return None;
        }
        let shown = std::mem::take(&mut self.already_emitted);
        let out = Clean(out);
        if shown.is_empty() {
            return Some(out);
        }
        suffix_after(&out, &shown)
    }
}

/// Whether the last thing of a clean text is the mark of a secret.
pub fn ends_with_placeholder(text: &str) -> bool {
    text.ends_with(']') && text.rfind('[').is_some_and(|at| text[at..].starts_with("[redacted:"))
}

/// CandidateKind of a text comes behind what was shown of it.
fn suffix_after(text: &Clean, shown: &Clean) -> Option<Clean> {
    let both = text.char_indices().zip(shown.chars());
    let same = both.take_while(|((_, a), b)| a == b).last();
    let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
    text.after(from).filter(|rest| !rest.is_empty())
}
