//! What may span a segment end: known values, roots, host paths, URL logins.

use super::Redactor;
use crate::chars::{ends_path, is_blank, is_joint, is_standalone, is_standalone_punctuation};
use crate::normalize::NormalizedText;
use crate::paths::scan::{PathScanner, TOP_FOLDERS};
use crate::paths::{Mode, PathRoot, Paths};
use memchr::{memchr, memchr2, memchr2_iter, memchr3, memmem, memrchr2};

/// Bytes before a position that are searched.
const LOOKBACK_BYTES: usize = 512;
/// Words of a quoted path that may be separated by blanks.
const LOOKBACK_WORDS: usize = 4;
/// Top folders of a host whose subfolders may have blanks in their names.
const HOME_FOLDERS: [&str; 5] = ["home", "users", "volumes", "media", "mnt"];

/// Segment rules that depend on the redacted values and roots.
#[derive(Clone, Default)]
pub(crate) struct SegmentRules {
    /// The prefixes of known values up to each possible segment end inside them.
    value_prefixes: Vec<String>,
    /// The names of some root contain a possible segment end.
    has_split_root: bool,
}

// Raw text must not be printed, not even for debugging.
impl std::fmt::Debug for SegmentRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SegmentRules({} beginnings)", self.value_prefixes.len())
    }
}

impl SegmentRules {
    pub(crate) fn new(paths: &Paths, known: &[String]) -> SegmentRules {
        let prefixes = |v: &String| -> Vec<String> {
            v.char_indices()
                .filter(|(_, c)| c.is_whitespace() || *c == '|' || is_standalone(*c))
                .map(|(i, c)| v[..i + c.len_utf8()].to_owned())
                .collect()
        };
        let has_split_root = paths.roots.iter().any(may_be_split);
        SegmentRules { value_prefixes: known.iter().flat_map(prefixes).collect(), has_split_root }
    }

    pub(crate) fn add_root(&mut self, paths: &Paths) {
        self.has_split_root = paths.roots.iter().any(may_be_split);
    }
}

/// Returns whether a segment could end inside the names of a root.
fn may_be_split(root: &PathRoot) -> bool {
    root.parts
        .iter()
        .any(|part| part.chars().any(|c| matches!(c, ' ' | '\t' | '|') || is_standalone(c)))
}

impl Redactor {
    /// Returns whether something right before `p` may continue after it, so that no segment ends
    /// there.
    pub(crate) fn may_continue(&self, text: &str, p: usize) -> bool {
        let b = &text.as_bytes()[..p];
        if self.segment_rules.value_prefixes.iter().any(|v| b.ends_with(v.as_bytes())) {
            return true;
        }
        let low = p.saturating_sub(LOOKBACK_BYTES);
        let low = memrchr2(b'\n', b'\r', &b[low..]).map_or(low, |i| low + i + 1);
        let line = &text[text.floor_char_boundary(low)..p];
        if self.segment_rules.has_split_root && self.is_within_root(line) {
            return true;
        }
        if memchr2(b'/', b'\\', line.as_bytes()).is_none() {
            return false;
        }
        match line.as_bytes().split_last() {
            Some((c, before)) if is_blank(*c) => self.is_host_path(before),
            _ => self.is_word_open(line),
        }
    }

    /// Returns whether a line that ends inside or after the names of a root may continue with them.
    fn is_within_root(&self, line: &str) -> bool {
        let view = NormalizedText::new(line);
        let scan = PathScanner::new(&self.paths, &view.b, Mode::Text);
        self.paths.roots.iter().filter(|root| may_be_split(root)).any(|root| {
            let longest = root.parts.iter().map(|p| p.len() + 8).sum::<usize>();
            let low = view.b.len().saturating_sub(longest);
            let led = memchr2_iter(b'/', b'\\', &view.b[low..])
                .any(|i| scan.sep_after(low + i).is_some_and(|from| scan.reaches(root, from)));
            // A root is also matched without its first separator.
            led || root.parts.first().and_then(|p| p.bytes().next()).is_some_and(|first| {
                let other = first.to_ascii_uppercase();
                memchr2_iter(first.to_ascii_lowercase(), other, &view.b[low..])
                    .any(|i| scan.reaches(root, low + i))
            })
        })
    }

