//! One pass over a JSON text: checks the grammar and notes every value's place.

use super::node::{Json, Kind, Node};

/// Most values one packet may hold; a packet with more is refused (128 MiB of notes).
const MAX_NODES: usize = 8 << 20;

/// Why a text is not JSON, and at which byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Syntax {
    /// What is wrong, in a few words.
    pub reason: &'static str,
    /// The byte at which it shows.
    pub at: usize,
}

/// A reusable index of one JSON text.
#[derive(Debug, Default)]
pub struct Index {
    nodes: Vec<Node>,
    open: Vec<u32>,
}

/// What the grammar allows next.
#[derive(Clone, Copy, PartialEq)]
enum Want {
    Value,
    ValueOrEnd,
    KeyOrEnd,
    Key,
    CommaOrEnd,
}

impl Index {
    /// Reads `text` as one JSON value.
    pub fn read<'a>(&'a mut self, text: &'a str) -> Result<Json<'a>, Syntax> {
        self.scan(text)?;
        // One huge packet must not keep its memory for the rest of the session.
        if self.nodes.capacity() > 1 << 20 && self.nodes.len() < 1 << 16 {
            self.nodes.shrink_to(1 << 16);
        }
        Ok(Json::new(text, &self.nodes, 0))
    }

    fn scan(&mut self, text: &str) -> Result<(), Syntax> {
        self.nodes.clear();
        self.open.clear();
        let b = text.as_bytes();
        if u32::try_from(b.len()).is_err() {
            return Err(Syntax { reason: "longer than 4 GiB", at: 0 });
        }
        let mut at = 0;
        let mut want = Want::Value;
        loop {
            while let Some(b' ' | b'\t' | b'\n' | b'\r') = b.get(at) {
                at += 1;
            }
            let Some(&c) = b.get(at) else {
                let reason = if self.nodes.is_empty() { "empty" } else { "cut short" };
                return Err(Syntax { reason, at });
            };
            if self.nodes.len() >= MAX_NODES {
                return Err(Syntax { reason: "more than 8 million values", at });
            }
            match (want, c) {
                (Want::Value | Want::ValueOrEnd, b'"') => {
                    at = self.string(b, at)?;
                    want = Want::CommaOrEnd;
                }
                (Want::Value | Want::ValueOrEnd, b'{' | b'[') => {
                    self.open.push(self.nodes.len() as u32);
                    let (kind, next) = if c == b'{' {
                        (Kind::Object, Want::KeyOrEnd)
                    } else {
                        (Kind::Array, Want::ValueOrEnd)
                    };
                    self.nodes.push(Node::new(at, at, kind));
                    at += 1;
                    want = next;
                    continue;
                }
                (Want::Key | Want::KeyOrEnd, b'"') => {
                    at = self.string(b, at)?;
                    while let Some(b' ' | b'\t' | b'\n' | b'\r') = b.get(at) {
                        at += 1;
                    }
                    match b.get(at) {
                        Some(b':') => at += 1,
                        Some(_) => return Err(Syntax { reason: "no colon after a key", at }),
                        None => return Err(Syntax { reason: "cut short", at }),
                    }
                    want = Want::Value;
                    continue;
                }
                (Want::CommaOrEnd, b',') => {
                    at += 1;
                    want = match self.open.last().and_then(|o| self.nodes.get(*o as usize)) {
                        Some(n) if n.kind == Kind::Object => Want::Key,
                        _ => Want::Value,
                    };
                    continue;
                }
                (Want::CommaOrEnd | Want::KeyOrEnd, b'}')
                | (Want::CommaOrEnd | Want::ValueOrEnd, b']') => {
                    let wanted = if c == b'}' { Kind::Object } else { Kind::Array };
                    let next = self.nodes.len() as u32;
                    let opened = self.open.pop().and_then(|o| self.nodes.get_mut(o as usize));
                    match opened {
                        Some(n) if n.kind == wanted => {
                            at += 1;
                            n.end = at as u32;
                            n.next = next;
                        }
                        _ => return Err(Syntax { reason: "brackets do not match", at }),
                    }
                    want = Want::CommaOrEnd;
                }
                (Want::Value | Want::ValueOrEnd, _) => {
                    at = self.scalar(b, at)?;
                    want = Want::CommaOrEnd;
                }
                _ => return Err(Syntax { reason: "unexpected character", at }),
            }
            if self.open.is_empty() {
                return match b[at..].iter().position(|c| !c.is_ascii_whitespace()) {
                    None => Ok(()),
                    Some(n) => Err(Syntax { reason: "text after the value", at: at + n }),
                };
            }
        }
    }

