//! One pass over a JSON text: checks the grammar and notes every value's place.

use super::node::{Doc, Kind, Node};
use wide::u8x16;

/// Most values one packet may hold; a packet with more is refused (128 MiB of notes).
const MAX_NODES: usize = 8 << 20;

/// The characters that may follow a backslash, but for `u`.
static ESCAPES: [bool; 256] = {
    let mut table = [false; 256];
    let list = b"\"\\/bfnrt";
    let mut i = 0;
    while i < list.len() {
        table[list[i] as usize] = true;
        i += 1;
    }
    table
};

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
    inside: Inside,
}

/// What the place being read lies in.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Inside {
    #[default]
    Nothing,
    Object,
    Array,
}

impl Index {
    /// Reads `text` as one JSON value.
    pub fn read<'a>(&'a mut self, text: &'a str) -> Result<Doc<'a>, Syntax> {
        // One huge packet must not keep its memory for the rest of the session.
        if self.nodes.capacity() > 1 << 20 {
            self.nodes = Vec::new();
        }
        self.nodes.clear();
        self.open.clear();
        self.inside = Inside::Nothing;
        self.scan(text.as_bytes())?;
        Ok(Doc::new(text, &self.nodes))
    }

    fn scan(&mut self, b: &[u8]) -> Result<(), Syntax> {
        if u32::try_from(b.len()).is_err() {
            return Err(Syntax { reason: "longer than 4 GiB", at: 0 });
        }
        let mut at = white(b, 0);
        if at == b.len() {
            return Err(Syntax { reason: "empty", at });
        }
        loop {
            // A value begins here.
            match b.get(at) {
                Some(b'"') => at = self.string(b, at)?,
                Some(b'{') => {
                    self.enter(at, Kind::Object)?;
                    at = white(b, at + 1);
                    if b.get(at) == Some(&b'}') {
                        self.leave(at + 1);
                        at += 1;
                    } else {
                        at = self.key(b, at)?;
                        continue;
                    }
                }
                Some(b'[') => {
                    self.enter(at, Kind::Array)?;
                    at = white(b, at + 1);
                    if b.get(at) == Some(&b']') {
                        self.leave(at + 1);
                        at += 1;
                    } else {
                        continue;
                    }
                }
                Some(_) => at = self.scalar(b, at)?,
                None => {
                    return Err(Syntax { reason: "cut short", at });
                }
            }
            // A value has ended here: close what ends with it, then go to the next one.
            loop {
                at = white(b, at);
                match (self.inside, b.get(at)) {
                    (Inside::Object, Some(b',')) => {
                        at = self.key(b, white(b, at + 1))?;
                        break;
                    }
                    (Inside::Array, Some(b',')) => {
                        at = white(b, at + 1);
                        break;
                    }
                    (Inside::Object, Some(b'}')) | (Inside::Array, Some(b']')) => {
                        self.leave(at + 1)
                    }
                    (Inside::Nothing, None) => return Ok(()),
                    (Inside::Nothing, Some(_)) => {
                        return Err(Syntax { reason: "text after the value", at });
                    }
                    (_, byte) => match byte {
                        Some(b'}' | b']') => {
                            return Err(Syntax { reason: "brackets do not match", at });
                        }
                        Some(_) => {
                            return Err(Syntax { reason: "unexpected character", at });
                        }
                        None => {
                            return Err(Syntax { reason: "cut short", at });
                        }
                    },
                }
                at += 1;
            }
        }
    }

    fn enter(&mut self, at: usize, kind: Kind) -> Result<(), Syntax> {
        if self.nodes.len() >= MAX_NODES {
            return Err(Syntax { reason: "more than 8 million values", at });
        }
        self.open.push(self.nodes.len() as u32);
        self.nodes.push(Node::new(at, at, kind));
        self.inside = if kind == Kind::Object { Inside::Object } else { Inside::Array };
        Ok(())
    }

