//! Reading the log of a session, around rows that are damaged.

pub(crate) mod event_block;

use crate::checksum;
use crate::compress::{decompress_parts, is_compressed};
use crate::damage::key_scan::{KeyScan, ScanStep};
use crate::damage::{self, Damage, notice};
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::event_row::EventRow;
use crate::keys::{event_key, keys, number};
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// A page of a log.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The events, without gaps except for notices of damage.
    pub rows: Vec<EventRow>,
    /// The end of the log when the page was read.
    pub last: u64,
    /// The epoch of the log.
    pub epoch: String,
    /// Whether the source has ended.
    pub ended: bool,
}

/// Reads events after `seq`: at most `rows`, about `bytes` bytes, at least one.
pub(crate) fn page(db: &Db<'_>, session: i64, seq: u64, rows: usize, bytes: usize) -> Result<Page> {
    let found = db.query_opt(
        &format!("SELECT {LOG_COUNTERS}, epoch, ended FROM session WHERE key = ?1"),
        &params![session],
        |r| Ok((LogCounters::read(r)?, r.get(5)?, r.get(6)?)),
    )?;
    let (numbers, epoch, ended) = found.ok_or(Error::NotFound("session"))?;
    let last = numbers.checked(db, session)?.seq;
    let rows = events_after(db, session, seq, last, rows, bytes)?;
    Ok(Page { rows, last, epoch, ended })
}

