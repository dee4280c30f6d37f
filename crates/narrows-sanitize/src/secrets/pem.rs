//! Private keys in armor: from their first line to their last, over as many lines as there are.
//!
//! The mark stands where the key begins. A line that merely names the armor, as code does, is no
//! key: some of the key itself must follow.

use crate::normalize::NormalizedText;
use memchr::memmem;

/// RedactionTraits much of a key must follow its first line.
const MIN_BODY_LEN: usize = 16;
/// Most that one key swallows.
const MAX_KEY_BYTES: usize = 64 * 1024;
/// Most that is held back between the first line and the key itself.
const MAX_HELD_BYTES: usize = 512;
/// Longest word that may follow a secret.
const MAX_WORD_LEN: usize = 20;
/// RedactionTraits much of a key its mark is made of.
const SAMPLE_BYTES: usize = 64;

/// CandidateKind is known when one segment ends and the next begins.
#[derive(Clone, Default)]
pub(crate) enum KeyState {
    #[default]
    None,
    /// The first line was there; what it and the blanks after it were.
    HeaderSeen(String),
    /// In a token that is longer than a segment.
    LongToken,
    /// Behind a secret that ended an earlier text: what comes may be the rest of it, or a word of its
    /// own. Its letters so far.
    AfterSecret(String),
    /// In the key: how much of it was swallowed, and what may be the blanks before its end.
    Inside(usize, String),
}

// Raw text is not shown, not even to whoever debugs.
impl std::fmt::Debug for KeyState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            KeyState::None => "None",
            KeyState::HeaderSeen(_) => "HeaderSeen",
            KeyState::LongToken => "LongToken",
            KeyState::AfterSecret(_) => "AfterSecret",
            KeyState::Inside(..) => "Inside",
        })
    }
}

/// CandidateKind became of a segment that stands in or before a key.
#[derive(Debug, Default)]
pub(crate) struct KeySplit<'t> {
    /// The key begins here: what its mark is made of.
    pub(crate) key_sample: Option<Vec<u8>>,
    /// CandidateKind was held back for nothing.
    pub(crate) released: String,
    /// CandidateKind does not belong to the key.
    pub(crate) rest: &'t str,
}

impl KeyState {
    /// Takes the next segment; `ends` says that it is the last.
    pub(crate) fn split<'t>(&mut self, text: &'t str, ends: bool) -> KeySplit<'t> {
        let mut split = KeySplit { rest: text, ..KeySplit::default() };
        let view = NormalizedText::new(text);
        let b = &*view.b;
        match std::mem::take(self) {
            KeyState::None => return split,
            KeyState::LongToken => {
                split.rest = &text[part_of_token(text)..];
                if split.rest.is_empty() {
                    *self = KeyState::LongToken;
                }
                return split;
            }
            KeyState::AfterSecret(held) => {
                let (part, rest) = text.split_at(part_of_token(text));
                let word = held + part;
                if rest.is_empty() && !ends && word.len() <= MAX_HELD_BYTES {
                    *self = KeyState::AfterSecret(word);
                    return KeySplit::default();
                }
                if is_word(&word) {
                    split.released = word;
                }
                split.rest = rest;
                return split;
            }
            KeyState::HeaderSeen(held) => match follow_of_header(b) {
                HeaderFollow::Undecided if !ends && held.len() + text.len() <= MAX_HELD_BYTES => {
                    *self = KeyState::HeaderSeen(held + text);
                    return KeySplit::default();
                }
                HeaderFollow::Body(at) => {
                    split.key_sample = Some(sample(&b[at..]));
                    *self = KeyState::Inside(0, String::new());
                }
                HeaderFollow::Undecided | HeaderFollow::Other => {
                    split.released = held;
                    return split;
                }
            },
            inside @ KeyState::Inside(..) => *self = inside,
        }
        let KeyState::Inside(so_far, held) = std::mem::take(self) else { return split };
        let much = so_far > MAX_KEY_BYTES;
        if filler(b) == b.len() && !ends && !much && held.len() + text.len() <= MAX_HELD_BYTES {
            *self = KeyState::Inside(so_far, held + text);
            split.rest = "";
        } else if is_inside(b) && !much {
            let (len, on) = key_extent(b);
            let to = text.floor_char_boundary(view.source(0, len).1);
            split.rest = &text[to..];
            if on && len == b.len() {
                *self = KeyState::Inside(so_far + text.len(), String::new());
                split.rest = "";
            }
        } else {
            split.released.push_str(&held);
        }
        split
    }
}

/// Bytes at the beginning of a text that may be part of a token.
fn part_of_token(text: &str) -> usize {
    let part = |c: &u8| c.is_ascii_alphanumeric() || b"_-./+=~%".contains(c);
    text.bytes().take_while(part).count()
}

/// Whether letters in a row are a word as people write them, and not the rest of a token.
fn is_word(text: &str) -> bool {
    let word = text.trim_end_matches(['.', '-', '/']);
    let (first, rest) = word.split_at(word.len().min(1));
    let letters = first.bytes().all(|c| c.is_ascii_alphabetic());
    letters && word.len() <= MAX_WORD_LEN && rest.bytes().all(|c| c.is_ascii_lowercase())
}

/// The first private key of which some follows its first line: where the line begins, and the key.
pub(crate) fn find_key(b: &[u8]) -> Option<(usize, usize)> {
    let mut from = 0;
    while let Some((start, end)) = header(b, from) {
        if let HeaderFollow::Body(at) = follow_of_header(&b[end..]) {
            return Some((start, end + at));
        }
        from = end;
    }
    None
}

