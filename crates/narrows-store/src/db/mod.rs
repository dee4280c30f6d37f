//! The database interface of the store: one SQL text for SQLite and PostgreSQL.
//!
//! Statements use the common subset (`ON CONFLICT`, `RETURNING`, `string_agg`, numbers for
//! booleans). For PostgreSQL, `?1` becomes `$1`, `INDEXED BY …` is dropped, and the text of `/*pg …
//! */` is included.

mod postgres;
mod sql;
pub(crate) mod sqlite;
mod value;

pub(crate) use postgres::{Pg, PgConfig};
pub(crate) use value::{FromValue, Param, Value};

use crate::error::{Error, Result};
use rusqlite::{Connection, params_from_iter};
use std::ops::ControlFlow;

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => {
        [$($crate::db::Param::value(&$value)),*]
    };
}
pub(crate) use params;

/// A connection within a transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Db<'a> {
    Sqlite(&'a Connection),
    Postgres(&'a Pg),
}

/// A row of a result.
#[derive(Debug)]
pub(crate) enum Row<'a> {
    Sqlite(&'a rusqlite::Row<'a>),
    Postgres(&'a tokio_postgres::Row),
}

impl Row<'_> {
    /// Reads a column.
    pub(crate) fn get<T: FromValue>(&self, at: usize) -> Result<T> {
        T::from_value(self.value(at)?)
    }

    /// Reads the bytes of a text or a blob.
    pub(crate) fn bytes(&self, at: usize) -> Result<Option<&[u8]>> {
        match self {
            Row::Sqlite(row) => {
                let value = row.get_ref(at)?;
                value.as_bytes_or_null().map_err(|_| value::mismatch())
            }
            Row::Postgres(row) => match postgres::column(row, at)? {
                Value::Null => Ok(None),
                Value::Text(text) => Ok(Some(text.as_bytes())),
                Value::Bytes(bytes) => Ok(Some(bytes)),
                _ => Err(value::mismatch()),
            },
        }
    }

    /// Reads a column as a [`Value`].
    pub(crate) fn value(&self, at: usize) -> Result<Value<'_>> {
        match self {
            Row::Sqlite(row) => value::from_sqlite(row.get_ref(at)?),
            Row::Postgres(row) => postgres::column(row, at),
        }
    }
}

