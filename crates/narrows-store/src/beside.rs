//! Checksums of the rows beside the logs: tags, sums, calls, changed files, the audit log.

use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::log::keys;
use crate::sum;
use std::ops::ControlFlow;

/// A checksum of some columns of a table.
struct Summed {
    table: &'static str,
    columns: &'static [&'static str],
    crc: &'static str,
    /// What is said of a row that is not as it was written.
    what: &'static str,
}

/// All of them.
const ALL: [Summed; 7] = [
    Summed {
        table: "audit",
        columns: &["at", "token", "action", "session", "detail"],
        crc: "crc",
        what: AUDIT,
    },
    Summed {
        table: "tag",
        columns: &["session", "tag"],
        crc: "crc",
        what: "a tag is not as it was written",
    },
    Summed {
        table: "call",
        columns: &["key", "name", "at", "ms", "failed"],
        crc: "crc",
        what: "what is counted of a call is not as it was written",
    },
    Summed {
        table: "edit",
        columns: &["key", "path", "added", "removed"],
        crc: "crc",
        what: "a changed file is not as it was written",
    },
    Summed {
        table: "usage",
        columns: &["id", "input", "output", "cache_read", "cache_write", "cost"],
        crc: "crc",
        what: TOKENS,
    },
    Summed { table: "usage", columns: &["id", "at"], crc: "at_crc", what: TOKENS },
    Summed { table: "usage", columns: &["id", "model"], crc: "model_crc", what: TOKENS },
];
/// What is said of an entry of the audit log.
pub(crate) const AUDIT: &str = "an entry of the audit log is not as it was written";
const TOKENS: &str = "a count of tokens is not as it was written";
const ACTIVE: &str = "a time of activity is not as it was written";

/// What the times of activity are checked by: statements add to it.
pub(crate) fn active_sum(session: i64, hour: i64, ms: u64) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX).wrapping_mul(1_048_573);
    ms.wrapping_add(hour.wrapping_mul(8191)).wrapping_add(session.wrapping_mul(127))
}

/// What the marks that hide a session are checked by: the session in whose place another is listed, and
/// whether it is left out.
pub(crate) fn hidden(copy_of: &str, left_out: &str) -> String {
    format!("(coalesce({copy_of}, 0) * 8191 + {left_out} * 524287 + 1)")
}

/// Whether a row has a checksum that says what it is; none where it has no checksum.
pub(crate) fn proof<'a>(table: &str, get: impl Fn(&str) -> Value<'a>) -> Option<bool> {
    if table == "active" {
        let [session, hour, ms, kept] = ["session", "hour", "ms", "crc"].map(get);
        return match (session, hour, ms, kept) {
            (Value::Int(session), Value::Int(hour), Value::Int(ms), Value::Int(kept)) => {
                Some(kept == active_sum(session, hour, ms.unsigned_abs()) && ms >= 0)
            }
            _ => None,
        };
    }
    let mut proof = None;
    for summed in ALL.iter().filter(|summed| summed.table == table) {
        if let Value::Int(kept) = get(summed.crc) {
            let values: Vec<Value<'_>> = summed.columns.iter().map(|name| get(name)).collect();
            proof = Some(proof.unwrap_or(true) && kept == sum::of(&values));
        }
    }
    proof
}

/// Whether a row is as it was written, as far as that can be known.
pub(crate) fn is_sound(table: &str, row: &Row<'_>, at: impl Fn(&str) -> usize) -> bool {
    let failed = std::cell::Cell::new(false);
    let get = |name: &str| {
        row.value(at(name)).unwrap_or_else(|_| {
            failed.set(true);
            Value::Null
        })
    };
    proof(table, get).unwrap_or(true) && !failed.get()
}

/// All columns that are looked at.
fn columns(table: &str) -> Vec<&'static str> {
    if table == "active" {
        return vec!["session", "hour", "ms", "crc"];
    }
    let mut all = Vec::new();
    for summed in ALL.iter().filter(|summed| summed.table == table) {
        for name in summed.columns.iter().chain([&summed.crc]) {
            if !all.contains(name) {
                all.push(*name);
            }
        }
    }
    all
}

fn look(db: &Db<'_>, table: &str, clause: &str, values: &[Value<'_>], session: i64) -> Result<()> {
    let names = columns(table);
    let sql = format!("SELECT \"{}\" FROM {table} {clause}", names.join("\", \""));
    let what = ALL.iter().find(|summed| summed.table == table).map_or(ACTIVE, |summed| summed.what);
    let at = |name: &str| names.iter().position(|n| *n == name).unwrap_or(names.len());
    db.each(&sql, values, |row| {
        if !is_sound(table, row, at) {
            damage::found(Damage { session, ..Damage::other(what) });
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Looks at the entries of the audit log.
pub(crate) fn audit(db: &Db<'_>) -> Result<()> {
    look(db, "audit", "", &[], 0)
}

/// Looks at the rows beside the log of a session.
pub(crate) fn of_session(db: &Db<'_>, session: i64) -> Result<()> {
    for table in ["tag", "usage", "active"] {
        look(db, table, "WHERE session = ?1", &params![session], session)?;
    }
    let (first, last) = keys(session);
    for table in ["call", "edit"] {
        look(db, table, "WHERE key BETWEEN ?1 AND ?2", &params![first, last], session)?;
    }
    Ok(())
}

/// Gives the rows that there are their checksums.
pub(crate) fn fill(db: &Db<'_>) -> Result<()> {
    for Summed { table, columns, crc, .. } in &ALL {
        let key: &[&str] = match *table {
            "audit" | "call" => &["key"],
            "tag" => &["session", "tag"],
            "edit" => &["key", "path"],
            _ => &["id"],
        };
        let names = |names: &[&str]| format!("\"{}\"", names.join("\", \""));
        let sql = format!("SELECT {}, {} FROM {table}", names(key), names(columns));
        let mut found = Vec::new();
        db.each(&sql, &[], |row| {
            let values = (0..columns.len()).map(|at| row.value(key.len() + at));
            let place = (0..key.len()).map(|at| row.value(at).map(|value| Owned::of(&value)));
            // A row that cannot be read stays as it is.
            if let (Ok(values), Ok(place)) =
                (values.collect::<Result<Vec<_>>>(), place.collect::<Result<Vec<_>>>())
            {
                found.push((place, sum::of(&values)));
            }
            Ok(ControlFlow::Continue(()))
        })?;
        let is: Vec<String> =
            key.iter().zip(2..).map(|(name, at)| format!("\"{name}\" = ?{at}")).collect();
        let set = format!("UPDATE {table} SET {crc} = ?1 WHERE {}", is.join(" AND "));
        for (place, sum) in &found {
            let values: Vec<Value<'_>> =
                [Value::Int(*sum)].into_iter().chain(place.iter().map(Owned::value)).collect();
            db.later(&set, &values)?;
        }
    }
    Ok(())
}

/// A part of a key.
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
