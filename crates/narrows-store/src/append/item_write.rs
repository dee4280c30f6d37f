//! Writing item rows and what is derived from them: tool calls, file edits, first prompts and
//! search terms.

use crate::append::context::{Batch, Known};
use crate::compress::{Kept, text};
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::items::ItemWrite;
use crate::items::derived::{Call, call, is_there, parent};
use crate::items::first_prompt;
use crate::items::{read_item, row};
use crate::keys::{event_key, keys, number};
use crate::search::index::{self, said};
use crate::search::trigrams::Threes;
use crate::sum::{self, ItemSum};
use narrows::tool::ChangedFile;
use narrows::{Change, Item};
use std::ops::AddAssign;
use std::sync::Arc;

/// The length to which a chain of parents is followed.
const MAX_ABOVE: usize = 64;

/// A write of an item row, encoded.
#[derive(Debug)]
pub(crate) enum RowWrite {
    Put(Arc<NewRow>),
    Patch { id: String, changes: Vec<(u64, Change)> },
    Remove { id: String },
}

/// The columns of an item row.
#[derive(Debug)]
pub(crate) struct NewRow {
    pub(crate) id: String,
    pub(crate) order: u64,
    pub(crate) seq: u64,
    pub(crate) kind: &'static str,
    pub(crate) open: bool,
    pub(crate) body: Kept,
    /// The id of the parent call.
    pub(crate) parent: Option<String>,
    /// The first line of the prompt, if the item is a prompt of the session itself.
    pub(crate) prompt: Option<String>,
    pub(crate) call: Option<Call>,
    /// The search terms of the item; without them the item waits in the search queue.
    pub(crate) tokens: Option<String>,
}

