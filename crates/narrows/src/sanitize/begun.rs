//! What has begun at the end of a text: part of a root, part of an id.

use super::clean::{Cleaner, floor};
use super::growing::MORE;
use super::paths::{Mode, Paths, Root};
use super::pem;
use super::scan::{Scan, is_long_id};
use super::secret::{OPEN, turns};
use super::segment::is_key;
use super::tree;
use super::view::View;
use memchr::memmem;

/// How much of a text is looked at, from its end.
const TAIL: usize = 4096;
/// How often the end of a text is looked at again, when it was left out.
const MAX_ROUNDS: usize = 16;
/// Shortest beginning of a known value that is left out.
const MIN_BEGUN: usize = 3;
/// Shortest run of letters and digits that may be part of a token.
const MIN_RUN: usize = 5;
/// Length of a UUID as text.
const UUID: usize = 36;
/// What tokens begin with that are found by what they decode to: an object, a line of dashes.
const ENCODED: [&[u8]; 2] = [b"eyJ", b"LS0t"];

/// How much must be there of something to hide for it to have begun.
#[derive(Debug, Clone, Copy)]
pub(super) struct Begun {
    /// Bytes of a token that is known by how it begins.
    least: usize,
    /// Whether a word that has the shape of a token is enough.
    by_shape: bool,
}

impl Begun {
    /// It may have begun.
    pub(super) const PERHAPS: Begun = Begun { least: 0, by_shape: true };
    /// It has begun by what it says, not by its shape alone.
    pub(super) const CLEAR: Begun = Begun { least: 0, by_shape: false };
    /// The same, and there is more of a token than what all of its kind begin with.
    pub(super) const IN_PART: Begun = Begun { least: 6, by_shape: false };
}

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