    /// Returns whether the last words before a blank are a host path whose next folder has a blank
    /// in its name: `/Users/Jo Doe/…`. A path below a known root is none.
    fn is_host_path(&self, b: &[u8]) -> bool {
        let mut end = b.len();
        let mut chained = true;
        let mut any_quote = None;
        for _ in 0..=LOOKBACK_WORDS {
            let start = b[..end].iter().rposition(|c| ends_path(*c)).map_or(0, |i| i + 1);
            let text = str::from_utf8(&b[start..end]).unwrap_or_default();
            let before = start.checked_sub(1).map(|i| b[i]);
            let quoted = matches!(before, Some(b'"' | b'\'' | b'`'));
            // Most words are ASCII: a path then starts only at the start of a word.
            let plain = text.is_ascii();
            let below = |path: &&[u8]| chained && is_below(path, &HOME_FOLDERS);
            let path = if quoted && is_below(text.as_bytes(), &TOP_FOLDERS) {
                Some(text.as_bytes())
            } else if plain {
                Some(text.as_bytes()).filter(below)
            } else {
                paths_in(text).find(below)
            };
            if let Some(path) = path {
                return !self.is_known(path);
            }
            // The text may have been cut between such characters.
            if text.is_empty() || (!plain && text.contains(is_standalone)) {
                return false;
            }
            chained = chained && memchr2(b'/', b'\\', text.as_bytes()).is_some();
            if !chained
                && !*any_quote.get_or_insert_with(|| memchr3(b'"', b'\'', b'`', b).is_some())
            {
                return false;
            }
            if before != Some(b' ') {
                return false;
            }
            end = start - 1;
        }
        false
    }

    /// Returns whether a path lies below a known root.
    fn is_known(&self, path: &[u8]) -> bool {
        let scan = PathScanner::new(&self.paths, path, Mode::Text);
        let from = if path.get(1) == Some(&b':') { 2 } else { 0 };
        scan.sep_after(from)
            .is_some_and(|from| self.paths.roots.iter().any(|root| scan.has_all(root, from)))
    }

    /// Returns whether a word that ends in a character of a script without blanks may be part of a
    /// path from the top of a host, or of the login of a URL.
    fn is_word_open(&self, line: &str) -> bool {
        let ends = |c: char| (c.is_ascii() && ends_path(c as u8)) || is_standalone_punctuation(c);
        let after = |from: Option<(usize, char)>| {
            &line.as_bytes()[from.map_or(0, |(i, c)| i + c.len_utf8())..]
        };
        // A password may contain a bar, a path does not.
        let login = after(line.char_indices().rev().find(|(_, c)| *c != '|' && ends(*c)));
        if memmem::find(login, b"://").is_some_and(|at| is_login_open(&login[at + 3..])) {
            return true;
        }
        let word = after(line.char_indices().rev().find(|(_, c)| ends(*c)));
        // Folder names contain such signs too: wait for the whole path.
        let is_name = || line.chars().next_back().is_some_and(is_joint);
        if memchr2(b'/', b'\\', word).is_some() && is_name() {
            return true;
        }
        // The text before a separator may have been emitted already, so it decides nothing.
        let tops = || self.paths.roots.iter().filter_map(|r| r.parts.first().map(String::as_str));
        memchr2_iter(b'/', b'\\', word).any(|at| {
            is_home(&word[..at])
                || is_below(&word[at..], &TOP_FOLDERS)
                || tops().any(|top| is_below(&word[at..], &[top]))
        })
    }
}

/// The paths that may start in a word: at its start, or after a standalone character, where the
/// text may have been cut. No path spans standalone punctuation.
fn paths_in(word: &str) -> impl Iterator<Item = &[u8]> {
    let from = word
        .rfind(is_standalone_punctuation)
        .map_or(0, |i| i + word[i..].chars().next().map_or(0, char::len_utf8));
    let word = &word[from..];
    let led =
        word.char_indices().filter(|(_, c)| is_standalone(*c)).map(|(at, c)| at + c.len_utf8());
    std::iter::once(0).chain(led).map(|at| &word.as_bytes()[at..])
}

/// Returns whether a path starts at the separator after this text: `~`, or a drive letter.
fn is_home(before: &[u8]) -> bool {
    match before {
        [.., b'~'] => true,
        [rest @ .., d, b':'] => {
            d.is_ascii_alphabetic() && !rest.last().is_some_and(u8::is_ascii_alphanumeric)
        }
        _ => false,
    }
}

/// Returns whether a path is absolute and starts with one of these folders or a drive letter.
fn is_below(path: &[u8], tops: &[&str]) -> bool {
    let rest = match path {
        [b'/' | b'\\', rest @ ..] => rest,
        [d, b':', b'/' | b'\\', ..] => return d.is_ascii_alphabetic(),
        _ => return false,
    };
    let len = rest.iter().position(|c| matches!(c, b'/' | b'\\')).unwrap_or(rest.len());
    tops.iter().any(|top| rest[..len].eq_ignore_ascii_case(top.as_bytes()))
}

/// Returns whether the text after `scheme://` may still become `name:password@`.
fn is_login_open(rest: &[u8]) -> bool {
    if memchr2(b'/', b'@', rest).is_some() {
        return false;
    }
    // Only the text before the first non-ASCII character decides: the rest may be cut off.
    let plain = &rest[..rest.iter().position(|c| !c.is_ascii()).unwrap_or(rest.len())];
    match memchr(b':', plain) {
        // A port is no password.
        Some(i) => plain.len() == i + 1 || !plain[i + 1..].iter().all(u8::is_ascii_digit),
        // A host name contains a dot.
        None => memchr(b'.', plain).is_none(),
    }
}
