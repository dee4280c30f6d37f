//! Every column of every table: one bit of a value changes, everything else stays as it is, and whoever
//! looks at everything says so. What is not noticed stands in a list, with the reason.
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

/// Columns of which a change is not noticed, and why that does no harm. A column that is neither noticed
/// nor here fails the test: whoever adds one decides.
const UNNOTICED: &[(&str, &str, &str)] = &[
    ("audit", "key", "the place of an entry; what it says is checked"),
    ("command", "*", "what nodes of a cluster ask of each other: not used on SQLite"),
    ("damage", "at", "when a loss was found; shown nowhere"),
    ("fresh", "*", "what waits for the index: an item that neither has is noticed"),
    ("run", "lease", "until when a node holds a run: written again every few seconds"),
    ("session", "pen", "a random name of whoever wrote: another one makes a writer read again"),
    ("sqlite_sequence", "*", "SQLite's own; `narrows.durable` has the highest key, too"),
    ("token", "used", "when a token was used last; read by nobody"),
];
/// The index of search is looked at by what it leads to (`damage_search.rs`).
const SEARCH: &str = "search";

/// The tables, with their columns and those of their keys.
fn tables(db: &Connection) -> BTreeMap<String, (Vec<String>, Vec<String>)> {
    let list = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'";
    let mut list = db.prepare(list).unwrap();
    let rows = list.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
    let mut tables = BTreeMap::new();
    for (name, without) in rows.map(Result::<(String, bool), _>::unwrap) {
        if name.starts_with(SEARCH) {
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

/// The value with one bit changed.
fn flipped(value: Value, dice: &mut Dice) -> Option<Value> {
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
        // Of plain letters: it stays a text.
        Value::Text(text) if !text.is_empty() && text.is_ascii() => {
            Value::Text(String::from_utf8(flip(text.into_bytes(), 5)).unwrap())
        }
        Value::Blob(bytes) if !bytes.is_empty() => Value::Blob(flip(bytes, 8)),
        Value::Text(_) | Value::Blob(_) | Value::Null => return None,
    })
}

/// Flips a bit of a value in one of its rows, and writes nothing else; false when there is none.
fn change(db: &Connection, table: &str, keys: &[String], column: &str, dice: &mut Dice) -> bool {
    let quoted: Vec<String> = keys.iter().map(|key| format!("\"{key}\"")).collect();
    let wide = format!(
        "SELECT \"{column}\", {} FROM \"{table}\" WHERE \"{column}\" IS NOT NULL AND \"{column}\" <> ''
         {}",
        quoted.join(", "),
        // What is tried out with the store itself is read by nobody.
        if table == "meta" { "AND key <> 'probe'" } else { "" }
    );
    let mut query = db.prepare(&wide).unwrap();
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
        let Some(value) = flipped(value, dice) else { continue };
        // Two rows may not be one.
        if db.execute(&set, params_from_iter([value].into_iter().chain(keys))) == Ok(1) {
            return true;
        }
    }
    false
}

#[tokio::test(flavor = "multi_thread")]
async fn a_bit_of_any_column_that_changes_is_said() {
    if common::is_postgres() {
        return;
    }
    let rounds = std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let seed = std::env::var("NARROWS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(0xc01);
    let (dir, full) = full().await;
    assert_eq!(says(&full).await, Vec::<String>::new(), "of what is whole");
    let tables = tables(&Connection::open(full.join("narrows.db")).unwrap());
    assert!(tables.len() > 20, "{tables:?}");
    let unnoticed = |table: &str, column: &str| {
        UNNOTICED.iter().any(|(t, c, _)| *t == table && (*c == "*" || *c == column))
    };
    let (mut silent, mut empty, mut dice) = (Vec::new(), Vec::new(), Dice(seed));
    let (mut lasting, mut tried) = (Vec::new(), 0);
    let place = dir.path().join("data");
    for (table, (columns, keys)) in &tables {
        for column in columns.iter().filter(|column| !unnoticed(table, column)) {
            for _ in 0..rounds {
                copy(&full, &place);
                let db = Connection::open(place.join("narrows.db")).unwrap();
                // What follows from a column is not written again either.
                db.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false).unwrap();
                if !change(&db, table, keys, column, &mut dice) {
                    empty.push(format!("{table}.{column}"));
                    break;
                }
                drop(db);
                if says(&place).await.is_empty() {
                    silent.push(format!("{table}.{column}"));
                    continue;
                }
                // Of all kinds, though not of each.
                tried += 1;
                if tried % 4 != 0 {
                    continue;
                }
                let report = repair(&place, false, |_| ()).unwrap();
                let said = says(&place).await;
                let left = |line: &str| format!("{table}.{column}: {line}: {report:?}");
                lasting.extend(said.iter().map(|line| left(line)));
                let told = (&report.sessions, &report.lost, &report.database);
                if told == (&vec![], &vec![], &vec![]) {
                    lasting.push(left("a repair says nothing of it"));
                }
            }
        }
    }
    for (table, column, _) in UNNOTICED {
        let known = tables.get(*table).is_some_and(|(columns, _)| {
            *column == "*" || columns.iter().any(|there| there == column)
        });
        assert!(known, "{table}.{column} is not there any more");
    }
    silent.dedup();
    assert!(silent.is_empty(), "nobody says so: {silent:?}");
    assert!(lasting.is_empty(), "after a repair: {lasting:#?}");
    assert!(empty.is_empty(), "nothing was tried: {empty:?}");
}
