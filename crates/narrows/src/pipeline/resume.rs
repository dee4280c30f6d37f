//! Continues a session after a restart, and replays the packets since its last checkpoint.

use super::{Config, PacketId, Pipeline};
use crate::fold::Fold;
use crate::model::change::Items;
use crate::model::event::Event;
use crate::model::id::EventId;
use crate::redact::EmittedText;
use crate::tool_calls::ToolCallTracker;

impl Pipeline {
    /// Continues where an earlier pipeline was [at rest](Pipeline::is_at_rest). The events up to
    /// `last`, of each source, made `items`, or these are the newest of the items they made. The
    /// source that was read last comes last.
    ///
    /// `config` must have the [format](Pipeline::format) and the [paths](Pipeline::paths) of the
    /// earlier pipeline.
    pub fn resume(
        config: Config,
        items: &Items,
        last: impl IntoIterator<Item = EventId>,
    ) -> Pipeline {
        Pipeline::reread(config, items, last, u64::MAX)
    }

    /// Like [`Pipeline::resume`] where the earlier pipeline was not at rest. The caller replays the
    /// packets since the last point where it was, at which the next item had the order `since`
    /// ([`Items::next_order`]). Replayed packets give no steps; the packets after them give the steps
    /// that the earlier pipeline would have given.
    pub fn reread(
        config: Config,
        items: &Items,
        last: impl IntoIterator<Item = EventId>,
        since: u64,
    ) -> Pipeline {
        let events_only = config.events_only;
        let mut pipeline = Pipeline::new(Config { events_only: true, ..config });
        for id in last {
            pipeline.last_events.push(id);
            pipeline.was_read(id.source, id.packet);
        }
        let last = pipeline.last_events.iter().copied();
        pipeline.fold = (!events_only).then(|| Box::new(Fold::resume(items, last)));
        if items.info().answered {
            pipeline.sanitizer.resume_after_turn(items);
        }
        pipeline.calls = ToolCallTracker::resume(items);
        pipeline.shown = Some(Box::new(EmittedText::from_items(items)));
        pipeline.adapter.restore(items, since);
        pipeline
    }

    /// Marks packets after the last event, up to this one, as read and [flushed](Pipeline::flush)
    /// before the restart; `source` and `packet` are those of event ids.
    pub fn was_read(&mut self, source: u32, packet: u64) {
        let read = self.replay_until.entry(source).or_default();
        if packet > *read {
            *read = packet;
            self.packet = (source, packet);
        }
    }

    /// Takes the ids of the records that were read since the last call, where the format has such
    /// ids: input of [`Pipeline::recall_records`] after a restart.
    pub fn records(&mut self) -> Vec<u64> {
        self.adapter.take_seen_records()
    }

    /// Restores the ids of the records that were read before the last checkpoint; these records are
    /// skipped wherever they occur.
    pub fn recall_records(&mut self, ids: impl IntoIterator<Item = u64>) {
        self.adapter.restore_seen_records(ids.into_iter());
    }

    /// Restores the newest events of the log, in order, in a pipeline that
    /// [replays](Pipeline::reread). `from_start` says that the first of them is the first of the log.
    pub fn recall_log<'a>(
        &mut self,
        events: impl IntoIterator<Item = &'a Event>,
        from_start: bool,
    ) {
        if let Some(shown) = &mut self.shown {
            events.into_iter().enumerate().for_each(|(at, e)| shown.add(e, from_start && at == 0));
        }
    }

    /// Whether no input is held back or half parsed: a pipeline that is resumed here and reads the
    /// following packets does the same as this one.
    pub fn is_at_rest(&self) -> bool {
        self.adapter_output.events.is_empty()
            && self.blobs.is_empty()
            && self.adapter.is_quiescent()
            && self.sanitizer.is_quiescent()
            && self.calls.is_at_rest()
    }

    /// Decides whether a packet was read before the restart.
    pub(super) fn check_replay(&mut self, id: PacketId) {
        if self.replay_until.is_empty() {
            return;
        }
        let read = self.replay_until.get(&id.0);
        self.is_replaying = read.is_some_and(|read| id.1.max(1) <= *read);
        if !self.is_replaying {
            self.finish_replay();
        }
    }

    /// Ends the replay: everything that was read before the restart has been read again.
    pub(super) fn finish_replay(&mut self) {
        if self.replay_until.is_empty() {
            return;
        }
        self.is_replaying = true;
        self.flush(&mut Vec::new());
        self.is_replaying = false;
        self.replay_until.clear();
        if let Some(shown) = self.shown.take() {
            self.sanitizer.restore_emitted(&shown);
        }
        let is_current = |id: &&EventId| (id.source, id.packet) == self.packet;
        let last = std::mem::take(&mut self.last_events);
        self.index = last.iter().find(is_current).map_or(0, |id| id.index.saturating_add(1));
        self.adapter.finish_replay();
    }
}
