//! Copies the events, items and tool calls of one session, and rebuilds item rows and tool calls where
//! something is missing.

use super::table_copy::walk;
use crate::append::SessionFacts;
use crate::append::context::AppendContext;
use crate::append::item_write;
use crate::append::item_write::{EncodedItemWrite, write_tool_call};
use crate::checksum;
use crate::checksum::columns::EDIT_MISMATCH;
use crate::damage::notice;
use crate::db::{Db, Value, params};
use crate::error::{Error, Result};
use crate::event_row::EventRow;
use crate::items;
use crate::items::ItemWrite;
use crate::items::derived::tool_call_row;
use crate::items::overlay::LogOverlay;
use crate::keys::{event_key, keys, number};
use crate::log::read_row;
use bytes::Bytes;
use narrows::{Change, Item, stored};
use rusqlite::Connection;
use std::ops::ControlFlow;

/// Log rows that one replay step applies.
const REPLAY_ROWS: usize = 500;
/// Item orders that are tried for a notice.
const MAX_ORDER_TRIES: u64 = 64;
/// Marks changes that set the session header.
const HEADER_CHANGE: &str = r#""change":"info""#;
const EVENT_COLUMNS: &str = "key, kind, event, changes, activity, crc";

/// The copied part of a session.
#[derive(Debug, Default)]
pub(super) struct CopiedLog {
    /// The last event.
    pub(super) last: u64,
    /// The number of events.
    pub(super) events: u64,
    /// Missing events: the first and the last of each range.
    pub(super) gaps: Vec<(u64, u64)>,
    /// Bytes of the log.
    pub(super) bytes: u64,
    /// The number of items.
    pub(super) items: u64,
    /// Whether rows of events or items cannot be read.
    pub(super) has_unreadable: bool,
    /// The last changes that set the session header.
    header_changes: Option<Bytes>,
    /// The session id in the events.
    pub(super) id: Option<String>,
}

/// A session in the old and in the new database.
#[derive(Clone, Copy)]
pub(super) struct SessionLog<'a> {
    pub(super) old: &'a Connection,
    pub(super) new: &'a Connection,
    pub(super) session: i64,
}

