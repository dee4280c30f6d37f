//! Bytes to lines: split on LF, each line handed over whole, whatever the pieces they came in.

use memchr::{memchr, memrchr};

/// Longest line that is read: 64 MiB.
pub const MAX_LINE: usize = 64 << 20;
/// What the buffer keeps after a long line.
const KEEP: usize = 1 << 20;

/// One line, without its end.
#[derive(Debug, Clone, Copy)]
pub struct Line<'a> {
    /// Its number, from 1.
    pub number: u64,
    /// Where it begins in the source.
    pub offset: u64,
    /// Its bytes; none when it was too long.
    pub bytes: &'a [u8],
    /// Its length, also when it was too long.
    pub length: u64,
    /// Whether it was longer than the cap: its text is gone, the next line is not.
    pub cut: bool,
}

/// Splits a stream of bytes into lines.
///
/// ```
/// let mut lines = narrows::Lines::default();
/// let mut seen = Vec::new();
/// for piece in [&b"one\ntw"[..], b"o\r\nthree"] {
///     lines.push(piece, |line| seen.push(line.bytes.to_vec()));
/// }
/// lines.finish(|line| seen.push(line.bytes.to_vec()));
/// assert_eq!(seen, [&b"one"[..], b"two", b"three"]);
/// ```
#[derive(Debug)]
pub struct Lines {
    cap: usize,
    /// The beginning of a line whose end has not come.
    part: Vec<u8>,
    /// Bytes of the current line that were thrown away.
    lost: u64,
    number: u64,
    offset: u64,
}

impl Default for Lines {
    fn default() -> Self {
        Lines::new(MAX_LINE)
    }
}

impl Lines {
    /// Throws away lines of more than `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Lines { cap, part: Vec::new(), lost: 0, number: 0, offset: 0 }
    }

    /// Goes on after so many lines and bytes.
    pub fn after(cap: usize, lines: u64, bytes: u64) -> Self {
        Lines { number: lines, offset: bytes, ..Lines::new(cap) }
    }

    /// How many lines have ended, and how many bytes they have.
    pub fn ended(&self) -> (u64, u64) {
        (self.number, self.offset)
    }

    /// Takes the next bytes; calls `found` for each line that ends in them.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Line<'_>)) {
        let Some(last) = memrchr(b'\n', bytes) else {
            self.hold(bytes);
            return;
        };
        let mut rest = &bytes[..=last];
        while let Some(end) = memchr(b'\n', rest) {
            let (line, after) = rest.split_at(end);
            if self.part.is_empty() && self.lost == 0 && line.len() <= self.cap {
                self.emit(line, 1, &mut found);
            } else {
                self.hold(line);
                self.emit_held(1, &mut found);
            }
            rest = &after[1..];
        }
        self.hold(&bytes[last + 1..]);
    }

    /// Takes so many zeros, as [`Lines::push`] would: no line ends in them.
    pub fn pass_zeros(&mut self, many: u64) {
        let held = self.part.len() as u64 + many;
        if self.lost == 0 && held <= self.cap as u64 {
            self.part.resize(held as usize, 0);
        } else {
            self.lost += held;
            self.part = Vec::new();
        }
    }

    /// The input is over: what is left is the last line.
    pub fn finish(&mut self, mut found: impl FnMut(Line<'_>)) {
        if !self.part.is_empty() || self.lost > 0 {
            self.emit_held(0, &mut found);
        }
    }

    fn hold(&mut self, bytes: &[u8]) {
        if self.lost == 0 && self.part.len() + bytes.len() <= self.cap {
            self.part.extend_from_slice(bytes);
            return;
        }
        self.lost += (self.part.len() + bytes.len()) as u64;
        self.part = Vec::new();
    }

    fn emit_held(&mut self, end: u64, found: &mut impl FnMut(Line<'_>)) {
        if self.lost > 0 {
            let length = std::mem::take(&mut self.lost);
            self.number += 1;
            let (number, offset) = (self.number, self.offset);
            self.offset += length + end;
            found(Line { number, offset, bytes: &[], length, cut: true });
            return;
        }
        let mut part = std::mem::take(&mut self.part);
        self.emit(&part, end, found);
        part.clear();
        part.shrink_to(KEEP);
        self.part = part;
    }

    fn emit(&mut self, line: &[u8], end: u64, found: &mut impl FnMut(Line<'_>)) {
        self.number += 1;
        let length = line.len() as u64;
        let (number, offset) = (self.number, self.offset);
        self.offset += length + end;
        let mut bytes = line.strip_suffix(b"\r").unwrap_or(line);
        // A byte order mark, also where files were joined.
        bytes = bytes.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(bytes);
        found(Line { number, offset, bytes, length, cut: false });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeros_that_are_passed_are_as_those_that_are_read() {
        for cap in [3, 8, 100] {
            for many in [0, 1, 4, 9, 200] {
                let (mut read, mut passed) = (Vec::new(), Vec::new());
                for (all, pass) in [(&mut read, false), (&mut passed, true)] {
                    let mut lines = Lines::new(cap);
                    let mut keep = |l: Line<'_>| {
                        all.push((l.number, l.offset, l.length, l.cut, l.bytes.to_vec()));
                    };
                    lines.push(b"a\nbc", &mut keep);
                    if pass {
                        lines.pass_zeros(many);
                    } else {
                        lines.push(&vec![0; many as usize], &mut keep);
                    }
                    lines.push(b"d\ne", &mut keep);
                    lines.finish(&mut keep);
                }
                assert_eq!(read, passed, "{cap}, {many}");
            }
        }
    }
}
