//! Checksums of the rows beside the logs: tags, sums, calls, changed files, the audit log, sources,
//! requests, runs, settings, and what a session's row has beside its header.

mod fill;
mod table;

pub(crate) use fill::{fill_all, fill_first, fill_second};
pub(crate) use table::{AUDIT, SECOND};

use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::figures;
use crate::files;
use crate::log::keys;
use crate::sum::Sum;
use std::ops::ControlFlow;
use table::{ALL, COUNTED, Counted, Summed};

/// Which rows of deleted sessions are as they were written.
pub(crate) const DOOMED: &str = "(crc IS NULL OR crc = session * 8191 + 127)";
/// Tables that are looked at as a whole.
const WHOLE: [&str; 11] = [
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
/// Those that are looked at with their session, by the session and by the key of an event or an item.
const OF_SESSION: [&str; 4] = ["tag", "usage", "active", "seen"];
const BY_KEY: [&str; 2] = ["call", "edit"];

/// What the times of activity are checked by: statements add to it.
pub(crate) fn active_sum(session: i64, hour: i64, ms: u64) -> i64 {
    let ms = i64::try_from(ms).unwrap_or(i64::MAX).wrapping_mul(1_048_573);
    ms.wrapping_add(hour.wrapping_mul(8191)).wrapping_add(session.wrapping_mul(127))
}

/// What the mark of a deleted session is checked by.
pub(crate) fn doomed_sum(session: i64) -> i64 {
    session.wrapping_mul(8191).wrapping_add(127)
}

/// What is checked of whose a count of tokens is, and whether it is final.
pub(crate) fn usage_sum(session: i64, sub: bool, kept: bool) -> i64 {
    session.wrapping_mul(8191).wrapping_add(i64::from(sub) * 127 + i64::from(kept) * 31 + 1)
}

/// What the marks that hide a session are checked by: the session in whose place another is listed, and
/// whether it is left out.
pub(crate) fn hidden(copy_of: &str, left_out: &str) -> String {
    format!("(coalesce({copy_of}, 0) * 8191 + {left_out} * 524287 + 1)")
}

/// The checksum of what stands in some columns; none if one of them cannot be read.
fn value_sum<'a>(summed: &Summed, get: impl Fn(&str) -> Option<Value<'a>>) -> Option<i64> {
    let mut sum = Sum::default();
    for name in summed.columns {
        sum.add(&get(name)?);
    }
    let more = match (summed.above, summed.table) {
        (Some(above), _) => match get(above)? {
            Value::Int(n) => n.wrapping_mul(files::GONE),
            _ => return None,
        },
        (None, "seen") => match get("records")? {
            Value::Bytes(records) => files::records_sum(records),
            _ => return None,
        },
        _ => 0,
    };
    Some(sum.end().wrapping_add(more))
}

fn counted<'a>(counted: &Counted, get: impl Fn(&str) -> Option<Value<'a>>) -> Option<i64> {
    counted.terms.iter().try_fold(counted.more, |sum, (name, by)| match get(name)? {
        Value::Int(n) => Some(sum.wrapping_add(n.wrapping_mul(*by))),
        _ => None,
    })
}

/// Whether a row has checksums that say what it is; none where it has none.
pub(crate) fn proof<'a>(table: &str, get: impl Fn(&str) -> Value<'a>) -> Option<bool> {
    let (mut proof, some) = (None, |name: &str| Some(get(name)));
    let mut is = |kept: Value<'a>, sum: Option<i64>| match kept {
        Value::Null => {}
        Value::Int(kept) => proof = Some(proof.unwrap_or(true) && Some(kept) == sum),
        _ => proof = Some(false),
    };
    for summed in ALL.iter().filter(|summed| summed.table == table) {
        is(get(summed.crc), value_sum(summed, some));
    }
    for sum in COUNTED.iter().filter(|sum| sum.table == table) {
        is(get(sum.sum), counted(sum, some));
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
pub(crate) fn columns(table: &str) -> Vec<&'static str> {
    let mut all = Vec::new();
    let mut add = |name: &'static str| {
        if !all.contains(&name) {
            all.push(name);
        }
    };
    for summed in ALL.iter().filter(|summed| summed.table == table) {
        summed
            .columns
            .iter()
            .chain([&summed.crc])
            .chain(summed.above.as_ref())
            .for_each(|n| add(n));
    }
    for sum in COUNTED.iter().filter(|sum| sum.table == table) {
        sum.terms.iter().map(|(name, _)| name).chain([&sum.sum]).for_each(|n| add(n));
    }
    if table == "seen" {
        add("records");
    }
    all
}

