//! Checksums of rows: they detect rows whose bytes changed on disk after they were written.
//!
//! Knows column names and values, but no table module: every table module may use it. The check of a
//! whole store is in `integrity`.

pub(crate) mod backfill;
pub(crate) mod columns;
pub(crate) mod search_terms;
pub(crate) mod session_counters;
pub(crate) mod side_tables;

use crate::db::{Param, Row, Value, params};
use crate::error::Result;

/// The bit of an item's checksum that says whether the item is at top level. It is separate from the
/// CRC because SQL statements flip it without reading the row.
pub(crate) const TOP_LEVEL_BIT: i64 = 1 << 32;

/// The CRC-32 of a sequence of values.
#[derive(Default)]
pub(crate) struct Checksum(crc32fast::Hasher);

impl Checksum {
    /// Adds a value. Text and bytes of the same content give the same checksum.
    pub(crate) fn add(&mut self, value: &Value<'_>) {
        match value {
            Value::Null => self.0.update(&[0]),
            Value::Int(n) => self.add_number(1, n.to_le_bytes()),
            Value::Real(n) => self.add_number(2, n.to_le_bytes()),
            Value::Text(text) => self.add_bytes(text.as_bytes()),
            Value::Bytes(bytes) => self.add_bytes(bytes),
            Value::List(list) => list.iter().for_each(|value| self.add(value)),
        }
    }

    fn add_number(&mut self, tag: u8, bytes: [u8; 8]) {
        self.0.update(&[tag]);
        self.0.update(&bytes);
    }

    fn add_bytes(&mut self, bytes: &[u8]) {
        self.0.update(&[3]);
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
    }

    /// The checksum as a database integer.
    pub(crate) fn finish(self) -> i64 {
        i64::from(self.0.finalize())
    }
}

/// Computes the checksum of some values.
pub(crate) fn of_values(values: &[Value<'_>]) -> i64 {
    let mut checksum = Checksum::default();
    values.iter().for_each(|value| checksum.add(value));
    checksum.finish()
}

/// Computes the checksum of a log row.
pub(crate) fn of_event_row(key: i64, kind: &str, parts: [Option<&[u8]>; 3]) -> i64 {
    let mut checksum = Checksum::default();
    checksum.add(&Value::Int(key));
    checksum.add(&Value::Text(kind));
    for part in parts {
        checksum.add(&part.map_or(Value::Null, Value::Bytes));
    }
    checksum.finish()
}

/// Computes the checksum of the names in a session's row.
pub(crate) fn of_session_names(id: &str, epoch: &str, label: Option<&str>) -> i64 {
    of_values(&params![id, epoch, label])
}

/// The columns that an item's checksum covers, except whether the item is at top level.
pub(crate) struct ItemChecksum<'a> {
    pub(crate) key: i64,
    pub(crate) id: &'a str,
    pub(crate) seq: u64,
    pub(crate) kind: &'a str,
    pub(crate) open: bool,
    pub(crate) body: &'a [u8],
    pub(crate) parent: Option<&'a str>,
}

impl ItemChecksum<'_> {
    /// The checksum without [`TOP_LEVEL_BIT`].
    pub(crate) fn without_level(&self) -> i64 {
        let parent = self.parent.map_or(Value::Null, Value::Text);
        of_values(&[
            Value::Int(self.key),
            Value::Text(self.id),
            self.seq.value(),
            Value::Text(self.kind),
            Value::Int(i64::from(self.open)),
            Value::Bytes(self.body),
            parent,
        ])
    }

    /// The checksum as the row stores it.
    pub(crate) fn with_level(&self, is_top_level: bool) -> i64 {
        self.without_level() | if is_top_level { TOP_LEVEL_BIT } else { 0 }
    }
}

/// The SQL expression of the checksum of a session's log counters: last event, last materialized
/// event, next item order, items. It is linear so that statements can compute it.
pub(crate) fn log_counters_sql(
    seq: &str,
    materialized: &str,
    next_order: &str,
    items: &str,
) -> String {
    format!(
        "(({seq}) * 1048573 + ({materialized}) * 524287 + ({next_order}) * 8191 + ({items}) * 127)"
    )
}

/// The value of [`log_counters_sql`] for counters that were read.
pub(crate) fn of_log_counters(seq: u64, materialized: u64, next_order: u64, items: u64) -> i64 {
    let product = |n: u64, factor: i64| i64::try_from(n).unwrap_or(i64::MAX).wrapping_mul(factor);
    product(seq, 1_048_573)
        .wrapping_add(product(materialized, 524_287))
        .wrapping_add(product(next_order, 8191))
        .wrapping_add(product(items, 127))
}

/// Whether a stored checksum equals the computed one. Rows of old schemas have none and match.
pub(crate) fn matches(stored: Option<i64>, computed: i64) -> bool {
    stored.is_none_or(|stored| stored == computed)
}

/// Whether some columns of a row match the checksum in another column.
pub(crate) fn row_matches(row: &Row<'_>, columns: &[usize], checksum: usize) -> Result<bool> {
    let Some(stored) = row.get::<Option<i64>>(checksum)? else { return Ok(true) };
    let mut computed = Checksum::default();
    for column in columns {
        computed.add(&row.value(*column)?);
    }
    Ok(stored == computed.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn event_checksum_changes_with_every_flipped_bit() {
        let body = b"{\"said\":\"words\"}".to_vec();
        let checksum = of_event_row(7, "notice", [Some(&body), None, Some(b"[]")]);
        for bit in 0..body.len() * 8 {
            let mut flipped = body.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            let other = of_event_row(7, "notice", [Some(&flipped), None, Some(b"[]")]);
            assert_ne!(other, checksum);
        }
        assert_ne!(of_event_row(8, "notice", [Some(&body), None, Some(b"[]")]), checksum);
        assert_ne!(of_event_row(7, "notice", [Some(&body), Some(b"[]"), None]), checksum);
        assert_ne!(of_event_row(7, "notic", [Some(&body), None, Some(b"[]")]), checksum);
    }

    #[test]
    fn log_counters_checksum_changes_with_every_flipped_bit() {
        for (seq, materialized, next, items) in
            [(1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1)]
        {
            for bit in 0..32 {
                let sum =
                    of_log_counters(seq << bit, materialized << bit, next << bit, items << bit);
                assert_ne!(sum, 0);
            }
        }
    }
}
