//! What has begun at the end of a text: part of a root, part of an id.

use super::clean::{Cleaner, floor};
use super::paths::{Mode, Paths, Root};
use super::scan::{Scan, is_long_id};
use super::segment::is_key;
use super::view::View;
use memchr::memmem;

/// Where a known root or id has begun at the end of the text; the text's end when none has.
///
/// With `any`, one folder of it is enough: more text is to come. Without, the text is over, and
/// only its last part may be missing in part: its parent folder is a place of its own.
pub(super) fn begun(paths: &Paths, b: &[u8], any: bool) -> usize {
    let best = root(paths, b, any).min(id(paths, b));
    // Where no root is known, any path may still become a session's.
    if any && (paths.roots.is_empty() || memmem::find(b, b"/sessions/").is_some()) {
        let word = last_word(b);
        if b[word..].iter().any(|c| is_separator(*c)) {
            return best.min(word);
        }
    }
    best
}

/// The same for a field that may come again, longer. The first folder of a root says nothing, and
/// where no root is known, only what has the form of a session's folder may become one.
pub(super) fn grown(paths: &Paths, b: &[u8]) -> usize {
    let at = root(paths, b, true);
    let folders = b[at..].split(|c| is_separator(*c)).filter(|part| !part.is_empty()).count();
    let best = if folders < 2 { b.len() } else { at }.min(id(paths, b));
    let word = last_word(b);
    let last = &b[word..];
    let open = |form: &[u8]| {
        let rest = memmem::rfind(last, form).map(|i| &last[i + form.len()..]);
        rest.is_some_and(|rest| !rest.iter().any(|c| is_separator(*c)))
    };
    // `/sandboxes/ID/sessions/ID/…`: all of it is hidden once a folder follows.
    let sandbox = memmem::find(last, b"/sandboxes/").is_some();
    let session = memmem::find(last, b"/sessions/").is_some();
    if open(b"/sessions/") || (sandbox && !session) { best.min(word) } else { best }
}

fn root(paths: &Paths, b: &[u8], any: bool) -> usize {
    let scan = Scan::new(paths, b, Mode::Text);
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

fn id(paths: &Paths, b: &[u8]) -> usize {
    let mut best = b.len();
    for id in paths.ids.iter().filter(|id| id.long) {
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

impl Cleaner {
    /// Where in a text that may go on something to hide may have begun; its end when nothing has.
    pub(super) fn may_begin(&self, text: &str) -> usize {
        let view = View::new(text);
        let b = &*view.b;
        let mut at = begun(&self.paths, b, true);
        if let Some(secret) = self.secrets.begun(b, b.len(), 0) {
            at = at.min(secret.start);
        }
        let word = b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
        let last = &b[word..];
        // A value beside the name of a key, or a password in an address, of which more may come.
        let keyed = b.split(u8::is_ascii_whitespace).any(is_key);
        if keyed && last.iter().any(u8::is_ascii_digit) {
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
        let mut spots = Vec::new();
        self.secrets.spots(b, |spot| spots.push(spot.at));
        if let Some(first) = spots.iter().copied().filter(|s| *s + 64 >= word).min() {
            // All of the word in which it stands.
            let start = b[..first].iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
            at = at.min(start);
        }
        if at == b.len() { text.len() } else { floor(text, view.source(at, at).0) }
    }
}

fn last_word(b: &[u8]) -> usize {
    b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1)
}

fn is_separator(c: u8) -> bool {
    matches!(c, b'/' | b'\\')
}

impl Scan<'_> {
    /// Whether the text from the separator at `at` to its end is the beginning of the root.
    fn begins(&self, root: &Root, at: usize, any: bool) -> bool {
        let mut end = at;
        for (i, part) in root.parts.iter().enumerate() {
            let Some(from) = self.sep_after(end) else {
                return any && end == self.b.len() && i > 0;
            };
            let rest = &self.b[from..];
            if rest.len() < part.len() {
                let same = part.as_bytes()[..rest.len()].eq_ignore_ascii_case(rest);
                // Part of an id says as much as part of the root's own name.
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
