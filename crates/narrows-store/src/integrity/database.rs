//! Checks the database file: SQLite's integrity check of its pages and indexes, and its schema.

use super::schema;
use crate::damage;
use crate::damage::Damage;
use crate::db::{Db, params};
use crate::deadline;
use crate::error::{Error, Result};
use std::ops::ControlFlow;
use std::time::Duration;

/// The most problems that SQLite lists.
const MAX_PROBLEMS: usize = 20;
/// Tables that are small enough to be checked in one statement each, with their indexes.
pub(super) const SMALL_TABLES: [&str; 17] = [
    "session",
    "token",
    "tag",
    "source",
    "made",
    "run",
    "message",
    "command",
    "request",
    "usage",
    "first_answer",
    "audit",
    "forgotten",
    "blob_use",
    "damage",
    "doomed",
    "meta",
];
/// The time limit for one small table.
const SMALL_TABLE_TIMEOUT: Duration = Duration::from_secs(10);

/// Checks all pages, and whether the indexes agree with their tables. False if there was not enough time.
pub(super) fn check_pages(db: &Db<'_>, timeout: Duration) -> bool {
    let _deadline = deadline::limit(timeout);
    run_integrity_check(db, &format!("PRAGMA integrity_check({MAX_PROBLEMS})"))
}

/// The same for one small table, and whether each value has the type of its column: SQLite accepts any.
pub(super) fn check_table_pages(db: &Db<'_>, table: &str) -> bool {
    let _deadline = deadline::limit(SMALL_TABLE_TIMEOUT);
    if let Ok(Some(mismatch)) = type_mismatch_sql(db, table)
        && let Ok(true) = db.exists(&format!("SELECT 1 FROM {table} WHERE {mismatch}"), &[])
    {
        let detail = format!("a row of `{table}` has a value of another type than its column");
        damage::report(Damage::other(detail));
    }
    run_integrity_check(db, &format!("PRAGMA integrity_check({table})"))
}

/// The SQL condition of rows with a value of another type than its column; none on PostgreSQL, which
/// rejects such values.
pub(crate) fn type_mismatch_sql(db: &Db<'_>, table: &str) -> Result<Option<String>> {
    if db.is_postgres() {
        return Ok(None);
    }
    let sql =
        "SELECT name, lower(type) FROM pragma_table_info(?1) WHERE type IN ('TEXT', 'INTEGER')";
    let columns = db.query_all(sql, &params![table], |r| {
        let (name, sql_type): (String, String) = (r.get(0)?, r.get(1)?);
        Ok(format!("typeof(\"{name}\") NOT IN ('{sql_type}', 'null')"))
    })?;
    Ok((!columns.is_empty()).then(|| columns.join(" OR ")))
}

/// Checks the schema. Always complete.
pub(super) fn check_schema(db: &Db<'_>) -> Result<bool> {
    if let Db::Sqlite(db) = db
        && let Some(difference) = schema::difference(db)?
    {
        damage::report(Damage::database(difference));
    }
    Ok(true)
}

fn run_integrity_check(db: &Db<'_>, sql: &str) -> bool {
    if db.is_postgres() {
        return true;
    }
    // SQLite checks a full-text index against the cache of this connection, which may be older than the
    // index; a query refreshes the cache.
    let _ = db.exists("SELECT 1 FROM search WHERE rowid = 0", &[]);
    // Problems that were found before the time ran out are reported as well.
    let result = db.query_each(sql, &[], |r| {
        let text = r.get::<String>(0)?;
        problems(&text).for_each(|line| damage::report(Damage::database(line)));
        Ok(ControlFlow::Continue(()))
    });
    match result {
        Ok(()) => true,
        Err(Error::Damaged(detail)) => {
            damage::report(Damage::database(detail));
            true
        }
        Err(_) => false,
    }
}

/// The problems in a row of SQLite's integrity check.
fn problems(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter(|line| *line != "ok" && !line.starts_with("*** in"))
}

/// The problems that SQLite's integrity check lists.
pub(crate) fn integrity_problems(db: &Db<'_>) -> Result<Vec<String>> {
    let sql = format!("PRAGMA integrity_check({MAX_PROBLEMS})");
    let rows = match db.query_all(&sql, &[], |r| r.get::<String>(0)) {
        Err(error) if error.is_unreadable() => return Ok(vec![error.to_string()]),
        rows => rows?,
    };
    let lines = rows.iter().flat_map(|row| problems(row));
    Ok(lines.take(MAX_PROBLEMS).map(str::to_owned).collect())
}
