//! Writing the rows of items.

use crate::append::ItemWrite;
use crate::error::{Error, Result};
use crate::index::said;
use crate::items::{read_item, row};
use crate::log::{event_key, number};
use crate::pack::{Kept, text};
use crate::threes::Threes;
use narrows::item::ItemBody;
use narrows::tool::{ToolName, ToolStatus};
use narrows::{Change, Item};
use rusqlite::{Connection, OptionalExtension, params};

/// What is to be written of an item, as it will be kept.
#[derive(Debug)]
pub(crate) enum RowWrite {
    Put(Box<NewRow>),
    Patch { id: String, changes: Vec<(u64, Change)> },
    Remove { id: String },
}

/// The row of an item.
#[derive(Debug)]
pub(crate) struct NewRow {
    id: String,
    order: u64,
    seq: u64,
    kind: &'static str,
    open: bool,
    body: Kept,
    call: Option<Call>,
    /// What the index is to know it by; else it waits for the index.
    tokens: Option<String>,
}

/// A call that is over.
#[derive(Debug)]
struct Call {
    name: String,
    at: Option<i64>,
    ms: Option<u64>,
    failed: bool,
}

impl RowWrite {
    /// Prints and packs; with `index`, also finds what the index is to know it by. Returns the bytes
    /// that it was made of, about.
    pub(crate) fn new(write: ItemWrite, index: Option<&mut Threes>) -> Result<(RowWrite, usize)> {
        Ok(match write {
            ItemWrite::Put { item, seq } => {
                let (row, size) = NewRow::new(&item, seq, index)?;
                (RowWrite::Put(Box::new(row)), size)
            }
            ItemWrite::Patch { id, changes } => {
                let size = 256 * (1 + changes.len());
                (RowWrite::Patch { id, changes }, size)
            }
            ItemWrite::Remove { id } => (RowWrite::Remove { id }, 64),
        })
    }
}

impl NewRow {
    fn new(item: &Item, seq: u64, index: Option<&mut Threes>) -> Result<(NewRow, usize)> {
        let body = print(item)?;
        let (size, open) = (256 + body.len(), item.is_open());
        let row = NewRow {
            id: item.id.as_str().to_owned(),
            order: item.order,
            seq,
            kind: item.body.kind(),
            open,
            call: call(item).filter(|_| !open),
            tokens: index.filter(|_| !open).map(|threes| said(&body, threes)),
            body: Kept::new(body),
        };
        Ok((row, size))
    }
}

fn print(item: &Item) -> Result<String> {
    let mut body = Vec::with_capacity(512);
    narrows::json::print(&mut body, item).map_err(|e| Error::Invalid(e.to_string()))?;
    String::from_utf8(body).map_err(|_| Error::Invalid("an item is not text".to_owned()))
}

fn call(item: &Item) -> Option<Call> {
    let ItemBody::ToolCall { tool_call } = &item.body else { return None };
    let call = &tool_call.call;
    // One name for what every agent calls by its own, where it is known.
    let name = match (call.tool_name, &call.name) {
        (ToolName::Unknown, Some(own)) => own.as_str().to_owned(),
        (known, _) => serde_json::to_string(&known).unwrap_or_default().replace('"', ""),
    };
    let at = item.time.as_ref().map(narrows::time::Time::millis);
    let failed = call.status == Some(ToolStatus::Failed);
    Some(Call { name, at, ms: call.duration_ms, failed })
}

/// Writes what became of an item; returns how many items more there are.
pub(crate) fn write(db: &Connection, session: i64, write: RowWrite) -> Result<i64> {
    match write {
        RowWrite::Put(row) => Ok(i64::from(put(db, session, &row)?)),
        RowWrite::Patch { id, changes } => {
            let Some((known, mut item)) = row(db, session, &id)? else { return Ok(0) };
            let mut last = known;
            for (seq, change) in changes {
                if seq > known {
                    item.apply(change);
                    last = seq;
                }
            }
            if last > known {
                put(db, session, &NewRow::new(&item, last, None)?.0)?;
            }
            Ok(0)
        }
        RowWrite::Remove { id } => {
            let mut remove =
                db.prepare_cached("DELETE FROM item WHERE session = ?1 AND id = ?2 RETURNING key")?;
            let gone: Option<i64> =
                remove.query_row(params![session, id], |r| r.get(0)).optional()?;
            let Some(key) = gone else { return Ok(0) };
            for table in ["search WHERE rowid", "fresh WHERE key", "call WHERE key"] {
                db.prepare_cached(&format!("DELETE FROM {table} = ?1"))?.execute([key])?;
            }
            Ok(-1)
        }
    }
}

/// Writes the row of an item; true when it is new.
fn put(db: &Connection, session: i64, row: &NewRow) -> Result<bool> {
    let mut insert =
        db.prepare_cached("INSERT OR IGNORE INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)")?;
    let key = event_key(session, row.order);
    let values = params![key, session, row.id, row.seq, row.kind, row.open, row.body];
    if insert.execute(values)? > 0 {
        beside(db, key, row)?;
        return Ok(true);
    }
    let mut known = db.prepare_cached("SELECT key FROM item WHERE session = ?1 AND id = ?2")?;
    let key: i64 = known.query_row(params![session, row.id], |r| r.get(0))?;
    // An item that is put again keeps its place.
    let order = number(key);
    let body = if order == row.order {
        &row.body
    } else {
        let item = read_item(&text(row.body.value())?)?;
        &Kept::new(print(&Item { order, ..item })?)
    };
    db.prepare_cached("UPDATE item SET seq = ?2, open = ?3, body = ?4, kind = ?5 WHERE key = ?1")?
        .execute(params![key, row.seq, row.open, body, row.kind])?;
    beside(db, key, row)?;
    Ok(false)
}

/// What is kept beside the row of an item: what the index knows it by, and that it is a call.
fn beside(db: &Connection, key: i64, row: &NewRow) -> Result<()> {
    if let Some(tokens) = &row.tokens {
        db.prepare_cached("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)")?
            .execute(params![key, tokens])?;
        db.prepare_cached("DELETE FROM fresh WHERE key = ?1")?.execute([key])?;
    } else {
        db.prepare_cached("INSERT OR IGNORE INTO fresh VALUES (?1)")?.execute([key])?;
    }
    if let Some(Call { name, at, ms, failed }) = &row.call {
        db.prepare_cached("INSERT OR REPLACE INTO call VALUES (?1, ?2, ?3, ?4, ?5)")?
            .execute(params![key, name, at, ms, failed])?;
    }
    Ok(())
}
