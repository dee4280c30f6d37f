//! Checks the grammar of a JSON text in one pass and records the position of every value.

use super::node::{Doc, JsonNode, Kind};
use wide::u8x16;

/// The number of values in one text; a text with more is rejected (128 MiB of nodes).
const MAX_NODES: usize = 8 << 20;

/// The characters that may follow a backslash, except `u`.
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

/// The reason why a text is not JSON, and the position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ParseError {
    /// The reason in a few words.
    pub reason: &'static str,
    /// The byte offset.
    pub at: usize,
}

/// A reusable index of one JSON text.
#[derive(Debug, Default)]
pub struct Index {
    nodes: Vec<JsonNode>,
    open: Vec<u32>,
    container: Container,
}

/// The innermost open container.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
enum Container {
    #[default]
    None,
    Object,
    Array,
}

impl Index {
    /// Parses `text` as one JSON value.
    pub fn read<'a>(&'a mut self, text: &'a str) -> Result<Doc<'a>, ParseError> {
        // The memory of one huge packet is not retained for the rest of the session.
        if self.nodes.capacity() > 1 << 20 {
            self.nodes = Vec::new();
        }
        self.nodes.clear();
        self.open.clear();
        self.container = Container::None;
        self.scan(text.as_bytes())?;
        Ok(Doc::new(text, &self.nodes))
    }

    fn scan(&mut self, b: &[u8]) -> Result<(), ParseError> {
        if u32::try_from(b.len()).is_err() {
            return Err(ParseError { reason: "longer than 4 GiB", at: 0 });
        }
        let mut at = skip_white(b, 0);
        if at == b.len() {
            return Err(ParseError { reason: "empty", at });
        }
        loop {
            // A value starts here.
            match b.get(at) {
                Some(b'"') => at = self.string(b, at)?,
                Some(b'{') => {
                    self.enter(at, Kind::Object)?;
                    at = skip_white(b, at + 1);
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
                    at = skip_white(b, at + 1);
                    if b.get(at) == Some(&b']') {
                        self.leave(at + 1);
                        at += 1;
                    } else {
                        continue;
                    }
                }
                Some(_) => at = self.scalar(b, at)?,
                None => {
                    return Err(ParseError { reason: "cut short", at });
                }
            }
            // A value ended here: close the containers that end with it, then go to the next value.
            loop {
                at = skip_white(b, at);
                match (self.container, b.get(at)) {
                    (Container::Object, Some(b',')) => {
                        at = self.key(b, skip_white(b, at + 1))?;
                        break;
                    }
                    (Container::Array, Some(b',')) => {
                        at = skip_white(b, at + 1);
                        break;
                    }
                    (Container::Object, Some(b'}')) | (Container::Array, Some(b']')) => {
                        self.leave(at + 1)
                    }
                    (Container::None, None) => return Ok(()),
                    (Container::None, Some(_)) => {
                        return Err(ParseError { reason: "text after the value", at });
                    }
                    (_, byte) => match byte {
                        Some(b'}' | b']') => {
                            return Err(ParseError { reason: "brackets do not match", at });
                        }
                        Some(_) => {
                            return Err(ParseError { reason: "unexpected character", at });
                        }
                        None => {
                            return Err(ParseError { reason: "cut short", at });
                        }
                    },
                }
                at += 1;
            }
        }
    }

    fn enter(&mut self, at: usize, kind: Kind) -> Result<(), ParseError> {
        if self.nodes.len() >= MAX_NODES {
            return Err(ParseError { reason: "more than 8 million values", at });
        }
        self.open.push(self.nodes.len() as u32);
        self.nodes.push(JsonNode::new(at, at, kind));
        self.container = if kind == Kind::Object { Container::Object } else { Container::Array };
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
        self.container = match outer.map(|n| n.kind) {
            None => Container::None,
            Some(Kind::Object) => Container::Object,
            Some(_) => Container::Array,
        };
    }

