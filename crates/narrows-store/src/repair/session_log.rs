//! One session of a store that is made anew: its events and items that can be read, and what is made
//! of them where something is missing.

use super::copy::walk;
use crate::append::{ItemWrite, SessionFacts};
use crate::batch::Batch;
use crate::damage;
use crate::db::{Db, Value, params};
use crate::error::{Error, Result};
use crate::items;
use crate::log::{EventRow, event_key, keys, number, read_row};
use crate::rows::{self, RowWrite, call, keep_call};
use crate::sum;
use crate::tail::Tail;
use bytes::Bytes;
use narrows::{Change, Item, stored};
use rusqlite::Connection;
use std::ops::ControlFlow;

/// Rows of the log whose changes are made at once.
const AT_ONCE: usize = 500;
/// Orders that are tried for a notice.
const TRIES: u64 = 64;
/// Stands in changes that tell the header.
const INFO: &str = r#""change":"info""#;
const EVENT: &str = "key, kind, event, changes, activity, crc";

/// What was copied of a session.
#[derive(Debug, Default)]
pub(super) struct Copied {
    /// Its last event, as far as its log tells, and how many events there are.
    pub(super) last: u64,
    pub(super) events: u64,
    /// Events that are missing, from the first to the last of them.
    pub(super) gaps: Vec<(u64, u64)>,
    /// Bytes of its log.
    pub(super) bytes: u64,
    /// Its items, and whether rows of some cannot be read.
    pub(super) items: u64,
    pub(super) torn: bool,
    /// The last changes that tell the header.
    header: Option<Bytes>,
    /// The id that its events name.
    pub(super) id: Option<String>,
}

/// The two stores, and a session in them.
#[derive(Clone, Copy)]
pub(super) struct Log<'a> {
    pub(super) old: &'a Connection,
    pub(super) new: &'a Connection,
    pub(super) session: i64,
}

