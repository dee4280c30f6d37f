//! Appending to a session's log.

pub(crate) mod context;
pub(crate) mod item_write;
mod session_update;
mod write;
mod writer_token;

pub(crate) use write::all;
pub use writer_token::Pen;

use crate::blobs::NewBlob;
use crate::compress;
use crate::error::{Error, Result};
use crate::event_row::EventRow;
pub(crate) use crate::items::ItemWrite;
use crate::log::event_block::{self, Tied};
use crate::search::trigrams::Threes;
use crate::sessions::stats::UsageRow;
use crate::sources::checkpoint::{BodyDigest, SourceMark};
use bytes::Bytes;
use item_write::RowWrite;
use narrows::session::{SessionInfo, Status};
use narrows::{Clean, stored};
use std::borrow::Cow;

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

impl SessionFacts {
    /// Of a header. A session that is over does not run, whatever its last word was.
    pub fn of(info: &SessionInfo, ended: bool, project: Option<&str>) -> Result<SessionFacts> {
        let unprintable = |_| Error::Invalid("a header cannot be printed".to_owned());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).map_err(unprintable);
        let own = |t: &Option<Clean>| t.as_ref().map(|t| t.as_str().to_owned());
        // What is needed to go on is kept as it is.
        let state = text(stored::print_info(info))?;
        let mut info = Cow::Borrowed(info);
        if ended && info.status == Status::Running {
            info.to_mut().status = Status::Idle;
        }
        let mut shown = Vec::new();
        narrows::json::print(&mut shown, &*info).map_err(|e| Error::Invalid(e.to_string()))?;
        Ok(SessionFacts {
            info: text(shown)?,
            state,
            title: own(&info.title),
            agent: own(&info.agent),
            model: own(&info.model),
            status: Some(info.status.name().to_owned()),
            native: own(&info.native_id),
            project: project.map(str::to_owned),
        })
    }
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
    /// What it held up to now.
    pub digest: Option<BodyDigest>,
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
    /// Items from this order on have no rows yet, as far as the caller knows.
    pub new_from: Option<u64>,
    /// No item of the session names a call above it, as far as the caller knows all of them.
    pub flat: bool,
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
    /// The message that was the session's first answer, when that is among them.
    pub first_answer: Option<String>,
    /// More records that were read up to the last rest.
    pub seen: Vec<u64>,
    /// All that were read since, when they have changed.
    pub loose: Option<Vec<u64>>,
    /// Items go into the index of search at once, rather than when there is time: for much at once,
    /// which nobody waits for.
    pub at_once: bool,
    /// Nothing is done until it is durable: whoever appends may as well write it, where that is allowed.
    pub waits: bool,
    /// The request that this belongs to.
    pub request: Option<Request>,
    /// Whether the source is over.
    pub ended: Option<bool>,
    /// When this arrived, in milliseconds since 1970 by the clock of this machine.
    pub heard: Option<i64>,
    /// How many requests of the agent wait for an answer now.
    pub waiting: Option<u64>,
    /// Whoever writes: if somebody else has written since, nothing is appended. Where others can write
    /// at all.
    pub pen: Option<Pen>,
    /// The number by which the caller runs the session's agent: if another node has a newer one,
    /// nothing is appended.
    pub fence: Option<u64>,
}

/// What is to be written, as it will be kept.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) append: Append,
    events: Vec<Row>,
    pub(crate) items: Vec<RowWrite>,
    /// Bytes of the events.
    bytes: u64,
    /// Bytes that it holds, about.
    pub(crate) size: usize,
}

/// A row of the log: an event, or several.
#[derive(Debug)]
struct Row {
    first: u64,
    last: u64,
    kind: Cow<'static, str>,
    /// All of it packed, or its three parts.
    kept: std::result::Result<Vec<u8>, [Option<Bytes>; 3]>,
}

impl Row {
    fn new(tied: Tied) -> Row {
        match tied {
            Tied::Bundle { first, last, kept } => {
                Row { first, last, kind: event_block::KIND.into(), kept: Ok(kept) }
            }
            Tied::One(EventRow { seq, kind, event, changes, activity }) => {
                let parts = [Some(event), changes, activity];
                let kept = compress::pack(&parts.each_ref().map(Option::as_deref)).ok_or(parts);
                Row { first: seq, last: seq, kind, kept }
            }
        }
    }
}

impl Ready {
    pub(crate) fn new(mut append: Append) -> Result<Ready> {
        let mut ready = Ready {
            events: Vec::new(),
            items: Vec::with_capacity(append.items.len()),
            bytes: 0,
            size: append.blobs.iter().map(|b| b.bytes.len()).sum::<usize>() + 256,
            append: Append::default(),
        };
        for event in &append.events {
            ready.bytes += event.said() as u64;
            // Whoever waits for this has it unpacked.
            ready.size += event.size();
        }
        event_block::tie(append.events.drain(..), |tied| ready.events.push(Row::new(tied)));
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