    /// Records a key; returns the position of its value.
    fn key(&mut self, b: &[u8], at: usize) -> Result<usize, ParseError> {
        match b.get(at) {
            Some(b'"') => {}
            Some(_) => {
                return Err(ParseError { reason: "no key", at });
            }
            None => {
                return Err(ParseError { reason: "cut short", at });
            }
        }
        let at = skip_white(b, self.string(b, at)?);
        match b.get(at) {
            Some(b':') => Ok(skip_white(b, at + 1)),
            Some(_) => Err(ParseError { reason: "no colon after a key", at }),
            None => Err(ParseError { reason: "cut short", at }),
        }
    }

    /// Records the string that opens at `at`; returns the position after its closing quote.
    #[inline]
    fn string(&mut self, b: &[u8], at: usize) -> Result<usize, ParseError> {
        let mut p = plain_end(b, at + 1);
        let escaped = b.get(p) != Some(&b'"');
        if escaped {
            p = escaped_end(b, p)?;
        }
        self.add_leaf(JsonNode { escaped, ..JsonNode::new(at + 1, p, Kind::String) }, at)?;
        Ok(p + 1)
    }

    /// Records a value without children.
    #[inline]
    fn add_leaf(&mut self, mut node: JsonNode, at: usize) -> Result<(), ParseError> {
        let len = self.nodes.len();
        if len >= MAX_NODES {
            return Err(ParseError { reason: "more than 8 million values", at });
        }
        node.next = len as u32 + 1;
        self.nodes.push(node);
        Ok(())
    }

    fn scalar(&mut self, b: &[u8], at: usize) -> Result<usize, ParseError> {
        let rest = &b[at..];
        let (kind, len) = match rest.first() {
            Some(b't') if rest.starts_with(b"true") => (Kind::Bool, 4),
            Some(b'f') if rest.starts_with(b"false") => (Kind::Bool, 5),
            Some(b'n') if rest.starts_with(b"null") => (Kind::Null, 4),
            Some(b'-' | b'0'..=b'9') => match number_len(rest) {
                Some(len) => (Kind::Number, len),
                None => {
                    return Err(ParseError { reason: "bad number", at });
                }
            },
            _ => {
                return Err(ParseError { reason: "not a JSON value", at });
            }
        };
        self.add_leaf(JsonNode::new(at, at + len, kind), at)?;
        Ok(at + len)
    }
}

/// Skips white space from `at` on.
#[inline]
fn skip_white(b: &[u8], mut at: usize) -> usize {
    while let Some(&c) = b.get(at)
        && c <= b' '
        && matches!(c, b' ' | b'\t' | b'\n' | b'\r')
    {
        at += 1;
    }
    at
}

/// Finds the end of a string with an escape or an invalid byte at `p`.
///
/// Escapes are close together in code: 64 bytes are classified at once, one bit each, and only rare
/// bytes are examined individually.
fn escaped_end(b: &[u8], mut p: usize) -> Result<usize, ParseError> {
    // Whether the first byte of the block belongs to an escape that started before it.
    let mut carried = 0;
    while let Some(block) = b.get(p..p + 64).and_then(<[u8]>::first_chunk::<64>) {
        let classes = StringBlock::new(block);
        let escaped = classes.escaped(&mut carried);
        let quotes = classes.quotes & !escaped;
        // Bytes after the closing quote do not belong to this string.
        let inside = quotes.wrapping_sub(1) & !quotes;
        let mut rare = ((escaped & !classes.common) | classes.controls) & inside;
        while rare != 0 {
            let at = p + rare.trailing_zeros() as usize;
            if b[at] < 0x20 {
                // After a backslash the escape is the error.
                let is_escaped = escaped & rare & rare.wrapping_neg() != 0;
                let reason =
                    if is_escaped { "bad escape" } else { "control character in a string" };
                return Err(ParseError { reason, at: at - usize::from(is_escaped) });
            }
            escape_end(b, at - 1)?;
            rare &= rare - 1;
        }
        if quotes != 0 {
            return Ok(p + quotes.trailing_zeros() as usize);
        }
        p += 64;
    }
    // The letter of an escape that started in the last block.
    if carried != 0 {
        p = escape_end(b, p - 1)?;
    }
    loop {
        match b.get(p) {
            Some(b'\\') => p = escape_end(b, p)?,
            Some(b'"') => return Ok(p),
            Some(0..0x20) => {
                return Err(ParseError { reason: "control character in a string", at: p });
            }
            Some(_) => p += 1,
            None => {
                return Err(ParseError { reason: "cut short", at: p });
            }
        }
    }
}

