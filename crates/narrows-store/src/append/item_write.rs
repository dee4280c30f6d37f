//! Writing item rows and what is derived from them: tool calls, file edits, first prompts and
//! search terms.

use crate::append::context::{AppendContext, RowLookup};
use crate::checksum::{self, ItemChecksum};
use crate::compress::{MaybeCompressed, decode_text};
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::items::ItemWrite;
use crate::items::derived::{ToolCallRow, parent, row_exists, tool_call_row};
use crate::items::first_prompt;
use crate::items::{read_item, row};
use crate::keys::{event_key, keys, number};
use crate::search::index::{self, search_terms};
use crate::search::trigrams::TrigramSet;
use narrows::tool::ChangedFile;
use narrows::{Change, Item};
use std::ops::AddAssign;
use std::sync::Arc;

/// The length to which a chain of parents is followed.
const MAX_ABOVE: usize = 64;

/// A write of an item row, encoded.
#[derive(Debug)]
pub(crate) enum EncodedItemWrite {
    Put(Arc<ItemRowData>),
    Patch { id: String, changes: Vec<(u64, Change)> },
    Remove { id: String },
}

/// The columns of an item row.
#[derive(Debug)]
pub(crate) struct ItemRowData {
    pub(crate) id: String,
    pub(crate) order: u64,
    pub(crate) seq: u64,
    pub(crate) kind: &'static str,
    pub(crate) open: bool,
    pub(crate) body: MaybeCompressed,
    /// The id of the parent call.
    pub(crate) parent: Option<String>,
    /// The first line of the prompt, if the item is a prompt of the session itself.
    pub(crate) prompt: Option<String>,
    pub(crate) call: Option<ToolCallRow>,
    /// The search terms of the item; without them the item waits in the search queue.
    pub(crate) tokens: Option<String>,
}

/// Changes of a session's counters of items, finished calls and failed calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct CounterDelta {
    pub(crate) items: i64,
    pub(crate) calls: i64,
    pub(crate) failed: i64,
}

impl AddAssign for CounterDelta {
    fn add_assign(&mut self, delta: CounterDelta) {
        self.items += delta.items;
        self.calls += delta.calls;
        self.failed += delta.failed;
    }
}

impl EncodedItemWrite {
    /// Serializes and compresses a write; with `index`, extracts the search terms too. Also returns
    /// the approximate size in bytes before compression.
    pub(crate) fn new(
        write: ItemWrite,
        index: Option<&mut TrigramSet>,
    ) -> Result<(EncodedItemWrite, usize)> {
        Ok(match write {
            ItemWrite::Put { item, seq } => {
                let (row, size) = ItemRowData::new(&item, seq, index)?;
                (EncodedItemWrite::Put(Arc::new(row)), size)
            }
            ItemWrite::Patch { id, changes } => {
                let size = 256 * (1 + changes.len());
                (EncodedItemWrite::Patch { id, changes }, size)
            }
            ItemWrite::Remove { id } => (EncodedItemWrite::Remove { id }, 64),
        })
    }
}

impl ItemRowData {
    fn new(item: &Item, seq: u64, index: Option<&mut TrigramSet>) -> Result<(ItemRowData, usize)> {
        let body = to_json(item)?;
        let (size, open) = (256 + body.len(), item.is_open());
        let row = ItemRowData {
            id: item.id.as_str().to_owned(),
            order: item.order,
            seq,
            kind: item.body.kind(),
            open,
            parent: parent(item).map(str::to_owned),
            prompt: first_prompt::first_line(item),
            call: tool_call_row(item).filter(|_| !open),
            tokens: index.filter(|_| !open).map(|trigrams| search_terms(&body, trigrams)),
            body: MaybeCompressed::new(body),
        };
        Ok((row, size))
    }

    /// The input of the row's checksum, for a key and a stored body.
    pub(crate) fn sum<'a>(&'a self, key: i64, body: &'a [u8]) -> ItemChecksum<'a> {
        let ItemRowData { id, seq, kind, open, parent, .. } = self;
        ItemChecksum { key, id, seq: *seq, kind, open: *open, body, parent: parent.as_deref() }
    }
}

fn to_json(item: &Item) -> Result<String> {
    let mut body = Vec::with_capacity(512);
    narrows::json::print(&mut body, item).map_err(|e| Error::Invalid(e.to_string()))?;
    String::from_utf8(body).map_err(|_| Error::Invalid("an item is not UTF-8".to_owned()))
}

