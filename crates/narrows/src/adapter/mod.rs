//! Adapters: a format's packets to raw events. One module per family of formats.
//!
//! An adapter never fails and never shows text: what it cannot read is a
//! [`Malformed`] event, what it does not know an
//! [`Unknown`](crate::event::Unknown) one. Its state is bounded. It knows nothing of cleaning and
//! items.

mod acp;
mod blob;
mod claude;
mod detect;
mod input;
mod internal;
mod objects;
mod stops;

pub use blob::Blob;
pub(crate) use claude::{is_bookkeeping, used_again};
pub use claude::{launched, record_of, suggested};

use crate::change::Items;
use crate::event::{Body, Event, Malformed, Position};
use crate::id::EventId;
use crate::packet::{Format, Packet};
use crate::sanitize::Raw;
use crate::time::Time;

/// Longest text that is joined from pieces before it goes on.
const MAX_JOINED: usize = 16 << 10;

/// What an adapter yields for one packet.
#[derive(Debug, Default)]
pub struct Yield {
    /// The events, in order.
    pub events: Vec<Event<Raw>>,
    /// Pictures that they name.
    pub blobs: Vec<Blob>,
    /// Packets that are mere bookkeeping and give no event.
    pub quiet: u64,
    /// Folders in which the agent works, told in passing: they are to be hidden.
    pub roots: Vec<Raw>,
    /// The time of what is being read.
    time: Option<Time>,
}

impl Yield {
    fn push(&mut self, body: Body<Raw>) {
        self.push_in(None, body);
    }

    fn push_in(&mut self, parent: Option<Raw>, body: Body<Raw>) {
        self.events.push(Event {
            id: EventId::default(),
            began: EventId::default(),
            time: self.time.clone(),
            parent,
            body,
        });
    }

    /// Joins the one event after the first `held` with the one before, if both are pieces of a
    /// text; tells whether it did.
    pub(crate) fn join_last(&mut self, held: usize) -> bool {
        if held == 0 || self.events.len() != held + 1 {
            return false;
        }
        let Some([before, last]) = self.events.last_chunk_mut::<2>() else {
            return false;
        };
        let same = before.body.is_streamed()
            && last.body.is_streamed()
            && !before.body.is_whole()
            && !last.body.is_whole()
            && !last.body.has_images()
            && before.body.same_block(&last.body)
            && before.parent == last.parent;
        let (Some(text), Some(more)) = (before.body.text_mut(), last.body.text_mut()) else {
            return false;
        };
        if !same || text.peek().len() > MAX_JOINED {
            return false;
        }
        text.push(more);
        self.events.pop();
        true
    }

    fn malformed(&mut self, packet: &Packet<'_>, reason: &'static str, column: usize) {
        let column = column as u64;
        let Position { line, offset, .. } = packet.position;
        let position = Position { line, column, offset: offset + column };
        let length = packet.bytes.len() as u64;
        self.push(Body::Malformed(Malformed { reason, position, length, source: packet.source }));
    }
}

/// The reader of one format.
#[derive(Debug)]
pub enum Adapter {
    /// The Agent Client Protocol.
    Acp(Box<acp::Acp>),
    /// Claude Code, live and stored.
    Claude(Box<claude::Claude>),
    /// Not known yet: the first packet that tells decides. Until then everything is read as ACP.
    Undecided(Box<acp::Acp>, Option<String>),
}

impl Adapter {
    /// The reader of `format`; `only` names the session to read, where packets tell theirs.
    pub fn new(format: Format, only: Option<String>) -> Self {
        match format {
            Format::Acp => Adapter::Acp(Box::default()),
            Format::ClaudeStream | Format::ClaudeHistory => {
                Adapter::Claude(Box::new(claude::Claude::new(only)))
            }
            Format::Auto => Adapter::Undecided(Box::default(), only),
        }
    }

    /// The input is over.
    pub fn finish(&mut self, out: &mut Yield) {
        match self {
            Adapter::Acp(acp) | Adapter::Undecided(acp, _) => acp.finish(out),
            Adapter::Claude(claude) => claude.finish(out),
        }
    }

    /// Reads one packet.
    pub fn push(&mut self, packet: &Packet<'_>, out: &mut Yield) {
        out.time = packet.arrived.cloned();
        if let Adapter::Undecided(_, only) = self
            && let Some(format) = detect::format(packet.bytes)
        {
            let only = only.take();
            *self = Adapter::new(format, only);
        }
        match self {
            Adapter::Acp(acp) | Adapter::Undecided(acp, _) => acp.push(packet, out),
            Adapter::Claude(claude) => claude.push(packet, out),
        }
    }

    /// Remembers the calls and the questions of a session from its items; those from the order
    /// `since` on are read again.
    pub(crate) fn recall(&mut self, items: &Items, since: u64) {
        match self {
            Adapter::Acp(acp) | Adapter::Undecided(acp, _) => acp.recall(items, since),
            Adapter::Claude(claude) => claude.recall(items, since),
        }
    }

    /// The ids of records that were read since this was asked last, where the format has such.
    pub(crate) fn records(&mut self) -> Vec<u64> {
        match self {
            Adapter::Claude(claude) => claude.records(),
            Adapter::Acp(_) | Adapter::Undecided(..) => Vec::new(),
        }
    }

    /// Remembers records that were read before a cut.
    pub(crate) fn recall_records(&mut self, ids: impl Iterator<Item = u64>) {
        if let Adapter::Claude(claude) = self {
            claude.recall_records(ids);
        }
    }

    /// What was read before has been read again; what comes now is new.
    pub(crate) fn caught_up(&mut self) {
        if let Adapter::Claude(claude) = self {
            claude.caught_up();
        }
    }

    /// Whether nothing is half read.
    pub(crate) fn is_at_rest(&self) -> bool {
        match self {
            Adapter::Acp(acp) | Adapter::Undecided(acp, _) => acp.is_at_rest(),
            Adapter::Claude(claude) => claude.is_at_rest(),
        }
    }

    /// Whether what is read was kept by its agent, which has dates of its own.
    pub(crate) fn is_kept(&self) -> bool {
        matches!(self, Adapter::Claude(claude) if claude.is_kept())
    }

    /// The format that is read. Both of Claude Code's are one.
    pub(crate) fn format(&self) -> Format {
        match self {
            Adapter::Acp(_) => Format::Acp,
            Adapter::Claude(_) => Format::ClaudeStream,
            Adapter::Undecided(..) => Format::Auto,
        }
    }

    /// Takes the text of a file into which the agent put the output of a call; `name` is the
    /// file's own.
    pub fn offloaded(&mut self, name: &str, text: &str, out: &mut Yield) {
        if let Adapter::Claude(claude) = self {
            claude.offloaded(name, text, out);
        }
    }
}
