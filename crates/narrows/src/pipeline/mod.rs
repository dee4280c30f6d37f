//! The stages in a row: adapter, redaction, tool calls, fold. Glue only.
//!
//! `resume` continues after a restart, `pause` handles the end of the input, `status` answers questions
//! about what was read.

mod pause;
mod resume;
mod status;

use crate::adapter::Format;
use crate::adapter::{Adapter, AdapterOutput, Blob};
use crate::fold::Fold;
use crate::frame::packets::{Framed, HostEvent, Packet};
use crate::model::change::Change;
use crate::model::event::{Body, Event, Malformed};
use crate::model::id::EventId;
use crate::redact::{EmittedText, RedactionStage};
use crate::sanitize::{Paths, Secrets};
use crate::tally::Tally;
use crate::tool_calls::ToolCallTracker;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The configuration of a pipeline.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// Format of the packets.
    pub format: Format,
    /// Paths to redact.
    pub paths: Paths,
    /// Secrets to redact; shared by the sessions of a program.
    pub secrets: Arc<Secrets>,
    /// Number of the source, where the session has several; part of every event id.
    pub source: u32,
    /// Read only the session with this id of the agent, where packets carry one.
    pub only: Option<String>,
    /// Omit the fold: steps then have no changes.
    pub events_only: bool,
    /// Coalesce consecutive chunks of a text into one event, until [`Pipeline::flush`]. The items
    /// are the same, in fewer steps.
    pub join: bool,
}

/// One event and its effects.
#[derive(Debug, Clone)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// The changes it makes to the items.
    pub changes: Vec<Change>,
    /// The images that came with it.
    pub blobs: Vec<Blob>,
}

/// Turns packets into steps.
///
/// ```
/// use narrows::{Items, Packets, Pipeline};
///
/// let line = br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi."}}"#;
/// let (mut packets, mut pipeline) = (Packets::default(), Pipeline::default());
/// let mut steps = Vec::new();
/// packets.push(line, |framed| pipeline.push(framed, &mut steps));
/// packets.finish(|framed| pipeline.push(framed, &mut steps));
/// pipeline.finish(&mut steps);
///
/// let mut items = Items::new();
/// steps.into_iter().flat_map(|step| step.changes).for_each(|change| items.apply(change));
/// assert_eq!(items.ordered().len(), 1);
/// ```
#[derive(Debug)]
pub struct Pipeline {
    adapter: Adapter,
    sanitizer: RedactionStage,
    calls: ToolCallTracker,
    fold: Option<Box<Fold>>,
    source: u32,
    join: bool,
    /// The packet whose events are numbered now.
    packet: PacketId,
    /// Number of the next event in `packet`.
    index: u32,
    /// The packet whose text waits for more chunks; none if its number is 0.
    waiting_packet: PacketId,
    ignored_packets: u64,
    tally: Tally,
    /// Output of the adapter that has not passed redaction.
    adapter_output: AdapterOutput,
    clean: Vec<Event>,
    completed: Vec<Event>,
    /// Images whose event has not come out of the pipeline.
    blobs: Vec<Blob>,
    /// During a replay, the last packet of each source that was read before the restart.
    replay_until: BTreeMap<u32, u64>,
    /// During a replay, the last event of each source before the restart.
    last_events: Vec<EventId>,
    /// The current packet is a replayed one.
    is_replaying: bool,
    /// During a replay, the text that was shown before the restart.
    shown: Option<Box<EmittedText>>,
}

/// A source and the number of a packet in it.
type PacketId = (u32, u64);

impl Default for Pipeline {
    fn default() -> Self {
        Pipeline::new(Config::default())
    }
}

impl Pipeline {
    /// A pipeline for one source of one session.
    pub fn new(config: Config) -> Self {
        Pipeline {
            adapter: Adapter::new(config.format, config.only),
            sanitizer: RedactionStage::new(config.paths, config.secrets),
            calls: ToolCallTracker::default(),
            fold: (!config.events_only).then(Box::default),
            source: config.source,
            join: config.join,
            packet: (0, 0),
            index: 0,
            waiting_packet: (0, 0),
            ignored_packets: 0,
            tally: Tally::default(),
            adapter_output: AdapterOutput::default(),
            clean: Vec::new(),
            completed: Vec::new(),
            blobs: Vec::new(),
            replay_until: BTreeMap::new(),
            last_events: Vec::new(),
            is_replaying: false,
            shown: None,
        }
    }

