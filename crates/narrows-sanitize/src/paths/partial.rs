//! The start of a known root or id at the end of a text.

use super::scan::PathScanner;
use super::{Mode, PathRoot, Paths};
use crate::chars::{is_long_id, is_name_byte};
use memchr::memmem;

/// Shortest prefix of a dashed root name that counts as its start.
const MIN_DASHED_PREFIX_LEN: usize = 3;

/// The start of a partial root or id at the end of the text; the text's end when there is none.
///
/// With `any`, one folder of it is enough: more text may come. Without, the text is over and only
/// the last part may be incomplete: the parent folder is a place of its own.
pub(crate) fn partial_start(paths: &Paths, b: &[u8], any: bool) -> usize {
    let best = partial_root(paths, b, any).min(partial_id(paths, b));
    // Without a known root, any path may become a session path.
    if any && (paths.roots.is_empty() || memmem::find(b, b"/sessions/").is_some()) {
        let word = last_word(b);
        if b[word..].iter().any(|c| is_separator(*c)) {
            return best.min(word);
        }
    }
    best
}

/// The same for a field that may be sent again, longer. The first folder of a root says nothing,
/// and without a known root only the form of a session folder counts.
pub(crate) fn partial_field_start(paths: &Paths, b: &[u8]) -> usize {
    let at = partial_root(paths, b, true);
    let folders = b[at..].split(|c| is_separator(*c)).filter(|part| !part.is_empty()).count();
    let best = if folders < 2 { b.len() } else { at }.min(partial_id(paths, b));
    let word = last_word(b);
    let last = &b[word..];
    let open = |form: &[u8]| {
        let rest = memmem::rfind(last, form).map(|i| &last[i + form.len()..]);
        rest.is_some_and(|rest| !rest.iter().any(|c| is_separator(*c)))
    };
    // `/sandboxes/ID/sessions/ID/…`: all of it is redacted once a folder follows.
    let sandbox = memmem::find(last, b"/sandboxes/").is_some();
    let session = memmem::find(last, b"/sessions/").is_some();
    if open(b"/sessions/") || (sandbox && !session) { best.min(word) } else { best }
}

pub(crate) fn partial_root(paths: &Paths, b: &[u8], any: bool) -> usize {
    let scan = PathScanner::new(paths, b, Mode::Text);
    let mut best = b.len();
    let separated = memchr::memchr2(b'/', b'\\', &b[b.len().saturating_sub(512)..]).is_some();
    for root in paths.roots.iter().filter(|r| separated && r.parts.len() >= 2) {
        let longest: usize = root.parts.iter().map(|p| p.len() + 8).sum();
        let low = b.len().saturating_sub(longest);
        let found = memchr::memchr2_iter(b'/', b'\\', &b[low..]).map(|i| low + i);
        if let Some(at) = found.into_iter().find(|at| scan.begins(root, *at, any)) {
            best = best.min(at);
        }
    }
    best
}

pub(crate) fn partial_id(paths: &Paths, b: &[u8]) -> usize {
    let mut best = b.len();
    for id in paths.ids.iter().filter(|id| id.is_long) {
        let part = |c: &&u8| c.is_ascii_hexdigit() || **c == b'-';
        let len = b.iter().rev().take(40).take_while(part).count();
        let from = b.len() - len;
        let tail: Vec<u8> = b[from..].iter().copied().filter(|c| *c != b'-').collect();
        let whole = tail.len() >= id.text.len();
        let same =
            id.text.get(..tail.len()).is_some_and(|t| tail.eq_ignore_ascii_case(t.as_bytes()));
        if !whole && same && tail.len() >= 8 {
            best = best.min(from);
        }
    }
    best
}

pub(crate) fn last_word(b: &[u8]) -> usize {
    b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1)
}

pub(crate) fn is_separator(c: u8) -> bool {
    matches!(c, b'/' | b'\\')
}

