//! Streamed text: holds back the end that a match could still reach.
//!
//! Law: for any chunks, the outputs join to the redacted whole text. The chunks are joined to the
//! segments that the whole text has, and segments are redacted alone.

use crate::escapes::{self, EscapeFilter};
use crate::paths::Mode;
use crate::redactor::partial::PartialLevel;
use crate::redactor::segment::{
    LOOKAHEAD_BYTES, LOOKBACK_BYTES, MAX_SEGMENT_BYTES, SpanWindow, has_end,
};
use crate::redactor::{Redactor, SegmentCarry, SegmentHints};
use crate::text::Clean;
use ecow::EcoString;

/// One stream of text with its hold-back buffer.
#[derive(Default)]
pub struct StreamRedactor {
    mode: Mode,
    escapes: EscapeFilter,
    buffer: String,
    /// The start of the text in `buffer` that is pending; the text before it is context.
    pending_from: usize,
    /// More text may show that a segment ends in `buffer`.
    may_have_end: bool,
    carry: SegmentCarry,
    /// The redacted part of `buffer` that was emitted at a pause.
    already_emitted: Clean,
    /// At the last pause nothing was held back, and no text arrived since.
    is_fully_emitted: bool,
    /// The last character belongs to no token and no path.
    is_at_word_end: bool,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for StreamRedactor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "StreamRedactor({} bytes held)", self.buffer.len() - self.pending_from)
    }
}

impl StreamRedactor {
    pub fn new(mode: Mode) -> Self {
        StreamRedactor { mode, ..StreamRedactor::default() }
    }

    /// Creates a stream that follows a redacted secret, whose remainder it may start with.
    pub fn after_secret(mode: Mode) -> Self {
        StreamRedactor { mode, carry: SegmentCarry::after_secret(), ..StreamRedactor::default() }
    }

    /// Returns whether all text was emitted and none of it affects the text to come.
    pub fn is_drained(&self) -> bool {
        let is_empty = self.buffer.is_empty() && self.already_emitted.is_empty();
        is_empty && self.escapes.is_idle() && self.carry.is_idle()
    }

    /// Returns whether the last pause emitted everything and no text arrived since. Then the next
    /// text cannot complete a match.
    pub fn is_fully_emitted(&self) -> bool {
        self.is_fully_emitted
    }

    /// Returns whether the last character ends a word, so that the next text is not the rest of a
    /// token.
    pub fn is_at_word_end(&self) -> bool {
        self.is_at_word_end
    }

    /// Bytes in the hold-back buffer.
    pub fn held_bytes(&self) -> usize {
        self.buffer.len()
    }

    /// Accepts the next chunk; returns the text that no match can reach any more.
    pub fn push(&mut self, redactor: &mut Redactor, chunk: &str) -> Option<Clean> {
        self.is_fully_emitted = false;
        if let Some(last) = chunk.chars().next_back() {
            let is_part = last.is_ascii_alphanumeric() || "_-~+/\\=:@%&$#*".contains(last);
            self.is_at_word_end = !is_part;
        }
        if self.buffer.is_empty() && self.already_emitted.is_empty() && self.escapes.is_idle() {
            return self.push_first(redactor, chunk);
        }
        let emitted_to =
            if self.already_emitted.is_empty() { self.pending_from } else { self.buffer.len() };
        let has_escapes = !self.escapes.is_idle() || escapes::has_any(chunk);
        self.push_more(redactor, chunk, emitted_to, has_escapes)
    }