impl Cleaner {
    /// The same, and the last word where that is the first letters of what tokens begin with.
    pub(super) fn may_begin_or_start(&self, text: &str) -> usize {
        let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let word = text.trim_end_matches(is_part).len();
        let at = if self.secrets.may_start(&text.as_bytes()[word..]) { word } else { text.len() };
        at.min(self.may_begin(text))
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

impl Cleaner {
    /// The text without what may have begun at its end, with `mark` in its place; nothing when
    /// nothing has.
    pub(super) fn settled(&self, text: &str, mark: &str, level: Begun) -> Option<String> {
        let at = self.settled_end(text, level);
        (at < text.len()).then(|| [&text[..at], mark].concat())
    }

    /// The same for a value of a tree.
    pub(super) fn settled_value(&self, text: &str, key: &str, level: Begun) -> Option<String> {
        if tree::is_path(key) {
            return self.path_has_begun(text, level).then(|| MORE.to_owned());
        }
        // What the key says is a secret may be too short as yet to be one.
        if !text.is_empty() && !text.contains(' ') && self.secrets.is_name(key) {
            return Some(MORE.to_owned());
        }
        self.settled(text, MORE, level)
    }

    /// Whether a path may go on into something to hide. A whole root is shown as none of its names.
    pub(super) fn path_has_begun(&self, path: &str, level: Begun) -> bool {
        !self.paths.is_root(path) && self.settled_end(path, level) < path.len()
    }

    /// Where in a text that may go on something to hide has begun; its end when nothing has.
    pub(super) fn settled_end(&self, text: &str, level: Begun) -> usize {
        // A field may close what it opened each time: "`curl …`".
        let mut end = text.trim_end_matches(['`', '"', '\'', ')', ']', '}', '>', '…', '.']).len();
        let whole = end;
        for _ in 0..MAX_ROUNDS {
            let low = floor(text, end.saturating_sub(TAIL));
            let tail = &text[low..end];
            let view = View::new(tail);
            let at = self.begun_at(&view.b, level);
            if at == view.b.len() {
                return if end == whole { text.len() } else { end };
            }
            // What stands before may end within something else now.
            end = low + floor(tail, view.source(at, at).0);
        }
        0
    }

    fn begun_at(&self, b: &[u8], level: Begun) -> usize {
        let mut at = grown(&self.paths, b);
        // What is whole shows none of its names, though it may be a part of something longer.
        if !level.by_shape && self.is_whole_root(&b[at..]) {
            at = b.len();
        }
        let is_enough = |start: &usize| start + level.least <= b.len();
        let vendor = self.secrets.begun(b, b.len(), 0).map(|secret| secret.start);
        at = at.min(vendor.filter(is_enough).unwrap_or(b.len()));
        at = at.min(pem::unfinished(b).unwrap_or(b.len()));
        for value in self.secrets.known() {
            let value = value.as_bytes();
            let longest = (value.len() - 1).min(b.len());
            let begun = (MIN_BEGUN..=longest).rev().find(|n| b.ends_with(&value[..*n]));
            at = begun.map_or(at, |n| at.min(b.len() - n));
        }
        let line = memchr::memrchr2(b'\n', b'\r', b).map_or(0, |i| i + 1);
        let word = b.iter().rposition(u8::is_ascii_whitespace).map_or(0, |i| i + 1);
        let token = token(&b[word..], level.by_shape).map(|start| word + start);
        at = at.min(token.filter(is_enough).unwrap_or(b.len()));
        if let Some(password) = password(&b[word..]) {
            at = at.min(word + password);
        }
        self.secrets.spans(&b[line..], true, |from, to| {
            if to == OPEN {
                at = at.min(self.value_at(b, line + from));
            }
        });
        at
    }

    /// Whether a path is a root as it stands, or the folder of a session, perhaps with a full stop.
    fn is_whole_root(&self, path: &[u8]) -> bool {
        let path = path.strip_suffix(b".").unwrap_or(path);
        let name = path.rsplit(|c| is_separator(*c)).next().unwrap_or_default();
        is_long_id(name) || str::from_utf8(path).is_ok_and(|path| self.paths.is_root(path))
    }

    /// Where the value begins of the name at `from`; the end of the text when only a name stands there.
    fn value_at(&self, b: &[u8], from: usize) -> usize {
        let is_sign = |c: &u8| matches!(c, b' ' | b'\t' | b'=' | b':' | b'"' | b'\'');
        let rest = &b[from..];
        if let Some(i) = rest.iter().rposition(is_sign) {
            return from + i + 1;
        }
        let word = rest.iter().all(u8::is_ascii_alphabetic);
        let name = word || str::from_utf8(rest).is_ok_and(|name| self.secrets.is_name(name));
        if name { b.len() } else { from }
    }
}

/// Where in the last word of a text a token may have begun that is told by what it is made of: what
/// begins as encoded objects and keys do, or, `by_shape`, letters and digits in turn.
fn token(word: &[u8], by_shape: bool) -> Option<usize> {
    let encoded = ENCODED.iter().filter_map(|known| memchr::memmem::find(word, known)).min();
    let mut jumbled = memchr::memmem::find(word, b"Q~");
    let mut at = 0;
    while by_shape && jumbled.is_none() && at < word.len() {
        let rest = &word[at..];
        // A whole UUID is an id, and says nothing.
        if rest.get(..UUID).is_some_and(is_uuid) {
            at += UUID;
            continue;
        }
        let len = rest.iter().position(|c| !c.is_ascii_alphanumeric()).unwrap_or(rest.len());
        jumbled = (len >= MIN_RUN && turns(&rest[..len]) >= 2).then_some(at);
        at += len + 1;
    }
    let starts = |at: usize| {
        let is_part = |c: &u8| c.is_ascii_alphanumeric() || b"_-.~+".contains(c);
        at - word[..at].iter().rev().take_while(|c| is_part(c)).count()
    };
    encoded.into_iter().chain(jumbled.map(starts)).min()
}

fn is_uuid(text: &[u8]) -> bool {
    let dash = |i: usize| matches!(i, 8 | 13 | 18 | 23);
    let fits = |(i, c): (usize, &u8)| if dash(i) { *c == b'-' } else { c.is_ascii_hexdigit() };
    text.len() == UUID && text.iter().enumerate().all(fits)
}

/// Where in the last word of a text the password of an address begins, when it does not end there.
fn password(word: &[u8]) -> Option<usize> {
    let login = memchr::memmem::find(word, b"://")? + 3;
    let rest = &word[login..];
    let from = memchr::memchr(b':', rest)? + 1;
    let is_port = rest.len() - from < 6 && rest[from..].iter().all(u8::is_ascii_digit);
    let is_over = memchr::memchr2(b'@', b'/', rest).is_some_and(|i| rest[i] == b'@' || i < from);
    (!is_port && !is_over).then_some(login + from)
}
