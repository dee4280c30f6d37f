//! The output of an adapter for one packet.

use super::Blob;
use crate::frame::packets::Packet;
use crate::model::event::{Body, Event, Malformed, Position};
use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::Raw;

/// The longest text to which another chunk is joined, in bytes.
const MAX_COALESCED_BYTES: usize = 16 << 10;

/// The output of an adapter for one packet.
#[derive(Debug, Default)]
pub struct AdapterOutput {
    /// The events, in order.
    pub events: Vec<Event<Raw>>,
    /// The images that the events refer to.
    pub blobs: Vec<Blob>,
    /// The number of packets that are bookkeeping and have no event.
    pub ignored: u64,
    /// Working directories of the agent that packets mention in passing: paths to redact.
    pub working_dirs: Vec<Raw>,
    /// The time of the packet that is being parsed.
    pub(super) time: Option<Time>,
}

impl AdapterOutput {
    /// Counts a packet, or a part of one, that has no event.
    pub(super) fn ignore(&mut self) {
        self.ignored += 1;
    }

    /// Adds directories to redact.
    pub(super) fn add_working_dirs(&mut self, dirs: impl IntoIterator<Item = Raw>) {
        self.working_dirs.extend(dirs);
    }

    /// Emits an event of the session itself.
    pub(super) fn push(&mut self, body: Body<Raw>) {
        self.push_in(None, body);
    }

    /// Emits an event of the subagent that the tool call `parent` started.
    pub(super) fn push_in(&mut self, parent: Option<Raw>, body: Body<Raw>) {
        self.events.push(Event {
            id: EventId::default(),
            began: EventId::default(),
            time: self.time.clone(),
            parent,
            body,
        });
    }

    /// Joins the single event after the first `pending` events with the one before, if both are
    /// chunks of one text; returns whether it did.
    pub(crate) fn coalesce_last(&mut self, pending: usize) -> bool {
        if pending == 0 || self.events.len() != pending + 1 {
            return false;
        }
        let Some([before, last]) = self.events.last_chunk_mut::<2>() else {
            return false;
        };
        let same_text = before.body.is_streamed()
            && last.body.is_streamed()
            && !before.body.is_final_text()
            && !last.body.is_final_text()
            && !last.body.has_images()
            && before.body.is_same_block(&last.body)
            && before.parent == last.parent;
        let (Some(text), Some(chunk)) = (before.body.text_mut(), last.body.text_mut()) else {
            return false;
        };
        if !same_text || text.peek().len() > MAX_COALESCED_BYTES {
            return false;
        }
        text.push(chunk);
        self.events.pop();
        true
    }

    /// Emits damage in `packet` at the byte `column`.
    pub(super) fn malformed(&mut self, packet: &Packet<'_>, reason: &'static str, column: usize) {
        let column = column as u64;
        let Position { line, offset, .. } = packet.position;
        let position = Position { line, column, offset: offset + column };
        let length = packet.bytes.len() as u64;
        self.push(Body::Malformed(Malformed { reason, position, length, source: packet.source }));
    }
}
