//! Partial matches: the start of something to redact at the end of a text.

use super::Redactor;
use crate::ELLIPSIS;
use crate::chars::is_long_id;
use crate::normalize::NormalizedText;
use crate::paths::partial::{self, is_separator};
use crate::secrets::{OPEN_END, is_key, pem, turns};
use crate::tree::is_path_key;

/// Bytes at the end of a text that are searched.
const TAIL_BYTES: usize = 4096;
/// How often the search is repeated on the text before a partial match.
const MAX_ROUNDS: usize = 16;
/// Shortest prefix of a known value that counts as a partial match.
const MIN_PARTIAL_VALUE_LEN: usize = 3;
/// Shortest alphanumeric run that may be part of a token.
const MIN_RUN_LEN: usize = 5;
/// Length of a UUID in hyphenated form.
const UUID_LEN: usize = 36;
/// Prefixes of tokens that are recognized by their decoded content: a JSON object, a PEM header.
const ENCODED_PREFIXES: [&[u8]; 2] = [b"eyJ", b"LS0t"];

/// How much of a match must be present for it to count as partial.
#[derive(Debug, Clone, Copy)]
pub struct PartialLevel {
    /// Bytes of a token that is recognized by its prefix.
    min_token_len: usize,
    /// The shape of a token is enough.
    by_shape: bool,
}

impl PartialLevel {
    /// Something to redact may have started.
    pub const POSSIBLE: PartialLevel = PartialLevel { min_token_len: 0, by_shape: true };
    /// A prefix or a name says that it has started; the shape alone does not.
    pub const EVIDENT: PartialLevel = PartialLevel { min_token_len: 0, by_shape: false };
    /// Like [`PartialLevel::EVIDENT`], with more of a token than the prefix that all of its kind
    /// share.
    pub const SUBSTANTIAL: PartialLevel = PartialLevel { min_token_len: 6, by_shape: false };
}

impl Redactor {
    /// Returns where in a text that may continue a match may have started; the text's end when none
    /// has.
    pub(crate) fn possible_start(&self, text: &str) -> usize {
        let view = NormalizedText::new(text);
        let b = &*view.b;
        let mut at = partial::partial_start(&self.paths, b, true);
        if let Some(secret) = self.secrets.partial_token(b, b.len(), 0) {
            at = at.min(secret.start);
        }
        let word = b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
        let last = &b[word..];
        // More may come of a value after the name of a key, or of a password in a URL.
        let has_key_name = b.split(u8::is_ascii_whitespace).any(is_key);
        if has_key_name && last.iter().any(u8::is_ascii_digit) {
            at = at.min(word);
        }
        if let Some(i) = memchr::memmem::find(last, b"://") {
            let login = &last[i + 3..];
            let password = memchr::memchr(b':', login).map(|i| &login[i + 1..]);
            let port = |p: &[u8]| p.iter().all(u8::is_ascii_digit);
            let whole = memchr::memchr2(b'@', b'/', login).is_some();
            if !whole && password.is_some_and(|p| !port(p)) {
                at = at.min(word + i + 3);
            }
        }
        let mut candidates = Vec::new();
        self.secrets.each_candidate(b, |candidate| candidates.push(candidate.at));
        if let Some(first) = candidates.iter().copied().filter(|s| *s + 64 >= word).min() {
            // The whole word that contains the candidate.
            let start = b[..first].iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
            at = at.min(start);
        }
        if at == b.len() { text.len() } else { text.floor_char_boundary(view.source(at, at).0) }
    }

    /// The same, including a last word that is the start of a token prefix.
    pub(crate) fn possible_start_for_replay(&self, text: &str) -> usize {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let word = text.trim_end_matches(is_part).len();
        let at =
            if self.secrets.may_start_token(&text.as_bytes()[word..]) { word } else { text.len() };
        at.min(self.possible_start(text))
    }

    /// Returns the text with the partial match at its end replaced by `placeholder`; `None` when
    /// there is none.
    pub fn without_partial(
        &self,
        text: &str,
        placeholder: &str,
        level: PartialLevel,
    ) -> Option<String> {
        let at = self.partial_start(text, level);
        (at < text.len()).then(|| [&text[..at], placeholder].concat())
    }

    /// The same for a value of a JSON tree.
    pub fn value_without_partial(
        &self,
        text: &str,
        key: &str,
        level: PartialLevel,
    ) -> Option<String> {
        if is_path_key(key) {
            return self.is_partial_path(text, level).then(|| ELLIPSIS.to_owned());
        }
        // The value of a secret's key may be too short yet to be recognized.
        if !text.is_empty() && !text.contains(' ') && self.secrets.is_secret_key(key) {
            return Some(ELLIPSIS.to_owned());
        }
        self.without_partial(text, ELLIPSIS, level)
    }

    /// Returns whether a path may grow into something to redact. A whole root shows none of its
    /// names.
    pub fn is_partial_path(&self, path: &str, level: PartialLevel) -> bool {
        !self.paths.is_root(path) && self.partial_start(path, level) < path.len()
    }

