//! Classes of bytes and characters: what names, words and segments are made of.

pub(crate) fn is_blank(c: u8) -> bool {
    c == b' ' || c == b'\t'
}

pub(crate) fn is_line_whitespace(c: u8) -> bool {
    matches!(c, b' ' | b'\t' | b'\n' | b'\r')
}

/// Returns whether a byte may be the last one of a segment.
pub(crate) fn may_end_segment(c: u8) -> bool {
    is_line_whitespace(c) || c == b'|' || c >= 0x80
}

/// Bytes before a position that are searched for the start of its word.
const MAX_WORD_BYTES: usize = 64;

/// The last position up to `at` where a segment may start, at most [`MAX_WORD_BYTES`] before it.
pub(crate) fn segment_start_before(b: &[u8], at: usize) -> usize {
    let low = at.saturating_sub(MAX_WORD_BYTES);
    // The names of secrets are ASCII.
    b[low..at].iter().rposition(|c| may_end_segment(*c)).map_or(low, |i| low + i + 1)
}

/// Returns whether a character stands alone: scripts without blanks between words, symbols, joints.
pub(crate) fn is_standalone(c: char) -> bool {
    // Joiners are invisible: what reads as one token may continue after them.
    is_joint(c)
        || matches!(c,
        // Thai, Lao, Tibetan, Burmese; Khmer; Tai Le to Tai Tham; Balinese to Batak.
        '\u{0e00}'..='\u{0fff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{1950}'..='\u{1aaf}' | '\u{1b00}'..='\u{1bff}'
        // Arrows, symbols, emoji.
        | '\u{2190}'..='\u{2bff}' | '\u{1f000}'..='\u{1faff}'
        // Chinese, Japanese, Yi and their punctuation.
        | '\u{2e80}'..='\u{a4cf}' | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}'
        | '\u{ff00}'..='\u{ff9f}' | '\u{1b000}'..='\u{1b2ff}' | '\u{20000}'..='\u{3ffff}'
        // Javanese to Tai Viet; Korean.
        | '\u{a980}'..='\u{aadf}' | '\u{ac00}'..='\u{d7af}')
}

/// Blanks, dashes, quotes and dots beyond ASCII. They are part of no token, but may be part of a
/// path.
pub(crate) fn is_joint(c: char) -> bool {
    matches!(c, '\u{a0}' | '\u{ab}' | '\u{b7}' | '\u{bb}' | '\u{2000}'..='\u{200a}')
        || matches!(c, '\u{2010}'..='\u{2029}' | '\u{202f}'..='\u{205f}')
}

/// Returns whether a character ends a word of a script without blanks: punctuation, emoji.
pub(crate) fn is_standalone_punctuation(c: char) -> bool {
    is_standalone(c)
        && !c.is_alphanumeric()
        && matches!(c, '\u{2190}'..='\u{303f}' | '\u{30fb}' | '\u{fe30}'..='\u{ffef}' | '\u{1f000}'..)
}

/// Longest id that is recognized.
pub(crate) const MAX_ID_LEN: usize = 128;

/// Returns whether a byte may be part of a file name.
pub(crate) fn is_name_byte(c: u8) -> bool {
    c.is_ascii_alphanumeric() || c == b'_' || c == b'-' || c >= 0x80
}

/// Returns whether this is a UUID in any case, or at least 32 hexadecimal digits.
pub(crate) fn is_long_id(id: &[u8]) -> bool {
    let hex = |b: &[u8]| b.iter().all(u8::is_ascii_hexdigit);
    if id.len() == 36 {
        return id.split(|c| *c == b'-').map(<[u8]>::len).eq([8, 4, 4, 4, 12])
            && id.split(|c| *c == b'-').all(hex);
    }
    id.len() >= 32 && id.len() <= MAX_ID_LEN && hex(id)
}

/// Returns whether a byte ends a path in text.
pub(crate) fn ends_path(c: u8) -> bool {
    c.is_ascii_whitespace()
        || matches!(c, b'"' | b'\'' | b'`' | b'<' | b'>' | b'|' | b';' | b'&' | b'(' | b')')
        || matches!(c, b'[' | b']' | b'{' | b'}' | b'=' | b',' | 0)
}
