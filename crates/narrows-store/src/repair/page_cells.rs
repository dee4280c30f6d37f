//! The rows on a page of a database, read without SQLite.

use super::pages::{Page, Pages, SIZE, number};
use crate::db::Value;

/// A row is no longer than this.
const MAX_ROW: u64 = 256 << 20;

/// What a page holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Rows of a table.
    Rows,
    /// Numbers of pages with rows.
    Table,
    /// Entries of an index, or of a table without numbers.
    Entries,
    /// The same, with numbers of pages between them.
    Index,
}

impl Kind {
    pub(super) fn is_inner(self) -> bool {
        matches!(self, Kind::Table | Kind::Index)
    }
}

/// What the page is, and where its cells stand.
pub(super) struct Cells {
    pub(super) kind: Kind,
    places: Vec<usize>,
    right: u32,
}

impl Cells {
    /// None where the page holds no cells.
    pub(super) fn of(page: &Page, page_number: u32) -> Option<Cells> {
        // The first page begins with the header of the database.
        let head = if page_number == 1 { 100 } else { 0 };
        let kind = match page[head] {
            0x0d => Kind::Rows,
            0x05 => Kind::Table,
            0x0a => Kind::Entries,
            0x02 => Kind::Index,
            _ => return None,
        };
        let first = head + if kind.is_inner() { 12 } else { 8 };
        let two = |at: usize| usize::from(page[at]) << 8 | usize::from(page[at + 1]);
        let most = (SIZE - first) / 2;
        let count = two(head + 3).min(most);
        let places = (0..count).map(|n| two(first + 2 * n));
        let places = places.filter(|at| (first..SIZE).contains(at)).collect();
        Some(Cells { kind, places, right: number(&page[head + 8..]) })
    }

    /// The pages below this one.
    pub(super) fn below(&self, page: &Page) -> Vec<u32> {
        if !self.kind.is_inner() {
            return Vec::new();
        }
        self.places.iter().map(|at| number(&page[*at..])).chain([self.right]).collect()
    }

    /// The rows or entries: the number of each row, and its bytes. One that is not whole is left out.
    pub(super) fn rows(&self, pages: &Pages, page: &Page) -> Vec<(i64, Vec<u8>)> {
        if self.kind == Kind::Table {
            return Vec::new();
        }
        self.places.iter().filter_map(|at| self.row(pages, page, *at)).collect()
    }

    fn row(&self, pages: &Pages, page: &Page, mut at: usize) -> Option<(i64, Vec<u8>)> {
        at += if self.kind == Kind::Index { 4 } else { 0 };
        let (length, bytes) = varint(page.get(at..)?)?;
        at += bytes;
        let mut row = 0;
        if self.kind == Kind::Rows {
            let (read, bytes) = varint(page.get(at..)?)?;
            (row, at) = (read.cast_signed(), at + bytes);
        }
        if length > MAX_ROW {
            return None;
        }
        let length = usize::try_from(length).ok()?;
        let here = self.here(length);
        let mut payload = Vec::with_capacity(length.min(1 << 20));
        payload.extend_from_slice(page.get(at..at + here)?);
        let mut next = if here < length { number(page.get(at + here..at + here + 4)?) } else { 0 };
        let mut rest: Page = [0; SIZE];
        while payload.len() < length {
            if !pages.read(next, &mut rest) {
                return None;
            }
            let more = (length - payload.len()).min(SIZE - 4);
            payload.extend_from_slice(&rest[4..4 + more]);
            next = number(&rest);
        }
        Some((row, payload))
    }

    /// How much of a row stands on its own page; the rest is on pages of its own.
    fn here(&self, length: usize) -> usize {
        let most = match self.kind {
            Kind::Rows => SIZE - 35,
            _ => (SIZE - 12) * 64 / 255 - 23,
        };
        if length <= most {
            return length;
        }
        let least = (SIZE - 12) * 32 / 255 - 23;
        let here = least + (length - least) % (SIZE - 4);
        if here <= most { here } else { least }
    }
}

/// A number of one to nine bytes, and how many they are.
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

/// The columns of a row.
pub(super) fn columns(row: &[u8]) -> Option<Vec<Value<'_>>> {
    let (head, mut at) = varint(row)?;
    let head = usize::try_from(head).ok().filter(|head| *head <= row.len())?;
    let (mut body, mut values) = (head, Vec::new());
    while at < head {
        let (kind, bytes) = varint(&row[at..head])?;
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
            7 => Value::Real(f64::from_bits(whole(part).cast_unsigned())),
            1..=6 => Value::Int(whole(part)),
            // A text that is none is kept as it stands: its checksum tells.
            odd if odd % 2 == 1 => {
                std::str::from_utf8(part).map_or(Value::Bytes(part), Value::Text)
            }
            _ => Value::Bytes(part),
        });
    }
    Some(values)
}

fn whole(part: &[u8]) -> i64 {
    let negative = part.first().is_some_and(|byte| byte & 0x80 != 0);
    part.iter().fold(if negative { -1 } else { 0 }, |n, byte| n << 8 | i64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_lengths_are_read() {
        assert_eq!(varint(&[0x7f]), Some((127, 1)));
        assert_eq!(varint(&[0x81, 0x00]), Some((128, 2)));
        assert_eq!(varint(&[0xff; 9]), Some((u64::MAX, 9)));
        assert_eq!(varint(&[0x81]), None);
        assert_eq!(whole(&[0xff, 0xfe]), -2);
        assert_eq!(whole(&[0x7f, 0xff]), 32767);
        assert_eq!(columns(&[3, 1, 15, 0xff, b'a']), Some(vec![Value::Int(-1), Value::Text("a")]));
        assert_eq!(columns(&[9, 1]), None);
    }
}