impl PathScanner<'_> {
    /// Returns whether the text from the separator at `at` to its end is the start of the root.
    pub(crate) fn begins(&self, root: &PathRoot, at: usize, any: bool) -> bool {
        let mut end = at;
        for (i, part) in root.parts.iter().enumerate() {
            let Some(from) = self.sep_after(end) else {
                return any && end == self.b.len() && i > 0;
            };
            let rest = &self.b[from..];
            if rest.len() < part.len() {
                let same = part.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest);
                // A part of an id says as much as a part of the root's own name.
                let own = i + 1 == root.parts.len() || is_long_id(part.as_bytes());
                return same && (any || (own && !rest.is_empty()));
            }
            end = from + part.len();
            if !rest[..part.len()].eq_ignore_ascii_case(part.as_bytes()) {
                return false;
            }
        }
        false
    }
}

/// The start of a root's names at the end of the text, with or without a separator before them.
pub(crate) fn previewable_root_start(paths: &Paths, b: &[u8]) -> usize {
    let scan = PathScanner::new(paths, b, Mode::Text);
    let mut best = b.len();
    for root in &paths.roots {
        let longest: usize = root.parts.iter().map(|p| p.len() + 8).sum();
        let low = b.len().saturating_sub(longest);
        let places =
            (low..b.len()).filter(|at| *at == 0 || !is_name_byte(b[at - 1]) || b[at - 1] >= 0x80);
        for at in places {
            let (from, led) = match scan.sep_after(at) {
                Some(from) => (from, true),
                None => (at, false),
            };
            // A first name alone is a word like others.
            let first = root.parts.first().map_or(0, String::len);
            if (led || b.len() - from > first) && scan.reaches(root, from) {
                best = best.min(at);
                break;
            }
        }
        if let Some(dashed) = &root.dashed {
            let name = dashed.name.as_bytes();
            let longest_prefix = (MIN_DASHED_PREFIX_LEN..=name.len().min(b.len()))
                .rev()
                .find(|len| b[b.len() - len..].eq_ignore_ascii_case(&name[..*len]));
            best = best.min(longest_prefix.map_or(b.len(), |len| b.len() - len));
        }
    }
    best
}

/// The start of a known id at the end of the text.
pub(crate) fn previewable_id_start(paths: &Paths, b: &[u8]) -> usize {
    let part = |c: &&u8| c.is_ascii_alphanumeric() || **c == b'-';
    let from = b.len() - b.iter().rev().take(48).take_while(part).count();
    let mut best = b.len();
    for id in &paths.ids {
        let text = id.text.as_bytes();
        for at in from..b.len() {
            let mut rest = b[at..].iter().filter(|c| !id.is_long || **c != b'-');
            let len = rest.clone().count();
            let same = len <= text.len()
                && text.iter().zip(&mut rest).all(|(a, c)| a.eq_ignore_ascii_case(c));
            if same && len >= MIN_PARTIAL_ID_LEN {
                best = best.min(at);
                break;
            }
        }
    }
    best
}

const MIN_PARTIAL_ID_LEN: usize = 4;

impl PathScanner<'_> {
    /// Returns whether the text from `from` to its end is a prefix of a root's names, or all of
    /// them.
    pub(crate) fn reaches(&self, root: &PathRoot, from: usize) -> bool {
        let mut at = from;
        for (i, part) in root.parts.iter().enumerate() {
            if i > 0 {
                let Some(next) = self.sep_after(at) else { return at == self.b.len() };
                at = next;
            }
            let rest = &self.b[at..];
            let len = rest.len().min(part.len());
            if !rest[..len].eq_ignore_ascii_case(&part.as_bytes()[..len]) {
                return false;
            }
            at += part.len();
            if at >= self.b.len() {
                return true;
            }
        }
        false
    }

    /// Returns whether all names of a root start at `from`.
    pub(crate) fn has_all(&self, root: &PathRoot, from: usize) -> bool {
        let mut at = from;
        for (i, part) in root.parts.iter().enumerate() {
            if i > 0 {
                let Some(next) = self.sep_after(at) else { return false };
                at = next;
            }
            let end = at + part.len();
            if !self.b.get(at..end).is_some_and(|b| b.eq_ignore_ascii_case(part.as_bytes())) {
                return false;
            }
            at = end;
        }
        self.name_ends(at)
    }
}
