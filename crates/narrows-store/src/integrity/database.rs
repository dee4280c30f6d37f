//! What is around the logs: the pages of the database, its indexes, and the rows of other tables.

use crate::beside;
use crate::blob;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value, params};
use crate::error::{Error, Result};
use crate::layout;
use crate::meta;
use crate::sum::{self, Sum};
use std::ops::ControlFlow;
use std::time::Duration;

/// Lines that the database says of its damage at most.
const LINES: usize = 20;
/// Tables that are small enough to be looked at in one go, with their indexes.
pub(crate) const SMALL: [&str; 17] = [
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
/// So long one of them is looked at.
const ONE: Duration = Duration::from_secs(10);
/// Pictures that are read in one go.
const PICTURES: usize = 20;

/// The pages of the database, and whether its indexes agree with its tables. False when there was no
/// time to look at all of it.
pub(crate) fn database(db: &Db<'_>, patience: Duration) -> bool {
    let _limited = crate::deadline::limit(patience);
    says(db, &format!("PRAGMA integrity_check({LINES})"))
}

/// Whether the list of tables says what it should.
pub(crate) fn layout(db: &Db<'_>) -> Result<bool> {
    if let Db::Sqlite(db) = db
        && let Some(what) = layout::differs(db)?
    {
        damage::found(Damage::database(what));
    }
    Ok(true)
}

/// The same of one small table.
pub(crate) fn table(db: &Db<'_>, name: &str) -> bool {
    let _limited = crate::deadline::limit(ONE);
    says(db, &format!("PRAGMA integrity_check({name})"))
}

fn says(db: &Db<'_>, sql: &str) -> bool {
    if db.is_postgres() {
        return true;
    }
    // SQLite's check of a full-text index trusts what this connection knew of it, which may be older than
    // the index; a query looks whether it is.
    let _ = db.exists("SELECT 1 FROM search WHERE rowid = 0", &[]);
    // What was found before the time is over counts as well.
    let looked = db.each(sql, &[], |r| {
        let told = r.get::<String>(0)?;
        let bad = told.lines().filter(|line| *line != "ok" && !line.starts_with("*** in"));
        bad.for_each(|line| damage::found(Damage::database(line)));
        Ok(ControlFlow::Continue(()))
    });
    match looked {
        Ok(()) => true,
        Err(Error::Damaged(what)) => {
            damage::found(Damage::database(what));
            true
        }
        Err(_) => false,
    }
}

/// What the checksum of a token is of.
pub(crate) const TOKEN: [&str; 9] =
    ["id", "hash", "kind", "name", "scopes", "sessions", "tags", "created", "expires"];
/// What that of a place in a source is of.
pub(crate) const SOURCE: [&str; 10] = [
    "session",
    "number",
    "read",
    "rest",
    "offset",
    "rest_offset",
    "rest_order",
    "last",
    "roots",
    "at",
];

/// Whether a row of a table is as it was written, as far as that can be known. `at` says where a
/// column stands in it.
pub(crate) fn is_sound(table: &str, row: &Row<'_>, at: impl Fn(&str) -> usize) -> bool {
    let sound = match table {
        "token" => sum::row_holds(row, &TOKEN.map(&at), at("crc")),
        "source" => source_holds(row, &SOURCE.map(&at), at("crc")),
        "blob" => Ok(blob::is_sound(row, at("hash"), at("body"))),
        _ => Ok(true),
    };
    sound.unwrap_or(false) && beside::is_sound(table, row, at)
}

/// As [`crate::source::SourceMark`] has it: what is not there is empty.
fn source_holds(row: &Row<'_>, columns: &[usize], crc: usize) -> Result<bool> {
    let Some(kept) = row.get::<Option<i64>>(crc)? else { return Ok(true) };
    let mut is = Sum::default();
    for at in columns {
        is.add(&or_empty(row.value(*at)?));
    }
    Ok(kept == is.end())
}

/// What is not there is empty.
pub(crate) fn or_empty(value: Value<'_>) -> Value<'_> {
    if value == Value::Null { Value::Text("") } else { value }
}

/// Whether a row has a checksum that says what it is; none where it has no checksum.
pub(crate) fn proof<'a>(table: &str, get: impl Fn(&str) -> Value<'a>) -> Option<bool> {
    let own = || {
        let kept = |name: &str| if let Value::Int(kept) = get(name) { Some(kept) } else { None };
        match table {
            "token" => Some(kept("crc")? == sum::of(&TOKEN.map(&get))),
            "source" => Some(kept("crc")? == sum::of(&SOURCE.map(|name| or_empty(get(name))))),
            "blob" => match (get("hash"), get("body")) {
                (Value::Text(hash), Value::Bytes(body)) => Some(blob::is_named(hash, body)),
                _ => None,
            },
            _ => None,
        }
    };
    match (own(), beside::proof(table, &get)) {
        (Some(own), Some(beside)) => Some(own && beside),
        (own, beside) => own.or(beside),
    }
}

/// Looks at the rows of tokens and of places in sources.
pub(crate) fn rows(db: &Db<'_>) -> Result<()> {
    looked_at(db, "token", &TOKEN, "a token is not as it was written: whoever has it is refused")?;
    let what = "how far packets or a file were read is not as it was written";
    looked_at(db, "source", &SOURCE, what)?;
    beside::whole(db)?;
    meta::look(db)?;
    beside::strays(db)
}

fn looked_at(db: &Db<'_>, table: &str, columns: &[&str], what: &str) -> Result<()> {
    let beside = beside::columns(table).into_iter().chain(["crc"]);
    let mut columns = columns.to_vec();
    columns.extend(beside.filter(|name| !columns.contains(name)).collect::<Vec<_>>());
    // A name may be a word of the language (`offset`).
    let sql = format!("SELECT \"{}\" FROM {table}", columns.join("\", \""));
    let at = |name: &str| columns.iter().position(|c| *c == name).unwrap_or(columns.len());
    let own = columns.iter().position(|c| *c == "session");
    db.each(&sql, &[], |row| {
        if !is_sound(table, row, at) {
            let session = own.and_then(|at| row.get(at).ok()).unwrap_or(0);
            damage::found(Damage { session, ..Damage::other(what) });
        }
        Ok(ControlFlow::Continue(()))
    })
}

/// Looks at some pictures after one of them; returns the last.
pub(crate) fn pictures(db: &Db<'_>, after: &str) -> Result<Option<String>> {
    const READ: [&str; 5] = ["hash", "body", "mime", "size", "crc"];
    let sql =
        format!("SELECT {} FROM blob WHERE hash > ?1 ORDER BY hash LIMIT ?2", READ.join(", "));
    let mut last = None;
    db.each(&sql, &params![after, PICTURES], |row| {
        let at = |name: &str| READ.iter().position(|n| *n == name).unwrap_or(READ.len());
        if !is_sound("blob", row, at) {
            damage::found(Damage::other("a picture is not as it was written"));
        }
        last = Some(row.get(0)?);
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(last)
}