/// Writes items and returns the changes of the counters. New rows may stay pending in `context`.
pub(crate) fn write_items(
    db: &Db<'_>,
    session: i64,
    writes: &[EncodedItemWrite],
    context: &mut AppendContext,
) -> Result<CounterDelta> {
    let mut delta = CounterDelta::default();
    for write in writes {
        delta += match write {
            EncodedItemWrite::Put(row) => put(db, session, row, context)?,
            EncodedItemWrite::Patch { id, changes } => patch(db, session, id, changes, context)?,
            EncodedItemWrite::Remove { id } => {
                context.flush(db)?;
                context.record_removal(session, id);
                remove(db, session, id)?
            }
        };
    }
    Ok(delta)
}

fn patch(
    db: &Db<'_>,
    session: i64,
    id: &str,
    changes: &[(u64, Change)],
    context: &mut AppendContext,
) -> Result<CounterDelta> {
    context.flush(db)?;
    let Some((row_seq, mut item)) = row(db, session, id)? else {
        return Ok(CounterDelta::default());
    };
    let mut last = row_seq;
    for (seq, change) in changes {
        if *seq > row_seq {
            item.apply(change.clone());
            last = *seq;
        }
    }
    if last == row_seq {
        return Ok(CounterDelta::default());
    }
    put(db, session, &Arc::new(ItemRowData::new(&item, last, None)?.0), context)
}

fn remove(db: &Db<'_>, session: i64, id: &str) -> Result<CounterDelta> {
    let deleted: Option<i64> = db.query_opt(
        "DELETE FROM item WHERE session = ?1 AND id = ?2 RETURNING key",
        &params![session, id],
        |r| r.get(0),
    )?;
    let Some(key) = deleted else { return Ok(CounterDelta::default()) };
    let delete_call = "DELETE FROM call WHERE key = ?1 RETURNING failed";
    let was_failed: Option<i64> = db.query_opt(delete_call, &params![key], |r| r.get(0))?;
    index::remove(db, key)?;
    db.execute_pipelined("DELETE FROM fresh WHERE key = ?1", &params![key])?;
    db.execute_pipelined("DELETE FROM edit WHERE key = ?1", &params![key])?;
    // Children of a removed item return to the top level.
    let (first, last) = keys(session);
    db.execute_pipelined(
        "UPDATE item INDEXED BY item_child SET top = 1, crc = (crc & 4294967295) + 4294967296
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3",
        &params![id, first, last],
    )?;
    first_prompt::removed(db, session, number(key))?;
    let calls = -i64::from(was_failed.is_some());
    Ok(CounterDelta { items: -1, calls, failed: -was_failed.unwrap_or(0) })
}

/// Inserts or updates the row of an item.
fn put(
    db: &Db<'_>,
    session: i64,
    row: &Arc<ItemRowData>,
    context: &mut AppendContext,
) -> Result<CounterDelta> {
    let top = match row.parent.as_deref().map(|parent| (parent, context.lookup(session, parent))) {
        None => true,
        Some((_, RowLookup::Row(_))) => false,
        Some((_, RowLookup::Absent)) => true,
        Some((parent, RowLookup::Unknown)) => !row_exists(db, session, parent)?,
    };
    let mut known_key = match context.lookup(session, &row.id) {
        RowLookup::Row(key) => Some(key),
        RowLookup::Absent | RowLookup::Unknown => None,
    };
    if context.writes_in_bulk() {
        // Calls with parents can form cycles, which only the database can resolve.
        let plain = row.kind != "tool_call" || row.parent.is_none();
        if known_key.is_none() && plain {
            context.push(session, Arc::clone(row), top);
            let calls = i64::from(row.call.is_some());
            let failed = i64::from(row.call.as_ref().is_some_and(|call| call.failed));
            return Ok(CounterDelta { items: 1, calls, failed });
        }
        if known_key.is_none_or(|key| context.is_pending(key)) {
            context.flush(db)?;
        }
    }
    if known_key.is_none() {
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
                row.sum(key, row.body.bytes()).with_level(top)
            ],
        )?;
        if new > 0 {
            // Only calls have children.
            if row.kind == "tool_call" {
                adopt_children(db, session, row)?;
            }
            context.record_row(session, &row.id, key);
            let mut delta = write_side_tables(db, session, key, row, true)?;
            delta += CounterDelta { items: 1, ..CounterDelta::default() };
            return Ok(delta);
        }
        let there = "SELECT key FROM item WHERE session = ?1 AND id = ?2";
        known_key = Some(db.query_one(there, &params![session, row.id], |r| r.get(0))?);
    }
    let Some(key) = known_key else { return Ok(CounterDelta::default()) };
    // An item that is put again keeps its position.
    let order = number(key);
    let body = if order == row.order {
        &row.body
    } else {
        let item = read_item(&decode_text(row.body.bytes())?)?;
        &MaybeCompressed::new(to_json(&Item { order, ..item })?)
    };
    db.execute_pipelined(
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
            row.sum(key, body.bytes()).without_level()
        ],
    )?;
    write_side_tables(db, session, key, row, false)
}

