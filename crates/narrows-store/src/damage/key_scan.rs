//! Walks the keys of a table whose pages may be damaged, and skips those that cannot be read.

use super::{Damage, report};
use crate::db::{Db, params};
use crate::error::{Error, Result};

/// One step of a scan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ScanStep {
    /// A row with this key.
    Key(i64),
    /// Any number of rows between these keys, both included, cannot be found.
    Gap(i64, i64),
    End,
}

/// A scan over the keys of a table within a range, both ends included, ascending or descending.
#[derive(Debug)]
pub(crate) struct KeyScan<'a> {
    table: &'a str,
    low: i64,
    high: i64,
    descending: bool,
    is_done: bool,
}

impl<'a> KeyScan<'a> {
    pub(crate) fn new(table: &'a str, low: i64, high: i64, descending: bool) -> KeyScan<'a> {
        KeyScan { table, low, high, descending, is_done: low > high }
    }

    /// The next key, or the next gap.
    pub(crate) fn next(&mut self, db: &Db<'_>) -> Result<ScanStep> {
        if self.is_done {
            return Ok(ScanStep::End);
        }
        match self.first_key(db, 0) {
            // A damaged page may give a key outside of the range.
            Ok(Some(key)) if (self.low..=self.high).contains(&key) => {
                self.advance_past(key);
                Ok(ScanStep::Key(key))
            }
            Ok(_) => {
                self.is_done = true;
                Ok(ScanStep::End)
            }
            Err(error) if error.is_unreadable() => Ok(self.skip_gap(db)),
            Err(error) => Err(error),
        }
    }

    fn advance_past(&mut self, key: i64) {
        if self.descending {
            self.is_done = key == self.low;
            self.high = key.saturating_sub(1);
        } else {
            self.is_done = key == self.high;
            self.low = key.saturating_add(1);
        }
    }

    /// The first key after skipping `skip` key values.
    fn first_key(&self, db: &Db<'_>, skip: u64) -> Result<Option<i64>> {
        let (low, high, order) = if self.descending {
            (self.low, self.high.saturating_sub_unsigned(skip), "DESC")
        } else {
            (self.low.saturating_add_unsigned(skip), self.high, "ASC")
        };
        let sql = format!(
            "SELECT rowid FROM {} NOT INDEXED WHERE rowid >= ?1 AND rowid <= ?2 ORDER BY rowid {order} LIMIT 1",
            self.table
        );
        db.query_opt(&sql, &params![low, high], |row| row.get(0))
    }

    /// Finds the nearest key value from which rows can be read again: first by doubling steps, then by
    /// bisection.
    fn skip_gap(&mut self, db: &Db<'_>) -> ScanStep {
        let span = self.high.abs_diff(self.low);
        let (mut bad, mut step) = (0, 1_u64.min(span));
        let readable = loop {
            if step > bad && self.first_key(db, step).is_ok() {
                break Some(step);
            }
            if step >= span {
                break None;
            }
            bad = step;
            step = step.saturating_mul(2).min(span);
        };
        let (low, high) = (self.low, self.high);
        let Some(mut good) = readable else {
            self.is_done = true;
            return ScanStep::Gap(low, high);
        };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if self.first_key(db, middle).is_ok() {
                good = middle;
            } else {
                bad = middle;
            }
        }
        if self.descending {
            self.high = high.saturating_sub_unsigned(good);
            ScanStep::Gap(self.high.saturating_add(1), high)
        } else {
            self.low = low.saturating_add_unsigned(good);
            ScanStep::Gap(low, self.low.saturating_sub(1))
        }
    }
}

/// The keys of all sessions that can be read.
pub(crate) fn session_keys(db: &Db<'_>) -> Result<Vec<i64>> {
    match db.query_all("SELECT key FROM session ORDER BY key", &[], |r| r.get(0)) {
        Err(Error::Damaged(_)) if !db.is_postgres() => {}
        keys => return keys,
    }
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'session'";
    let last = db.query_opt(sql, &[], |r| r.get::<i64>(0)).ok().flatten();
    let mut scan = KeyScan::new("session", 1, last.unwrap_or(i64::from(u32::MAX)), false);
    let mut keys = Vec::new();
    loop {
        match scan.next(db)? {
            ScanStep::Key(key) => keys.push(key),
            ScanStep::Gap(first, last) => report(Damage::database(format!(
                "session rows cannot be read (between #{first} and #{last})"
            ))),
            ScanStep::End => return Ok(keys),
        }
    }
}