/// The classes of 64 bytes of a string, one bit per byte.
struct StringBlock {
    quotes: u64,
    backslashes: u64,
    controls: u64,
    /// The most common bytes that may follow a backslash.
    common: u64,
}

impl StringBlock {
    #[inline]
    fn new(block: &[u8; 64]) -> StringBlock {
        let mut classes = StringBlock { quotes: 0, backslashes: 0, controls: 0, common: 0 };
        let (chunks, _) = block.as_chunks::<16>();
        for (i, chunk) in chunks.iter().enumerate() {
            let v = u8x16::new(*chunk);
            let at = |hit: u8x16| u64::from(hit.to_bitmask()) << (16 * i);
            let quotes = v.simd_eq(u8x16::splat(b'"'));
            let backslashes = v.simd_eq(u8x16::splat(b'\\'));
            let breaks = v.simd_eq(u8x16::splat(b'n')) | v.simd_eq(u8x16::splat(b't'));
            classes.quotes |= at(quotes);
            classes.backslashes |= at(backslashes);
            classes.controls |= at(v.simd_le(u8x16::splat(0x1F)));
            classes.common |= at(quotes | backslashes | breaks);
        }
        classes
    }

    /// Returns the bytes that directly follow the backslash of an escape. In a run of backslashes every
    /// second one is such a byte: the subtraction carries through each run from its start and
    /// separates even from odd positions.
    #[inline]
    fn escaped(&self, carried: &mut u64) -> u64 {
        const ODD_BITS: u64 = 0xAAAA_AAAA_AAAA_AAAA;
        let begins = self.backslashes & !*carried;
        let turns = (((begins << 1) | ODD_BITS).wrapping_sub(begins)) ^ ODD_BITS;
        let escaped = turns ^ (self.backslashes | *carried);
        *carried = (turns & self.backslashes) >> 63;
        escaped
    }
}

/// Returns the position after the escape at `p`.
#[inline]
fn escape_end(b: &[u8], p: usize) -> Result<usize, ParseError> {
    let Some(&c) = b.get(p + 1) else {
        return Err(ParseError { reason: "cut short", at: p });
    };
    if ESCAPES[c as usize] {
        return Ok(p + 2);
    }
    let hex = b.get(p + 2..p + 6).filter(|_| c == b'u');
    if !hex.is_some_and(|h| h.iter().all(u8::is_ascii_hexdigit)) {
        return Err(ParseError { reason: "bad escape", at: p });
    }
    Ok(p + 6)
}

/// Returns the first position at or after `p` with a quote, a backslash or a control character.
///
/// Most bytes of packets are inside strings: 16 bytes are classified at once.
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

/// Returns which of 16 bytes are quotes, backslashes or control characters, one bit per byte.
#[inline]
pub(super) fn specials(chunk: &[u8; 16]) -> u32 {
    let v = u8x16::new(*chunk);
    // With bit 1 flipped, the quote directly follows the control characters.
    let low = (v ^ u8x16::splat(2)).simd_le(u8x16::splat(0x20));
    (low | v.simd_eq(u8x16::splat(b'\\'))).to_bitmask()
}

/// Returns the length of the JSON number at the start of `b`.
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
