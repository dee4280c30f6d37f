//! CandidateKind of the text that is held back can be shown while its stream pauses. It is shown beside the log
//! and taken back when the text itself comes, so nothing may be in it that could still become a
//! secret or a path of the machine.

use super::Redactor;
use crate::chars::{ends_path, is_name_byte, is_standalone};
use crate::normalize::{NormalizedText, complete};
use crate::paths::Mode;
use crate::paths::partial::{previewable_id_start, previewable_root_start};
use crate::secrets::OPEN_END;
use crate::text::Clean;
use memchr::{memchr2_iter, memrchr2};

/// Letters and digits in a row that may be the beginning of a token, whatever it begins with.
const MIN_RUN_LEN: usize = 12;
/// RedactionTraits much of a known value or id must be there for it to have begun.
const MIN_PARTIAL_VALUE_LEN: usize = 2;

impl Redactor {
    /// The cleaned beginning of a text that pauses in which nothing to hide can have begun.
    pub(crate) fn preview(&mut self, text: &str, mode: Mode) -> Option<Clean> {
        let text = &text[..self.certain_end(text)];
        if text.is_empty() {
            return None;
        }
        let counted = self.counts.clone();
        let clean = self.redact_uncached(text, mode);
        self.counts = counted;
        Some(Clean(clean.unwrap_or_else(|| text.into())))
    }

    /// Up to where nothing in a text that may go on can become something to hide.
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

    /// The same for one line as it reads; a place in its source.
    fn certain_end_in(&self, view: &NormalizedText<'_>) -> usize {
        let b = &*view.b;
        let mut at = b.len();
        let named = !self.secrets.has_user_rules();
        self.secrets.each_span(b, true, |from, to| {
            // The name of a secret is none, as long as nothing stands beside it.
            if to == OPEN_END && !(named && is_name_only(&b[from..])) {
                at = at.min(from);
            }
        });
        for value in self.secrets.known_values().iter().map(String::as_bytes) {
            let begun =
                (MIN_PARTIAL_VALUE_LEN..value.len()).rev().find(|len| b.ends_with(&value[..*len]));
            at = at.min(begun.map_or(b.len(), |len| b.len() - len));
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

/// Whether nothing but letters stands there, as in the name of a field, and perhaps a sign behind it.
fn is_name_only(b: &[u8]) -> bool {
    let sign = |c: &u8| matches!(c, b' ' | b'\t' | b':' | b'=' | b'"' | b'\'');
    let len = b.len() - b.iter().rev().take_while(|c| sign(c)).count();
    len <= 48 && b[..len].iter().all(|c| c.is_ascii_alphabetic() || matches!(c, b'_' | b'-'))
}

/// Where the first path begins that is not relative to something.
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

/// Where the letters and digits begin at the end of a text, if they may be part of a token.
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
