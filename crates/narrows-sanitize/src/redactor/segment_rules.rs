//! CandidateKind stands before a place and may go on behind it: known values, roots, paths of a host, logins.

use super::Redactor;
use crate::chars::{ends_path, is_blank, is_joint, is_standalone, is_standalone_punctuation};
use crate::normalize::NormalizedText;
use crate::paths::scan::{PathScanner, TOP_FOLDERS};
use crate::paths::{Mode, Paths, Root};
use memchr::{memchr, memchr2, memchr2_iter, memchr3, memmem, memrchr2};

/// RedactionTraits far before a place is looked.
const LOOKBACK_BYTES: usize = 512;
/// Words of a path in quotes that may have blanks between them.
const LOOKBACK_WORDS: usize = 4;
/// Folders of a host below which names with blanks are found.
const HOME_FOLDERS: [&str; 5] = ["home", "users", "volumes", "media", "mnt"];

/// CandidateKind makes a place no end of a segment, beyond what always does.
#[derive(Clone, Default)]
pub(crate) struct SegmentRules {
    /// The beginnings of known values, up to each place where a text might be cut.
    value_prefixes: Vec<String>,
    /// A root has such places in its names.
    has_split_root: bool,
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for SegmentRules {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SegmentRules({} beginnings)", self.value_prefixes.len())
    }
}

impl SegmentRules {
    pub(crate) fn new(paths: &Paths, known: &[String]) -> SegmentRules {
        let begun = |v: &String| -> Vec<String> {
            v.char_indices()
                .filter(|(_, c)| c.is_whitespace() || *c == '|' || is_standalone(*c))
                .map(|(i, c)| v[..i + c.len_utf8()].to_owned())
                .collect()
        };
        let has_split_root = paths.roots.iter().any(may_be_split);
        SegmentRules { value_prefixes: known.iter().flat_map(begun).collect(), has_split_root }
    }

    pub(crate) fn add_root(&mut self, paths: &Paths) {
        self.has_split_root = paths.roots.iter().any(may_be_split);
    }
}

/// Whether a text might be cut within the names of a root.
fn may_be_split(root: &Root) -> bool {
    root.parts
        .iter()
        .any(|part| part.chars().any(|c| matches!(c, ' ' | '\t' | '|') || is_standalone(c)))
}

impl Redactor {
    /// Whether something that stands right before `p`, where the text might be cut, may go on there.
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

    /// Whether a line that ends within or behind the names of a root may go on with them.
    fn is_within_root(&self, line: &str) -> bool {
        let view = NormalizedText::new(line);
        let scan = PathScanner::new(&self.paths, &view.b, Mode::Text);
        self.paths.roots.iter().filter(|root| may_be_split(root)).any(|root| {
            let longest = root.parts.iter().map(|p| p.len() + 8).sum::<usize>();
            let low = view.b.len().saturating_sub(longest);
            let led = memchr2_iter(b'/', b'\\', &view.b[low..])
                .any(|i| scan.sep_after(low + i).is_some_and(|from| scan.reaches(root, from)));
            // It is also found without its first separator.
            led || root.parts.first().and_then(|p| p.bytes().next()).is_some_and(|first| {
                let other = first.to_ascii_uppercase();
                memchr2_iter(first.to_ascii_lowercase(), other, &view.b[low..])
                    .any(|i| scan.reaches(root, low + i))
            })
        })
    }