impl Db<'_> {
    /// Whether the database is PostgreSQL, for the few statements that differ.
    pub(crate) fn is_postgres(&self) -> bool {
        matches!(self, Db::Postgres(_))
    }

    /// Executes a statement; returns the number of changed rows.
    pub(crate) fn execute(&self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        match self {
            Db::Sqlite(db) => Ok(db.prepare_cached(sql)?.execute(params_from_iter(values))?),
            Db::Postgres(pg) => pg.execute(sql, values),
        }
    }

    /// Executes a statement without waiting for it on PostgreSQL: an error may surface at a later
    /// statement, at the latest at the commit.
    pub(crate) fn execute_pipelined(&self, sql: &str, values: &[Value<'_>]) -> Result<()> {
        match self {
            Db::Sqlite(_) => self.execute(sql, values).map(|_| ()),
            Db::Postgres(pg) => pg.execute_pipelined(sql, values),
        }
    }

    /// Executes a change of a row that other sessions share, named by `order`. PostgreSQL executes
    /// these before the commit, in the order of their names: nodes lock shared rows in the same
    /// order and cannot deadlock.
    pub(crate) fn execute_before_commit(
        &self,
        order: &str,
        sql: &str,
        values: &[Value<'_>],
    ) -> Result<()> {
        match self {
            Db::Sqlite(_) => self.execute(sql, values).map(|_| ()),
            Db::Postgres(pg) => pg.execute_before_commit(order, sql, values),
        }
    }

    /// Inserts rows without waiting. On PostgreSQL, they may be combined with the following
    /// statements, which do not see them. `columns` are the types of all columns, `then` is
    /// appended to the statement (`ON CONFLICT …`).
    pub(crate) fn insert<const N: usize>(
        &self,
        table: &str,
        columns: [&str; N],
        rows: Vec<[Value<'_>; N]>,
        then: &str,
    ) -> Result<()> {
        match self {
            _ if rows.is_empty() => Ok(()),
            Db::Sqlite(db) => {
                let mut insert = db.prepare_cached(&sql::insert_one(table, N, then))?;
                for row in &rows {
                    insert.execute(params_from_iter(row))?;
                }
                Ok(())
            }
            Db::Postgres(pg) => {
                pg.combine(&sql::insert_many(table, &columns, then), &columns, &lists(rows))
            }
        }
    }

    /// Updates rows by a list of values without waiting: `sql` refers to the list as `{v}`, with
    /// the given columns and types. With `each`, the transaction fails if a value changes no row.
    pub(crate) fn update<const N: usize>(
        &self,
        sql: &str,
        columns: [(&str, &str); N],
        rows: Vec<[Value<'_>; N]>,
        each: bool,
    ) -> Result<()> {
        match self {
            _ if rows.is_empty() => Ok(()),
            Db::Sqlite(db) => {
                let mut update = db.prepare_cached(&sql::with_row(sql, &columns))?;
                for row in &rows {
                    if update.execute(params_from_iter(row))? == 0 && each {
                        return Err(Error::Damaged("a row is missing".to_owned()));
                    }
                }
                Ok(())
            }
            Db::Postgres(pg) => {
                let (sql, kinds) = (sql::with_rows(sql, &columns), columns.map(|(_, kind)| kind));
                let lists = lists(rows);
                if each {
                    pg.combine_each(&sql, &kinds, &lists)
                } else {
                    pg.combine(&sql, &kinds, &lists)
                }
            }
        }
    }

    /// The first row, if any.
    pub(crate) fn query_opt<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<Option<T>> {
        match self {
            Db::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                let mut rows = query.query(params_from_iter(values))?;
                rows.next()?.map(|row| read(&Row::Sqlite(row))).transpose()
            }
            Db::Postgres(pg) => {
                let rows = pg.query(sql, values)?;
                rows.first().map(|row| read(&Row::Postgres(row))).transpose()
            }
        }
    }

    /// The only row; fails if there is none.
    pub(crate) fn query_one<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        read: impl FnOnce(&Row<'_>) -> Result<T>,
    ) -> Result<T> {
        let found = self.query_opt(sql, values, read)?;
        found.ok_or_else(|| Error::Damaged("a row is missing".to_owned()))
    }

    /// Whether the query returns a row.
    pub(crate) fn exists(&self, sql: &str, values: &[Value<'_>]) -> Result<bool> {
        Ok(self.query_opt(sql, values, |_| Ok(()))?.is_some())
    }

    /// All rows, for small results.
    pub(crate) fn query_all<T>(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut read: impl FnMut(&Row<'_>) -> Result<T>,
    ) -> Result<Vec<T>> {
        match self {
            Db::Sqlite(_) => {
                let mut all = Vec::new();
                self.query_each(sql, values, |row| {
                    all.push(read(row)?);
                    Ok(ControlFlow::Continue(()))
                })?;
                Ok(all)
            }
            Db::Postgres(pg) => {
                pg.query(sql, values)?.iter().map(|row| read(&Row::Postgres(row))).collect()
            }
        }
    }

    /// Passes rows to `visit` until it breaks. PostgreSQL fetches the rows in batches.
    pub(crate) fn query_each(
        &self,
        sql: &str,
        values: &[Value<'_>],
        mut visit: impl FnMut(&Row<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        match self {
            Db::Sqlite(db) => {
                let mut query = db.prepare_cached(sql)?;
                let mut rows = query.query(params_from_iter(values))?;
                while let Some(row) = rows.next()? {
                    if visit(&Row::Sqlite(row))?.is_break() {
                        break;
                    }
                }
                Ok(())
            }
            Db::Postgres(pg) => pg.query_each(sql, values, |row| visit(&Row::Postgres(row))),
        }
    }
}

/// Transposes rows into one list per column.
fn lists<const N: usize>(rows: Vec<[Value<'_>; N]>) -> [Value<'_>; N] {
    let mut lists = [const { Vec::new() }; N];
    for row in rows {
        lists.iter_mut().zip(row).for_each(|(list, value)| list.push(value));
    }
    lists.map(Value::List)
}
