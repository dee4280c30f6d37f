//! Checks the rows outside the logs against their checksums.

use crate::blobs;
use crate::buckets;
use crate::checksum;
use crate::checksum::Checksum;
use crate::checksum::columns::{
    CHECKPOINT_MISMATCH, COLUMN_CHECKSUMS, ColumnChecksum, IMAGE_MISMATCH, SOURCE_COLUMNS,
    TOKEN_COLUMNS, TOKEN_MISMATCH,
};
use crate::checksum::session_counters::current_sum_sql;
use crate::checksum::side_tables::{self, covered_columns, mismatch, of_columns, or_empty};
use crate::damage;
use crate::damage::Damage;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::keys::keys;
use crate::meta;
use std::ops::ControlFlow;
use std::sync::LazyLock;

/// Images that one query reads.
const IMAGES_PER_QUERY: usize = 20;
/// Tables that are checked as a whole.
const WHOLE_TABLES: [&str; 11] = [
    "audit",
    "meta",
    "made",
    "forgotten",
    "first_answer",
    "blob_use",
    "request",
    "run",
    "message",
    "damage",
    "doomed",
];
/// Tables that are checked per session, by the column `session`.
const BY_SESSION: [&str; 4] = ["tag", "usage", "active", "seen"];
/// Tables that are checked per session, by the key of an event or an item.
const BY_KEY: [&str; 2] = ["call", "edit"];

/// The SQL condition of session rows whose counters match their checksum and whose buckets follow from
/// their times.
pub(crate) static COUNTERS_MATCH: LazyLock<String> = LazyLock::new(|| {
    format!(
        "(figures IS NULL OR figures = {}) AND updated_era = updated >> {}
         AND touched_era = touched >> {}",
        current_sum_sql(),
        buckets::TIME_BITS,
        buckets::REVISION_BITS
    )
});

/// Whether a row contradicts none of its checksums. `at` gives the index of a column.
pub(crate) fn row_matches(table: &str, row: &Row<'_>, at: impl Fn(&str) -> usize) -> bool {
    let own = match table {
        "token" => checksum::row_matches(row, &TOKEN_COLUMNS.map(&at), at("crc")),
        "source" => source_matches(row, &SOURCE_COLUMNS.map(&at), at("crc")),
        "blob" => Ok(blobs::is_sound(row, at("hash"), at("body"))),
        _ => Ok(true),
    };
    own.unwrap_or(false) && side_tables::row_matches(table, row, at)
}

fn source_matches(row: &Row<'_>, columns: &[usize], stored: usize) -> Result<bool> {
    let Some(stored) = row.get::<Option<i64>>(stored)? else { return Ok(true) };
    let mut computed = Checksum::default();
    for at in columns {
        computed.add(&or_empty(row.value(*at)?));
    }
    Ok(stored == computed.finish())
}

/// Whether a row matches all its checksums; none if it has no checksum.
pub(crate) fn verify<'a>(table: &str, get: impl Fn(&str) -> Value<'a>) -> Option<bool> {
    let own = || {
        let stored = |name: &str| if let Value::Int(n) = get(name) { Some(n) } else { None };
        match table {
            "token" => Some(stored("crc")? == checksum::of_values(&TOKEN_COLUMNS.map(&get))),
            "source" => {
                let values = SOURCE_COLUMNS.map(|name| or_empty(get(name)));
                Some(stored("crc")? == checksum::of_values(&values))
            }
            "blob" => match (get("hash"), get("body")) {
                (Value::Text(hash), Value::Bytes(body)) => Some(blobs::is_named(hash, body)),
                _ => None,
            },
            _ => None,
        }
    };
    match (own(), side_tables::verify(table, &get)) {
        (Some(own), Some(other)) => Some(own && other),
        (own, other) => own.or(other),
    }
}

/// Checks tokens, source checkpoints, the whole tables, the redaction key and stray rows.
pub(super) fn check_tables(db: &Db<'_>) -> Result<()> {
    check_own(db, "token", &TOKEN_COLUMNS, TOKEN_MISMATCH)?;
    check_own(db, "source", &SOURCE_COLUMNS, CHECKPOINT_MISMATCH)?;
    WHOLE_TABLES.iter().try_for_each(|table| check_rows(db, table, "", &[], 0))?;
    meta::check_redaction_key(db)?;
    check_stray_rows(db)
}