    fn push_more(
        &mut self,
        redactor: &mut Redactor,
        chunk: &str,
        emitted_to: usize,
        has_escapes: bool,
    ) -> Option<Clean> {
        let before = self.buffer.len();
        if has_escapes {
            redactor.counts.escapes += self.escapes.push(chunk, false, &mut self.buffer);
        } else {
            self.buffer.push_str(chunk);
        }
        let mut out = EcoString::new();
        if self.may_have_end || has_end(&self.buffer[before..]) {
            let all = self.pending_from..self.buffer.len();
            let end = redactor.last_end(&mut SpanWindow::default(), &self.buffer, all, true);
            // An end inside the text that was emitted at a pause does not count: the next one does.
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
            && let Some((end, cuts_secret)) =
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
            if cuts_secret {
                self.carry.continue_secret();
            }
            self.pending_from = end;
            self.drop_before(end.saturating_sub(2 * LOOKBACK_BYTES));
        }
        self.emit(out)
    }

    /// Accepts a chunk when the buffer is empty, without copying the part that can be emitted.
    fn push_first(&mut self, redactor: &mut Redactor, chunk: &str) -> Option<Clean> {
        let end =
            redactor.last_end(&mut SpanWindow::default(), chunk, 0..chunk.len(), true).unwrap_or(0);
        let has_escapes = escapes::has_any(chunk);
        if has_escapes || chunk.len() - end > MAX_SEGMENT_BYTES + LOOKAHEAD_BYTES {
            // Use the general path with an empty buffer.
            self.buffer.reserve(chunk.len());
            return self.push_more(redactor, chunk, 0, has_escapes);
        }
        let safe = &chunk[..end];
        let clean = redactor.redact_part(&mut self.carry, chunk, 0..end, self.mode, false);
        self.buffer.push_str(&chunk[end..]);
        self.may_have_end = has_end(&self.buffer);
        match clean {
            Some(clean) => self.emit(clean),
            None => (!safe.is_empty()).then(|| Clean(safe.into())),
        }
    }

    /// Returns whether the stream may end here without showing a part of something to redact, and
    /// if so, whether a partial match is at its end.
    pub fn can_end(&self, redactor: &mut Redactor, level: PartialLevel) -> Option<bool> {
        if !self.carry.is_idle() {
            return self.carry.can_end().then_some(false);
        }
        let text = &self.buffer[self.pending_from..];
        let partial = &text[redactor.partial_start(text, level)..];
        if partial.is_empty() {
            return Some(false);
        }
        // A path may end at a folder that shows no name. Of a token, a placeholder must be left.
        let is_path = partial.contains(['/', '\\']) && !partial.contains("://");
        let clean = self.redacted_buffer(redactor)?;
        let is_redacted =
            if is_path { !clean.ends_with(partial) } else { ends_with_placeholder(&clean) };
        is_redacted.then_some(!is_path)
    }

    /// Emits the held-back text without ending the stream, except for what may have started to
    /// match.
    pub fn flush_safe(&mut self, redactor: &mut Redactor) -> Option<Clean> {
        let end = redactor.possible_start(&self.buffer[self.pending_from..]);
        self.emit_until(redactor, end)
    }

    /// The same for a source that can be read again: holds back possible token prefixes too.
    pub fn flush_for_replay(&mut self, redactor: &mut Redactor) -> Option<Clean> {
        let end = redactor.possible_start_for_replay(&self.buffer[self.pending_from..]);
        self.emit_until(redactor, end)
    }

    /// Emits the held-back text up to a partial match of `level`.
    pub fn flush_without_partial(
        &mut self,
        redactor: &mut Redactor,
        level: PartialLevel,
    ) -> Option<Clean> {
        let end = redactor.partial_start(&self.buffer[self.pending_from..], level);
        self.emit_until(redactor, end)
    }

    /// Emits the first `end` bytes of the held-back text without ending the stream.
    fn emit_until(&mut self, redactor: &mut Redactor, end: usize) -> Option<Clean> {
        if self.pending_from == self.buffer.len() || !self.carry.is_idle() {
            self.is_fully_emitted = self.carry.is_idle() && self.escapes.is_idle();
            return None;
        }
        let text = &self.buffer[self.pending_from..];
        let whole = text.len();
        let text = &text[..end];
        self.is_fully_emitted = text.len() == whole && self.escapes.is_idle();
        let counts = redactor.counts.clone();
        let all = redactor.redact_part(
            &mut SegmentCarry::default(),
            text,
            0..text.len(),
            self.mode,
            true,
        );
        redactor.counts = counts;
        let all = all.unwrap_or_else(|| text.into());
        // Text that was emitted at an earlier pause stays emitted, even if a match may have started
        // in it since.
        if all.len() <= self.already_emitted.len() {
            return None;
        }
        let out = self.emit(all.clone());
        self.already_emitted = Clean(all);
        out
    }

