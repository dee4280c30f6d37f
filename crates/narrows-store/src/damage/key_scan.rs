//! Walking over the rows of a table of which pages may be damaged: what cannot be read is passed over.

use crate::db::{Db, params};
use crate::error::Result;

/// What comes next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Next {
    /// A row with this key.
    Key(i64),
    /// Somewhere between these keys, rows cannot be found: there may be any number of them.
    Gap(i64, i64),
    End,
}

/// The keys of a table between two of them, both included, in order or from the end.
#[derive(Debug)]
pub(crate) struct Careful<'a> {
    table: &'a str,
    low: i64,
    high: i64,
    backwards: bool,
    over: bool,
}

impl<'a> Careful<'a> {
    pub(crate) fn new(table: &'a str, low: i64, high: i64, backwards: bool) -> Careful<'a> {
        Careful { table, low, high, backwards, over: low > high }
    }

    /// The next key, or what is passed over.
    pub(crate) fn next(&mut self, db: &Db<'_>) -> Result<Next> {
        if self.over {
            return Ok(Next::End);
        }
        match self.probe(db, 0) {
            // A key out of its range is none.
            Ok(Some(key)) if (self.low..=self.high).contains(&key) => {
                self.pass(key);
                Ok(Next::Key(key))
            }
            Ok(_) => {
                self.over = true;
                Ok(Next::End)
            }
            Err(error) if error.is_unreadable() => Ok(self.skip(db)),
            Err(error) => Err(error),
        }
    }

    fn pass(&mut self, key: i64) {
        if self.backwards {
            self.over = key == self.low;
            self.high = key.saturating_sub(1);
        } else {
            self.over = key == self.high;
            self.low = key.saturating_add(1);
        }
    }

    /// The first key when so many are left out.
    fn probe(&self, db: &Db<'_>, skip: u64) -> Result<Option<i64>> {
        let (low, high, order) = if self.backwards {
            (self.low, self.high.saturating_sub_unsigned(skip), "DESC")
        } else {
            (self.low.saturating_add_unsigned(skip), self.high, "ASC")
        };
        let sql = format!(
            "SELECT rowid FROM {} NOT INDEXED WHERE rowid >= ?1 AND rowid <= ?2 ORDER BY rowid {order} LIMIT 1",
            self.table
        );
        db.optional(&sql, &params![low, high], |row| row.get(0))
    }

    /// Looks for the nearest place from which on rows are found again.
    fn skip(&mut self, db: &Db<'_>) -> Next {
        let span = self.high.abs_diff(self.low);
        let (mut bad, mut step) = (0, 1_u64.min(span));
        let found = loop {
            if step > bad && self.probe(db, step).is_ok() {
                break Some(step);
            }
            if step >= span {
                break None;
            }
            bad = step;
            step = step.saturating_mul(2).min(span);
        };
        let (low, high) = (self.low, self.high);
        let Some(mut good) = found else {
            self.over = true;
            return Next::Gap(low, high);
        };
        while good - bad > 1 {
            let middle = bad + (good - bad) / 2;
            if self.probe(db, middle).is_ok() {
                good = middle;
            } else {
                bad = middle;
            }
        }
        if self.backwards {
            self.high = high.saturating_sub_unsigned(good);
            Next::Gap(self.high.saturating_add(1), high)
        } else {
            self.low = low.saturating_add_unsigned(good);
            Next::Gap(low, self.low.saturating_sub(1))
        }
    }
}
