//! Splits bytes into lines at LF; each line is complete, however the bytes were chunked.

use memchr::{memchr, memrchr};

/// The longest line that is read, in bytes: 64 MiB.
pub const MAX_LINE: usize = 64 << 20;
/// The buffer capacity in bytes that is retained after a long line.
const RETAINED_CAPACITY_BYTES: usize = 1 << 20;

/// One line without its line break.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// The line number, from 1.
    pub number: u64,
    /// The byte offset of the line in the source.
    pub offset: u64,
    /// The bytes; empty when the line was too long.
    pub bytes: &'a [u8],
    /// The length in bytes, also of a line that was too long.
    pub length: u64,
    /// Whether the line exceeded the limit: its text is dropped, the next line is read.
    pub cut: bool,
}

/// Splits a stream of bytes into lines.
///
/// ```
/// let mut lines = narrows::Lines::default();
/// let mut seen = Vec::new();
/// for chunk in [&b"one\ntw"[..], b"o\r\nthree"] {
///     lines.push(chunk, |line| seen.push(line.bytes.to_vec()));
/// }
/// lines.finish(|line| seen.push(line.bytes.to_vec()));
/// assert_eq!(seen, [&b"one"[..], b"two", b"three"]);
/// ```
#[derive(Debug)]
pub struct Lines {
    max_bytes: usize,
    /// The beginning of a line whose end has not arrived.
    partial: Vec<u8>,
    /// The number of bytes dropped from the current line.
    dropped: u64,
    number: u64,
    offset: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Lines::new(MAX_LINE)
    }
}

impl Lines {
    /// Creates a splitter that drops the text of lines of more than `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        Lines { max_bytes, partial: Vec::new(), dropped: 0, number: 0, offset: 0 }
    }

    /// Resumes a source after `lines` complete lines with `bytes` bytes.
    pub fn after(max_bytes: usize, lines: u64, bytes: u64) -> Self {
        Lines { number: lines, offset: bytes, ..Lines::new(max_bytes) }
    }

    /// The number of complete lines and of their bytes.
    pub fn ended(&self) -> (u64, u64) {
        (self.number, self.offset)
    }

    /// Accepts the next bytes and calls `on_line` for each line that ends in them.
    pub fn push(&mut self, bytes: &[u8], mut on_line: impl FnMut(Line<'_>)) {
        let Some(last) = memrchr(b'\n', bytes) else {
            self.buffer(bytes);
            return;
        };
        let mut rest = &bytes[..=last];
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            if self.partial.is_empty() && self.dropped == 0 && line.len() <= self.max_bytes {
                self.emit(line, 1, &mut on_line);
            } else {
                self.buffer(line);
                self.emit_buffered(1, &mut on_line);
            }
            rest = &after[1..];
        }
        self.buffer(&bytes[last + 1..]);
    }

    /// Accepts `count` zero bytes as [`Lines::push`] would: no line ends in them.
    pub fn pass_zeros(&mut self, count: u64) {
        let buffered = self.partial.len() as u64 + count;
        if self.dropped == 0 && buffered <= self.max_bytes as u64 {
            self.partial.resize(buffered as usize, 0);
        } else {
            self.dropped += buffered;
            self.partial = Vec::new();
        }
    }

    /// Ends the input: the remaining bytes are the last line.
    pub fn finish(&mut self, mut on_line: impl FnMut(Line<'_>)) {
        if !self.partial.is_empty() || self.dropped > 0 {
            self.emit_buffered(0, &mut on_line);
        }
    }

    fn buffer(&mut self, bytes: &[u8]) {
        if self.dropped == 0 && self.partial.len() + bytes.len() <= self.max_bytes {
            self.partial.extend_from_slice(bytes);
            return;
        }
        self.dropped += (self.partial.len() + bytes.len()) as u64;
        self.partial = Vec::new();
    }

    fn emit_buffered(&mut self, break_bytes: u64, on_line: &mut impl FnMut(Line<'_>)) {
        if self.dropped > 0 {
            let length = std::mem::take(&mut self.dropped);
            self.number += 1;
            let (number, offset) = (self.number, self.offset);
            self.offset += length + break_bytes;
            on_line(Line { number, offset, bytes: &[], length, cut: true });
            return;
        }
        let mut partial = std::mem::take(&mut self.partial);
        self.emit(&partial, break_bytes, on_line);
        partial.clear();
        partial.shrink_to(RETAINED_CAPACITY_BYTES);
        self.partial = partial;
    }

    fn emit(&mut self, line: &[u8], break_bytes: u64, on_line: &mut impl FnMut(Line<'_>)) {
        self.number += 1;
        let length = line.len() as u64;
        let (number, offset) = (self.number, self.offset);
        self.offset += length + break_bytes;
        let mut bytes = line.strip_suffix(b"\r").unwrap_or(line);
        // A byte order mark; concatenated files have one in the middle.
        bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        on_line(Line { number, offset, bytes, length, cut: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_passed_zeros_equal_pushed_zeros() {
        for max_bytes in [3, 8, 100] {
            for count in [0, 1, 4, 9, 200] {
                let (mut pushed, mut passed) = (Vec::new(), Vec::new());
                for (lines_read, pass) in [(&mut pushed, false), (&mut passed, true)] {
                    let mut lines = Lines::new(max_bytes);
                    let mut record = |l: Line<'_>| {
                        lines_read.push((l.number, l.offset, l.length, l.cut, l.bytes.to_vec()));
                    };
                    lines.push(b"a\nbc", &mut record);
                    if pass {
                        lines.pass_zeros(count);
                    } else {
                        lines.push(&vec![0; count as usize], &mut record);
                    }
                    lines.push(b"d\ne", &mut record);
                    lines.finish(&mut record);
                }
                assert_eq!(pushed, passed, "{max_bytes}, {count}");
            }
        }
    }
}