/// Checks a table whose rows have a checksum `crc` besides those of [`side_tables`].
fn check_own(db: &Db<'_>, table: &str, columns: &[&str], mismatch: &str) -> Result<()> {
    let more = covered_columns(table).into_iter().chain(["crc"]);
    let mut columns = columns.to_vec();
    columns.extend(more.filter(|name| !columns.contains(name)).collect::<Vec<_>>());
    // A column name may be a keyword (`offset`).
    let sql = format!("SELECT \"{}\" FROM {table}", columns.join("\", \""));
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap_or(columns.len());
    let session_at = columns.iter().position(|c| *c == "session");
    db.query_each(&sql, &[], |row| {
        if !row_matches(table, row, at) {
            let session = session_at.and_then(|at| row.get(at).ok()).unwrap_or(0);
            damage::report(Damage { session, ..Damage::other(mismatch) });
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Checks some images after a hash; returns the hash of the last one.
pub(super) fn check_images(db: &Db<'_>, after: &str) -> Result<Option<String>> {
    const COLUMNS: [&str; 5] = ["hash", "body", "mime", "size", "crc"];
    let sql =
        format!("SELECT {} FROM blob WHERE hash > ?1 ORDER BY hash LIMIT ?2", COLUMNS.join(", "));
    let mut last = None;
    db.query_each(&sql, &params![after, IMAGES_PER_QUERY], |row| {
        let at = |name: &str| COLUMNS.iter().position(|n| *n == name).unwrap_or(COLUMNS.len());
        if !row_matches("blob", row, at) {
            damage::report(Damage::other(IMAGE_MISMATCH));
        }
        last = Some(row.get(0)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last)
}

/// Whether all rows that a clause selects match their checksums.
fn rows_match(db: &Db<'_>, table: &str, clause: &str, values: &[Value<'_>]) -> Result<bool> {
    let names = covered_columns(table);
    let sql = format!("SELECT \"{}\" FROM {table} {clause}", names.join("\", \""));
    let at = |name: &str| names.iter().position(|n| *n == name).unwrap_or(names.len());
    let mut all = true;
    db.query_each(&sql, values, |row| {
        all = side_tables::row_matches(table, row, at);
        Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(all)
}

fn check_rows(
    db: &Db<'_>,
    table: &str,
    clause: &str,
    values: &[Value<'_>],
    session: i64,
) -> Result<()> {
    if !rows_match(db, table, clause, values)? {
        damage::report(Damage { session, ..Damage::other(mismatch(table)) });
    }
    Ok(())
}

/// Whether the parts of a session's row outside its header match: counters, buckets and names.
pub(crate) fn session_row_matches(db: &Db<'_>, session: i64) -> Result<bool> {
    let sql = format!("SELECT {} FROM session WHERE key = ?1", COUNTERS_MATCH.as_str());
    let counters = db.query_opt(&sql, &params![session], |r| r.get::<bool>(0))?;
    Ok(counters != Some(false) && session_names_match(db, session)?)
}

/// Whether the first prompt, agent session id and project of a session's row match.
pub(crate) fn session_names_match(db: &Db<'_>, session: i64) -> Result<bool> {
    Ok(mismatched_names(db, session)?.is_empty())
}

/// The checksum columns of the names of a session that do not match, and those of names with a value of
/// another type.
pub(crate) fn mismatched_names(db: &Db<'_>, session: i64) -> Result<Vec<&'static str>> {
    let names = covered_columns("session");
    let sql = format!("SELECT \"{}\" FROM session WHERE key = ?1", names.join("\", \""));
    let mismatched = db.query_opt(&sql, &params![session], |row| {
        let get = |name: &str| row.value(names.iter().position(|n| *n == name)?).ok();
        let is_mismatched = |spec: &&ColumnChecksum| {
            let has_types = spec.columns.iter().all(|name| match (*name, get(name)) {
                (_, Some(Value::Null)) | ("key" | "prompt_order", Some(Value::Int(0..))) => true,
                (name, Some(Value::Text(_))) => name != "prompt_order",
                _ => false,
            });
            let matches = match get(spec.checksum) {
                Some(Value::Null) => true,
                Some(Value::Int(stored)) => of_columns(spec, get) == Some(stored),
                _ => false,
            };
            !has_types || !matches
        };
        let own = COLUMN_CHECKSUMS.iter().filter(|spec| spec.table == "session");
        Ok(own.filter(is_mismatched).map(|spec| spec.checksum).collect())
    })?;
    Ok(mismatched.unwrap_or_default())
}

/// Checks pending deletions and recorded losses.
pub(crate) fn check_deletions_and_losses(db: &Db<'_>) -> Result<()> {
    ["doomed", "damage"].iter().try_for_each(|table| check_rows(db, table, "", &[], 0))
}

/// Checks the rows of a session in other tables, and the names in its own row.
pub(super) fn check_session_rows(db: &Db<'_>, session: i64) -> Result<()> {
    if !session_names_match(db, session)? {
        damage::report(Damage { session, ..Damage::other(mismatch("session")) });
    }
    for table in BY_SESSION {
        check_rows(db, table, "WHERE session = ?1", &params![session], session)?;
    }
    let (first, last) = keys(session);
    for table in BY_KEY {
        check_rows(db, table, "WHERE key BETWEEN ?1 AND ?2", &params![first, last], session)?;
    }
    Ok(())
}

/// Reports rows of sessions that do not exist: their session number is damaged.
pub(crate) fn check_stray_rows(db: &Db<'_>) -> Result<()> {
    let exists =
        "SELECT 1 FROM session WHERE key = ?1 UNION ALL SELECT 1 FROM doomed WHERE session = ?1";
    let by_session = BY_SESSION.map(|table| (table, "session", 0));
    let by_key = ["event", "item", "call", "edit"].map(|table| (table, "key", 32));
    for (table, column, bits) in by_session.into_iter().chain(by_key) {
        let sql =
            format!("SELECT {column} FROM {table} WHERE {column} >= ?1 ORDER BY {column} LIMIT 1");
        let mut next = i64::MIN;
        // Reads one row of each session.
        while let Some(value) = db.query_opt(&sql, &params![next], |r| r.get::<i64>(0))? {
            let session = value >> bits;
            if !db.exists(exists, &params![session])? {
                let detail = format!("rows of `{table}` belong to no session");
                damage::report(Damage::other(detail));
            }
            let Some(after) = session.checked_add(1).and_then(|n| n.checked_mul(1 << bits)) else {
                break;
            };
            next = after;
        }
    }
    Ok(())
}