impl SessionLog<'_> {
    fn db(&self) -> Db<'_> {
        Db::Sqlite(self.new)
    }

    /// Copies the events and items that can be read.
    pub(super) fn copy(&self) -> Result<CopiedLog> {
        let mut copied = CopiedLog::default();
        self.copy_events(&mut copied)?;
        self.copy_items(&mut copied)?;
        Ok(copied)
    }

    fn copy_events(&self, copied: &mut CopiedLog) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO event (key, kind, event, changes, activity, crc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut has_unreadable = false;
        let has_gaps = walk(self.old, ("event", EVENT_COLUMNS), keys(self.session), |key, row| {
            let events = read_row(row).unwrap_or_default();
            let (Some(first), Some(last)) = (events.first(), events.last()) else {
                has_unreadable = true;
                return Ok(());
            };
            let next = copied.last + 1;
            if first.seq < next || last.seq != number(key) {
                has_unreadable = true;
                return Ok(());
            }
            // A notice of an earlier loss stands for all missing events before it.
            if first.seq > next && first.kind != notice::KIND {
                copied.gaps.push((next, first.seq - 1));
            }
            copied.last = last.seq;
            copied.events += events.len() as u64;
            for event in events {
                copied.add(event);
            }
            let parts = [row.bytes(2)?, row.bytes(3)?, row.bytes(4)?];
            let crc = checksum::of_event_row(key, &row.get::<String>(1)?, parts);
            let mut values: Vec<Value<'_>> =
                (0..5).map(|at| row.value(at)).collect::<Result<_>>()?;
            values.push(Value::Int(crc));
            self.db().execute(insert, &values).map(|_| ())
        })?;
        copied.has_unreadable |= has_unreadable | has_gaps;
        Ok(())
    }

    fn copy_items(&self, copied: &mut CopiedLog) -> Result<()> {
        let insert = format!(
            "INSERT OR IGNORE INTO item ({}, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, {})",
            items::COLUMNS,
            self.session
        );
        let mut has_unreadable = false;
        let has_gaps = walk(self.old, ("item", items::COLUMNS), keys(self.session), |_, row| {
            if items::read_row(row).is_none() {
                has_unreadable = true;
                return Ok(());
            }
            let values: Vec<Value<'_>> = (0..9).map(|at| row.value(at)).collect::<Result<_>>()?;
            copied.items += self.db().execute(&insert, &values)? as u64;
            Ok(())
        })?;
        copied.has_unreadable |= has_unreadable | has_gaps;
        Ok(())
    }

    /// Copies the tool calls and their edited files; returns the number of calls, none if a row cannot
    /// be read.
    pub(super) fn copy_calls(&self) -> Result<Option<u64>> {
        let (first, last) = keys(self.session);
        let mut count = 0;
        let has_gaps =
            walk(self.old, ("call", "key, name, at, ms, failed, crc"), (first, last), |_, row| {
                let values: Result<Vec<Value<'_>>> = (0..6).map(|at| row.value(at)).collect();
                let matches = checksum::row_matches(row, &[0, 1, 2, 3, 4], 5).unwrap_or(false);
                if let Some(values) = values.ok().filter(|_| matches) {
                    let insert = "INSERT OR IGNORE INTO call (key, name, at, ms, failed, crc)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                    count += self.db().execute(insert, &values)? as u64;
                }
                Ok(())
            })?;
        let sql = "SELECT key, path, added, removed, crc FROM edit WHERE key BETWEEN ?1 AND ?2 ORDER BY key";
        let mut insert_error = None;
        let edits = Db::Sqlite(self.old).query_each(sql, &params![first, last], |row| {
            if !checksum::row_matches(row, &[0, 1, 2, 3], 4)? {
                return Err(Error::Damaged(EDIT_MISMATCH.to_owned()));
            }
            let values: Vec<Value<'_>> = (0..5).map(|at| row.value(at)).collect::<Result<_>>()?;
            let insert = "INSERT OR IGNORE INTO edit (key, path, added, removed, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5)";
            if let Err(error) = self.db().execute(insert, &values) {
                insert_error = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        });
        match (insert_error, edits) {
            (Some(error), _) => Err(error),
            (None, Err(error)) if error.is_unreadable() => Ok(None),
            (None, edits) => edits.map(|()| (!has_gaps).then_some(count)),
        }
    }

    /// Rebuilds the tool calls from the items.
    pub(super) fn rebuild_calls(&self) -> Result<()> {
        let (first, last) = keys(self.session);
        for table in ["call", "edit"] {
            let sql = format!("DELETE FROM {table} WHERE key BETWEEN ?1 AND ?2");
            self.db().execute(&sql, &params![first, last])?;
        }
        walk(self.new, ("item", items::COLUMNS), (first, last), |key, row| {
            let Some((_, item)) = items::read_row(row) else { return Ok(()) };
            if let Some(call) = tool_call_row(&item).filter(|_| !item.is_open()) {
                write_tool_call(&self.db(), key, &call, true)?;
            }
            Ok(())
        })
        .map(|_| ())
    }

    /// Rebuilds item rows that are missing or outdated, from the log.
    pub(super) fn rebuild_items(&self, last: u64) -> Result<()> {
        let (db, mut materialized, mut max_rows) = (self.db(), 0, REPLAY_ROWS);
        while materialized < last {
            let sql =
                "SELECT key FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT 1 OFFSET ?3";
            let (from, to) = (event_key(self.session, materialized), keys(self.session).1);
            let until: Option<i64> =
                db.query_opt(sql, &params![from, to, max_rows - 1], |r| r.get(0))?;
            let until = until.map_or(last, number);
            let overlay = match LogOverlay::read(&db, self.session, materialized, until) {
                Err(Error::Damaged(_)) if max_rows > 1 => {
                    max_rows = 1;
                    continue;
                }
                // Changes that cannot be parsed are skipped.
                Err(Error::Damaged(_)) => LogOverlay::default(),
                overlay => overlay?,
            };
            max_rows = REPLAY_ROWS;
            let mut writes = Vec::new();
            for (item, seq) in overlay.catch_up(&db, self.session, until)? {
                let item = self.with_free_order(item)?;
                writes.push(
                    EncodedItemWrite::new(ItemWrite::Put { item: Box::new(item), seq }, None)?.0,
                );
            }
            item_write::write_items(&db, self.session, &writes, &mut AppendContext::default())?;
            materialized = until;
        }
        // Children of a lost tool call become top-level items, so that they stay visible.
        db.execute_pipelined(
            "UPDATE item SET top = 1, crc = (crc & 4294967295) + 4294967296
             WHERE session = ?1 AND top = 0 AND NOT EXISTS
             (SELECT 1 FROM item p WHERE p.session = item.session AND p.id = item.parent)",
            &params![self.session],
        )
    }

    /// Moves an item to the end if another one has its order.
    fn with_free_order(&self, item: Item) -> Result<Item> {
        let sql = "SELECT id FROM item WHERE key = ?1";
        let key = event_key(self.session, item.order);
        let stored: Option<String> = self.db().query_opt(sql, &params![key], |r| r.get(0))?;
        match stored {
            Some(id) if id != item.id.as_str() => Ok(Item { order: self.next_order()?, ..item }),
            _ => Ok(item),
        }
    }

    /// The order after that of the last item.
    pub(super) fn next_order(&self) -> Result<u64> {
        let (first, last) = keys(self.session);
        let sql = "SELECT max(key) FROM item WHERE key BETWEEN ?1 AND ?2";
        let key: Option<i64> = self.db().query_one(sql, &params![first, last], |r| r.get(0))?;
        Ok(key.map_or(0, |key| number(key) + 1))
    }

    /// Writes a notice in place of missing events, into the log and among the items.
    pub(super) fn write_notice(
        &self,
        id: &str,
        (first, last): (u64, u64),
        next_order: u64,
    ) -> Result<()> {
        let db = self.db();
        let (low, high) = keys(self.session);
        let sql =
            "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 AND seq >= ?3 ORDER BY key LIMIT 1";
        let nearest: Option<i64> = db.query_opt(sql, &params![low, high, first], |r| r.get(0))?;
        let end = self.next_order()?.max(next_order);
        let nearest = nearest.map_or(end, number);
        let is_free = |order: &u64| {
            let sql = "SELECT 1 FROM item WHERE key = ?1";
            matches!(db.exists(sql, &params![event_key(self.session, *order)]), Ok(false))
        };
        let order = (nearest..end.min(nearest + MAX_ORDER_TRIES)).find(is_free).unwrap_or(end);
        let notice::DamageEvent { event, changes, .. } =
            notice::lost_events(id, first, last, order);
        let kind = notice::KIND;
        let key = event_key(self.session, last);
        let crc = checksum::of_event_row(key, kind, [Some(&event), Some(&changes), None]);
        let text = |part: &Bytes| String::from_utf8_lossy(part).into_owned();
        db.execute_pipelined(
            "INSERT INTO event (key, kind, event, changes, crc) VALUES (?1, ?2, ?3, ?4, ?5)",
            &params![key, kind, text(&event), text(&changes), crc],
        )?;
        for change in read_changes(Some(&changes))? {
            if let Change::Put { item } = change {
                let write = EncodedItemWrite::new(ItemWrite::Put { item, seq: last }, None)?.0;
                item_write::write_items(
                    &db,
                    self.session,
                    &[write],
                    &mut AppendContext::default(),
                )?;
            }
        }
        Ok(())
    }
}

impl CopiedLog {
    fn add(&mut self, event: EventRow) {
        self.bytes += event.payload_len() as u64;
        if self.id.is_none() {
            let json: Option<serde_json::Value> = serde_json::from_slice(&event.event).ok();
            self.id = json.and_then(|json| json["sessionId"].as_str().map(str::to_owned));
        }
        if let Some(changes) = event.changes
            && std::str::from_utf8(&changes).is_ok_and(|text| text.contains(HEADER_CHANGE))
        {
            self.header_changes = Some(changes);
        }
    }

    /// The session header after the last event that set it.
    pub(super) fn header(&self, ended: bool, project: Option<&str>) -> Result<SessionFacts> {
        let info =
            read_changes(self.header_changes.as_deref())?.into_iter().rev().find_map(|c| match c {
                Change::Info { info } => Some(*info),
                _ => None,
            });
        SessionFacts::of(&info.unwrap_or_default(), ended, project)
    }
}

fn read_changes(changes: Option<&[u8]>) -> Result<Vec<Change>> {
    let text = changes.and_then(|changes| std::str::from_utf8(changes).ok()).unwrap_or("[]");
    stored::changes(text).map_err(|e| Error::Damaged(format!("cannot parse changes: {e}")))
}