/// Reads the events from the last prompt on, oldest first; at most `rows`.
pub(crate) fn last_turn(db: &Db<'_>, session: i64, rows: usize) -> Result<Vec<EventRow>> {
    let (first, last) = keys(session);
    let mut turn = Vec::new();
    db.query_each(
        "SELECT key, kind, event, changes, activity, crc FROM event
         WHERE key BETWEEN ?1 AND ?2 ORDER BY key DESC LIMIT ?3",
        &params![first, last, rows],
        |row| {
            for event in read_all(row)?.into_iter().rev() {
                let begins = event.kind == "user_message";
                turn.push(event);
                if begins || turn.len() >= rows {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    turn.reverse();
    Ok(turn)
}

/// The columns of [`LogCounters::read`].
pub(crate) const LOG_COUNTERS: &str = "seq, settled, next_order, items, tally";
/// Logs up to this length are read from the start if the materialized position is unknown.
const MAX_FULL_REPLAY_EVENTS: u64 = 100_000;

/// The counters of a session's row.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct LogCounters {
    /// The last event, and the last one whose changes are all in item rows.
    pub(crate) seq: u64,
    pub(crate) settled: u64,
    pub(crate) next_order: u64,
    pub(crate) items: u64,
    tally: Option<i64>,
}

impl LogCounters {
    pub(crate) fn read(row: &Row<'_>) -> Result<LogCounters> {
        Ok(LogCounters {
            seq: row.get(0)?,
            settled: row.get(1)?,
            next_order: row.get(2)?,
            items: row.get(3)?,
            tally: row.get(4)?,
        })
    }

    /// Whether the counters match their checksum.
    pub(crate) fn hold(&self) -> bool {
        let LogCounters { seq, settled, next_order, items, tally } = *self;
        checksum::matches(tally, checksum::of_log_counters(seq, settled, next_order, items))
    }

    /// Returns the counters. Damaged ones are replaced: the end of the log is read from the log
    /// itself, and the item rows count as outdated.
    pub(crate) fn checked(mut self, db: &Db<'_>, session: i64) -> Result<LogCounters> {
        if !self.hold() {
            damage::report(Damage::new(session, damage::DamageKind::Session, 0, 0));
            let (first, last) = keys(session);
            let sql = "SELECT max(key) FROM event WHERE key BETWEEN ?1 AND ?2";
            let end: Option<i64> = db.query_one(sql, &params![first, last], |r| r.get(0))?;
            self.seq = end.map_or(0, number);
            self.settled =
                if self.seq > MAX_FULL_REPLAY_EVENTS { self.settled.min(self.seq) } else { 0 };
        }
        Ok(self)
    }
}

/// The columns of [`read_all`].
const COLUMNS: &str = "key, kind, event, changes, activity, crc";

/// Reads events after `seq` of a log that ends at `last`. Unreadable events are replaced by a
/// notice.
pub(crate) fn events_after(
    db: &Db<'_>,
    session: i64,
    seq: u64,
    last: u64,
    rows: usize,
    bytes: usize,
) -> Result<Vec<EventRow>> {
    let mut builder = PageBuilder { out: Vec::new(), size: 0, next: seq + 1, rows, bytes };
    if rows == 0 || seq >= last {
        return Ok(builder.out);
    }
    let until = event_key(session, last);
    let begin = event_key(session, seq);
    let mut last_key = begin;
    let sql = format!("SELECT {COLUMNS} FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key");
    let scanned = db.query_each(&sql, &params![begin, until], |row| {
        last_key = row.get(0)?;
        builder.add_row(db, session, read_row(row))
    });
    match scanned {
        Err(Error::Damaged(_)) if !db.is_postgres() => {
            // A page is unreadable: read row by row, around it.
            let mut keys = KeyScan::new("event", last_key + 1, until, false);
            let select_one = format!("SELECT {COLUMNS} FROM event WHERE key = ?1");
            while !builder.is_full()
                && let next = keys.next(db)?
                && next != ScanStep::End
            {
                let ScanStep::Key(key) = next else { continue };
                let read = match db.query_opt(&select_one, &params![key], |row| Ok(read_row(row))) {
                    Err(Error::Damaged(_)) => None,
                    read => read?.flatten(),
                };
                let _ = builder.add_row(db, session, read)?;
            }
        }
        scanned => scanned?,
    }
    if !builder.is_full() {
        builder.add_gap_notice(db, session, last + 1)?;
    }
    Ok(builder.out)
}

/// Collects events without gaps.
struct PageBuilder {
    out: Vec<EventRow>,
    size: usize,
    /// The number of the next event.
    next: u64,
    rows: usize,
    bytes: usize,
}

impl PageBuilder {
    fn is_full(&self) -> bool {
        self.out.len() >= self.rows || self.size >= self.bytes
    }

    /// Adds the events of a row, none if it is unreadable: the gap becomes known with the next
    /// readable row.
    fn add_row(
        &mut self,
        db: &Db<'_>,
        session: i64,
        events: Option<Vec<EventRow>>,
    ) -> Result<ControlFlow<()>> {
        let events = events.unwrap_or_default().into_iter();
        for event in events {
            // A repeated or misplaced row is not where it was written.
            if event.seq < self.next {
                continue;
            }
            // A notice of lost events covers all events before it.
            if event.seq > self.next && event.kind != notice::KIND {
                self.add_gap_notice(db, session, event.seq)?;
            }
            self.next = event.seq + 1;
            self.push(event);
            if self.is_full() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Adds a notice for the unreadable events before `until`.
    fn add_gap_notice(&mut self, db: &Db<'_>, session: i64, until: u64) -> Result<()> {
        if self.next < until {
            let (first, last) = (self.next, until - 1);
            damage::report(Damage::new(session, damage::DamageKind::Events, first, last));
            let id = "SELECT id FROM session WHERE key = ?1";
            let id: Option<String> = db.query_opt(id, &params![session], |r| r.get(0))?;
            let order = notice_order(db, session, first).unwrap_or(0);
            let id = id.unwrap_or_default();
            self.push(notice::unreadable_events(&id, first, last, order).into());
            self.next = until;
        }
        Ok(())
    }

    fn push(&mut self, event: EventRow) {
        self.size += event.size();
        self.out.push(event);
    }
}

/// The item position of a notice about an event: that of the first item that changed since.
fn notice_order(db: &Db<'_>, session: i64, seq: u64) -> Option<u64> {
    let (first, last) = keys(session);
    let sql = "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 AND seq >= ?3 ORDER BY key LIMIT 1";
    let key: Option<i64> = db.query_opt(sql, &params![first, last, seq], |r| r.get(0)).ok()?;
    let next = "SELECT next_order FROM session WHERE key = ?1";
    let next = || db.query_opt(next, &params![session], |r| r.get(0)).ok().flatten();
    key.map(number).or_else(next)
}

/// The events of a row; `None` if it does not match its checksum.
pub(crate) fn read_row(row: &Row<'_>) -> Option<Vec<EventRow>> {
    let (key, kind) = (row.get::<i64>(0).ok()?, row.get::<String>(1).ok()?);
    let [event, changes, activity] = [2, 3, 4].map(|at| row.bytes(at).ok());
    let (event, changes, activity) = (event?, changes?, activity?);
    match row.get::<Option<i64>>(5).ok()? {
        Some(sum) if sum != checksum::of_event_row(key, &kind, [event, changes, activity]) => None,
        checksum => {
            let events = events_of(key, &kind, event?, changes, activity).ok()?;
            // Rows of older versions that have no checksum yet must at least be JSON.
            let plausible = checksum.is_some() || events.iter().all(is_json);
            plausible.then_some(events)
        }
    }
}

fn is_json(event: &EventRow) -> bool {
    let json = |part: &[u8]| serde_json::from_slice::<serde::de::IgnoredAny>(part).is_ok();
    let lines = |part: &Bytes| part.split(|b| *b == b'\n').all(json);
    json(&event.event)
        && event.changes.as_deref().is_none_or(json)
        && event.activity.as_ref().is_none_or(lines)
}

/// The events of a row, none if it is damaged.
pub(crate) fn read_all(row: &Row<'_>) -> Result<Vec<EventRow>> {
    if let Some(events) = read_row(row) {
        return Ok(events);
    }
    let key: i64 = row.get(0)?;
    damage::report(Damage::new(key >> 32, damage::DamageKind::Events, number(key), number(key)));
    Ok(Vec::new())
}

/// Decodes the events of a log row from its key and columns.
pub fn events_of(
    key: i64,
    kind: &str,
    event: &[u8],
    changes: Option<&[u8]>,
    activity: Option<&[u8]>,
) -> Result<Vec<EventRow>> {
    if let Some(events) = event_block::unpack_events(number(key), event)? {
        return Ok(events);
    }
    Ok(vec![decode_event(number(key), kind.to_owned(), event, changes, activity)?])
}

/// Decodes an event with a row of its own, compressed or not.
fn decode_event(
    seq: u64,
    kind: String,
    event: &[u8],
    changes: Option<&[u8]>,
    activity: Option<&[u8]>,
) -> Result<EventRow> {
    let kind = Cow::Owned(kind);
    if is_compressed(event) {
        let mut parts = decompress_parts(event)?.into_iter().map(|part| part.map(Bytes::from));
        let mut next = || parts.next().flatten();
        let (event, changes, activity) = (next().unwrap_or_default(), next(), next());
        return Ok(EventRow { seq, kind, event, changes, activity });
    }
    let [changes, activity] = [changes, activity].map(|part| part.map(Bytes::copy_from_slice));
    Ok(EventRow { seq, kind, event: Bytes::copy_from_slice(event), changes, activity })
}
