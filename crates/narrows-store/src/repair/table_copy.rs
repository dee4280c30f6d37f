//! Copies the rows of a table whose pages may be damaged.

use crate::damage::key_scan::{KeyScan, ScanStep};
use crate::db::{Db, Row, Value, params};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::cell::Cell;
use std::ops::ControlFlow;

/// Visits the rows of a table with keys in a range, in order; the key is the first column. Returns
/// whether anything was skipped.
pub(super) fn walk(
    db: &Connection,
    (table, columns): (&str, &str),
    (mut low, high): (i64, i64),
    mut visit: impl FnMut(i64, &Row<'_>) -> Result<()>,
) -> Result<bool> {
    let db = Db::Sqlite(db);
    let all = format!(
        "SELECT {columns} FROM {table} NOT INDEXED WHERE rowid BETWEEN ?1 AND ?2 ORDER BY rowid"
    );
    let one = format!("SELECT {columns} FROM {table} WHERE rowid = ?1");
    let mut has_skipped = false;
    loop {
        let mut visit_error = None;
        let from = low;
        let result = db.query_each(&all, &params![from, high], |row| {
            let key = row.get::<i64>(0)?;
            // A row that repeats or is out of order is not where it was written.
            if key < low {
                return Err(Error::Damaged("rows are out of order".to_owned()));
            }
            if let Err(error) = visit(key, row) {
                visit_error = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            low = key.saturating_add(1);
            Ok(ControlFlow::Continue(()))
        });
        if let Some(error) = visit_error {
            return Err(error);
        }
        match result {
            Ok(()) => return Ok(has_skipped),
            Err(error) if error.is_unreadable() => has_skipped = true,
            Err(error) => return Err(error),
        }
        // One step past what cannot be read, then on as before.
        let mut scan = KeyScan::new(table, low, high, false);
        match scan.next(&db)? {
            ScanStep::End => return Ok(true),
            ScanStep::Gap(_, last) if last >= high => return Ok(true),
            ScanStep::Gap(_, last) => low = last.saturating_add(1),
            ScanStep::Key(key) => {
                let row = db.query_opt(&one, &params![key], |row| {
                    visit(key, row).map_err(|error| visit_error = Some(error)).ok();
                    Ok(())
                });
                if let Some(error) = visit_error {
                    return Err(error);
                }
                match row {
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

/// A table of the new database, to be filled from the old one.
#[derive(Debug)]
pub(super) struct TableCopy {
    pub(super) name: String,
    /// The columns that the old table has, too.
    pub(super) columns: Vec<String>,
    /// The declared types of these columns.
    column_types: Vec<String>,
    /// The key columns of a table without rowids; empty if rows have rowids.
    key: Vec<String>,
}

impl TableCopy {
    /// All tables except those of the search index.
    pub(super) fn all(old: &Connection, new: &Connection) -> Result<Vec<TableCopy>> {
        let sql = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'
             AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'search%' ORDER BY name";
        let names = Db::Sqlite(new).query_all(sql, &[], |r| Ok((r.get(0)?, r.get::<bool>(1)?)))?;
        let mut tables = Vec::new();
        for (name, without_rowid) in names {
            let columns_of = |db: &Connection| -> Result<Vec<(String, bool, String)>> {
                let sql = "SELECT name, pk > 0, type FROM pragma_table_info(?1) ORDER BY cid";
                Db::Sqlite(db)
                    .query_all(sql, &params![name], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))
            };
            let old_columns = match columns_of(old) {
                Err(error) if error.is_unreadable() => Vec::new(),
                columns => columns?,
            };
            let old_columns: Vec<String> = old_columns.into_iter().map(|(name, ..)| name).collect();
            let columns = columns_of(new)?;
            let key = columns.iter().filter(|(_, key, _)| *key && without_rowid);
            let key = key.map(|(name, ..)| name.clone()).collect();
            let columns = columns.into_iter().filter(|(name, ..)| old_columns.contains(name));
            let (columns, column_types) =
                columns.map(|(name, _, sql_type)| (name, sql_type)).unzip();
            tables.push(TableCopy { name, columns, column_types, key });
        }
        Ok(tables)
    }

    /// Whether its rows belong to sessions.
    pub(super) fn has_session(&self) -> bool {
        self.name != "audit" && self.columns.iter().any(|column| column == "session")
    }

    fn join(columns: &[String]) -> String {
        columns.iter().map(|column| format!("\"{column}\"")).collect::<Vec<_>>().join(", ")
    }

    /// Copies the readable rows that `accepts` selects; returns whether some rows cannot be read.
    pub(super) fn copy(
        &self,
        old: &Connection,
        new: &Connection,
        sessions: &[i64],
        mut accepts: impl FnMut(&Row<'_>) -> bool,
    ) -> Result<bool> {
        if self.columns.is_empty() {
            return Ok(true);
        }
        let columns = TableCopy::join(&self.columns);
        let placeholders = vec!["?"; self.columns.len()].join(", ");
        let insert =
            format!("INSERT OR IGNORE INTO {} ({columns}) VALUES ({placeholders})", self.name);
        let has_unreadable = Cell::new(false);
        let insert_row = |row: &Row<'_>| -> Result<()> {
            let values = (1..=self.columns.len()).map(|at| row.value(at));
            let Ok(values) = values.collect::<Result<Vec<Value<'_>>>>() else {
                has_unreadable.set(true);
                return Ok(());
            };
            Db::Sqlite(new).execute(&insert, &values).map(|_| ())
        };
        if self.key.is_empty() {
            let columns = format!("rowid, {columns}");
            let has_skipped = walk(old, (&self.name, &columns), (i64::MIN, i64::MAX), |_, row| {
                if accepts(row) { insert_row(row) } else { Ok(()) }
            })?;
            return Ok(has_skipped || has_unreadable.get());
        }
        let (mut insert_error, mut has_skipped) = (None, false);
        let mut read = |clause: String| -> Result<bool> {
            let sql = format!("SELECT 0, {columns} FROM {} {clause}", self.name);
            let result = Db::Sqlite(old).query_each(&sql, &[], |row| {
                if accepts(row)
                    && let Err(error) = insert_row(row)
                {
                    insert_error = Some(error);
                    return Ok(ControlFlow::Break(()));
                }
                Ok(ControlFlow::Continue(()))
            });
            match (insert_error.take(), result) {
                (Some(error), _) => Err(error),
                (None, Err(error)) if error.is_unreadable() => Ok(false),
                (None, result) => result.map(|()| true),
            }
        };
        let order_by = |direction: &str| {
            let by: Vec<String> = self.key.iter().map(|c| format!("\"{c}\" {direction}")).collect();
            format!("ORDER BY {}", by.join(", "))
        };
        // From both ends, and each session by itself: rows in between are lost.
        if !read(order_by("ASC"))? {
            has_skipped = true;
            read(order_by("DESC"))?;
            if self.has_session() && self.key.first().is_some_and(|first| first == "session") {
                for session in sessions {
                    for direction in ["ASC", "DESC"] {
                        read(format!("WHERE session = {session} {}", order_by(direction)))?;
                    }
                }
            }
        }
        Ok(has_skipped || has_unreadable.get())
    }

    /// Whether each value of a row that [`TableCopy::copy`] reads has the type of its column.
    pub(super) fn has_column_types(&self, row: &Row<'_>) -> bool {
        self.column_types.iter().zip(1..).all(|(sql_type, at)| {
            match (sql_type.as_str(), row.value(at)) {
                ("TEXT", value) => matches!(value, Ok(Value::Text(_) | Value::Null)),
                ("INTEGER", value) => matches!(value, Ok(Value::Int(_) | Value::Null)),
                (_, value) => value.is_ok(),
            }
        })
    }

    /// The index of a column in the rows that [`TableCopy::copy`] reads.
    pub(super) fn index_of(&self, column: &str) -> usize {
        self.columns.iter().position(|name| name == column).map_or(0, |at| at + 1)
    }
}
