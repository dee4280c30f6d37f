//! The part of held-back text that may be shown while its stream pauses.
//!
//! A preview is never stored and is withdrawn when the text itself comes. Nothing in it may still
//! become a secret or a host path.

use super::Redactor;
use crate::chars::{ends_path, is_name_byte, is_standalone};
use crate::normalize::{NormalizedText, complete};
use crate::paths::Mode;
use crate::paths::partial::{previewable_id_start, previewable_root_start};
use crate::secrets::OPEN_END;
use crate::text::Clean;
use memchr::{memchr2_iter, memrchr2};

/// Shortest alphanumeric run that may be the start of a token of any kind.
const MIN_RUN_LEN: usize = 12;
/// Shortest prefix of a known value or id that counts as its start.
const MIN_PARTIAL_VALUE_LEN: usize = 2;

impl Redactor {
    /// Returns the redacted start of a pausing text in which no match can have started.
    pub(crate) fn preview(&mut self, text: &str, mode: Mode) -> Option<Clean> {
        let text = &text[..self.certain_end(text)];
        if text.is_empty() {
            return None;
        }
        let counts = self.counts.clone();
        let clean = self.redact_uncached(text, mode);
        self.counts = counts;
        Some(Clean(clean.unwrap_or_else(|| text.into())))
    }

    /// Returns the position up to which nothing in a text that may continue can become a match.
    fn certain_end(&self, text: &str) -> usize {
        let mut at = self.possible_start(text);
        let whole = &text[..complete(text)];
        at = at.min(whole.len());
        let start = memrchr2(b'\n', b'\r', whole.as_bytes()).map_or(0, |i| i + 1);
        let line = &whole[start..];
        let view = NormalizedText::new(line);
        at = at.min(start + self.certain_end_in(&view));
        if !view.is_source()
            && let Some(view) = NormalizedText::literal(line)
        {
            at = at.min(start + self.certain_end_in(&view));
        }
        text.floor_char_boundary(at)
    }

    /// The same for one normalized line; returns a position in its source.
    fn certain_end_in(&self, view: &NormalizedText<'_>) -> usize {
        let b = &*view.b;
        let mut at = b.len();
        let skip_names = !self.secrets.has_user_rules();
        self.secrets.each_span(b, true, |from, to| {
            // A name alone is no secret as long as no value follows it.
            if to == OPEN_END && !(skip_names && is_name_only(&b[from..])) {
                at = at.min(from);
            }
        });
        for value in self.secrets.known_values().iter().map(String::as_bytes) {
            let longest_prefix =
                (MIN_PARTIAL_VALUE_LEN..value.len()).rev().find(|len| b.ends_with(&value[..*len]));
            at = at.min(longest_prefix.map_or(b.len(), |len| b.len() - len));
        }
        at = at
            .min(absolute_path_start(b))
            .min(previewable_root_start(&self.paths, b))
            .min(previewable_id_start(&self.paths, b));
        at = at.min(token_run_start(b));
        if at == b.len() {
            view.source(at, at).1.max(view.source(0, at).1)
        } else {
            view.source(at, at).0
        }
    }
}

/// Returns whether only letters are there, as in the name of a field, possibly with a sign after
/// it.
fn is_name_only(b: &[u8]) -> bool {
    let sign = |c: &u8| matches!(c, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'');
    let len = b.len() - b.iter().rev().take_while(|c| sign(c)).count();
    len <= 48 && b[..len].iter().all(|c| c.is_ascii_alphabetic() || matches!(c, b'_' | b'-'))
}

/// The start of the first path that is not relative.
fn absolute_path_start(b: &[u8]) -> usize {
    for at in memchr2_iter(b'/', b'\\', b) {
        let before = &b[..at];
        let begins = match before.last() {
            None => true,
            Some(b'~') => return at - 1,
            Some(b':') => {
                let [.., drive, _] = before else { return at };
                let other = before.len().checked_sub(3).map(|i| before[i]);
                if drive.is_ascii_alphabetic() && !other.is_some_and(|c| c.is_ascii_alphanumeric())
                {
                    return at - 2;
                }
                false
            }
            Some(b'/' | b'\\' | b'.' | b')' | b'}') => false,
            Some(c) if *c >= 0x80 => {
                let from = before.len().saturating_sub(4);
                let last = String::from_utf8_lossy(&before[from..]);
                last.chars().next_back().is_none_or(|c| is_standalone(c) || !c.is_alphanumeric())
            }
            Some(c) => ends_path(*c) || !is_name_byte(*c),
        };
        if begins {
            return at;
        }
    }
    b.len()
}

/// The start of the alphanumeric run at the end of a text, when it may be part of a token.
fn token_run_start(b: &[u8]) -> usize {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || b"_-.+/=~".contains(*c);
    let from = b.len() - b.iter().rev().take_while(part).count();
    let run = &b[from..];
    let long = run.split(|c| !c.is_ascii_alphanumeric() && !matches!(c, b'_' | b'-')).any(|run| {
        let mixed = run.iter().any(u8::is_ascii_digit) && run.iter().any(u8::is_ascii_alphabetic);
        run.len() >= MIN_RUN_LEN && mixed
    });
    if long { from } else { b.len() }
}