    /// Notes the string that opens at `at`; returns the place after its closing quote.
    fn string(&mut self, b: &[u8], at: usize) -> Result<usize, Syntax> {
        let mut p = at + 1;
        let mut escaped = false;
        loop {
            p = plain_end(b, p);
            match b.get(p) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escaped = true;
                    match b.get(p + 1) {
                        Some(b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't') => p += 2,
                        Some(b'u') => {
                            let hex = b.get(p + 2..p + 6);
                            if !hex.is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) {
                                return Err(Syntax { reason: "bad escape", at: p });
                            }
                            p += 6;
                        }
                        Some(_) => return Err(Syntax { reason: "bad escape", at: p }),
                        None => return Err(Syntax { reason: "cut short", at: p }),
                    }
                }
                Some(_) => return Err(Syntax { reason: "control character in a string", at: p }),
                None => return Err(Syntax { reason: "cut short", at: p }),
            }
        }
        let mut node = Node::new(at + 1, p, Kind::String);
        node.escaped = escaped;
        node.next = self.nodes.len() as u32 + 1;
        self.nodes.push(node);
        Ok(p + 1)
    }

    fn scalar(&mut self, b: &[u8], at: usize) -> Result<usize, Syntax> {
        let rest = &b[at..];
        let (kind, len) = match rest.first() {
            Some(b't') if rest.starts_with(b"true") => (Kind::Bool, 4),
            Some(b'f') if rest.starts_with(b"false") => (Kind::Bool, 5),
            Some(b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b'-' | b'0'..=b'9') => match number_len(rest) {
                Some(len) => (Kind::Number, len),
                None => return Err(Syntax { reason: "bad number", at }),
            },
            _ => return Err(Syntax { reason: "not a JSON value", at }),
        };
        let mut node = Node::new(at, at + len, kind);
        node.next = self.nodes.len() as u32 + 1;
        self.nodes.push(node);
        Ok(at + len)
    }
}

/// The first place at or after `p` with a quote, a backslash or a control character.
///
/// Eight bytes at a time: most of what agents send is inside strings.
fn plain_end(b: &[u8], mut p: usize) -> usize {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let zero = |v: u64| v.wrapping_sub(ONES) & !v & HIGH;
    while let Some(chunk) = b.get(p..).and_then(<[u8]>::first_chunk::<8>) {
        let v = u64::from_le_bytes(*chunk);
        let quote = zero(v ^ (ONES * u64::from(b'"')));
        let slash = zero(v ^ (ONES * u64::from(b'\\')));
        let control = v.wrapping_sub(ONES * 0x20) & !v & HIGH;
        let hit = quote | slash | control;
        if hit != 0 {
            return p + (hit.trailing_zeros() / 8) as usize;
        }
        p += 8;
    }
    while let Some(&c) = b.get(p) {
        if c == b'"' || c == b'\\' || c < 0x20 {
            break;
        }
        p += 1;
    }
    p
}

/// Length of the JSON number at the start of `b`.
fn number_len(b: &[u8]) -> Option<usize> {
    let digits = |from: usize| b[from..].iter().take_while(|c| c.is_ascii_digit()).count();
    let mut p = usize::from(b.first() == Some(&b'-'));
    let int = digits(p);
    if int == 0 || (int > 1 && b[p] == b'0') {
        return None;
    }
    p += int;
    if b.get(p) == Some(&b'.') {
        let n = digits(p + 1);
        if n == 0 {
            return None;
        }
        p += 1 + n;
    }
    if let Some(b'e' | b'E') = b.get(p) {
        let sign = usize::from(matches!(b.get(p + 1), Some(b'+' | b'-')));
        let n = digits(p + 1 + sign);
        if n == 0 {
            return None;
        }
        p += 1 + sign + n;
    }
    Some(p)
}