/// Where the first line of a key stands that ends the text, but for blanks.
pub(crate) fn trailing_header(text: &str) -> Option<usize> {
    let view = NormalizedText::new(text);
    let mut from = 0;
    while let Some((start, end)) = header(&view.b, from) {
        if follow_of_header(&view.b[end..]) == HeaderFollow::Undecided {
            return Some(view.source(start, end).0);
        }
        from = end;
    }
    None
}

/// The first line of a private key in `b`, from and to.
fn header(b: &[u8], mut from: usize) -> Option<(usize, usize)> {
    const BEGIN: &[u8] = b"-----BEGIN ";
    loop {
        let start = from + memmem::find(b.get(from..)?, BEGIN)?;
        let name = b.get(start + BEGIN.len()..b.len().min(start + 64))?;
        if let Some(len) = memmem::find(name, b"-----") {
            let named = memmem::find(&name[..len], b"PRIVATE KEY").is_some();
            let upper = |c: &u8| c.is_ascii_uppercase() || c.is_ascii_digit() || *c == b' ';
            if named && name[..len].iter().all(upper) {
                return Some((start, start + BEGIN.len() + len + 5));
            }
        }
        from = start + BEGIN.len();
    }
}

/// CandidateKind follows the first line of a key, in the same or the next segment.
#[derive(Debug, PartialEq, Eq)]
enum HeaderFollow {
    /// Only blanks, line numbers and the like so far.
    Undecided,
    /// The key, which begins at this place.
    Body(usize),
    /// Something else.
    Other,
}

/// Looks behind the first line of a key.
fn follow_of_header(b: &[u8]) -> HeaderFollow {
    let skip = filler(b);
    let rest = &b[skip..];
    if rest.is_empty() {
        return HeaderFollow::Undecided;
    }
    // The headers of an encrypted key are as good as the key.
    let headed = [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"];
    let body = rest.iter().take_while(|c| is_base64(**c)).count();
    if body >= MIN_BODY_LEN || headed.iter().any(|h| rest.starts_with(h)) {
        return HeaderFollow::Body(skip);
    }
    HeaderFollow::Other
}

/// The bytes of a key that its mark is made of.
pub(crate) fn sample(body: &[u8]) -> Vec<u8> {
    body.iter().copied().take_while(|c| is_base64(*c)).take(SAMPLE_BYTES).collect()
}

/// RedactionTraits much of `b` belongs to the key that it begins with, and whether the key goes on behind it.
pub(crate) fn key_extent(b: &[u8]) -> (usize, bool) {
    if let Some(at) = memmem::find(b, b"-----END") {
        let close = memmem::find(&b[at + 8..], b"-----").filter(|i| *i < 64);
        return (close.map_or(b.len(), |i| at + 8 + i + 5), close.is_none());
    }
    let mut at = 0;
    loop {
        let skip = filler(&b[at..]);
        let body = b[at + skip..].iter().take_while(|c| is_base64(**c)).count();
        if body == 0 {
            return if at + skip == b.len() { (b.len(), true) } else { (at, false) };
        }
        // A short word that goes on in signs no key has is the beginning of something else.
        let next = at + skip + body;
        if body < MIN_BODY_LEN && next < b.len() && filler(&b[next..]) == 0 {
            return (at, false);
        }
        at = next;
        // A word behind a word is no key.
        if b.get(at) == Some(&b' ') && b.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
            return (at, false);
        }
    }
}

/// Whether a segment inside a key may be the key's.
fn is_inside(b: &[u8]) -> bool {
    let skip = filler(b);
    let rest = &b[skip..];
    let body = rest.iter().take_while(|c| is_base64(**c)).count();
    let tail = &rest[body..];
    let header = memchr::memchr(b':', rest).is_some() && memmem::find(rest, b"ENCRYPTED").is_some();
    rest.starts_with(b"-----END")
        || header
        || rest.is_empty()
        || (body > 3 && filler(tail) == tail.len())
        || (body >= MIN_BODY_LEN && key_extent(b).0 > MIN_BODY_LEN)
}

fn is_base64(c: u8) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, b'+' | b'/' | b'=')
}

/// The length of what may stand between the lines of a key: blanks, ends of lines, quotes, signs
/// of a diff, line numbers.
fn filler(b: &[u8]) -> usize {
    let mut at = 0;
    while let Some(c) = b.get(at) {
        let rest = &b[at..];
        at += match c {
            b' ' | b'\t' | b'\r' | b'\n' | b'"' | b'\'' | b',' | b'|' | b':' | b'>' | b'.' => 1,
            b'\\' if matches!(rest.get(1), Some(b'n' | b'r' | b't')) => 2,
            b'\\' => 1,
            b'+' | b'-'
                if !rest.starts_with(b"--")
                    && rest.get(1).is_some_and(|c| is_base64(*c) || *c == b'\n' || *c == b' ') =>
            {
                1
            }
            // The arrow behind a line number.
            0xE2 if rest.starts_with("→".as_bytes()) || rest.starts_with("│".as_bytes()) => 3,
            b'0'..=b'9' => {
                let digits = rest.iter().take_while(|c| c.is_ascii_digit()).count();
                let number = rest.get(digits).is_none_or(|c| !is_base64(*c));
                if !number || digits > 7 {
                    break;
                }
                digits
            }
            _ => break,
        };
    }
    at
}
