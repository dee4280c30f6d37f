//! Checksums of rows that an earlier version wrote without them.

use super::table::{ALL, FIRST, SECOND, Summed, key};
use super::value_sum;
use crate::around;
use crate::db::{Db, Value};
use crate::error::Result;
use crate::meta;
use crate::sum::Sum;
use std::ops::ControlFlow;

/// Rows that are read in one go.
const SLICE: usize = 1000;

/// Those that came first.
pub(crate) fn fill_first(db: &Db<'_>) -> Result<()> {
    fill(db, FIRST)
}

/// Those that came later; and the key for marks is kept twice.
pub(crate) fn fill_second(db: &Db<'_>) -> Result<()> {
    fill(db, SECOND)?;
    own(db, "token", &["id"], &around::TOKEN, |value| value)?;
    own(db, "source", &["session", "number"], &around::SOURCE, around::or_empty)?;
    if db.exists("SELECT 1 FROM meta WHERE key = 'mark_key'", &[])? {
        meta::mark_key(db)?;
    }
    Ok(())
}

/// Those of tokens and of places in sources, which came before the others and were given to no row that
/// there was.
fn own(
    db: &Db<'_>,
    table: &str,
    key: &[&str],
    columns: &[&str],
    each: for<'a> fn(Value<'a>) -> Value<'a>,
) -> Result<()> {
    let names = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
    let sql = format!("SELECT {}, {} FROM {table} WHERE crc IS NULL", names(key), names(columns));
    let found = db.all(&sql, &[], |row| {
        let value = |at: usize| row.value(at);
        let place: Result<Vec<Owned>> =
            (0..key.len()).map(|at| value(at).map(|value| Owned::of(&value))).collect();
        let mut sum = Sum::default();
        for at in 0..columns.len() {
            sum.add(&each(value(key.len() + at)?));
        }
        Ok((place?, sum.end()))
    })?;
    let found = found.into_iter().map(|(place, sum)| (place, Some(sum)));
    set(db, (table, "crc"), key, &found.collect::<Vec<_>>())
}

/// Writes checksums into rows.
fn set(
    db: &Db<'_>,
    (table, crc): (&str, &str),
    key: &[&str],
    found: &[(Vec<Owned>, Option<i64>)],
) -> Result<()> {
    let is: Vec<String> =
        key.iter().zip(2..).map(|(name, at)| format!("\"{name}\" = ?{at}")).collect();
    let set = format!("UPDATE {table} SET {crc} = ?1 WHERE {}", is.join(" AND "));
    for (place, sum) in found {
        let Some(sum) = sum else { continue };
        let values: Vec<Value<'_>> =
            [Value::Int(*sum)].into_iter().chain(place.iter().map(Owned::value)).collect();
        db.later(&set, &values)?;
    }
    Ok(())
}

/// All of them, where the first were not filled in: on PostgreSQL.
pub(crate) fn fill_all(db: &Db<'_>) -> Result<()> {
    fill_first(db)?;
    fill_second(db)
}

fn fill(db: &Db<'_>, since: u32) -> Result<()> {
    // The bytes of a picture are not written again for it, and what is tried out is read by nobody.
    for summed in ALL.iter().filter(|summed| summed.since == since && summed.table != "blob") {
        let mut after = None;
        loop {
            after = slice(db, summed, after.as_deref())?;
            if after.is_none() {
                break;
            }
        }
    }
    Ok(())
}

/// Fills in some rows after one of them; returns the key of the last.
fn slice(db: &Db<'_>, summed: &Summed, after: Option<&[Owned]>) -> Result<Option<Vec<Owned>>> {
    let Summed { table, columns, crc, above, .. } = summed;
    let key = key(table);
    let names = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
    let mut read: Vec<&str> = key.iter().chain(*columns).copied().collect();
    read.extend(above);
    if *table == "seen" {
        read.push("records");
    }
    let place = |from: usize| {
        (from..from + key.len()).map(|at| format!("?{at}")).collect::<Vec<_>>().join(", ")
    };
    let from = after.map_or(String::new(), |_| format!("AND ({}) > ({})", names(key), place(1)));
    let probe = if *table == "meta" { "AND key <> 'probe'" } else { "" };
    let sql = format!(
        "SELECT {} FROM {table} WHERE {crc} IS NULL {probe} {from} ORDER BY {} LIMIT {SLICE}",
        names(&read),
        names(key)
    );
    let values: Vec<Value<'_>> = after.into_iter().flatten().map(Owned::value).collect();
    let mut found = Vec::new();
    db.each(&sql, &values, |row| {
        let place: Result<Vec<Owned>> =
            (0..key.len()).map(|at| row.value(at).map(|value| Owned::of(&value))).collect();
        // A row that cannot be read stays as it is.
        let get = |name: &str| {
            let at = key.len() + read[key.len()..].iter().position(|n| *n == name)?;
            row.value(at).ok()
        };
        if let Ok(place) = place {
            found.push((place, value_sum(summed, get)));
        }
        Ok(ControlFlow::Continue(()))
    })?;
    set(db, (table, crc), key, &found)?;
    Ok(found.pop().map(|(place, _)| place))
}

/// A part of a key.
#[derive(Debug)]
enum Owned {
    Int(i64),
    Text(String),
}

impl Owned {
    fn of(value: &Value<'_>) -> Owned {
        match value {
            Value::Int(n) => Owned::Int(*n),
            Value::Text(text) => Owned::Text((*text).to_owned()),
            _ => Owned::Int(0),
        }
    }

    fn value(&self) -> Value<'_> {
        match self {
            Owned::Int(n) => Value::Int(*n),
            Owned::Text(text) => Value::Text(text),
        }
    }
}
