//! Armored private keys, from the first line to the last.
//!
//! The placeholder stands where the key starts. A line that only names the armor, as code does, is
//! no key: part of the body must follow.

use crate::normalize::NormalizedText;
use memchr::memmem;

/// Shortest part of the body that must follow the header.
const MIN_BODY_LEN: usize = 16;
/// Longest key that is redacted as one.
const MAX_KEY_BYTES: usize = 64 * 1024;
/// Longest text that is held back between the header and the body.
const MAX_HELD_BYTES: usize = 512;
/// Longest word that may follow a secret.
const MAX_WORD_LEN: usize = 20;
/// Bytes of a key that its placeholder is derived from.
const SAMPLE_BYTES: usize = 64;

/// State between two segments.
#[derive(Clone, Default)]
pub(crate) enum KeyState {
    #[default]
    None,
    /// The header was seen; holds it and the blanks after it.
    HeaderSeen(String),
    /// Inside a token that is longer than a segment.
    LongToken,
    /// After a secret that ended an earlier text: the next text may be its remainder or a word of
    /// its own. Holds the letters so far.
    AfterSecret(String),
    /// Inside the key: bytes that were redacted, and blanks that may precede its end.
    Inside(usize, String),
}

// Raw text must not be printed, not even for debugging.
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

/// A segment in or before a key, split into its parts.
#[derive(Debug, Default)]
pub(crate) struct KeySplit<'t> {
    /// The key starts here: the bytes that its placeholder is derived from.
    pub(crate) key_sample: Option<Vec<u8>>,
    /// Text that was held back and is no key.
    pub(crate) released: String,
    /// The part that does not belong to the key.
    pub(crate) rest: &'t str,
}

impl KeyState {
    /// Splits the next segment; `ends` marks the last one.
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

/// Bytes at the start of a text that may be part of a token.
fn part_of_token(text: &str) -> usize {
    let part = |c: &u8| c.is_ascii_alphanumeric() || b"_-./+=~%".contains(c);
    text.bytes().take_while(part).count()
}

/// Returns whether letters form a word as people write them, not the remainder of a token.
fn is_word(text: &str) -> bool {
    let word = text.trim_end_matches(['.', '-', '/']);
    let (first, rest) = word.split_at(word.len().min(1));
    let letters = first.bytes().all(|c| c.is_ascii_alphabetic());
    letters && word.len() <= MAX_WORD_LEN && rest.bytes().all(|c| c.is_ascii_lowercase())
}

/// The first private key with part of its body: the start of its header, and of the body.
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

/// The start of a header that ends the text, blanks aside.
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

/// The start of a private key at the end of a text that may continue, while its body is too short to
/// be recognized.
pub(crate) fn partial_key_start(b: &[u8]) -> Option<usize> {
    let mut from = 0;
    while let Some((start, end)) = header(b, from) {
        let rest = &b[end..];
        let skip = filler(rest);
        let body = rest[skip..].iter().take_while(|c| is_base64(**c)).count();
        if body < MIN_BODY_LEN && skip + body == rest.len() {
            return Some(start);
        }
        from = end;
    }
    None
}

/// The first header of a private key in `b`: start and end.
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

/// The text after a header, in the same segment or the next.
#[derive(Debug, PartialEq, Eq)]
enum HeaderFollow {
    /// Only blanks, line numbers and the like so far.
    Undecided,
    /// The body, which starts at this position.
    Body(usize),
    /// Other text.
    Other,
}

/// Classifies the text after a header.
fn follow_of_header(b: &[u8]) -> HeaderFollow {
    let skip = filler(b);
    let rest = &b[skip..];
    if rest.is_empty() {
        return HeaderFollow::Undecided;
    }
    // The headers of an encrypted key count as its body.
    let headed = [&b"Proc-Type:"[..], b"DEK-Info:", b"Version:", b"Comment:"];
    let body = rest.iter().take_while(|c| is_base64(**c)).count();
    if body >= MIN_BODY_LEN || headed.iter().any(|h| rest.starts_with(h)) {
        return HeaderFollow::Body(skip);
    }
    HeaderFollow::Other
}

/// The bytes of a key that its placeholder is derived from.
pub(crate) fn sample(body: &[u8]) -> Vec<u8> {
    body.iter().copied().take_while(|c| is_base64(*c)).take(SAMPLE_BYTES).collect()
}

/// Length of the key at the start of `b`, and whether it continues after `b`.
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
        // A short word before a character that no key contains starts something else.
        let next = at + skip + body;
        if body < MIN_BODY_LEN && next < b.len() && filler(&b[next..]) == 0 {
            return (at, false);
        }
        at = next;
        // A word after a word is no key.
        if b.get(at) == Some(&b' ') && b.get(at + 1).is_some_and(u8::is_ascii_alphabetic) {
            return (at, false);
        }
    }
}

/// Returns whether a segment inside a key may belong to it.
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

/// Length of the text that may stand between the lines of a key: blanks, line ends, quotes, diff
/// signs, line numbers.
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
            // The arrow after a line number.
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
