//! The stages in a row: parse, clean, complete, fold. Glue only.

mod input_end;

use crate::adapter::{Adapter, Blob, Yield};
use crate::fold::Fold;
use crate::model::change::{Change, Items};
use crate::model::event::{Body, Event, Malformed};
use crate::model::id::EventId;
use crate::packet::{Format, Given, Packet, Told};
use crate::sanitize::{Clean, Paths, Removed, Sanitizer, Secrets, Shown};
use crate::tally::Tally;
use crate::tool_calls::{Calls, Doing};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a pipeline is told beforehand.
#[derive(Debug, Clone, Default)]
pub struct Config {
    /// The dialect of the packets.
    pub format: Format,
    /// The paths to hide.
    pub paths: Paths,
    /// The secrets to hide; shared by the sessions of one program.
    pub secrets: Arc<Secrets>,
    /// Which source of the session this is, where it has several; part of every id.
    pub source: u32,
    /// Read only what is of this session, by the agent's own id, where packets tell theirs.
    pub only: Option<String>,
    /// Leave out the fold: steps then have no changes.
    pub events_only: bool,
    /// Join the pieces of a text that come right after each other into one event, until
    /// [`Pipeline::flush`]. The items are the same, in fewer steps.
    pub join: bool,
}

/// One event and what it did.
#[derive(Debug, Clone)]
pub struct Step {
    /// The event.
    pub event: Event,
    /// The changes it made to the items.
    pub changes: Vec<Change>,
    /// The pictures that came with it.
    pub blobs: Vec<Blob>,
}

