//! Reads the rows on a database page without SQLite.

use super::page_source::{PAGE_BYTES, PageBuffer, PageSource, read_u32};
use crate::db::Value;

/// The longest row.
const MAX_ROW_BYTES: u64 = 256 << 20;

/// The kind of a B-tree page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    /// Rows of a table.
    TableLeaf,
    /// Child pages of a table.
    TableInterior,
    /// Entries of an index or of a table without rowids.
    IndexLeaf,
    /// Such entries, with child pages between them.
    IndexInterior,
}

impl PageKind {
    pub(super) fn is_interior(self) -> bool {
        matches!(self, PageKind::TableInterior | PageKind::IndexInterior)
    }
}

/// The cells of a page.
pub(super) struct PageCells {
    pub(super) kind: PageKind,
    /// The offsets of the cells.
    offsets: Vec<usize>,
    right_child: u32,
}

impl PageCells {
    /// Parses the header of a page; none if it is no B-tree page.
    pub(super) fn parse(page: &PageBuffer, page_number: u32) -> Option<PageCells> {
        // The first page begins with the database header.
        let header = if page_number == 1 { 100 } else { 0 };
        let kind = match page[header] {
            0x0d => PageKind::TableLeaf,
            0x05 => PageKind::TableInterior,
            0x0a => PageKind::IndexLeaf,
            0x02 => PageKind::IndexInterior,
            _ => return None,
        };
        let first = header + if kind.is_interior() { 12 } else { 8 };
        let read_u16 = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
        let max_count = (PAGE_BYTES - first) / 2;
        let count = read_u16(header + 3).min(max_count);
        let offsets = (0..count).map(|n| read_u16(first + 2 * n));
        let offsets = offsets.filter(|at| (first..PAGE_BYTES).contains(at)).collect();
        Some(PageCells { kind, offsets, right_child: read_u32(&page[header + 8..]) })
    }

    /// The child pages.
    pub(super) fn children(&self, page: &PageBuffer) -> Vec<u32> {
        if !self.kind.is_interior() {
            return Vec::new();
        }
        self.offsets.iter().map(|at| read_u32(&page[*at..])).chain([self.right_child]).collect()
    }

    /// The rows or entries, each with its rowid and its bytes. Incomplete ones are left out.
    pub(super) fn rows(&self, pages: &PageSource, page: &PageBuffer) -> Vec<(i64, Vec<u8>)> {
        if self.kind == PageKind::TableInterior {
            return Vec::new();
        }
        self.offsets.iter().filter_map(|at| self.row(pages, page, *at)).collect()
    }

    fn row(&self, pages: &PageSource, page: &PageBuffer, mut at: usize) -> Option<(i64, Vec<u8>)> {
        at += if self.kind == PageKind::IndexInterior { 4 } else { 0 };
        let (length, bytes) = varint(page.get(at..)?)?;
        at += bytes;
        let mut rowid = 0;
        if self.kind == PageKind::TableLeaf {
            let (read, bytes) = varint(page.get(at..)?)?;
            (rowid, at) = (read.cast_signed(), at + bytes);
        }
        if length > MAX_ROW_BYTES {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        let local = self.local_bytes(length);
        let mut payload = Vec::with_capacity(length.min(1 << 20));
        payload.extend_from_slice(page.get(at..at + local)?);
        let mut next =
            if local < length { read_u32(page.get(at + local..at + local + 4)?) } else { 0 };
        let mut overflow: PageBuffer = [0; PAGE_BYTES];
        while payload.len() < length {
            if !pages.read(next, &mut overflow) {
                return None;
            }
            let more = (length - payload.len()).min(PAGE_BYTES - 4);
            payload.extend_from_slice(&overflow[4..4 + more]);
            next = read_u32(&overflow);
        }
        Some((rowid, payload))
    }

    /// The bytes of a row on its own page; the others are on overflow pages.
    fn local_bytes(&self, length: usize) -> usize {
        let max = match self.kind {
            PageKind::TableLeaf => PAGE_BYTES - 35,
            _ => (PAGE_BYTES - 12) * 64 / 255 - 23,
        };
        if length <= max {
            return length;
        }
        let min = (PAGE_BYTES - 12) * 32 / 255 - 23;
        let local = min + (length - min) % (PAGE_BYTES - 4);
        if local <= max { local } else { min }
    }
}

/// Decodes a variable-length integer of one to nine bytes; returns it and its length.
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let mut value = 0_u64;
    for (at, byte) in bytes.iter().take(8).enumerate() {
        value = value << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            return Some((value, at + 1));
        }
    }
    bytes.get(8).map(|byte| (value << 8 | u64::from(*byte), 9))
}

/// Decodes the columns of a row.
pub(super) fn decode_columns(row: &[u8]) -> Option<Vec<Value<'_>>> {
    let (header, mut at) = varint(row)?;
    let header = usize::try_from(header).ok().filter(|header| *header <= row.len())?;
    let (mut body, mut values) = (header, Vec::new());
    while at < header {
        let (kind, bytes) = varint(&row[at..header])?;
        at += bytes;
        let size = match kind {
            0 | 8 | 9 => 0,
            1..=4 => usize::try_from(kind).ok()?,
            5 => 6,
            6 | 7 => 8,
            10 | 11 => return None,
            other => usize::try_from((other - 12) / 2).ok()?,
        };
        let part = row.get(body..body.checked_add(size)?)?;
        body += size;
        values.push(match kind {
            0 => Value::Null,
            8 => Value::Int(0),
            9 => Value::Int(1),
            7 => Value::Real(f64::from_bits(big_endian(part).cast_unsigned())),
            1..=6 => Value::Int(big_endian(part)),
            // Invalid UTF-8 is kept as bytes: the checksum decides.
            odd if odd % 2 == 1 => {
                std::str::from_utf8(part).map_or(Value::Bytes(part), Value::Text)
            }
            _ => Value::Bytes(part),
        });
    }
    Some(values)
}

fn big_endian(part: &[u8]) -> i64 {
    let negative = part.first().is_some_and(|byte| byte & 0x80 != 0);
    part.iter().fold(if negative { -1 } else { 0 }, |n, byte| n << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_and_columns_are_decoded() {
        assert_eq!(varint(&[0x7f]), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x81]), None);
        assert_eq!(big_endian(&[0xff, 0xfe]), -2);
        assert_eq!(big_endian(&[0x7f, 0xff]), 32767);
        assert_eq!(
            decode_columns(&[3, 1, 15, 0xff, b'a']),
            Some(vec![Value::Int(-1), Value::Text("a")])
        );
        assert_eq!(decode_columns(&[9, 1]), None);
    }
}