    fn leave(&mut self, end: usize) {
        let next = self.nodes.len() as u32;
        let opened = self.open.pop().and_then(|o| self.nodes.get_mut(o as usize));
        if let Some(node) = opened {
            node.end = end as u32;
            node.next = next;
        }
        let outer = self.open.last().and_then(|o| self.nodes.get(*o as usize));
        self.inside = match outer.map(|n| n.kind) {
            None => Inside::Nothing,
            Some(Kind::Object) => Inside::Object,
            Some(_) => Inside::Array,
        };
    }

    /// Notes a key; returns the place of its value.
    fn key(&mut self, b: &[u8], at: usize) -> Result<usize, Syntax> {
        match b.get(at) {
            Some(b'"') => {}
            Some(_) => {
                return Err(Syntax { reason: "no key", at });
            }
            None => {
                return Err(Syntax { reason: "cut short", at });
            }
        }
        let at = white(b, self.string(b, at)?);
        match b.get(at) {
            Some(b':') => Ok(white(b, at + 1)),
            Some(_) => Err(Syntax { reason: "no colon after a key", at }),
            None => Err(Syntax { reason: "cut short", at }),
        }
    }

    /// Notes the string that opens at `at`; returns the place after its closing quote.
    #[inline]
    fn string(&mut self, b: &[u8], at: usize) -> Result<usize, Syntax> {
        let mut p = plain_end(b, at + 1);
        let escaped = b.get(p) != Some(&b'"');
        if escaped {
            p = escaped_end(b, p)?;
        }
        self.note(Node { escaped, ..Node::new(at + 1, p, Kind::String) }, at)?;
        Ok(p + 1)
    }

    /// Adds a value that holds no others.
    #[inline]
    fn note(&mut self, mut node: Node, at: usize) -> Result<(), Syntax> {
        let len = self.nodes.len();
        if len >= MAX_NODES {
            return Err(Syntax { reason: "more than 8 million values", at });
        }
        node.next = len as u32 + 1;
        self.nodes.push(node);
        Ok(())
    }

    fn scalar(&mut self, b: &[u8], at: usize) -> Result<usize, Syntax> {
        let rest = &b[at..];
        let (kind, len) = match rest.first() {
            Some(b't') if rest.starts_with(b"true") => (Kind::Bool, 4),
            Some(b'f') if rest.starts_with(b"false") => (Kind::Bool, 5),
            Some(b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b'-' | b'0'..=b'9') => match number_len(rest) {
                Some(len) => (Kind::Number, len),
                None => {
                    return Err(Syntax { reason: "bad number", at });
                }
            },
            _ => {
                return Err(Syntax { reason: "not a JSON value", at });
            }
        };
        self.note(Node::new(at, at + len, kind), at)?;
        Ok(at + len)
    }
}

/// The first place at or after `at` that is no white space.
#[inline]
fn white(b: &[u8], mut at: usize) -> usize {
    while let Some(&c) = b.get(at)
        && c <= b' '
        && matches!(c, b' ' | b'\t' | b'\n' | b'\r')
    {
        at += 1;
    }
    at
}

/// The end of a string that has an escape, or something worse, at `p`.
///
/// Escapes come close together in code: sixty-four bytes are looked at together, a bit each, and
/// only what is rare is looked at by itself.
fn escaped_end(b: &[u8], mut p: usize) -> Result<usize, Syntax> {
    // Whether the first byte of the block belongs to an escape that began before it.
    let mut carried = 0;
    while let Some(block) = b.get(p..p + 64).and_then(<[u8]>::first_chunk::<64>) {
        let found = Block::new(block);
        let escaped = found.escaped(&mut carried);
        let quotes = found.quotes & !escaped;
        // What lies behind the closing quote is not this string's.
        let inside = quotes.wrapping_sub(1) & !quotes;
        let mut odd = ((escaped & !found.common) | found.controls) & inside;
        while odd != 0 {
            let at = p + odd.trailing_zeros() as usize;
            if b[at] < 0x20 {
                // Behind a backslash it is the escape that is wrong.
                let bad = escaped & odd & odd.wrapping_neg() != 0;
                let reason = if bad { "bad escape" } else { "control character in a string" };
                return Err(Syntax { reason, at: at - usize::from(bad) });
            }
            escape_end(b, at - 1)?;
            odd &= odd - 1;
        }
        if quotes != 0 {
            return Ok(p + quotes.trailing_zeros() as usize);
        }
        p += 64;
    }
    // The letter of an escape that began in the last block.
    if carried != 0 {
        p = escape_end(b, p - 1)?;
    }
    loop {
        match b.get(p) {
            Some(b'\\') => p = escape_end(b, p)?,
            Some(b'"') => return Ok(p),
            Some(0..0x20) => {
                return Err(Syntax { reason: "control character in a string", at: p });
            }
            Some(_) => p += 1,
            None => {
                return Err(Syntax { reason: "cut short", at: p });
            }
        }
    }
}