/// Moves items that were written before their parent below it.
fn adopt_children(db: &Db<'_>, session: i64, row: &ItemRowData) -> Result<()> {
    let (first, last) = keys(session);
    let earlier: Vec<(i64, String)> = db.query_all(
        "SELECT key, id FROM item INDEXED BY item_child
         WHERE parent = ?1 AND key BETWEEN ?2 AND ?3 AND top = 1",
        &params![row.id, first, last],
        |r| Ok((r.get(0)?, r.get(1)?)),
    )?;
    if earlier.is_empty() {
        return Ok(());
    }
    let ancestor_ids = ancestors(db, session, row.parent.clone())?;
    for (key, id) in earlier {
        // A cycle of calls needs one top-level item, or none of them would be visible.
        if !ancestor_ids.contains(&id) {
            db.execute_pipelined(
                "UPDATE item SET top = 0, crc = crc & 4294967295 WHERE key = ?1",
                &params![key],
            )?;
        }
    }
    Ok(())
}

/// The parents of a call, nearest first.
fn ancestors(db: &Db<'_>, session: i64, mut next: Option<String>) -> Result<Vec<String>> {
    let query = "SELECT parent FROM item WHERE session = ?1 AND id = ?2";
    let mut ancestor_ids = Vec::new();
    while let Some(id) = next.take()
        && ancestor_ids.len() < MAX_ABOVE
    {
        next = db.query_opt(query, &params![session, id], |r| r.get(0))?.flatten();
        ancestor_ids.push(id);
    }
    Ok(ancestor_ids)
}

/// Writes the side tables of an item row: search terms or queue, first prompt, tool call. Returns
/// the changes of the call counters.
fn write_side_tables(
    db: &Db<'_>,
    session: i64,
    key: i64,
    row: &ItemRowData,
    new: bool,
) -> Result<CounterDelta> {
    if let Some(tokens) = &row.tokens {
        index::put(db, key, tokens)?;
        db.execute_pipelined("DELETE FROM fresh WHERE key = ?1", &params![key])?;
    } else {
        db.execute_pipelined(
            "INSERT INTO fresh VALUES (?1) ON CONFLICT DO NOTHING",
            &params![key],
        )?;
    }
    if let Some(prompt) = &row.prompt {
        first_prompt::put(db, session, number(key), prompt)?;
    }
    match &row.call {
        Some(call) => write_tool_call(db, key, call, new),
        None => Ok(CounterDelta::default()),
    }
}

pub(crate) fn write_tool_call(
    db: &Db<'_>,
    key: i64,
    call: &ToolCallRow,
    new: bool,
) -> Result<CounterDelta> {
    let ToolCallRow { name, at, ms, failed, files } = call;
    let select_failed = "SELECT failed FROM call WHERE key = ?1";
    let before: Option<i64> =
        if new { None } else { db.query_opt(select_failed, &params![key], |r| r.get(0))? };
    db.execute_pipelined(
        "INSERT INTO call (key, name, at, ms, failed, crc) VALUES (?1, ?2, ?3, ?4, ?5, ?6)
         ON CONFLICT (key) DO UPDATE SET name = excluded.name, at = excluded.at, ms = excluded.ms,
         failed = excluded.failed, crc = excluded.crc",
        &params![
            key,
            name,
            at,
            ms,
            failed,
            checksum::of_values(&params![key, name, at, ms, failed])
        ],
    )?;
    if before.is_some() {
        db.execute_pipelined("DELETE FROM edit WHERE key = ?1", &params![key])?;
    }
    write_file_edits(db, key, files)?;
    let calls = i64::from(before.is_none());
    Ok(CounterDelta { items: 0, calls, failed: i64::from(*failed) - before.unwrap_or(0) })
}

pub(crate) fn write_file_edits(db: &Db<'_>, key: i64, files: &[ChangedFile]) -> Result<()> {
    for ChangedFile { path, added, removed } in files {
        db.execute_pipelined(
            "INSERT INTO edit (key, path, added, removed, crc) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (key, path) DO UPDATE SET added = excluded.added,
             removed = excluded.removed, crc = excluded.crc",
            &params![
                key,
                path,
                added,
                removed,
                checksum::of_values(&params![key, path, added, removed])
            ],
        )?;
    }
    Ok(())
}
