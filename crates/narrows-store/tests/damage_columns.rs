//! Every column of every table: a full check reports a flipped bit of any value. Exceptions are listed
//! with their reasons.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::full::{full, says};
use common::written::{Dice, copy};
use narrows_store::repair;
use rusqlite::config::DbConfig;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use std::collections::BTreeMap;

/// Columns whose changes are not detected, and why that is harmless. The test fails for a column that is
/// neither detected nor listed.
const UNDETECTED: &[(&str, &str, &str)] = &[
    ("audit", "key", "the position of an entry; its content is checked"),
    ("command", "*", "commands between cluster nodes: not used on SQLite"),
    ("damage", "at", "when a loss was detected; never shown"),
    ("fresh", "*", "the queue of the search index: an item in neither is detected"),
    ("run", "lease", "the expiry of a run's lease: rewritten every few seconds"),
    ("session", "pen", "a random writer token: another one makes the writer reload"),
    ("sqlite_sequence", "*", "owned by SQLite; `narrows.durable` has the highest key, too"),
    ("token", "used", "when a token was last used; never read"),
];
/// The search index is tested by its results (`damage_search.rs`).
const SEARCH_PREFIX: &str = "search";

/// The tables, with their columns and key columns.
fn tables(db: &Connection) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let list = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'";
    let mut list = db.prepare(list).unwrap();
    let rows = list.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
    let mut tables = BTreeMap::new();
    for (name, without) in rows.map(Result::<(String, bool), _>::unwrap) {
        if name.starts_with(SEARCH_PREFIX) {
            continue;
        }
        let sql = "SELECT name, pk > 0 FROM pragma_table_info(?1) ORDER BY cid";
        let mut columns = db.prepare(sql).unwrap();
        let columns = columns.query_map([&name], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        let columns: Vec<(String, bool)> = columns.map(Result::unwrap).collect();
        let keys = columns.iter().filter(|(_, key)| *key && without);
        let keys: Vec<String> = keys.map(|(name, _)| name.clone()).collect();
        let keys = if without { keys } else { vec!["rowid".to_owned()] };
        tables.insert(name, (columns.into_iter().map(|(name, _)| name).collect(), keys));
    }
    tables
}

/// The value with one bit flipped.
fn flip_bit(value: Value, dice: &mut Dice) -> Option<Value> {
    let mut flip = |mut bytes: Vec<u8>, bits: u64| {
        let at = usize::try_from(dice.next(bytes.len() as u64)).unwrap();
        bytes[at] ^= 1 << dice.next(bits);
        bytes
    };
    Some(match value {
        Value::Integer(n) => {
            let bytes = flip(n.to_le_bytes()[..4].to_vec(), 8);
            let low = u32::from_le_bytes(bytes.try_into().unwrap());
            Value::Integer(n & !0xffff_ffff | i64::from(low))
        }
        Value::Real(n) => Value::Real(f64::from_bits(n.to_bits() ^ 1 << dice.next(52))),
        // ASCII stays valid text.
        Value::Text(text) if !text.is_empty() && text.is_ascii() => {
            Value::Text(String::from_utf8(flip(text.into_bytes(), 5)).unwrap())
        }
        Value::Blob(bytes) if !bytes.is_empty() => Value::Blob(flip(bytes, 8)),
        Value::Text(_) | Value::Blob(_) | Value::Null => return None,
    })
}

/// Flips a bit of a column in one row, and writes nothing else; false if there is no value.
fn flip_column(
    db: &Connection,
    table: &str,
    keys: &[String],
    column: &str,
    dice: &mut Dice,
) -> bool {
    let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    let sql = format!(
        "SELECT \"{column}\", {} FROM \"{table}\" WHERE \"{column}\" IS NOT NULL AND \"{column}\" <> ''
         {}",
        quoted.join(", "),
        // The row of the write probe is never read.
        if table == "meta" { "AND key <> 'probe'" } else { "" }
    );
    let mut query = db.prepare(&sql).unwrap();
    let rows = query.query_map([], |r| {
        let keys = (0..keys.len()).map(|at| r.get::<_, Value>(at + 1));
        Ok((r.get::<_, Value>(0)?, keys.collect::<Result<Vec<_>, _>>()?))
    });
    let rows: Vec<(Value, Vec<Value>)> = rows.unwrap().map(Result::unwrap).collect();
    let is: Vec<String> =
        quoted.iter().zip(2..).map(|(key, at)| format!("{key} = ?{at}")).collect();
    let set = format!("UPDATE \"{table}\" SET \"{column}\" = ?1 WHERE {}", is.join(" AND "));
    for _ in 0..40 {
        let Some(last) = (rows.len() as u64).checked_sub(1) else { return false };
        let (value, keys) = rows[usize::try_from(dice.next(last + 1)).unwrap()].clone();
        let Some(value) = flip_bit(value, dice) else { continue };
        // The flipped value may violate a unique constraint.
        if db.execute(&set, params_from_iter([value].into_iter().chain(keys))) == Ok(1) {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_bit_of_any_column_is_reported() {
    if common::is_postgres() {
        return;
    }
    let rounds = std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let seed = std::env::var("NARROWS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0xc01);
    let (dir, full) = full().await;
    assert_eq!(says(&full).await, Vec::<String>::new(), "an intact store has no damage");
    let tables = tables(&Connection::open(full.join("narrows.db")).unwrap());
    assert!(tables.len() > 20, "{tables:?}");
    let is_undetected = |table: &str, column: &str| {
        UNDETECTED.iter().any(|(t, c, _)| *t == table && (*c == "*" || *c == column))
    };
    let (mut undetected, mut empty, mut dice) = (Vec::new(), Vec::new(), Dice(seed));
    let (mut unrepaired, mut detected) = (Vec::new(), 0);
    let place = dir.path().join("data");
    for (table, (columns, keys)) in &tables {
        for column in columns.iter().filter(|column| !is_undetected(table, column)) {
            for _ in 0..rounds {
                copy(&full, &place);
                let db = Connection::open(place.join("narrows.db")).unwrap();
                // Derived columns are not updated either.
                db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
                if !flip_column(&db, table, keys, column, &mut dice) {
                    empty.push(format!("{table}.{column}"));
                    break;
                }
                drop(db);
                if says(&place).await.is_empty() {
                    undetected.push(format!("{table}.{column}"));
                    continue;
                }
                // A repair is slow: every fourth flip is repaired.
                detected += 1;
                if detected % 4 != 0 {
                    continue;
                }
                let report = repair(&place, false, |_| ()).unwrap();
                let lines = says(&place).await;
                let describe = |line: &str| format!("{table}.{column}: {line}: {report:?}");
                unrepaired.extend(lines.iter().map(|line| describe(line)));
                let reported = (&report.sessions, &report.lost, &report.database);
                if reported == (&vec![], &vec![], &vec![]) {
                    unrepaired.push(describe("not in the repair report"));
                }
            }
        }
    }
    for (table, column, _) in UNDETECTED {
        let exists = tables.get(*table).is_some_and(|(columns, _)| {
            *column == "*" || columns.iter().any(|there| there == column)
        });
        assert!(exists, "{table}.{column} does not exist");
    }
    undetected.dedup();
    assert!(undetected.is_empty(), "undetected: {undetected:?}");
    assert!(unrepaired.is_empty(), "after a repair: {unrepaired:#?}");
    assert!(empty.is_empty(), "columns without values: {empty:?}");
}
