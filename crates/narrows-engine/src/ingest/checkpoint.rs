//! How far each source of a session was read, and its checkpoint: the last packet after which no text
//! was held back. A checkpoint is pending until the steps before it are encoded as rows; after a crash
//! packets are read again from the last committed one.

use narrows::Format;
use narrows::event::Position;
use narrows::id::EventId;
use narrows_store::{Error, Result, SourceMark};
use std::collections::BTreeMap;

/// The source of events that narrows itself adds; no file of a session has this number.
pub const HOST_SOURCE: u32 = 1 << 30;
/// The main source: the requests of clients, or the main file of a session.
pub(super) const MAIN_SOURCE: u32 = 0;

/// How far one source was read. Packets are named by their number.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SourceProgress {
    /// The last packet that was read, by this writer or an earlier one.
    pub(super) read: u64,
    /// The last packet that was pushed into this writer's pipeline.
    pub(super) pushed: u64,
    /// The last committed checkpoint.
    pub(super) checkpoint: u64,
    /// The order of the next item at that checkpoint.
    checkpoint_order: u64,
    /// The byte offset of the packet that follows it; 0 where that is not known.
    checkpoint_offset: u64,
    /// A checkpoint whose steps are not encoded yet, and the same offset of it.
    pending_checkpoint: u64,
    pending_offset: u64,
    /// The byte offset of the last packet.
    offset: u64,
    last_event: Option<EventId>,
    /// Differs from what the store has.
    changed: bool,
}

impl SourceProgress {
    /// The stored progress. With `replay`, packets after the checkpoint are pushed again.
    fn load(source: &SourceMark, replay: bool) -> SourceProgress {
        SourceProgress {
            read: source.read,
            pushed: if replay { source.rest } else { source.read },
            checkpoint: source.rest,
            checkpoint_order: source.rest_order,
            checkpoint_offset: source.rest_offset,
            pending_checkpoint: source.rest,
            pending_offset: source.rest_offset,
            offset: source.offset,
            last_event: last_event(source),
            changed: false,
        }
    }

    /// Whether packets that were read before are still to be pushed again.
    pub(super) fn is_replaying(&self) -> bool {
        self.pushed < self.read
    }

    /// Notes that an event of this source was appended.
    pub(super) fn set_last_event(&mut self, id: EventId) {
        (self.last_event, self.changed) = (Some(id), true);
    }

    fn to_store(self, number: u32, roots: &[String], format: Format, log_seq: u64) -> SourceMark {
        SourceMark {
            number,
            format: Some(format.name().to_owned()),
            path: None,
            read: self.read,
            rest: self.checkpoint,
            rest_order: self.checkpoint_order,
            rest_offset: self.checkpoint_offset,
            offset: self.offset,
            last: self
                .last_event
                .map(|id| format!("{}.{}", id.packet, id.index))
                .unwrap_or_default(),
            roots: roots.join("\n"),
            at: log_seq,
        }
    }
}

/// Whether a packet is to be pushed into the pipeline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PacketNovelty {
    /// This writer has pushed it.
    Pushed,
    /// An earlier writer has read it; it is pushed again.
    Replayed,
    /// It was not read before.
    New,
}

/// The progress of all sources of a session.
#[derive(Debug, Default)]
pub(super) struct SourceCheckpoints {
    by_number: BTreeMap<u32, SourceProgress>,
    /// The number of steps, of those not encoded yet, before the pending checkpoint.
    steps_before_pending: Option<usize>,
}

impl SourceCheckpoints {
    pub(super) fn load(sources: &[SourceMark], replay: bool) -> SourceCheckpoints {
        let progress = sources.iter().map(|s| (s.number, SourceProgress::load(s, replay)));
        SourceCheckpoints { by_number: progress.collect(), steps_before_pending: None }
    }

    pub(super) fn main(&self) -> SourceProgress {
        self.get(MAIN_SOURCE)
    }

    pub(super) fn get(&self, number: u32) -> SourceProgress {
        self.by_number.get(&number).copied().unwrap_or_default()
    }

    pub(super) fn entry(&mut self, number: u32) -> &mut SourceProgress {
        self.by_number.entry(number).or_default()
    }

