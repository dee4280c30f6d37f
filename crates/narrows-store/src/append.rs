//! Appending to a session's log.

use crate::blob::NewBlob;
use crate::error::{Error, Result};
use crate::log::{EventRow, MAX_SEQ, event_key};
use crate::names::now;
use crate::rows::{self, More, RowWrite};
use crate::source::SourceMark;
use crate::stats::{self, UsageRow};
use crate::store::Store;
use crate::threes::Threes;
use crate::{blob, files, pack, sessions, source};
use bytes::Bytes;
use narrows::{Change, Item};
use rusqlite::{Connection, OptionalExtension, params};
use std::borrow::Cow;
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
    /// The agent's own id of the session.
    pub native: Option<String>,
    /// The last name of the folder in which the agent works.
    pub project: Option<String>,
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
    /// When the events were: the first and the last of them, in milliseconds since 1970.
    pub times: Option<(i64, i64)>,
    /// How long something was going on, by hours since 1970.
    pub active: Vec<(i64, u64)>,
    /// What answers of models used, and what was paid.
    pub usage: Vec<UsageRow>,
    /// More records that were read up to the last rest.
    pub seen: Vec<u64>,
    /// All that were read since, when they have changed.
    pub loose: Option<Vec<u64>>,
    /// Items go into the index of search at once, rather than when there is time: for much at once,
    /// which nobody waits for.
    pub at_once: bool,
    /// The request that this belongs to.
    pub request: Option<Request>,
    /// Whether the source is over.
    pub ended: Option<bool>,
}

impl Store {
    /// Appends; the receiver tells when it is durable, and where the log ends then.
    /// Returns when there is room: callers that are too fast wait here.
    pub async fn append(&self, append: Append) -> Result<oneshot::Receiver<Result<u64>>> {
        // Printing and packing is done here: there is one writer, and many who wait for it.
        let ready = Ready::new(append)?;
        self.send(ready.size, move |db| run(db, ready)).await
    }
}

/// What is to be written, as it will be kept.
struct Ready {
    append: Append,
    events: Vec<Row>,
    items: Vec<RowWrite>,
    /// Bytes of the events.
    bytes: u64,
    /// Bytes that it holds, about.
    size: usize,
}

/// A row of the log.
struct Row {
    seq: u64,
    kind: Cow<'static, str>,
    /// All of it packed, or its three parts.
    kept: std::result::Result<Vec<u8>, [Option<Bytes>; 3]>,
}

impl Ready {
    fn new(mut append: Append) -> Result<Ready> {
        let mut ready = Ready {
            events: Vec::with_capacity(append.events.len()),
            items: Vec::with_capacity(append.items.len()),
            bytes: 0,
            size: append.blobs.iter().map(|b| b.bytes.len()).sum::<usize>() + 256,
            append: Append::default(),
        };
        for event in append.events.drain(..) {
            let EventRow { seq, kind, event, changes, activity } = event;
            let parts = [Some(event), changes, activity];
            let size = parts.iter().flatten().map(Bytes::len).sum::<usize>();
            ready.bytes += size as u64;
            // Whoever waits for this has it unpacked.
            ready.size += 96 + size;
            let kept = pack::pack(&parts.each_ref().map(Option::as_deref)).ok_or(parts);
            ready.events.push(Row { seq, kind, kept });
        }
        let mut threes = append.at_once.then(Threes::default);
        for write in append.items.drain(..) {
            let (row, size) = RowWrite::new(write, threes.as_mut())?;
            ready.size += size;
            ready.items.push(row);
        }
        ready.append = append;
        Ok(ready)
    }
}

fn run(db: &Connection, ready: Ready) -> Result<u64> {
    let Ready { append, events, items, bytes, .. } = ready;
    let session = append.session;
    let mut ends = db.prepare_cached("SELECT seq FROM session WHERE key = ?1")?;
    let last: Option<u64> = ends.query_row([session], |r| r.get(0)).optional()?;
    let last = last.ok_or(Error::NotFound("session"))?;
    if last != append.after {
        return Err(Error::Conflict { last });
    }
    let next = last + events.len() as u64;
    if next > MAX_SEQ {
        return Err(Error::Invalid("the session is too long".to_owned()));
    }
    insert(db, session, last, &events)?;
    let mut more = More::default();
    for write in items {
        more += rows::write(db, session, write)?;
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
    for row in &append.usage {
        stats::keep_usage(db, session, row)?;
    }
    for (hour, ms) in &append.active {
        db.prepare_cached(
            "INSERT INTO active VALUES (?1, ?2, ?3)
             ON CONFLICT DO UPDATE SET ms = ms + excluded.ms",
        )?
        .execute(params![session, hour, ms])?;
    }
    if !append.seen.is_empty() {
        files::keep_seen(db, session, next, &append.seen)?;
    }
    if let Some(loose) = &append.loose {
        files::keep_loose(db, session, loose)?;
    }
    let touched = sessions::touch(db)?;
    let at = now();
    // A session is as old as what it tells; one that tells no times is as old as its rows.
    let (first, newest) = match append.times {
        Some((first, newest)) => (Some(first), Some(newest)),
        // Events without a time, as those of a file that was found, make an old session no newer.
        None => (None, (next > last && last == 0).then_some(at)),
    };
    db.prepare_cached(
        "UPDATE session SET seq = ?2, settled = ?3, next_order = ?4, touched = ?5,
         bytes = bytes + ?6, ended = coalesce(?7, ended), items = items + ?8,
         created = min(created, coalesce(?9, created)),
         updated = CASE WHEN ?10 IS NULL THEN updated WHEN seq = 0 THEN ?10 ELSE max(updated, ?10) END,
         calls = calls + ?11, failed = failed + ?12 WHERE key = ?1",
    )?
    .execute(params![
        session,
        next,
        append.settled,
        append.next_order,
        touched,
        bytes,
        append.ended,
        more.items,
        first,
        newest,
        more.calls,
        more.failed
    ])?;
    if let Some(f) = append.facts {
        db.prepare_cached(
            "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6, status = ?7,
             native = coalesce(?8, native), project = coalesce(?9, project) WHERE key = ?1",
        )?
        .execute(params![
            session, f.info, f.state, f.title, f.agent, f.model, f.status, f.native, f.project
        ])?;
    }
    Ok(next)
}

fn insert(db: &Connection, session: i64, last: u64, events: &[Row]) -> Result<()> {
    let mut insert = db.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)")?;
    for (seq, row) in (last + 1..).zip(events) {
        if row.seq != seq {
            return Err(Error::Conflict { last });
        }
        let key = event_key(session, seq);
        match &row.kept {
            Ok(packed) => {
                insert.execute(params![key, row.kind, packed, None::<&str>, None::<&str>])?
            }
            Err(parts) => {
                let [event, changes, activity] =
                    parts.each_ref().map(|p| p.as_deref().map(text).transpose());
                insert.execute(params![key, row.kind, event?, changes?, activity?])?
            }
        };
    }
    Ok(())
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| Error::Invalid("an event is not text".to_owned()))
}
