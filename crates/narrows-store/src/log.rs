//! Reading a session's log.

use crate::bundle;
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::pack::{is_packed, unpack};
use crate::store::Store;
use bytes::Bytes;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Events of one session at most: their number is half of a row's key.
pub(crate) const MAX_SEQ: u64 = u32::MAX as u64;

/// The key of an event's row, or of an item's by its order.
pub(crate) fn event_key(session: i64, seq: u64) -> i64 {
    (session << 32) | i64::try_from(seq.min(MAX_SEQ)).unwrap_or(i64::MAX)
}

/// The first and the last key of a session's rows.
pub(crate) fn keys(session: i64) -> (i64, i64) {
    (event_key(session, 0), event_key(session, MAX_SEQ))
}

/// The number within its session of what a key names.
pub(crate) fn number(key: i64) -> u64 {
    u64::try_from(key & 0xffff_ffff).unwrap_or(0)
}

/// One row of the log.
#[derive(Debug, Clone)]
pub struct EventRow {
    /// Its number.
    pub seq: u64,
    /// Its type.
    pub kind: Cow<'static, str>,
    /// The event, as it is served.
    pub event: Bytes,
    /// The changes it made, an array.
    pub changes: Option<Bytes>,
    /// The messages of the activity view, an array.
    pub activity: Option<Bytes>,
}

impl EventRow {
    /// Bytes of what it says.
    pub(crate) fn said(&self) -> usize {
        let len = |b: &Option<Bytes>| b.as_ref().map_or(0, Bytes::len);
        self.event.len() + len(&self.changes) + len(&self.activity)
    }

    /// Its bytes, about.
    pub fn size(&self) -> usize {
        96 + self.said()
    }
}

/// Some rows of a log.
#[derive(Debug, Clone, Default)]
pub struct Page {
    /// The rows, without a gap.
    pub rows: Vec<EventRow>,
    /// Where the log ended when they were read.
    pub last: u64,
    /// The life of the log.
    pub epoch: String,
    /// Whether its source said that nothing more comes.
    pub ended: bool,
}

impl Store {
    /// Rows after `seq`, at most `rows` and about `bytes` (one row in any case).
    pub async fn events_after(
        &self,
        session: i64,
        seq: u64,
        rows: usize,
        bytes: usize,
    ) -> Result<Page> {
        self.read(move |db| {
            let found = db.optional(
                "SELECT seq, epoch, ended FROM session WHERE key = ?1",
                &params![session],
                |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)),
            )?;
            let (last, epoch, ended) = found.ok_or(Error::NotFound("session"))?;
            let rows = after(db, session, seq, rows, bytes)?;
            Ok(Page { rows, last, epoch, ended })
        })
        .await
    }

    /// The last rows of a log from its last prompt on, oldest first; at most `rows`.
    pub async fn last_turn(&self, session: i64, rows: usize) -> Result<Vec<EventRow>> {
        self.read(move |db| {
            let (first, last) = keys(session);
            let mut turn = Vec::new();
            db.each(
                "SELECT key, kind, event, NULL, NULL FROM event WHERE key BETWEEN ?1 AND ?2
                 ORDER BY key DESC LIMIT ?3",
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
        })
        .await
    }
}

pub(crate) fn after(
    db: &Db<'_>,
    session: i64,
    seq: u64,
    rows: usize,
    bytes: usize,
) -> Result<Vec<EventRow>> {
    let (mut out, mut size) = (Vec::new(), 0);
    if rows == 0 {
        return Ok(out);
    }
    db.each(
        "SELECT key, kind, event, changes, activity FROM event WHERE key > ?1 AND key <= ?2 ORDER BY key",
        &params![event_key(session, seq), keys(session).1],
        |row| {
            for event in read_all(row)?.into_iter().filter(|event| event.seq > seq) {
                size += event.size();
                out.push(event);
                if out.len() >= rows || size >= bytes {
                    return Ok(ControlFlow::Break(()));
                }
            }
            Ok(ControlFlow::Continue(()))
        },
    )?;
    Ok(out)
}

/// The events of a row.
pub(crate) fn read_all(row: &Row<'_>) -> Result<Vec<EventRow>> {
    let (seq, kept) = (number(row.get(0)?), row.bytes(2)?.unwrap_or_default());
    if let Some(events) = bundle::open(seq, kept)? {
        return Ok(events);
    }
    Ok(vec![one(seq, row.get(1)?, kept, row.bytes(3)?, row.bytes(4)?)?])
}

/// The events of a row of the database: of its key and its columns.
pub fn events_of(
    key: i64,
    kind: &str,
    event: &[u8],
    changes: Option<&[u8]>,
    activity: Option<&[u8]>,
) -> Result<Vec<EventRow>> {
    if let Some(events) = bundle::open(number(key), event)? {
        return Ok(events);
    }
    Ok(vec![one(number(key), kind.to_owned(), event, changes, activity)?])
}

/// An event that has a row of its own, with its parts packed or not.
fn one(
    seq: u64,
    kind: String,
    event: &[u8],
    changes: Option<&[u8]>,
    activity: Option<&[u8]>,
) -> Result<EventRow> {
    let kind = Cow::Owned(kind);
    if is_packed(event) {
        let mut parts = unpack(event)?.into_iter().map(|part| part.map(Bytes::from));
        let mut next = || parts.next().flatten();
        let (event, changes, activity) = (next().unwrap_or_default(), next(), next());
        return Ok(EventRow { seq, kind, event, changes, activity });
    }
    let [changes, activity] = [changes, activity].map(|part| part.map(Bytes::copy_from_slice));
    Ok(EventRow { seq, kind, event: Bytes::copy_from_slice(event), changes, activity })
}