/// Changes of a session's counters of items, finished calls and failed calls.
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
    /// Serializes and compresses a write; with `index`, extracts the search terms too. Also returns
    /// the approximate size in bytes before compression.
    pub(crate) fn new(write: ItemWrite, index: Option<&mut Threes>) -> Result<(RowWrite, usize)> {
        Ok(match write {
            ItemWrite::Put { item, seq } => {
                let (row, size) = NewRow::new(&item, seq, index)?;
                (RowWrite::Put(Arc::new(row)), size)
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
            prompt: first_prompt::of(item),
            call: call(item).filter(|_| !open),
            tokens: index.filter(|_| !open).map(|threes| said(&body, threes)),
            body: Kept::new(body),
        };
        Ok((row, size))
    }

    /// The input of the row's checksum, for a key and a stored body.
    pub(crate) fn sum<'a>(&'a self, key: i64, body: &'a [u8]) -> ItemSum<'a> {
        let NewRow { id, seq, kind, open, parent, .. } = self;
        ItemSum { key, id, seq: *seq, kind, open: *open, body, parent: parent.as_deref() }
    }
}

fn print(item: &Item) -> Result<String> {
    let mut body = Vec::with_capacity(512);
    narrows::json::print(&mut body, item).map_err(|e| Error::Invalid(e.to_string()))?;
    String::from_utf8(body).map_err(|_| Error::Invalid("an item is not text".to_owned()))
}

/// Writes items and returns the changes of the counters. New rows may stay pending in `context`.
pub(crate) fn write(
    db: &Db<'_>,
    session: i64,
    writes: &[RowWrite],
    batch: &mut Batch,
) -> Result<More> {
    let mut more = More::default();
    for write in writes {
        more += match write {
            RowWrite::Put(row) => put(db, session, row, batch)?,
            RowWrite::Patch { id, changes } => patch(db, session, id, changes, batch)?,
            RowWrite::Remove { id } => {
                batch.write(db)?;
                batch.forget(session, id);
                remove(db, session, id)?
            }
        };
    }
    Ok(more)
}

fn patch(
    db: &Db<'_>,
    session: i64,
    id: &str,
    changes: &[(u64, Change)],
    batch: &mut Batch,
) -> Result<More> {
    batch.write(db)?;
    let Some((known, mut item)) = row(db, session, id)? else { return Ok(More::default()) };
    let mut last = known;
    for (seq, change) in changes {
        if *seq > known {
            item.apply(change.clone());
            last = *seq;
        }
    }
    if last == known {
        return Ok(More::default());
    }
    put(db, session, &Arc::new(NewRow::new(&item, last, None)?.0), batch)
}

fn remove(db: &Db<'_>, session: i64, id: &str) -> Result<More> {
    let gone: Option<i64> = db.optional(
        "DELETE FROM item WHERE session = ?1 AND id = ?2 RETURNING key",
        &params![session, id],
        |r| r.get(0),
    )?;
    let Some(key) = gone else { return Ok(More::default()) };
    let call = "DELETE FROM call WHERE key = ?1 RETURNING failed";
    let called: Option<i64> = db.optional(call, &params![key], |r| r.get(0))?;
    index::remove(db, key)?;
    db.later("DELETE FROM fresh WHERE key = ?1", &params![key])?;
    db.later("DELETE FROM edit WHERE key = ?1", &params![key])?;
    // Children of a removed item return to the top level.
    let (first, last) = keys(session);
    db.later(
        "UPDATE item INDEXED BY item_child SET top = 1, crc = (crc & 4294967295) + 4294967296
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3",
        &params![id, first, last],
    )?;
    first_prompt::removed(db, session, number(key))?;
    let calls = -i64::from(called.is_some());
    Ok(More { items: -1, calls, failed: -called.unwrap_or(0) })
}

/// Inserts or updates the row of an item.
fn put(db: &Db<'_>, session: i64, row: &Arc<NewRow>, batch: &mut Batch) -> Result<More> {
    let top = match row.parent.as_deref().map(|parent| (parent, batch.key(session, parent))) {
        None => true,
        Some((_, Known::Row(_))) => false,
        Some((_, Known::NoRow)) => true,
        Some((parent, Known::Not)) => !is_there(db, session, parent)?,
    };
    let mut known = match batch.key(session, &row.id) {
        Known::Row(key) => Some(key),
        Known::NoRow | Known::Not => None,
    };
    if batch.is_together() {
        // Calls with parents can form cycles, which only the database can resolve.
        let plain = row.kind != "tool_call" || row.parent.is_none();
        if known.is_none() && plain {
            batch.add(session, Arc::clone(row), top);
            let calls = i64::from(row.call.is_some());
            let failed = i64::from(row.call.as_ref().is_some_and(|call| call.failed));
            return Ok(More { items: 1, calls, failed });
        }
        if known.is_none_or(|key| batch.waits(key)) {
            batch.write(db)?;
        }
    }
    if known.is_none() {
        let key = event_key(session, row.order);
        let new = db.execute(
            "INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) ON CONFLICT DO NOTHING",
            &params![
                key,
                session,
                row.id,
                row.seq,
                row.kind,
                row.open,
                row.body,
                row.parent,
                top,
                row.sum(key, row.body.bytes()).at(top)
            ],
        )?;
        if new > 0 {
            // Only calls have children.
            if row.kind == "tool_call" {
                take_below(db, session, row)?;
            }
            batch.wrote(session, &row.id, key);
            let mut more = beside(db, session, key, row, true)?;
            more += More { items: 1, ..More::default() };
            return Ok(more);
        }
        let there = "SELECT key FROM item WHERE session = ?1 AND id = ?2";
        known = Some(db.one(there, &params![session, row.id], |r| r.get(0))?);
    }
    let Some(key) = known else { return Ok(More::default()) };
    // An item that is put again keeps its position.
    let order = number(key);
    let body = if order == row.order {
        &row.body
    } else {
        let item = read_item(&text(row.body.bytes())?)?;
        &Kept::new(print(&Item { order, ..item })?)
    };
    db.later(
        "UPDATE item SET seq = ?2, open = ?3, body = ?4, kind = ?5, parent = ?6,
         top = CASE WHEN parent IS NOT DISTINCT FROM ?6 THEN top ELSE ?7 END,
         crc = ?8 + 4294967296 * CASE WHEN parent IS NOT DISTINCT FROM ?6 THEN top ELSE ?7 END
         WHERE key = ?1",
        &params![
            key,
            row.seq,
            row.open,
            body,
            row.kind,
            row.parent,
            top,
            row.sum(key, body.bytes()).end()
        ],
    )?;
    beside(db, session, key, row, false)
}

/// Moves items that were written before their parent below it.
fn take_below(db: &Db<'_>, session: i64, row: &NewRow) -> Result<()> {
    let (first, last) = keys(session);
    let early: Vec<(i64, String)> = db.all(
        "SELECT key, id FROM item INDEXED BY item_child
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3 AND top = 1",
        &params![row.id, first, last],
        |r| Ok((r.get(0)?, r.get(1)?)),
    )?;
    if early.is_empty() {
        return Ok(());
    }
    let above = above(db, session, row.parent.clone())?;
    for (key, id) in early {
        // A cycle of calls needs one top-level item, or none of them would be visible.
        if !above.contains(&id) {
            db.later(
                "UPDATE item SET top = 0, crc = crc & 4294967295 WHERE key = ?1",
                &params![key],
            )?;
        }
    }
    Ok(())
}

/// The parents of a call, nearest first.
fn above(db: &Db<'_>, session: i64, mut next: Option<String>) -> Result<Vec<String>> {
    let query = "SELECT parent FROM item WHERE session = ?1 AND id = ?2";
    let mut above = Vec::new();
    while let Some(id) = next.take()
        && above.len() < MAX_ABOVE
    {
        next = db.optional(query, &params![session, id], |r| r.get(0))?.flatten();
        above.push(id);
    }
    Ok(above)
}

/// Writes the side tables of an item row: search terms or queue, first prompt, tool call. Returns
/// the changes of the call counters.
fn beside(db: &Db<'_>, session: i64, key: i64, row: &NewRow, new: bool) -> Result<More> {
    if let Some(tokens) = &row.tokens {
        index::put(db, key, tokens)?;
        db.later("DELETE FROM fresh WHERE key = ?1", &params![key])?;
    } else {
        db.later("INSERT INTO fresh VALUES (?1) ON CONFLICT DO NOTHING", &params![key])?;
    }
    if let Some(prompt) = &row.prompt {
        first_prompt::keep(db, session, number(key), prompt)?;
    }
    match &row.call {
        Some(call) => keep_call(db, key, call, new),
        None => Ok(More::default()),
    }
}

pub(crate) fn keep_call(db: &Db<'_>, key: i64, call: &Call, new: bool) -> Result<More> {
    let Call { name, at, ms, failed, files } = call;
    let known = "SELECT failed FROM call WHERE key = ?1";
    let before: Option<i64> =
        if new { None } else { db.optional(known, &params![key], |r| r.get(0))? };
    db.later(
        "INSERT INTO call (key, name, at, ms, failed, crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (key) DO UPDATE SET name = excluded.name, at = excluded.at, ms = excluded.ms,
         failed = excluded.failed, crc = excluded.crc",
        &params![key, name, at, ms, failed, sum::of(&params![key, name, at, ms, failed])],
    )?;
    if before.is_some() {
        db.later("DELETE FROM edit WHERE key = ?1", &params![key])?;
    }
    keep_files(db, key, files)?;
    let calls = i64::from(before.is_none());
    Ok(More { items: 0, calls, failed: i64::from(*failed) - before.unwrap_or(0) })
}

pub(crate) fn keep_files(db: &Db<'_>, key: i64, files: &[ChangedFile]) -> Result<()> {
    for ChangedFile { path, added, removed } in files {
        db.later(
            "INSERT INTO edit (key, path, added, removed, crc) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (key, path) DO UPDATE SET added = excluded.added,
             removed = excluded.removed, crc = excluded.crc",
            &params![key, path, added, removed, sum::of(&params![key, path, added, removed])],
        )?;
    }
    Ok(())
}