/// What is said of a row that is not as it was written.
fn said_of(table: &str) -> &'static str {
    let summed = ALL.iter().map(|summed| (summed.table, summed.what));
    let counted = COUNTED.iter().map(|sum| (sum.table, sum.what));
    summed.chain(counted).find(|(of, _)| *of == table).map_or("", |(_, what)| what)
}

/// Whether some rows of a table are as they were written.
fn are_sound(db: &Db<'_>, table: &str, clause: &str, values: &[Value<'_>]) -> Result<bool> {
    let names = columns(table);
    let sql = format!("SELECT \"{}\" FROM {table} {clause}", names.join("\", \""));
    let at = |name: &str| names.iter().position(|n| *n == name).unwrap_or(names.len());
    let mut all = true;
    db.each(&sql, values, |row| {
        all = is_sound(table, row, at);
        Ok(if all { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
    })?;
    Ok(all)
}

/// The same; one that is not is told.
fn look(db: &Db<'_>, table: &str, clause: &str, values: &[Value<'_>], session: i64) -> Result<()> {
    if !are_sound(db, table, clause, values)? {
        damage::found(Damage { session, ..Damage::other(said_of(table)) });
    }
    Ok(())
}

/// Whether what a session's row has beside its header is as it was written: its times and counts, and
/// what it is called.
pub(crate) fn row_holds(db: &Db<'_>, session: i64) -> Result<bool> {
    let sql = format!("SELECT {} FROM session WHERE key = ?1", figures::HOLD.as_str());
    let figures = db.optional(&sql, &params![session], |r| r.get::<bool>(0))?;
    Ok(figures != Some(false) && names_hold(db, session)?)
}

/// Only what it is called.
pub(crate) fn names_hold(db: &Db<'_>, session: i64) -> Result<bool> {
    are_sound(db, "session", "WHERE key = ?1", &params![session])
}

/// Looks at the marks of what was deleted and of what was lost before.
pub(crate) fn marks(db: &Db<'_>) -> Result<()> {
    ["doomed", "damage"].iter().try_for_each(|table| look(db, table, "", &[], 0))
}

/// Looks at the tables that are of no session, or small.
pub(crate) fn whole(db: &Db<'_>) -> Result<()> {
    WHOLE.iter().try_for_each(|table| look(db, table, "", &[], 0))
}

/// Looks at the rows beside the log of a session, and at what its own row has beside its header.
pub(crate) fn of_session(db: &Db<'_>, session: i64) -> Result<()> {
    look(db, "session", "WHERE key = ?1", &params![session], session)?;
    for table in OF_SESSION {
        look(db, table, "WHERE session = ?1", &params![session], session)?;
    }
    let (first, last) = keys(session);
    for table in BY_KEY {
        look(db, table, "WHERE key BETWEEN ?1 AND ?2", &params![first, last], session)?;
    }
    Ok(())
}

/// Whether rows name sessions that are not there: then they are of another one.
pub(crate) fn strays(db: &Db<'_>) -> Result<()> {
    let known =
        "SELECT 1 FROM session WHERE key = ?1 UNION ALL SELECT 1 FROM doomed WHERE session = ?1";
    let by_session = OF_SESSION.map(|table| (table, "session", 0));
    let by_key = ["event", "item", "call", "edit"].map(|table| (table, "key", 32));
    for (table, column, bits) in by_session.into_iter().chain(by_key) {
        let sql =
            format!("SELECT {column} FROM {table} WHERE {column} >= ?1 ORDER BY {column} LIMIT 1");
        let mut next = i64::MIN;
        // One row of each session is looked at.
        while let Some(found) = db.optional(&sql, &params![next], |r| r.get::<i64>(0))? {
            let session = found >> bits;
            if !db.exists(known, &params![session])? {
                let what = format!("rows of `{table}` are of no session that there is");
                damage::found(Damage::other(what));
            }
            let Some(after) = session.checked_add(1).and_then(|n| n.checked_mul(1 << bits)) else {
                break;
            };
            next = after;
        }
    }
    Ok(())
}