    /// Reads the output of the framer.
    pub fn push(&mut self, framed: Framed<'_>, out: &mut Vec<Step>) {
        match framed {
            Framed::Packet(packet) => self.push_packet(&packet, out),
            Framed::Fault(malformed) => self.push_malformed(malformed, out),
        }
    }

    /// Reads one packet.
    pub fn push_packet(&mut self, packet: &Packet<'_>, out: &mut Vec<Step>) {
        let id = (self.source.saturating_add(packet.source), packet.position.line);
        self.check_replay(id);
        let waiting = self.adapter_output.events.len();
        self.adapter.push(packet, &mut self.adapter_output);
        let ignored = std::mem::take(&mut self.adapter_output.ignored);
        self.ignored_packets += ignored;
        let events = self.adapter_output.events.get_mut(waiting..).unwrap_or_default();
        self.tally.packet(events, ignored > 0);
        for (index, event) in events.iter_mut().enumerate() {
            event.began = EventId { source: id.0, packet: id.1.max(1), index: index as u32 };
        }
        self.blobs.append(&mut self.adapter_output.blobs);
        for root in self.adapter_output.working_dirs.drain(..) {
            self.sanitizer.add_root(root.peek());
        }
        if self.join && self.adapter_output.coalesce_last(waiting) {
            return;
        }
        self.redact_first(waiting, out);
        if self.join
            && let [event] = self.adapter_output.events.as_slice()
            && event.body.is_streamed()
        {
            self.waiting_packet = id;
            return;
        }
        self.start_packet(id);
        self.redact_first(usize::MAX, out);
    }

    /// Emits the text that waits for more chunks.
    pub fn flush(&mut self, out: &mut Vec<Step>) {
        self.redact_first(usize::MAX, out);
    }

    fn push_malformed(&mut self, malformed: Malformed, out: &mut Vec<Step>) {
        self.tally.malformed_line();
        let id = (self.source.saturating_add(malformed.source), malformed.position.line);
        self.check_replay(id);
        self.flush(out);
        self.start_packet(id);
        self.clean.push(Event::derived(None, None, Body::Malformed(malformed)));
        self.complete(out);
    }

    /// Reads an event of the host program. It passes the same stages as the agent's events.
    pub fn tell(&mut self, host_event: HostEvent, out: &mut Vec<Step>) {
        let id = (self.source.saturating_add(host_event.source), host_event.line);
        self.finish_replay();
        self.flush(out);
        self.start_packet(id);
        let mut event = Event::derived(host_event.time, None, host_event.body);
        event.began = EventId { source: id.0, packet: id.1.max(1), index: 0 };
        self.sanitizer.push(event, &mut self.clean);
        self.complete(out);
    }

    /// Reads a file next to the session's own into which the agent put the output of a call; `name`
    /// is its file name.
    pub fn offloaded(&mut self, name: &str, text: &str, out: &mut Vec<Step>) {
        self.finish_replay();
        self.flush(out);
        self.adapter.push_offloaded(name, text, &mut self.adapter_output);
        self.redact_first(usize::MAX, out);
    }

    /// Redacts one more root from now on.
    pub fn add_root(&mut self, root: &str) {
        self.sanitizer.add_root(root);
    }

    /// Passes the first `n` raw events to redaction and the stages after it.
    fn redact_first(&mut self, n: usize, out: &mut Vec<Step>) {
        let n = n.min(self.adapter_output.events.len());
        if n == 0 {
            return;
        }
        if self.waiting_packet.1 > 0 {
            let id = std::mem::take(&mut self.waiting_packet);
            self.start_packet(id);
        }
        for event in self.adapter_output.events.drain(..n) {
            self.sanitizer.push(event, &mut self.clean);
        }
        self.complete(out);
    }

    fn start_packet(&mut self, id: PacketId) {
        if id != self.packet {
            self.packet = id;
            self.index = 0;
        }
    }

    /// Passes the clean events through the tool calls and the fold.
    fn complete(&mut self, out: &mut Vec<Step>) {
        if self.is_replaying {
            self.clean.drain(..).for_each(|event| self.calls.replay(event));
            self.blobs.clear();
            return;
        }
        for event in self.clean.drain(..) {
            self.calls.merge(event, &mut self.completed);
        }
        for mut event in self.completed.drain(..) {
            let (source, packet) = self.packet;
            event.id = EventId { source, packet: packet.max(1), index: self.index };
            self.index += 1;
            let mut changes = Vec::new();
            if let Some(fold) = &mut self.fold {
                fold.push(&event, &mut changes);
            }
            out.push(Step { event, changes, blobs: std::mem::take(&mut self.blobs) });
        }
    }
}