    /// Whether no source has packets that are still to be pushed again.
    pub(super) fn is_caught_up(&self) -> bool {
        !self.by_number.values().any(SourceProgress::is_replaying)
    }

    /// Advances a source to a packet that is about to be pushed.
    pub(super) fn advance(&mut self, source: u32, position: Position) -> PacketNovelty {
        let progress = self.entry(source);
        if position.line <= progress.pushed {
            return PacketNovelty::Pushed;
        }
        if progress.pending_checkpoint == progress.pushed && progress.pending_offset == 0 {
            progress.pending_offset = position.offset;
        }
        progress.pushed = position.line;
        if position.line <= progress.read {
            return PacketNovelty::Replayed;
        }
        progress.read = position.line;
        progress.offset = position.offset;
        progress.changed = true;
        PacketNovelty::New
    }

    /// Refuses packets that follow packets whose held-back text was lost with an earlier writer or is on
    /// another node: that text would be missing, and what it began would be unknown. `pushed` is the last
    /// packet that the current writer has.
    pub(super) fn check_position(&self, first: Option<u64>, pushed: u64) -> Result<()> {
        let main = self.main();
        let continues = first.is_none_or(|first| first > pushed + 1);
        if continues && pushed < main.read {
            return Err(Error::Resend { acknowledged: main.checkpoint, key: None });
        }
        Ok(())
    }

    /// Sets the pending checkpoint of all sources after this number of steps.
    pub(super) fn set_pending(&mut self, steps: usize) {
        self.steps_before_pending = Some(steps);
        for progress in self.by_number.values_mut() {
            if progress.pending_checkpoint != progress.pushed {
                (progress.pending_checkpoint, progress.pending_offset) = (progress.pushed, 0);
            }
        }
    }

    /// Takes the number of steps before the pending checkpoint.
    pub(super) fn take_steps_before_pending(&mut self) -> Option<usize> {
        self.steps_before_pending.take()
    }

    /// Commits the pending checkpoint of all sources: the steps before it are encoded. `next_order` is
    /// the order of the next item.
    pub(super) fn commit(&mut self, next_order: u64) {
        for progress in self.by_number.values_mut() {
            if progress.pending_checkpoint > progress.checkpoint {
                progress.checkpoint = progress.pending_checkpoint;
                (progress.checkpoint_order, progress.changed) = (next_order, true);
            }
            if progress.checkpoint == progress.pending_checkpoint {
                progress.changed |= progress.checkpoint_offset != progress.pending_offset;
                progress.checkpoint_offset = progress.pending_offset;
            }
        }
    }

    /// Notes that the lines of a source end here: reading can resume at this offset.
    pub(super) fn set_end(&mut self, source: u32, end: Position) {
        if let Some(progress) = self.by_number.get_mut(&source)
            && progress.pushed == end.line
            && progress.pending_checkpoint == end.line
        {
            progress.pending_offset = end.offset;
        }
    }

    /// Ends the replay of all other sources: their packets stay read. Returns whether any was replaying.
    pub(super) fn limit_to(&mut self, sources: &[u32]) -> bool {
        let mut any = false;
        for (number, progress) in &mut self.by_number {
            if !sources.contains(number) && progress.is_replaying() {
                (progress.pushed, any) = (progress.read, true);
            }
        }
        any
    }

    /// The progress to store: sources that have changed since the last call.
    pub(super) fn take_changed(
        &mut self,
        roots: &[String],
        format: Format,
        log_seq: u64,
    ) -> Vec<SourceMark> {
        let changed = self.by_number.iter_mut().filter(|(_, progress)| progress.changed);
        let to_store = |(number, progress): (&u32, &mut SourceProgress)| {
            progress.changed = false;
            progress.to_store(*number, roots, format, log_seq)
        };
        changed.map(to_store).collect()
    }
}

/// The id of the last event of a source.
pub(super) fn last_event(source: &SourceMark) -> Option<EventId> {
    let (packet, index) = source.last.split_once('.')?;
    Some(EventId {
        source: source.number,
        packet: packet.parse().ok()?,
        index: index.parse().ok()?,
    })
}
