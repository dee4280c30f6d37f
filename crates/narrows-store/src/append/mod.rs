//! Appending to the logs of sessions.
//!
//! An [`Append`] is encoded on the caller's thread; the writer passes groups of them to
//! [`write_all`], one transaction each. Read `write.rs` next, then `context.rs`.

pub(crate) mod context;
pub(crate) mod item_write;
mod session_update;
mod write;
mod writer_token;

pub(crate) use write::write_all;
pub use writer_token::Pen;

use crate::blobs::NewBlob;
use crate::compress;
use crate::error::{Error, Result};
use crate::event_row::EventRow;
use crate::items::ItemWrite;
use crate::log::event_block::{self, LogRow};
use crate::search::trigrams::TrigramSet;
use crate::sessions::stats::UsageRow;
use crate::sources::checkpoint::{BodyDigest, SourceMark};
use bytes::Bytes;
use item_write::EncodedItemWrite;
use narrows::session::{SessionInfo, Status};
use narrows::{Clean, stored};
use std::borrow::Cow;

/// The header of a session, serialized.
#[derive(Debug, Clone, Default)]
pub struct SessionFacts {
    /// The header as clients see it, as JSON.
    pub info: String,
    /// The header with the state needed to resume, as JSON.
    pub state: String,
    /// The title.
    pub title: Option<String>,
    /// The agent.
    pub agent: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// The status, by name.
    pub status: Option<String>,
    /// The agent's own id of the session.
    pub native: Option<String>,
    /// The last component of the agent's working directory.
    pub project: Option<String>,
}

impl SessionFacts {
    /// Serializes a header. A session whose source has ended is never running, whatever its last
    /// status was.
    pub fn of(info: &SessionInfo, ended: bool, project: Option<&str>) -> Result<SessionFacts> {
        let not_utf8 = |_| Error::Invalid("cannot serialize the session header".to_owned());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(not_utf8);
        let as_string = |t: &Option<Clean>| t.as_ref().map(|t| t.as_str().to_owned());
        // The resume state is stored unchanged.
        let state = text(stored::print_info(info))?;
        let mut info = Cow::Borrowed(info);
        if ended && info.status == Status::Running {
            info.to_mut().status = Status::Idle;
        }
        let mut visible = Vec::new();
        narrows::json::print(&mut visible, &*info).map_err(|e| Error::Invalid(e.to_string()))?;
        Ok(SessionFacts {
            info: text(visible)?,
            state,
            title: as_string(&info.title),
            agent: as_string(&info.agent),
            model: as_string(&info.model),
            status: Some(info.status.name().to_owned()),
            native: as_string(&info.native_id),
            project: project.map(str::to_owned),
        })
    }
}

/// A request with an idempotency key, which may be repeated.
#[derive(Debug, Clone)]
pub struct Request {
    /// The idempotency key.
    pub key: String,
    /// The number of its first packet.
    pub first: u64,
    /// The response, once the request is complete.
    pub answer: Option<String>,
    /// The length and hash of the body received so far.
    pub digest: Option<BodyDigest>,
}

/// An append to a session's log: all of it is committed, or none.
#[derive(Debug, Default)]
pub struct Append {
    /// The key of the session.
    pub session: i64,
    /// The last event the caller knows; if the log ends elsewhere, the append fails with a
    /// conflict.
    pub after: u64,
    /// The events.
    pub events: Vec<EventRow>,
    /// The writes of item rows.
    pub items: Vec<ItemWrite>,
    /// The last event whose changes are all in item rows.
    pub settled: u64,
    /// The order of the next item.
    pub next_order: u64,
    /// Items from this order on have no rows, as far as the caller knows.
    pub new_from: Option<u64>,
    /// No item of the session has a parent, as far as the caller knows all items.
    pub flat: bool,
    /// The header, if it changed.
    pub facts: Option<SessionFacts>,
    /// The checkpoints of the sources.
    pub sources: Vec<SourceMark>,
    /// Blobs that the events refer to.
    pub blobs: Vec<NewBlob>,
    /// Times of the first and the last event, in milliseconds since 1970.
    pub times: Option<(i64, i64)>,
    /// Milliseconds of activity, by hours since 1970.
    pub active: Vec<(i64, u64)>,
    /// Token usage and costs.
    pub usage: Vec<UsageRow>,
    /// The id of the session's first answer, if this append contains it.
    pub first_answer: Option<String>,
    /// More record hashes that were read up to the last checkpoint.
    pub seen: Vec<u64>,
    /// All record hashes read since the last checkpoint, if they changed.
    pub loose: Option<Vec<u64>>,
    /// Index the items in this append rather than in maintenance: for bulk imports, where no caller
    /// waits.
    pub at_once: bool,
    /// The caller waits for durability: it may commit the append itself, if inline commits are
    /// enabled.
    pub waits: bool,
    /// The request that sent these events.
    pub request: Option<Request>,
    /// Whether the source has ended.
    pub ended: Option<bool>,
    /// When the events arrived, in milliseconds since 1970 by the clock of this machine.
    pub heard: Option<i64>,
    /// The number of the agent's open requests.
    pub waiting: Option<u64>,
    /// The writer's token, where several nodes write: if another writer has appended since, the
    /// append fails.
    pub pen: Option<Pen>,
    /// The fencing token of the caller's run: if another node holds a newer one, the append fails.
    pub fence: Option<u64>,
}

/// An append, encoded for the database.
#[derive(Debug)]
pub(crate) struct EncodedAppend {
    pub(crate) append: Append,
    events: Vec<EncodedRow>,
    pub(crate) items: Vec<EncodedItemWrite>,
    /// Bytes of the events before compression.
    bytes: u64,
    /// Approximate size in memory, in bytes.
    pub(crate) size: usize,
}

/// A row of the log: an event or an event block.
#[derive(Debug)]
struct EncodedRow {
    first: u64,
    last: u64,
    kind: Cow<'static, str>,
    /// The compressed event or block, or the three uncompressed parts.
    payload: std::result::Result<Vec<u8>, [Option<Bytes>; 3]>,
}

impl EncodedRow {
    fn new(row: LogRow) -> EncodedRow {
        match row {
            LogRow::Block { first, last, data } => {
                EncodedRow { first, last, kind: event_block::BLOCK_KIND.into(), payload: Ok(data) }
            }
            LogRow::Event(EventRow { seq, kind, event, changes, activity }) => {
                let parts = [Some(event), changes, activity];
                let payload =
                    compress::compress(&parts.each_ref().map(Option::as_deref)).ok_or(parts);
                EncodedRow { first: seq, last: seq, kind, payload }
            }
        }
    }
}

impl EncodedAppend {
    pub(crate) fn new(mut append: Append) -> Result<EncodedAppend> {
        let mut encoded = EncodedAppend {
            events: Vec::new(),
            items: Vec::with_capacity(append.items.len()),
            bytes: 0,
            size: append.blobs.iter().map(|b| b.bytes.len()).sum::<usize>() + 256,
            append: Append::default(),
        };
        for event in &append.events {
            encoded.bytes += event.payload_len() as u64;
            // The memory of followers counts uncompressed bytes.
            encoded.size += event.size();
        }
        event_block::pack_events(append.events.drain(..), |row| {
            encoded.events.push(EncodedRow::new(row));
        });
        let mut trigrams = append.at_once.then(TrigramSet::default);
        for write in append.items.drain(..) {
            let (row, size) = EncodedItemWrite::new(write, trigrams.as_mut())?;
            encoded.size += size;
            encoded.items.push(row);
        }
        encoded.append = append;
        Ok(encoded)
    }
}