/// From packets to steps.
///
/// ```
/// use narrows::{Items, Packets, Pipeline};
///
/// let line = br#"{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"Hi."}}"#;
/// let (mut packets, mut pipeline) = (Packets::default(), Pipeline::default());
/// let mut steps = Vec::new();
/// packets.push(line, |given| pipeline.push(given, &mut steps));
/// packets.finish(|given| pipeline.push(given, &mut steps));
/// pipeline.finish(&mut steps);
///
/// let mut items = Items::new();
/// steps.into_iter().flat_map(|step| step.changes).for_each(|change| items.apply(change));
/// assert_eq!(items.ordered().len(), 1);
/// ```
#[derive(Debug)]
pub struct Pipeline {
    adapter: Adapter,
    sanitizer: Sanitizer,
    calls: Calls,
    fold: Option<Box<Fold>>,
    source: u32,
    join: bool,
    /// The packet that is being read (source and line), and how many events it has given.
    packet: (u32, u64),
    index: u32,
    /// The packet whose text waits to be joined; its line is 0 when none does.
    held: (u32, u64),
    quiet: u64,
    tally: Tally,
    yielded: Yield,
    clean: Vec<Event>,
    complete: Vec<Event>,
    /// Pictures whose event is still on its way.
    blobs: Vec<Blob>,
    /// Up to which packet each source was read before; empty when something has come that was not.
    read: BTreeMap<u32, u64>,
    /// The last event of each source before the cut.
    last: Vec<EventId>,
    /// What is being read was read before.
    again: bool,
    /// What was shown before the cut.
    shown: Option<Box<Shown>>,
}

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
            sanitizer: Sanitizer::new(config.paths, config.secrets),
            calls: Calls::default(),
            fold: (!config.events_only).then(Box::default),
            source: config.source,
            join: config.join,
            packet: (0, 0),
            index: 0,
            held: (0, 0),
            quiet: 0,
            tally: Tally::default(),
            yielded: Yield::default(),
            clean: Vec::new(),
            complete: Vec::new(),
            blobs: Vec::new(),
            read: BTreeMap::new(),
            last: Vec::new(),
            again: false,
            shown: None,
        }
    }

    /// A pipeline that goes on after a cut where the old one was [at rest](Pipeline::is_at_rest):
    /// the events up to `last`, of each source, made `items`, or these are the last of what they
    /// made. The source that was read last comes last.
    ///
    /// `config` must name the format that was [found](Pipeline::format) and the
    /// [paths](Pipeline::paths) that were known.
    pub fn resume(
        config: Config,
        items: &Items,
        last: impl IntoIterator<Item = EventId>,
    ) -> Pipeline {
        Pipeline::reread(config, items, last, u64::MAX)
    }

    /// The same after a cut where the old one was not at rest. It is given again the packets since
    /// the last place where it was, at which the next item had the order `since`
    /// ([`Items::next_order`]). What was read before gives no steps; what follows gives those that
    /// it would have given.
    pub fn reread(
        config: Config,
        items: &Items,
        last: impl IntoIterator<Item = EventId>,
        since: u64,
    ) -> Pipeline {
        let events_only = config.events_only;
        let mut pipeline = Pipeline::new(Config { events_only: true, ..config });
        for id in last {
            pipeline.last.push(id);
            pipeline.was_read(id.source, id.packet);
        }
        pipeline.fold =
            (!events_only).then(|| Box::new(Fold::resume(items, pipeline.last.iter().copied())));
        if items.info().answered {
            pipeline.sanitizer.resume_answered(items);
        }
        pipeline.calls = Calls::resume(items);
        pipeline.shown = Some(Box::new(Shown::of_items(items)));
        pipeline.adapter.recall(items, since);
        pipeline
    }

    /// Tells a resumed pipeline that packets after the last event had been read too, up to this
    /// one, and were [flushed](Pipeline::flush); `source` and `packet` as in the ids of events.
    pub fn was_read(&mut self, source: u32, packet: u64) {
        let read = self.read.entry(source).or_default();
        if packet > *read {
            *read = packet;
            self.packet = (source, packet);
        }
    }

    /// Ids of the records that were read since this was asked last, where the format has such: to be
    /// [given](Pipeline::recall_records) to the pipeline that goes on after this one.
    pub fn records(&mut self) -> Vec<u64> {
        self.adapter.records()
    }

    /// Tells a resumed pipeline which records were read before its last rest; those are not read
    /// again, wherever they stand.
    pub fn recall_records(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.adapter.recall_records(ids.into_iter());
    }

    /// Whether nothing that was read is held back or half understood: a pipeline that is resumed
    /// here and given what follows does what this one would.
    pub fn is_at_rest(&self) -> bool {
        self.yielded.events.is_empty()
            && self.blobs.is_empty()
            && self.adapter.is_at_rest()
            && self.sanitizer.is_at_rest()
            && self.calls.is_at_rest()
    }

    /// The calls that something was heard of since this was asked last, but for more than a few.
    pub fn heard(&mut self) -> Vec<Doing> {
        self.calls.heard()
    }

    /// Bytes of what is held back and of what is known of open calls, about.
    pub fn weight(&self) -> usize {
        self.sanitizer.weight() + self.calls.weight()
    }

    /// How many calls are known whole; a bounded number, however many there were.
    pub fn calls_kept(&self) -> usize {
        self.calls.kept()
    }

    /// The format of what is read; [`Format::Auto`] while nothing has told it.
    pub fn format(&self) -> Format {
        self.adapter.format()
    }

    /// Whether what is read was kept by its agent, and is not what an agent at work says.
    pub fn is_kept(&self) -> bool {
        self.adapter.is_kept()
    }

    /// The paths that are hidden, with those that the session has told.
    pub fn paths(&self) -> &Paths {
        self.sanitizer.paths()
    }

    /// Takes what a source gave.
    pub fn push(&mut self, given: Given<'_>, out: &mut Vec<Step>) {
        match given {
            Given::Packet(packet) => self.push_packet(&packet, out),
            Given::Fault(fault) => self.push_fault(fault, out),
        }
    }

    /// Reads one packet.
    pub fn push_packet(&mut self, packet: &Packet<'_>, out: &mut Vec<Step>) {
        let place = (self.source.saturating_add(packet.source), packet.position.line);
        self.look_back(place);
        let held = self.yielded.events.len();
        self.adapter.push(packet, &mut self.yielded);
        let quiet = std::mem::take(&mut self.yielded.quiet);
        self.quiet += quiet;
        let given = self.yielded.events.get(held..).unwrap_or_default();
        self.tally.packet(given, quiet > 0);
        self.blobs.append(&mut self.yielded.blobs);
        for root in self.yielded.roots.drain(..) {
            self.sanitizer.add_root(root.peek());
        }
        let fresh = self.yielded.events.get_mut(held..).unwrap_or_default();
        for (index, event) in fresh.iter_mut().enumerate() {
            event.began = EventId { source: place.0, packet: place.1.max(1), index: index as u32 };
        }
        if self.join && self.yielded.join_last(held) {
            return;
        }
        self.clean_until(held, out);
        if self.join && self.yielded.events.len() == 1 && self.yielded.events[0].body.is_streamed()
        {
            self.held = place;
            return;
        }
        self.begin(place);
        self.clean_until(usize::MAX, out);
    }

    /// Lets go of text that waits to be joined.
    pub fn flush(&mut self, out: &mut Vec<Step>) {
        self.clean_until(usize::MAX, out);
    }

    /// Sees whether a packet was read before.
    fn look_back(&mut self, place: (u32, u64)) {
        if self.read.is_empty() {
            return;
        }
        self.again = self.read.get(&place.0).is_some_and(|read| place.1.max(1) <= *read);
        if !self.again {
            self.caught_up();
        }
    }

    /// Everything that was read before has been read again.
    fn caught_up(&mut self) {
        if self.read.is_empty() {
            return;
        }
        self.again = true;
        self.flush(&mut Vec::new());
        self.again = false;
        self.read.clear();
        if let Some(shown) = self.shown.take() {
            self.sanitizer.recall_shown(&shown);
        }
        let place = |id: &&EventId| (id.source, id.packet) == self.packet;
        let last = std::mem::take(&mut self.last);
        self.index = last.iter().find(place).map_or(0, |id| id.index.saturating_add(1));
        self.adapter.caught_up();
    }

    /// Sends the first `n` waiting events on their way.
    fn clean_until(&mut self, n: usize, out: &mut Vec<Step>) {
        let n = n.min(self.yielded.events.len());
        if n == 0 {
            return;
        }
        if self.held.1 > 0 {
            let place = std::mem::take(&mut self.held);
            self.begin(place);
        }
        for event in self.yielded.events.drain(..n) {
            self.sanitizer.push(event, &mut self.clean);
        }
        self.complete(out);
    }

    fn push_fault(&mut self, fault: Malformed, out: &mut Vec<Step>) {
        self.tally.fault();
        let place = (self.source.saturating_add(fault.source), fault.position.line);
        self.look_back(place);
        self.flush(out);
        self.begin(place);
        self.clean.push(Event {
            id: EventId::default(),
            began: EventId::default(),
            time: None,
            parent: None,
            body: Body::Malformed(fault),
        });
        self.complete(out);
    }

    /// Takes what the program itself tells: it goes the way of what agents say.
    pub fn tell(&mut self, told: Told, out: &mut Vec<Step>) {
        let place = (self.source.saturating_add(told.source), told.line);
        self.caught_up();
        self.flush(out);
        self.begin(place);
        let began = EventId { source: place.0, packet: place.1.max(1), index: 0 };
        let event =
            Event { id: EventId::default(), began, time: told.time, parent: None, body: told.body };
        self.sanitizer.push(event, &mut self.clean);
        self.complete(out);
    }

    /// Takes the text of a file into which the agent put the output of a call, beside the session's
    /// own file; `name` is the file's own.
    pub fn offloaded(&mut self, name: &str, text: &str, out: &mut Vec<Step>) {
        self.caught_up();
        self.flush(out);
        self.adapter.offloaded(name, text, &mut self.yielded);
        self.clean_until(usize::MAX, out);
    }

    /// What was removed so far, by kind and count.
    pub fn removed(&self) -> &Removed {
        self.sanitizer.removed()
    }

    /// Hides one root more from now on.
    pub fn add_root(&mut self, root: &str) {
        self.sanitizer.add_root(root);
    }

    /// Roots that packets told, to be given to the pipeline that goes on after this one. They are
    /// paths of the machine: never shown.
    pub fn roots(&self) -> &[String] {
        self.sanitizer.roots()
    }

    /// The last name of the folder in which the agent works.
    pub fn project(&mut self) -> Option<Clean> {
        self.sanitizer.project()
    }

    /// Packets so far that were mere bookkeeping.
    pub fn quiet(&self) -> u64 {
        self.quiet
    }

    /// How much of what was given so far was understood.
    pub fn tally(&self) -> Tally {
        let decided = self.adapter.format() != Format::Auto;
        Tally { decided, kept: self.is_kept(), ..self.tally }
    }

    fn begin(&mut self, place: (u32, u64)) {
        if place != self.packet {
            self.packet = place;
            self.index = 0;
        }
    }

    fn complete(&mut self, out: &mut Vec<Step>) {
        if self.again {
            self.clean.drain(..).for_each(|event| self.calls.reread(event));
            self.blobs.clear();
            return;
        }
        for event in self.clean.drain(..) {
            self.calls.merge(event, &mut self.complete);
        }
        for mut event in self.complete.drain(..) {
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
