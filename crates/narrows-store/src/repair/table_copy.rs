//! Copying the rows of a table of which pages may be damaged.

use crate::careful::{Careful, Next};
use crate::db::{Db, Row, Value, params};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::cell::Cell;
use std::ops::ControlFlow;

/// Reads the rows of a table with keys in a range, in order; the key is the first column. Returns
/// whether something was passed over.
pub(super) fn walk(
    db: &Connection,
    (table, columns): (&str, &str),
    (mut low, high): (i64, i64),
    mut take: impl FnMut(i64, &Row<'_>) -> Result<()>,
) -> Result<bool> {
    let db = Db::Sqlite(db);
    let all = format!(
        "SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid"
    );
    let one = format!("SELECT {columns} FROM {table} WHERE rowid = ?1");
    let mut passed_over = false;
    loop {
        let mut refused = None;
        let from = low;
        let walked = db.each(&all, &params![from, high], |row| {
            let key = row.get::<i64>(0)?;
            // A row that comes again, or in another order, is not where it was written.
            if key < low {
                return Err(Error::Damaged("rows are out of order".to_owned()));
            }
            if let Err(error) = take(key, row) {
                refused = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            low = key.saturating_add(1);
            Ok(ControlFlow::Continue(()))
        });
        if let Some(error) = refused {
            return Err(error);
        }
        match walked {
            Ok(()) => return Ok(passed_over),
            Err(error) if error.is_unreadable() => passed_over = true,
            Err(error) => return Err(error),
        }
        // Around what cannot be read, then on as before.
        let mut keys = Careful::new(table, low, high, false);
        match keys.next(&db)? {
            Next::End => return Ok(true),
            Next::Gap(_, last) if last >= high => return Ok(true),
            Next::Gap(_, last) => low = last.saturating_add(1),
            Next::Key(key) => {
                let read = db.optional(&one, &params![key], |row| {
                    take(key, row).map_err(|error| refused = Some(error)).ok();
                    Ok(())
                });
                if let Some(error) = refused {
                    return Err(error);
                }
                match read {
                    Err(error) if !error.is_unreadable() => return Err(error),
                    _ => {}
                }
                if key >= high {
                    return Ok(true);
                }
                low = key.saturating_add(1);
            }
        }
    }
}

/// A table as the new database has it.
#[derive(Debug)]
pub(super) struct Table {
    pub(super) name: String,
    /// Its columns that the old one has too.
    pub(super) columns: Vec<String>,
    /// Those of its key; none where rows have numbers.
    key: Vec<String>,
}

impl Table {
    /// The tables of the store, but for the index of search.
    pub(super) fn all(old: &Connection, new: &Connection) -> Result<Vec<Table>> {
        let sql = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'
             AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'search%' ORDER BY name";
        let named = Db::Sqlite(new).all(sql, &[], |r| Ok((r.get(0)?, r.get::<bool>(1)?)))?;
        let mut tables = Vec::new();
        for (name, without) in named {
            let of = |db: &Connection| -> Result<Vec<(String, bool)>> {
                let sql = "SELECT name, pk > 0 FROM pragma_table_info(?1) ORDER BY cid";
                Db::Sqlite(db).all(sql, &params![name], |r| Ok((r.get(0)?, r.get(1)?)))
            };
            let there = match of(old) {
                Err(error) if error.is_unreadable() => Vec::new(),
                there => there?,
            };
            let there: Vec<String> = there.into_iter().map(|(name, _)| name).collect();
            let columns = of(new)?;
            let key = columns.iter().filter(|(_, key)| *key && without);
            let key = key.map(|(name, _)| name.clone()).collect();
            let columns = columns.into_iter().map(|(name, _)| name);
            let columns = columns.filter(|name| there.contains(name)).collect();
            tables.push(Table { name, columns, key });
        }
        Ok(tables)
    }

    /// Whether its rows are those of sessions.
    pub(super) fn is_of_sessions(&self) -> bool {
        self.name != "audit" && self.columns.iter().any(|column| column == "session")
    }

    fn list(columns: &[String]) -> String {
        columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
    }

    /// Copies the rows that can be read and are taken; returns whether some cannot be read.
    pub(super) fn copy(
        &self,
        old: &Connection,
        new: &Connection,
        sessions: &[i64],
        mut is_taken: impl FnMut(&Row<'_>) -> bool,
    ) -> Result<bool> {
        if self.columns.is_empty() {
            return Ok(true);
        }
        let columns = Table::list(&self.columns);
        let marks = vec!["?"; self.columns.len()].join(", ");
        let insert = format!("INSERT OR IGNORE INTO {} ({columns}) VALUES ({marks})", self.name);
        let torn = Cell::new(false);
        let put = |row: &Row<'_>| -> Result<()> {
            let values = (1..=self.columns.len()).map(|at| row.value(at));
            let Ok(values) = values.collect::<Result<Vec<Value<'_>>>>() else {
                torn.set(true);
                return Ok(());
            };
            Db::Sqlite(new).execute(&insert, &values).map(|_| ())
        };
        if self.key.is_empty() {
            let columns = format!("rowid, {columns}");
            let lost = walk(old, (&self.name, &columns), (i64::MIN, i64::MAX), |_, row| {
                if is_taken(row) { put(row) } else { Ok(()) }
            })?;
            return Ok(lost || torn.get());
        }
        let (mut refused, mut lost) = (None, false);
        let mut read = |clause: String| -> Result<bool> {
            let sql = format!("SELECT 0, {columns} FROM {} {clause}", self.name);
            let walked = Db::Sqlite(old).each(&sql, &[], |row| {
                if is_taken(row)
                    && let Err(error) = put(row)
                {
                    refused = Some(error);
                    return Ok(ControlFlow::Break(()));
                }
                Ok(ControlFlow::Continue(()))
            });
            match (refused.take(), walked) {
                (Some(error), _) => Err(error),
                (None, Err(error)) if error.is_unreadable() => Ok(false),
                (None, walked) => walked.map(|()| true),
            }
        };
        let order = |how: &str| {
            let by: Vec<String> = self.key.iter().map(|c| format!("\"{c}\" {how}")).collect();
            format!("ORDER BY {}", by.join(", "))
        };
        // From both ends, and each session by itself: what lies between is lost.
        if !read(order("ASC"))? {
            lost = true;
            read(order("DESC"))?;
            if self.is_of_sessions() && self.key.first().is_some_and(|first| first == "session") {
                for session in sessions {
                    for how in ["ASC", "DESC"] {
                        read(format!("WHERE session = {session} {}", order(how)))?;
                    }
                }
            }
        }
        Ok(lost || torn.get())
    }

    /// Where a column stands in the rows that [`Table::copy`] reads.
    pub(super) fn at(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name == column).map_or(0, |at| at + 1)
    }
}
