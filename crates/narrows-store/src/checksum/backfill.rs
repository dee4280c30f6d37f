//! Backfills checksums into rows that an earlier version wrote without them.

use super::Checksum;
use super::columns::{
    COLUMN_CHECKSUMS, ColumnChecksum, FIRST_SCHEMA, SECOND_SCHEMA, SOURCE_COLUMNS, TOKEN_COLUMNS,
    key_columns,
};
use super::side_tables::{of_columns, or_empty};
use crate::db::{Db, Value};
use crate::error::Result;
use std::ops::ControlFlow;

/// Rows that one query reads.
const SLICE_ROWS: usize = 1000;

/// Backfills the checksums of [`FIRST_SCHEMA`].
pub(crate) fn backfill_first(db: &Db<'_>) -> Result<()> {
    backfill_since(db, FIRST_SCHEMA)
}

/// Backfills the checksums of [`SECOND_SCHEMA`], and those of tokens and source checkpoints.
pub(crate) fn backfill_second(db: &Db<'_>) -> Result<()> {
    backfill_since(db, SECOND_SCHEMA)?;
    backfill_own(db, "token", &["id"], &TOKEN_COLUMNS, |value| value)?;
    backfill_own(db, "source", &["session", "number"], &SOURCE_COLUMNS, or_empty)
}

/// Backfills the column `crc` of tokens and source checkpoints. The schema that introduced it left
/// existing rows without a checksum.
fn backfill_own(
    db: &Db<'_>,
    table: &str,
    key: &[&str],
    columns: &[&str],
    convert: for<'a> fn(Value<'a>) -> Value<'a>,
) -> Result<()> {
    let names = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
    let sql = format!("SELECT {}, {} FROM {table} WHERE crc IS NULL", names(key), names(columns));
    let rows = db.query_all(&sql, &[], |row| {
        let value = |at: usize| row.value(at);
        let key_values: Result<Vec<KeyPart>> =
            (0..key.len()).map(|at| value(at).map(|value| KeyPart::new(&value))).collect();
        let mut checksum = Checksum::default();
        for at in 0..columns.len() {
            checksum.add(&convert(value(key.len() + at)?));
        }
        Ok((key_values?, checksum.finish()))
    })?;
    let rows = rows.into_iter().map(|(key_values, checksum)| (key_values, Some(checksum)));
    write_checksums(db, (table, "crc"), key, &rows.collect::<Vec<_>>())
}

fn write_checksums(
    db: &Db<'_>,
    (table, column): (&str, &str),
    key: &[&str],
    rows: &[(Vec<KeyPart>, Option<i64>)],
) -> Result<()> {
    let conditions: Vec<String> =
        key.iter().zip(2..).map(|(name, at)| format!("\"{name}\" = ?{at}")).collect();
    let set = format!("UPDATE {table} SET {column} = ?1 WHERE {}", conditions.join(" AND "));
    for (key_values, checksum) in rows {
        let Some(checksum) = checksum else { continue };
        let values: Vec<Value<'_>> = [Value::Int(*checksum)]
            .into_iter()
            .chain(key_values.iter().map(KeyPart::value))
            .collect();
        db.execute_pipelined(&set, &values)?;
    }
    Ok(())
}

fn backfill_since(db: &Db<'_>, since: u32) -> Result<()> {
    // Blobs are skipped: the update would write their bytes again.
    let specs = COLUMN_CHECKSUMS.iter();
    for spec in specs.filter(|spec| spec.since == since && spec.table != "blob") {
        let mut after = None;
        loop {
            after = backfill_slice(db, spec, after.as_deref())?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// Backfills some rows after a key; returns the key of the last one.
fn backfill_slice(
    db: &Db<'_>,
    spec: &ColumnChecksum,
    after: Option<&[KeyPart]>,
) -> Result<Option<Vec<KeyPart>>> {
    let ColumnChecksum { table, columns, checksum, flag, .. } = spec;
    let key = key_columns(table);
    let names = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
    let mut selected: Vec<&str> = key.iter().chain(*columns).copied().collect();
    selected.extend(flag);
    if *table == "seen" {
        selected.push("records");
    }
    let placeholders = |from: usize| {
        (from..from + key.len()).map(|at| format!("?{at}")).collect::<Vec<_>>().join(", ")
    };
    let from =
        after.map_or(String::new(), |_| format!("AND ({}) > ({})", names(key), placeholders(1)));
    // The row of the write probe is never read.
    let probe = if *table == "meta" { "AND key <> 'probe'" } else { "" };
    let sql = format!(
        "SELECT {} FROM {table} WHERE {checksum} IS NULL {probe} {from} ORDER BY {} LIMIT {SLICE_ROWS}",
        names(&selected),
        names(key)
    );
    let values: Vec<Value<'_>> = after.into_iter().flatten().map(KeyPart::value).collect();
    let mut rows = Vec::new();
    db.query_each(&sql, &values, |row| {
        let key_values: Result<Vec<KeyPart>> =
            (0..key.len()).map(|at| row.value(at).map(|value| KeyPart::new(&value))).collect();
        // A row that cannot be read stays without a checksum.
        let get = |name: &str| {
            let at = key.len() + selected[key.len()..].iter().position(|n| *n == name)?;
            row.value(at).ok()
        };
        if let Ok(key_values) = key_values {
            rows.push((key_values, of_columns(spec, get)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    write_checksums(db, (table, checksum), key, &rows)?;
    Ok(rows.pop().map(|(key_values, _)| key_values))
}

/// The value of one key column.
#[derive(Debug)]
enum KeyPart {
    Int(i64),
    Text(String),
}

impl KeyPart {
    fn new(value: &Value<'_>) -> KeyPart {
        match value {
            Value::Int(n) => KeyPart::Int(*n),
            Value::Text(text) => KeyPart::Text((*text).to_owned()),
            _ => KeyPart::Int(0),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            KeyPart::Int(n) => Value::Int(*n),
            KeyPart::Text(text) => Value::Text(text),
        }
    }
}
