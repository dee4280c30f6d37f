//! Checksums of rows: a row whose bytes have changed on the disk is not taken for what was written.

use crate::db::{Param, Row, Value};
use crate::error::Result;

/// In the checksum of an item, whether it stands at top level is a bit of its own: statements change
/// that without reading the row.
pub(crate) const TOP: i64 = 1 << 32;

/// The checksum of some values, one after the other.
#[derive(Default)]
pub(crate) struct Sum(crc32fast::Hasher);

impl Sum {
    /// Adds a value. Its kind is not part of it: a text and its bytes are the same.
    pub(crate) fn add(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.0.update(&[0]),
            Value::Int(n) => self.number(1, n.to_le_bytes()),
            Value::Real(n) => self.number(2, n.to_le_bytes()),
            Value::Text(text) => self.bytes(text.as_bytes()),
            Value::Bytes(bytes) => self.bytes(bytes),
            Value::List(list) => list.iter().for_each(|value| self.add(value)),
        }
    }

    fn number(&mut self, kind: u8, bytes: [u8; 8]) {
        self.0.update(&[kind]);
        self.0.update(&bytes);
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.0.update(&[3]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn end(self) -> i64 {
        i64::from(self.0.finalize())
    }
}

/// The checksum of some values.
pub(crate) fn of(values: &[Value<'_>]) -> i64 {
    let mut sum = Sum::default();
    values.iter().for_each(|value| sum.add(value));
    sum.end()
}

/// The checksum of a row of the log.
pub(crate) fn event(key: i64, kind: &str, parts: [Option<&[u8]>; 3]) -> i64 {
    let mut sum = Sum::default();
    sum.add(&Value::Int(key));
    sum.add(&Value::Text(kind));
    for part in parts {
        sum.add(&part.map_or(Value::Null, Value::Bytes));
    }
    sum.end()
}

/// What the checksum of an item is of, but for its place.
pub(crate) struct ItemSum<'a> {
    pub(crate) key: i64,
    pub(crate) id: &'a str,
    pub(crate) seq: u64,
    pub(crate) kind: &'a str,
    pub(crate) open: bool,
    pub(crate) body: &'a [u8],
    pub(crate) parent: Option<&'a str>,
}

impl ItemSum<'_> {
    /// Without the bit of its place.
    pub(crate) fn end(&self) -> i64 {
        let parent = self.parent.map_or(Value::Null, Value::Text);
        of(&[
            Value::Int(self.key),
            Value::Text(self.id),
            self.seq.value(),
            Value::Text(self.kind),
            Value::Int(i64::from(self.open)),
            Value::Bytes(self.body),
            parent,
        ])
    }

    pub(crate) fn at(&self, top: bool) -> i64 {
        self.end() | if top { TOP } else { 0 }
    }
}

/// What the numbers of a session's row are checked by: the events, those in the rows of items, the
/// next order and the items. Each is a product with a number of its own, so that statements can say it.
pub(crate) fn tally(seq: &str, settled: &str, next_order: &str, items: &str) -> String {
    format!("(({seq}) * 1048573 + ({settled}) * 524287 + ({next_order}) * 8191 + ({items}) * 127)")
}

/// The same of numbers that were read.
pub(crate) fn tally_of(seq: u64, settled: u64, next_order: u64, items: u64) -> i64 {
    let product = |n: u64, by: i64| i64::try_from(n).unwrap_or(i64::MAX).wrapping_mul(by);
    product(seq, 1_048_573)
        .wrapping_add(product(settled, 524_287))
        .wrapping_add(product(next_order, 8191))
        .wrapping_add(product(items, 127))
}

/// Whether a checksum is that of what was read; rows of earlier versions have none.
pub(crate) fn holds(kept: Option<i64>, is: i64) -> bool {
    kept.is_none_or(|kept| kept == is)
}

/// Whether some columns of a row have the checksum that stands in another one.
pub(crate) fn row_holds(row: &Row<'_>, columns: &[usize], sum: usize) -> Result<bool> {
    let Some(kept) = row.get::<Option<i64>>(sum)? else { return Ok(true) };
    let mut is = Sum::default();
    for at in columns {
        is.add(&row.value(*at)?);
    }
    Ok(kept == is.end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_flipped_bit_is_seen() {
        let body = b"{\"said\":\"words\"}".to_vec();
        let sum = event(7, "notice", [Some(&body), None, Some(b"[]")]);
        for at in 0..body.len() * 8 {
            let mut other = body.clone();
            other[at / 8] ^= 1 << (at % 8);
            assert_ne!(event(7, "notice", [Some(&other), None, Some(b"[]")]), sum);
        }
        assert_ne!(event(8, "notice", [Some(&body), None, Some(b"[]")]), sum);
        assert_ne!(event(7, "notice", [Some(&body), Some(b"[]"), None]), sum);
        assert_ne!(event(7, "notic", [Some(&body), None, Some(b"[]")]), sum);
        for (seq, settled, next, items) in [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
        {
            for bit in 0..32 {
                assert_ne!(tally_of(seq << bit, settled << bit, next << bit, items << bit), 0);
            }
        }
    }
}