impl Log<'_> {
    fn db(&self) -> Db<'_> {
        Db::Sqlite(self.new)
    }

    /// Copies what can be read.
    pub(super) fn copy(&self) -> Result<Copied> {
        let mut copied = Copied::default();
        self.events(&mut copied)?;
        self.items(&mut copied)?;
        Ok(copied)
    }

    fn events(&self, copied: &mut Copied) -> Result<()> {
        let insert = "INSERT OR IGNORE INTO event (key, kind, event, changes, activity, crc)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
        let mut torn = false;
        let over = walk(self.old, ("event", EVENT), keys(self.session), |key, row| {
            let events = read_row(row).unwrap_or_default();
            let (Some(first), Some(last)) = (events.first(), events.last()) else {
                torn = true;
                return Ok(());
            };
            let next = copied.last + 1;
            if first.seq < next || last.seq != number(key) {
                torn = true;
                return Ok(());
            }
            // What stands for events that were lost before stands for all before it.
            if first.seq > next && first.kind != damage::KIND {
                copied.gaps.push((next, first.seq - 1));
            }
            copied.last = last.seq;
            copied.events += events.len() as u64;
            for event in events {
                copied.look(event);
            }
            let parts = [row.bytes(2)?, row.bytes(3)?, row.bytes(4)?];
            let sum = sum::event(key, &row.get::<String>(1)?, parts);
            let mut values: Vec<Value<'_>> =
                (0..5).map(|at| row.value(at)).collect::<Result<_>>()?;
            values.push(Value::Int(sum));
            self.db().execute(insert, &values).map(|_| ())
        })?;
        copied.torn |= torn | over;
        Ok(())
    }

    fn items(&self, copied: &mut Copied) -> Result<()> {
        let insert = format!(
            "INSERT OR IGNORE INTO item ({}, session) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, {})",
            items::COLUMNS,
            self.session
        );
        let mut torn = false;
        let over = walk(self.old, ("item", items::COLUMNS), keys(self.session), |_, row| {
            if items::read_row(row).is_none() {
                torn = true;
                return Ok(());
            }
            let values: Vec<Value<'_>> = (0..9).map(|at| row.value(at)).collect::<Result<_>>()?;
            copied.items += self.db().execute(&insert, &values)? as u64;
            Ok(())
        })?;
        copied.torn |= torn | over;
        Ok(())
    }

    /// Copies the calls of the session and the files that they changed; returns how many calls there
    /// are, none when something cannot be read.
    pub(super) fn calls(&self) -> Result<Option<u64>> {
        let (first, last) = keys(self.session);
        let mut count = 0;
        let torn =
            walk(self.old, ("call", "key, name, at, ms, failed, crc"), (first, last), |_, row| {
                let values: Result<Vec<Value<'_>>> = (0..6).map(|at| row.value(at)).collect();
                let sound = sum::row_holds(row, &[0, 1, 2, 3, 4], 5).unwrap_or(false);
                if let Some(values) = values.ok().filter(|_| sound) {
                    let insert = "INSERT OR IGNORE INTO call (key, name, at, ms, failed, crc)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)";
                    count += self.db().execute(insert, &values)? as u64;
                }
                Ok(())
            })?;
        let (mut refused, sql) = (
            None,
            "SELECT key, path, added, removed, crc FROM edit WHERE key BETWEEN ?1 AND ?2 ORDER BY key",
        );
        let edits = Db::Sqlite(self.old).each(sql, &params![first, last], |row| {
            if !sum::row_holds(row, &[0, 1, 2, 3], 4)? {
                return Err(Error::Damaged("a changed file is not as it was written".to_owned()));
            }
            let values: Vec<Value<'_>> = (0..5).map(|at| row.value(at)).collect::<Result<_>>()?;
            let insert = "INSERT OR IGNORE INTO edit (key, path, added, removed, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5)";
            if let Err(error) = self.db().execute(insert, &values) {
                refused = Some(error);
                return Ok(ControlFlow::Break(()));
            }
            Ok(ControlFlow::Continue(()))
        });
        match (refused, edits) {
            (Some(error), _) => Err(error),
            (None, Err(error)) if error.is_unreadable() => Ok(None),
            (None, edits) => edits.map(|()| (!torn).then_some(count)),
        }
    }

    /// Makes the calls of the session anew, from its items.
    pub(super) fn make_calls(&self) -> Result<()> {
        let (first, last) = keys(self.session);
        for table in ["call", "edit"] {
            let sql = format!("DELETE FROM {table} WHERE key BETWEEN ?1 AND ?2");
            self.db().execute(&sql, &params![first, last])?;
        }
        walk(self.new, ("item", items::COLUMNS), (first, last), |key, row| {
            let Some((_, item)) = items::read_row(row) else { return Ok(()) };
            if let Some(call) = call(&item).filter(|_| !item.is_open()) {
                keep_call(&self.db(), key, &call, true)?;
            }
            Ok(())
        })
        .map(|_| ())
    }

    /// Makes the rows of items that are missing or behind, from the log.
    pub(super) fn replay(&self, last: u64) -> Result<()> {
        let (db, mut settled, mut most) = (self.db(), 0, AT_ONCE);
        while settled < last {
            let sql =
                "SELECT key FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key LIMIT 1 OFFSET ?3";
            let (from, to) = (event_key(self.session, settled), keys(self.session).1);
            let until: Option<i64> =
                db.optional(sql, &params![from, to, most - 1], |r| r.get(0))?;
            let until = until.map_or(last, number);
            let tail = match Tail::read(&db, self.session, settled, until) {
                Err(Error::Damaged(_)) if most > 1 => {
                    most = 1;
                    continue;
                }
                // Changes that nobody understands change nothing.
                Err(Error::Damaged(_)) => Tail::default(),
                tail => tail?,
            };
            most = AT_ONCE;
            let mut writes = Vec::new();
            for (item, seq) in tail.catch_up(&db, self.session, until)? {
                let item = self.placed(item)?;
                writes.push(RowWrite::new(ItemWrite::Put { item: Box::new(item), seq }, None)?.0);
            }
            rows::write(&db, self.session, &writes, &mut Batch::default())?;
            settled = until;
        }
        // What stood below a call that is there no more is not hidden with it.
        db.later(
            "UPDATE item SET top = 1, crc = (crc & 4294967295) + 4294967296
             WHERE session = ?1 AND top = 0 AND NOT EXISTS
             (SELECT 1 FROM item p WHERE p.session = item.session AND p.id = item.parent)",
            &params![self.session],
        )
    }

    /// An item at a place that no other has.
    fn placed(&self, item: Item) -> Result<Item> {
        let sql = "SELECT id FROM item WHERE key = ?1";
        let key = event_key(self.session, item.order);
        let there: Option<String> = self.db().optional(sql, &params![key], |r| r.get(0))?;
        match there {
            Some(id) if id != item.id.as_str() => Ok(Item { order: self.next_order()?, ..item }),
            _ => Ok(item),
        }
    }

    /// The order after that of the last item.
    pub(super) fn next_order(&self) -> Result<u64> {
        let (first, last) = keys(self.session);
        let sql = "SELECT max(key) FROM item WHERE key BETWEEN ?1 AND ?2";
        let key: Option<i64> = self.db().one(sql, &params![first, last], |r| r.get(0))?;
        Ok(key.map_or(0, |key| number(key) + 1))
    }

    /// Says for good where events are missing, in the log and beside the items.
    pub(super) fn tell(&self, id: &str, (first, last): (u64, u64), next_order: u64) -> Result<()> {
        let db = self.db();
        let (low, high) = keys(self.session);
        let sql =
            "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 AND seq >= ?3 ORDER BY key LIMIT 1";
        let near: Option<i64> = db.optional(sql, &params![low, high, first], |r| r.get(0))?;
        let end = self.next_order()?.max(next_order);
        let near = near.map_or(end, number);
        let is_free = |order: &u64| {
            let sql = "SELECT 1 FROM item WHERE key = ?1";
            matches!(db.exists(sql, &params![event_key(self.session, *order)]), Ok(false))
        };
        let order = (near..end.min(near + TRIES)).find(is_free).unwrap_or(end);
        let row = damage::lost(id, first, last, order);
        let EventRow { kind, event, changes, .. } = &row;
        let key = event_key(self.session, last);
        let sum = sum::event(key, kind, [Some(event), changes.as_deref(), None]);
        let text = |part: &Bytes| String::from_utf8_lossy(part).into_owned();
        db.later(
            "INSERT INTO event (key, kind, event, changes, crc) VALUES (?1, ?2, ?3, ?4, ?5)",
            &params![key, kind, text(event), changes.as_ref().map(text), sum],
        )?;
        for change in read_changes(changes.as_deref())? {
            if let Change::Put { item } = change {
                let write = RowWrite::new(ItemWrite::Put { item, seq: last }, None)?.0;
                rows::write(&db, self.session, &[write], &mut Batch::default())?;
            }
        }
        Ok(())
    }
}

impl Copied {
    fn look(&mut self, event: EventRow) {
        self.bytes += event.said() as u64;
        if self.id.is_none() {
            let told: Option<serde_json::Value> = serde_json::from_slice(&event.event).ok();
            self.id = told.and_then(|told| told["sessionId"].as_str().map(str::to_owned));
        }
        if let Some(changes) = event.changes
            && std::str::from_utf8(&changes).is_ok_and(|text| text.contains(INFO))
        {
            self.header = Some(changes);
        }
    }

    /// The header, as the log tells it last.
    pub(super) fn facts(&self, ended: bool, project: Option<&str>) -> Result<SessionFacts> {
        let info = read_changes(self.header.as_deref())?.into_iter().rev().find_map(|c| match c {
            Change::Info { info } => Some(*info),
            _ => None,
        });
        SessionFacts::of(&info.unwrap_or_default(), ended, project)
    }
}

fn read_changes(changes: Option<&[u8]>) -> Result<Vec<Change>> {
    let text = changes.and_then(|changes| std::str::from_utf8(changes).ok()).unwrap_or("[]");
    stored::changes(text).map_err(|e| Error::Damaged(format!("changes cannot be read: {e}")))
}
