//! The text of an escaped JSON string.

use memchr::memchr;

/// Decodes the escapes of a checked string. A lone surrogate becomes U+FFFD.
pub fn decode(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(i) = memchr(b'\\', rest.as_bytes()) {
        let (plain, tail) = rest.split_at(i);
        out.push_str(plain);
        let b = tail.as_bytes();
        let mut used = 2;
        match b.get(1) {
            Some(b'n') => out.push('\n'),
            Some(b't') => out.push('\t'),
            Some(b'r') => out.push('\r'),
            Some(b'b') => out.push('\u{8}'),
            Some(b'f') => out.push('\u{c}'),
            Some(b'u') => {
                let (c, len) = unicode(b);
                out.push(c);
                used = len;
            }
            Some(&c) => out.push(c as char),
            None => used = 1,
        }
        rest = tail.get(used..).unwrap_or_default();
    }
    out.push_str(rest);
    out
}

/// The code unit written as `\uXXXX` at the start of `b`.
fn unit(b: &[u8]) -> Option<u32> {
    if !b.starts_with(b"\\u") {
        return None;
    }
    let hex = std::str::from_utf8(b.get(2..6)?).ok()?;
    u32::from_str_radix(hex, 16).ok()
}

/// The character of one `\u` escape, or of two that make a pair, and the bytes used.
fn unicode(b: &[u8]) -> (char, usize) {
    let bad = char::REPLACEMENT_CHARACTER;
    match unit(b) {
        Some(high @ 0xD800..=0xDBFF) => match b.get(6..).and_then(unit) {
            Some(low @ 0xDC00..=0xDFFF) => {
                let c = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (char::from_u32(c).unwrap_or(bad), 12)
            }
            _ => (bad, 6),
        },
        Some(n) => (char::from_u32(n).unwrap_or(bad), 6),
        None => (bad, 2),
    }
}
