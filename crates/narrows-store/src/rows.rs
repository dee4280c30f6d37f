//! Writing the rows of items.

use crate::append::ItemWrite;
use crate::error::{Error, Result};
use crate::index::said;
use crate::items::{read_item, row};
use crate::log::{event_key, keys, number};
use crate::pack::{Kept, text};
use crate::prompt;
use crate::threes::Threes;
use narrows::item::ItemBody;
use narrows::tool::{ChangedFile, ToolName, ToolStatus};
use narrows::{Change, Item};
use rusqlite::{Connection, OptionalExtension, params};
use std::ops::AddAssign;

/// Calls above a call that are looked at.
const MAX_ABOVE: usize = 64;

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
    /// The call below which it stands.
    parent: Option<String>,
    /// How a prompt of the session itself begins.
    prompt: Option<String>,
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
    files: Vec<ChangedFile>,
}

/// How many items, finished calls and failed ones there are more than before.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct More {
    pub(crate) items: i64,
    pub(crate) calls: i64,
    pub(crate) failed: i64,
}

impl AddAssign for More {
    fn add_assign(&mut self, more: More) {
        self.items += more.items;
        self.calls += more.calls;
        self.failed += more.failed;
    }
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
            parent: parent(item).map(str::to_owned),
            prompt: prompt::of(item),
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

/// The call below which an item stands; it does not stand below itself.
pub(crate) fn parent(item: &Item) -> Option<&str> {
    item.parent.as_ref().filter(|parent| **parent != item.id).map(narrows::Clean::as_str)
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
    Some(Call { name, at, ms: call.duration_ms, failed, files: call.changed_files() })
}

/// Writes what became of an item; returns what there is more of.
pub(crate) fn write(db: &Connection, session: i64, write: RowWrite) -> Result<More> {
    match write {
        RowWrite::Put(row) => put(db, session, &row),
        RowWrite::Patch { id, changes } => {
            let Some((known, mut item)) = row(db, session, &id)? else {
                return Ok(More::default());
            };
            let mut last = known;
            for (seq, change) in changes {
                if seq > known {
                    item.apply(change);
                    last = seq;
                }
            }
            if last > known {
                return put(db, session, &NewRow::new(&item, last, None)?.0);
            }
            Ok(More::default())
        }
        RowWrite::Remove { id } => remove(db, session, &id),
    }
}

fn remove(db: &Connection, session: i64, id: &str) -> Result<More> {
    let mut remove =
        db.prepare_cached("DELETE FROM item WHERE session = ?1 AND id = ?2 RETURNING key")?;
    let gone: Option<i64> = remove.query_row(params![session, id], |r| r.get(0)).optional()?;
    let Some(key) = gone else { return Ok(More::default()) };
    let called: Option<i64> = db
        .prepare_cached("DELETE FROM call WHERE key = ?1 RETURNING failed")?
        .query_row([key], |r| r.get(0))
        .optional()?;
    for table in ["search WHERE rowid", "fresh WHERE key", "edit WHERE key"] {
        db.prepare_cached(&format!("DELETE FROM {table} = ?1"))?.execute([key])?;
    }
    // What stood below it is not hidden with it.
    let (first, last) = keys(session);
    db.prepare_cached(
        "UPDATE item INDEXED BY item_child SET top = 1
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3",
    )?
    .execute(params![id, first, last])?;
    prompt::removed(db, session, number(key))?;
    let calls = -i64::from(called.is_some());
    Ok(More { items: -1, calls, failed: -called.unwrap_or(0) })
}

/// Writes the row of an item.
fn put(db: &Connection, session: i64, row: &NewRow) -> Result<More> {
    let top = match &row.parent {
        Some(parent) => !is_there(db, session, parent)?,
        None => true,
    };
    let mut insert = db
        .prepare_cached("INSERT OR IGNORE INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    let key = event_key(session, row.order);
    let values =
        params![key, session, row.id, row.seq, row.kind, row.open, row.body, row.parent, top];
    if insert.execute(values)? > 0 {
        // Only calls have something below them.
        if row.kind == "tool_call" {
            take_below(db, session, row)?;
        }
        let call = beside(db, session, key, row, true)?;
        return Ok(More { items: 1, ..call });
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
    db.prepare_cached(
        "UPDATE item SET seq = ?2, open = ?3, body = ?4, kind = ?5, parent = ?6,
         top = CASE WHEN parent IS ?6 THEN top ELSE ?7 END WHERE key = ?1",
    )?
    .execute(params![key, row.seq, row.open, body, row.kind, row.parent, top])?;
    beside(db, session, key, row, false)
}

/// Whether an item has a row.
pub(crate) fn is_there(db: &Connection, session: i64, id: &str) -> Result<bool> {
    let mut query = db.prepare_cached("SELECT 1 FROM item WHERE session = ?1 AND id = ?2")?;
    Ok(query.exists(params![session, id])?)
}

/// Items that came before the call which they name stand below it from now on.
fn take_below(db: &Connection, session: i64, row: &NewRow) -> Result<()> {
    let (first, last) = keys(session);
    let mut early = db.prepare_cached(
        "SELECT key, id FROM item INDEXED BY item_child
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3 AND top = 1",
    )?;
    let early = early.query_map(params![row.id, first, last], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let early: Vec<(i64, String)> = early.collect::<rusqlite::Result<_>>()?;
    if early.is_empty() {
        return Ok(());
    }
    let above = above(db, session, row.parent.clone())?;
    for (key, id) in early {
        // In a circle of calls somebody must be on top, or none of them is seen.
        if !above.contains(&id) {
            db.prepare_cached("UPDATE item SET top = 0 WHERE key = ?1")?.execute([key])?;
        }
    }
    Ok(())
}

/// The calls above, from the nearest on.
fn above(db: &Connection, session: i64, mut next: Option<String>) -> Result<Vec<String>> {
    let mut query = db.prepare_cached("SELECT parent FROM item WHERE session = ?1 AND id = ?2")?;
    let mut above = Vec::new();
    while let Some(id) = next.take()
        && above.len() < MAX_ABOVE
    {
        let parent = query.query_row(params![session, id], |r| r.get(0)).optional()?;
        next = parent.flatten();
        above.push(id);
    }
    Ok(above)
}

/// What is kept beside the row of an item: what the index knows it by, that it is the first prompt,
/// that it is a call. Returns the calls that there are more.
fn beside(db: &Connection, session: i64, key: i64, row: &NewRow, new: bool) -> Result<More> {
    if let Some(tokens) = &row.tokens {
        db.prepare_cached("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)")?
            .execute(params![key, tokens])?;
        db.prepare_cached("DELETE FROM fresh WHERE key = ?1")?.execute([key])?;
    } else {
        db.prepare_cached("INSERT OR IGNORE INTO fresh VALUES (?1)")?.execute([key])?;
    }
    if let Some(prompt) = &row.prompt {
        prompt::keep(db, session, number(key), prompt)?;
    }
    match &row.call {
        Some(call) => keep_call(db, key, call, new),
        None => Ok(More::default()),
    }
}

fn keep_call(db: &Connection, key: i64, call: &Call, new: bool) -> Result<More> {
    let Call { name, at, ms, failed, files } = call;
    let mut known = db.prepare_cached("SELECT failed FROM call WHERE key = ?1")?;
    let before: Option<i64> =
        if new { None } else { known.query_row([key], |r| r.get(0)).optional()? };
    db.prepare_cached("INSERT OR REPLACE INTO call VALUES (?1, ?2, ?3, ?4, ?5)")?
        .execute(params![key, name, at, ms, failed])?;
    if before.is_some() {
        db.prepare_cached("DELETE FROM edit WHERE key = ?1")?.execute([key])?;
    }
    keep_files(db, key, files)?;
    let calls = i64::from(before.is_none());
    Ok(More { items: 0, calls, failed: i64::from(*failed) - before.unwrap_or(0) })
}

pub(crate) fn keep_files(db: &Connection, key: i64, files: &[ChangedFile]) -> Result<()> {
    for ChangedFile { path, added, removed } in files {
        db.prepare_cached("INSERT OR REPLACE INTO edit VALUES (?1, ?2, ?3, ?4)")?
            .execute(params![key, path, added, removed])?;
    }
    Ok(())
}