    /// Returns where in a text that may continue a partial match starts; the text's end when none
    /// does.
    pub(crate) fn partial_start(&self, text: &str, level: PartialLevel) -> usize {
        // A growing field may close its quotes each time: "`curl …`".
        let mut end = text.trim_end_matches(['`', '"', '\'', ')', ']', '}', '>', '…', '.']).len();
        let whole = end;
        for _ in 0..MAX_ROUNDS {
            let low = text.floor_char_boundary(end.saturating_sub(TAIL_BYTES));
            let tail = &text[low..end];
            let view = NormalizedText::new(tail);
            let at = self.partial_start_in(&view.b, level);
            if at == view.b.len() {
                return if end == whole { text.len() } else { end };
            }
            // The text before it may now end in another partial match.
            end = low + tail.floor_char_boundary(view.source(at, at).0);
        }
        0
    }

    fn partial_start_in(&self, b: &[u8], level: PartialLevel) -> usize {
        let mut at = partial::partial_field_start(&self.paths, b);
        // A whole root shows none of its names, though it may be part of something longer.
        if !level.by_shape && self.is_whole_root(&b[at..]) {
            at = b.len();
        }
        let is_enough = |start: &usize| start + level.min_token_len <= b.len();
        let vendor = self.secrets.partial_token(b, b.len(), 0).map(|secret| secret.start);
        at = at.min(vendor.filter(is_enough).unwrap_or(b.len()));
        at = at.min(pem::partial_key_start(b).unwrap_or(b.len()));
        for value in self.secrets.known_values() {
            let value = value.as_bytes();
            let max_len = (value.len() - 1).min(b.len());
            let longest_prefix =
                (MIN_PARTIAL_VALUE_LEN..=max_len).rev().find(|n| b.ends_with(&value[..*n]));
            at = longest_prefix.map_or(at, |n| at.min(b.len() - n));
        }
        let line = memchr::memrchr2(b'\n', b'\r', b).map_or(0, |i| i + 1);
        let word = b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
        let token = partial_token_by_form(&b[word..], level.by_shape).map(|start| word + start);
        at = at.min(token.filter(is_enough).unwrap_or(b.len()));
        if let Some(password) = partial_password(&b[word..]) {
            at = at.min(word + password);
        }
        self.secrets.each_span(&b[line..], true, |from, to| {
            if to == OPEN_END {
                at = at.min(self.value_start(b, line + from));
            }
        });
        at
    }

    /// Returns whether a path is a whole root or the folder of a session, possibly with a full
    /// stop.
    fn is_whole_root(&self, path: &[u8]) -> bool {
        let path = path.strip_suffix(b".").unwrap_or(path);
        let name = path.rsplit(|c| is_separator(*c)).next().unwrap_or_default();
        is_long_id(name) || str::from_utf8(path).is_ok_and(|path| self.paths.is_root(path))
    }

    /// The start of the value of the name at `from`; the text's end when only a name is there.
    fn value_start(&self, b: &[u8], from: usize) -> usize {
        let is_sign = |c: &u8| matches!(c, b' ' | b'\t' | b'=' | b':' | b'"' | b'\'');
        let rest = &b[from..];
        if let Some(i) = rest.iter().rposition(is_sign) {
            return from + i + 1;
        }
        let word = rest.iter().all(u8::is_ascii_alphabetic);
        let name = word || str::from_utf8(rest).is_ok_and(|name| self.secrets.is_secret_key(name));
        if name { b.len() } else { from }
    }
}

/// Finds a token in the last word of a text by its form: encoded objects and keys by their prefix
/// or, `by_shape`, alternating letters and digits.
fn partial_token_by_form(word: &[u8], by_shape: bool) -> Option<usize> {
    let encoded =
        ENCODED_PREFIXES.iter().filter_map(|known| memchr::memmem::find(word, known)).min();
    let mut mixed = memchr::memmem::find(word, b"Q~");
    let mut at = 0;
    while by_shape && mixed.is_none() && at < word.len() {
        let rest = &word[at..];
        // A whole UUID is an id, not a secret.
        if rest.get(..UUID_LEN).is_some_and(is_uuid) {
            at += UUID_LEN;
            continue;
        }
        let len = rest.iter().position(|c| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        mixed = (len >= MIN_RUN_LEN && turns(&rest[..len]) >= 2).then_some(at);
        at += len + 1;
    }
    let starts = |at: usize| {
        let is_part = |c: &u8| c.is_ascii_alphanumeric() || b"_-.~+".contains(c);
        at - word[..at].iter().rev().take_while(|c| is_part(c)).count()
    };
    encoded.into_iter().chain(mixed.map(starts)).min()
}

fn is_uuid(text: &[u8]) -> bool {
    let dash = |i: usize| matches!(i, 8 | 13 | 18 | 23);
    let fits = |(i, c): (usize, &u8)| if dash(i) { *c == b'-' } else { c.is_ascii_hexdigit() };
    text.len() == UUID_LEN && text.iter().enumerate().all(fits)
}

/// The start of the password in the last word of a text, when that word is a URL whose login has
/// not ended.
fn partial_password(word: &[u8]) -> Option<usize> {
    let login = memchr::memmem::find(word, b"://")? + 3;
    let rest = &word[login..];
    let from = memchr::memchr(b':', rest)? + 1;
    let is_port = rest.len() - from < 6 && rest[from..].iter().all(u8::is_ascii_digit);
    let is_over = memchr::memchr2(b'@', b'/', rest).is_some_and(|i| rest[i] == b'@' || i < from);
    (!is_port && !is_over).then_some(login + from)
}