/// What is where in sixty-four bytes of a string, a bit each.
struct Block {
    quotes: u64,
    backslashes: u64,
    controls: u64,
    /// Bytes that may follow a backslash; not all of them.
    common: u64,
}

impl Block {
    #[inline]
    fn new(block: &[u8; 64]) -> Block {
        let mut found = Block { quotes: 0, backslashes: 0, controls: 0, common: 0 };
        let (parts, _) = block.as_chunks::<16>();
        for (i, part) in parts.iter().enumerate() {
            let v = u8x16::new(*part);
            let at = |hit: u8x16| u64::from(hit.to_bitmask()) << (16 * i);
            let quotes = v.simd_eq(u8x16::splat(b'"'));
            let backslashes = v.simd_eq(u8x16::splat(b'\\'));
            let breaks = v.simd_eq(u8x16::splat(b'n')) | v.simd_eq(u8x16::splat(b't'));
            found.quotes |= at(quotes);
            found.backslashes |= at(backslashes);
            found.controls |= at(v.simd_le(u8x16::splat(0x1F)));
            found.common |= at(quotes | backslashes | breaks);
        }
        found
    }

    /// The bytes right behind the backslash of an escape. In a row of backslashes every second one
    /// is such a byte: the subtraction carries through each row from its beginning, and tells the
    /// even places from the odd.
    #[inline]
    fn escaped(&self, carried: &mut u64) -> u64 {
        const ODD: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        let begins = self.backslashes & !*carried;
        let turns = (((begins << 1) | ODD).wrapping_sub(begins)) ^ ODD;
        let escaped = turns ^ (self.backslashes | *carried);
        *carried = (turns & self.backslashes) >> 63;
        escaped
    }
}

/// The place after the escape at `p`.
#[inline]
fn escape_end(b: &[u8], p: usize) -> Result<usize, Syntax> {
    let Some(&c) = b.get(p + 1) else {
        return Err(Syntax { reason: "cut short", at: p });
    };
    if ESCAPES[c as usize] {
        return Ok(p + 2);
    }
    let hex = b.get(p + 2..p + 6).filter(|_| c == b'u');
    if !hex.is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) {
        return Err(Syntax { reason: "bad escape", at: p });
    }
    Ok(p + 6)
}

/// The first place at or after `p` with a quote, a backslash or a control character.
///
/// Most of what agents send is inside strings: sixteen bytes are looked at together.
#[inline]
pub(super) fn plain_end(b: &[u8], mut p: usize) -> usize {
    while let Some(chunk) = b.get(p..p + 16).and_then(<[u8]>::first_chunk::<16>) {
        let hits = specials(chunk);
        if hits != 0 {
            return p + hits.trailing_zeros() as usize;
        }
        p += 16;
    }
    while let Some(&c) = b.get(p) {
        if c == b'"' || c == b'\\' || c < 0x20 {
            break;
        }
        p += 1;
    }
    p
}

/// Which of sixteen bytes are quotes, backslashes or control characters, a bit each.
#[inline]
pub(super) fn specials(chunk: &[u8; 16]) -> u32 {
    let v = u8x16::new(*chunk);
    // With one bit turned, the quote comes right after the control characters.
    let low = (v ^ u8x16::splat(2)).simd_le(u8x16::splat(0x20));
    (low | v.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
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
