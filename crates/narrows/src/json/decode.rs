//! Decodes the escapes of a JSON string.

use wide::u8x16;

/// The character of a short escape by its letter; 0 for other letters.
static SHORT_ESCAPES: [u8; 256] = {
    let mut table = [0; 256];
    let pairs = [
        (b'"', b'"'),
        (b'\\', b'\\'),
        (b'/', b'/'),
        (b'n', b'\n'),
        (b't', b'\t'),
        (b'r', b'\r'),
        (b'b', 8),
        (b'f', 12),
    ];
    let mut i = 0;
    while i < pairs.len() {
        table[pairs[i].0 as usize] = pairs[i].1;
        i += 1;
    }
    table
};

/// Decodes the escapes of a string that [`Index`](super::Index) checked. A lone surrogate becomes U+FFFD.
pub fn decode(raw: &str) -> String {
    let b = raw.as_bytes();
    let mut out = String::with_capacity(b.len());
    let mut from = 0;
    loop {
        let at = backslash(b, from);
        out.push_str(raw.get(from..at).unwrap_or_default());
        let Some(&letter) = b.get(at + 1) else { break };
        let short = SHORT_ESCAPES[letter as usize];
        if short != 0 {
            out.push(char::from(short));
            from = at + 2;
        } else {
            let (c, len) = decode_unicode(b.get(at..).unwrap_or_default());
            out.push(c);
            from = at + len;
        }
    }
    out
}

/// Returns the position of the first backslash at or after `at`, or the end.
#[inline]
fn backslash(b: &[u8], mut at: usize) -> usize {
    while let Some(chunk) = b.get(at..at + 16).and_then(<[u8]>::first_chunk::<16>) {
        let hits = u8x16::new(*chunk).simd_eq(u8x16::splat(b'\\')).to_bitmask();
        if hits != 0 {
            return at + hits.trailing_zeros() as usize;
        }
        at += 16;
    }
    let rest = b.get(at..).unwrap_or_default();
    at + rest.iter().position(|c| *c == b'\\').unwrap_or(rest.len())
}

/// Parses the code unit `\uXXXX` at the start of `b`.
fn code_unit(b: &[u8]) -> Option<u32> {
    if !b.starts_with(b"\\u") {
        return None;
    }
    let hex = std::str::from_utf8(b.get(2..6)?).ok()?;
    u32::from_str_radix(hex, 16).ok()
}

/// Decodes one `\u` escape or a surrogate pair; returns the character and the bytes used.
fn decode_unicode(b: &[u8]) -> (char, usize) {
    let invalid = char::REPLACEMENT_CHARACTER;
    match code_unit(b) {
        Some(high @ 0xD800..=0xDBFF) => match b.get(6..).and_then(code_unit) {
            Some(low @ 0xDC00..=0xDFFF) => {
                let c = 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
                (char::from_u32(c).unwrap_or(invalid), 12)
            }
            _ => (invalid, 6),
        },
        Some(n) => (char::from_u32(n).unwrap_or(invalid), 6),
        None => (invalid, 2),
    }
}

#[cfg(test)]
mod tests {
    use super::decode;

    #[test]
    fn decode_escaped_text_equals_serde_json() {
        let text: String = (1..0x300).filter_map(char::from_u32).chain("🚀日本".chars()).collect();
        for n in 0..40 {
            let text = format!("{}{text}", "x".repeat(n));
            let json = serde_json::to_string(&text).unwrap();
            assert_eq!(decode(&json[1..json.len() - 1]), text);
        }
        assert_eq!(decode(r"\ud83d\ude80 \ud83d x \ude80 \/"), "🚀 \u{fffd} x \u{fffd} /");
    }
}