    /// Notes that `more` of the held-back text had been emitted before a restart; returns whether
    /// it fits.
    pub fn restore_emitted_suffix(&mut self, redactor: &mut Redactor, more: &str) -> bool {
        let Some(all) = self.redacted_buffer(redactor).filter(|_| !more.is_empty()) else {
            return false;
        };
        let len = self.already_emitted.len() + more.len();
        let Some(emitted) = all.before(len).filter(|emitted| emitted.ends_with(more)) else {
            return false;
        };
        self.is_fully_emitted = len == all.len() && self.escapes.is_idle();
        self.already_emitted = emitted;
        true
    }

    /// Notes that `text` had been emitted before a restart, instead of the `replayed_bytes` that the
    /// replay gave: its end says how much of the held-back text was emitted.
    pub fn restore_emitted(&mut self, redactor: &mut Redactor, text: &str, replayed_bytes: usize) {
        let Some(all) = self.redacted_buffer(redactor).filter(|_| text.len() != replayed_bytes)
        else {
            return;
        };
        let borders = all.char_indices().map(|(at, _)| at).chain([all.len()]);
        let emitted = borders.rev().find(|at| text.ends_with(&all[..*at])).unwrap_or(0);
        if emitted > self.already_emitted.len() {
            self.is_fully_emitted = emitted == all.len() && self.escapes.is_idle();
            self.already_emitted = all.before(emitted).unwrap_or_default();
        }
    }

    /// The held-back text as it would be redacted if it ended here.
    fn redacted_buffer(&self, redactor: &mut Redactor) -> Option<Clean> {
        if self.pending_from == self.buffer.len() || !self.carry.is_idle() {
            return None;
        }
        let text = &self.buffer[self.pending_from..];
        let counts = redactor.counts.clone();
        let all = redactor.redact_part(
            &mut SegmentCarry::default(),
            text,
            0..text.len(),
            self.mode,
            true,
        );
        redactor.counts = counts;
        Some(Clean(all.unwrap_or_else(|| text.into())))
    }

    /// Returns the part of the held-back text that may be shown while the stream pauses.
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

    /// Ends the stream; returns the held-back text.
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

    /// Drops the context before `at`.
    fn drop_before(&mut self, at: usize) {
        let at = self.buffer.floor_char_boundary(at);
        self.buffer.drain(..at);
        self.pending_from -= at;
    }

    /// Removes from `out` what was emitted at a pause.
    fn emit(&mut self, out: EcoString) -> Option<Clean> {
        if out.is_empty() {
            return None;
        }
        let emitted = std::mem::take(&mut self.already_emitted);
        let out = Clean(out);
        if emitted.is_empty() {
            return Some(out);
        }
        suffix_after(&out, &emitted)
    }
}

/// Returns whether a clean text ends with the placeholder of a secret.
pub fn ends_with_placeholder(text: &str) -> bool {
    text.ends_with(']') && text.rfind('[').is_some_and(|at| text[at..].starts_with("[redacted:"))
}

/// The part of a text after its common start with `emitted`.
fn suffix_after(text: &Clean, emitted: &Clean) -> Option<Clean> {
    let both = text.char_indices().zip(emitted.chars());
    let same = both.take_while(|((_, a), b)| a == b).last();
    let from = same.map_or(0, |((at, c), _)| at + c.len_utf8());
    text.after(from).filter(|rest| !rest.is_empty())
}