    /// Whether the last words before a blank are a path of a host whose next folder has a blank in
    /// its name: `/Users/Jo Doe/…`. A path below a known root is none.
    fn is_host_path(&self, b: &[u8]) -> bool {
        let mut end = b.len();
        let mut chained = true;
        let mut any_quote = None;
        for _ in 0..=LOOKBACK_WORDS {
            let start = b[..end].iter().rposition(|c| ends_path(*c)).map_or(0, |i| i + 1);
            let text = str::from_utf8(&b[start..end]).unwrap_or_default();
            let before = start.checked_sub(1).map(|i| b[i]);
            let quoted = matches!(before, Some(b'"' | b'\'' | b'`'));
            // Most words are plain: only where one begins may a path begin then.
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
            // Between such characters the text may have been cut.
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

    /// Whether a path lies below a known root.
    fn is_known(&self, path: &[u8]) -> bool {
        let scan = PathScanner::new(&self.paths, path, Mode::Text);
        let from = if path.get(1) == Some(&b':') { 2 } else { 0 };
        scan.sep_after(from)
            .is_some_and(|from| self.paths.roots.iter().any(|root| scan.has_all(root, from)))
    }

    /// Whether a word that ends in a character of a script without blanks may be part of a path that
    /// begins at the top of a host, or of the login of an address.
    fn is_word_open(&self, line: &str) -> bool {
        let ends = |c: char| (c.is_ascii() && ends_path(c as u8)) || is_standalone_punctuation(c);
        let behind = |from: Option<(usize, char)>| {
            &line.as_bytes()[from.map_or(0, |(i, c)| i + c.len_utf8())..]
        };
        // A password may have a bar in it, a path has none.
        let login = behind(line.char_indices().rev().find(|(_, c)| *c != '|' && ends(*c)));
        if memmem::find(login, b"://").is_some_and(|at| is_login_open(&login[at + 3..])) {
            return true;
        }
        let word = behind(line.char_indices().rev().find(|(_, c)| ends(*c)));
        // Such signs stand in names of folders too: all of a path is waited for.
        let is_name = || line.chars().next_back().is_some_and(is_joint);
        if memchr2(b'/', b'\\', word).is_some() && is_name() {
            return true;
        }
        // CandidateKind stands before a separator may have been told already: it says nothing.
        let tops = || self.paths.roots.iter().filter_map(|r| r.parts.first().map(String::as_str));
        memchr2_iter(b'/', b'\\', word).any(|at| {
            is_home(&word[..at])
                || is_below(&word[at..], &TOP_FOLDERS)
                || tops().any(|top| is_below(&word[at..], &[top]))
        })
    }
}

/// The paths that may begin in a word: at its beginning, or behind a character that stands for
/// itself, for there the text may have been cut. None goes over a sign.
fn paths_in(word: &str) -> impl Iterator<Item = &[u8]> {
    let from = word
        .rfind(is_standalone_punctuation)
        .map_or(0, |i| i + word[i..].chars().next().map_or(0, char::len_utf8));
    let word = &word[from..];
    let led =
        word.char_indices().filter(|(_, c)| is_standalone(*c)).map(|(at, c)| at + c.len_utf8());
    std::iter::once(0).chain(led).map(|at| &word.as_bytes()[at..])
}

/// Whether a path begins at the separator behind this: `~`, or a drive.
fn is_home(before: &[u8]) -> bool {
    match before {
        [.., b'~'] => true,
        [rest @ .., d, b':'] => {
            d.is_ascii_alphabetic() && !rest.last().is_some_and(u8::is_ascii_alphanumeric)
        }
        _ => false,
    }
}

/// Whether a path is absolute and begins with one of these folders, or with a drive.
fn is_below(path: &[u8], tops: &[&str]) -> bool {
    let rest = match path {
        [b'/' | b'\\', rest @ ..] => rest,
        [d, b':', b'/' | b'\\', ..] => return d.is_ascii_alphabetic(),
        _ => return false,
    };
    let len = rest.iter().position(|c| matches!(c, b'/' | b'\\')).unwrap_or(rest.len());
    tops.iter().any(|top| rest[..len].eq_ignore_ascii_case(top.as_bytes()))
}

/// Whether the beginning of an address, behind its scheme, may be a name and a password.
fn is_login_open(rest: &[u8]) -> bool {
    if memchr2(b'/', b'@', rest).is_some() {
        return false;
    }
    // Only what stands before the first other letter tells: the rest may be cut off.
    let plain = &rest[..rest.iter().position(|c| !c.is_ascii()).unwrap_or(rest.len())];
    match memchr(b':', plain) {
        // A port is no password.
        Some(i) => plain.len() == i + 1 || !plain[i + 1..].iter().all(u8::is_ascii_digit),
        // A host has a dot before what merely stands behind it.
        None => memchr(b'.', plain).is_none(),
    }
}
