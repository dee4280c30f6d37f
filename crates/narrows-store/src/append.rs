//! Appending to a session's log.

use crate::blob::NewBlob;
use crate::error::{Error, Result};
use crate::log::{EventRow, MAX_SEQ, event_key};
use crate::names::now;
use crate::source::SourceMark;
use crate::store::Store;
use crate::{blob, items, sessions, source};
use narrows::{Change, Item};
use rusqlite::{Connection, OptionalExtension, params};
use tokio::sync::oneshot;

/// What happens to the row of an item.
#[derive(Debug)]
pub enum ItemWrite {
    /// The item as it is after the event `seq`.
    Put {
        /// The item.
        item: Box<Item>,
        /// The last event whose change is in it.
        seq: u64,
    },
    /// Changes of an item whose row was written before.
    Patch {
        /// The item.
        id: String,
        /// The changes, each with its event.
        changes: Vec<(u64, Change)>,
    },
    /// The item is gone.
    Remove {
        /// The item.
        id: String,
    },
}

/// The header of a session.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// As it is shown.
    pub info: String,
    /// With what is needed to go on.
    pub state: String,
    /// What the session is about.
    pub title: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Whether something is going on.
    pub status: Option<String>,
}

/// A request that may be sent again.
#[derive(Debug, Clone)]
pub struct Request {
    /// Its key.
    pub key: String,
    /// The place of its first packet.
    pub first: u64,
    /// Its answer, when it is over.
    pub answer: Option<String>,
}

/// One step of a session's log: all of it is kept, or nothing.
#[derive(Debug, Default)]
pub struct Append {
    /// The session.
    pub session: i64,
    /// Where the caller knows the log to end. If it does not, nothing is appended.
    pub after: u64,
    /// The events that come after.
    pub events: Vec<EventRow>,
    /// What becomes of the items.
    pub items: Vec<ItemWrite>,
    /// The last event whose changes are all in the rows of items.
    pub settled: u64,
    /// The order of the next item.
    pub next_order: u64,
    /// The header, when it has changed.
    pub facts: Option<SessionFacts>,
    /// How far the sources were read.
    pub sources: Vec<SourceMark>,
    /// Pictures.
    pub blobs: Vec<NewBlob>,
    /// The request that this belongs to.
    pub request: Option<Request>,
    /// Whether the source is over.
    pub ended: Option<bool>,
}

impl Append {
    /// Bytes that it holds, about.
    pub fn size(&self) -> usize {
        let events = self.events.iter().map(EventRow::size);
        let blobs = self.blobs.iter().map(|b| b.bytes.len());
        256 + events.sum::<usize>() + blobs.sum::<usize>()
    }
}

impl Store {
    /// Appends; the receiver tells when it is durable, and where the log ends then.
    /// Returns when there is room: callers that are too fast wait here.
    pub async fn append(&self, append: Append) -> Result<oneshot::Receiver<Result<u64>>> {
        self.send(append.size(), move |db| run(db, append)).await
    }
}

fn run(db: &Connection, append: Append) -> Result<u64> {
    let session = append.session;
    let mut ends = db.prepare_cached("SELECT seq FROM session WHERE key = ?1")?;
    let last: Option<u64> = ends.query_row([session], |r| r.get(0)).optional()?;
    let last = last.ok_or(Error::NotFound("session"))?;
    if last != append.after {
        return Err(Error::Conflict { last });
    }
    let next = last + append.events.len() as u64;
    if next > MAX_SEQ {
        return Err(Error::Invalid("the session is too long".to_owned()));
    }
    let bytes = insert(db, session, last, &append.events)?;
    let mut more_items = 0;
    for write in append.items {
        more_items += items::write(db, session, write)?;
    }
    for blob in &append.blobs {
        blob::keep(db, session, blob)?;
    }
    for mark in &append.sources {
        source::keep(db, session, mark)?;
    }
    if let Some(Request { key, first, answer }) = &append.request {
        db.prepare_cached(
            "INSERT INTO request VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET answer = excluded.answer",
        )?
        .execute(params![session, key, first, answer, now()])?;
    }
    let touched = sessions::touch(db)?;
    db.prepare_cached(
        "UPDATE session SET seq = ?2, settled = ?3, next_order = ?4, updated = ?5, touched = ?6,
         bytes = bytes + ?7, ended = coalesce(?8, ended), items = items + ?9 WHERE key = ?1",
    )?
    .execute(params![
        session,
        next,
        append.settled,
        append.next_order,
        now(),
        touched,
        bytes,
        append.ended,
        more_items
    ])?;
    if let Some(f) = append.facts {
        db.prepare_cached(
            "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6, status = ?7
             WHERE key = ?1",
        )?
        .execute(params![session, f.info, f.state, f.title, f.agent, f.model, f.status])?;
    }
    Ok(next)
}

fn insert(db: &Connection, session: i64, last: u64, events: &[EventRow]) -> Result<u64> {
    let mut insert = db.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)")?;
    let mut bytes = 0;
    for (seq, event) in (last + 1..).zip(events) {
        if event.seq != seq {
            return Err(Error::Conflict { last });
        }
        let changes = event.changes.as_deref().map(text).transpose()?;
        let activity = event.activity.as_deref().map(text).transpose()?;
        insert.execute(params![
            event_key(session, seq),
            event.kind,
            text(&event.event)?,
            changes,
            activity
        ])?;
        let parts = [changes, activity].into_iter().flatten().map(str::len);
        bytes += (event.event.len() + parts.sum::<usize>()) as u64;
    }
    Ok(bytes)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::Invalid("an event is not text".to_owned()))
}
