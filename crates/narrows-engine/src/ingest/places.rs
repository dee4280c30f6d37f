//! Which packets were read, and after which of them nothing is held back.

use super::Reading;
use super::live::Live;
use super::sums;
use super::wrapped::Wrapped;
use narrows::event::{Body, Malformed, Position};
use narrows::id::EventId;
use narrows::time::Time;
use narrows::{Format, Given, Packet, Raw, Step, Told};
use narrows_store::{Error, Result, SourceMark};
use std::collections::HashSet;

/// The source of what narrows itself tells: no file of a session has such a number.
pub(crate) const OWN: u32 = 1 << 30;
/// Records since the last rest that are kept.
const MAX_LOOSE: usize = 4096;

/// How far one file of a session was read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Mark {
    pub(super) read: u64,
    pub(super) rest: u64,
    pub(super) offset: u64,
    pub(super) last: Option<EventId>,
    /// The last packet that this pipeline was fed.
    pub(super) fed: u64,
    /// The order of the next item at that rest.
    pub(super) rest_order: u64,
    /// The place of a rest whose steps are still to be made into rows.
    pub(super) resting: u64,
    /// Where the line after that place begins; 0 where that is not known.
    pub(super) resting_offset: u64,
    /// The same of the last rest.
    pub(super) rest_offset: u64,
    pub(super) changed: bool,
}

impl Live {
    /// Takes what a request gave: a packet that was read before is passed over.
    pub(super) fn take(
        &mut self,
        given: Given<'_>,
        reading: &Reading,
        base: u64,
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        match given {
            Given::Packet(packet) if reading.wrapped => self.take_wrapped(packet.bytes, now, steps),
            Given::Packet(mut packet) => {
                packet.position.line += base;
                packet.arrived = now;
                if self.is_next(0, packet.position) {
                    self.read(Given::Packet(packet), steps);
                }
                Ok(())
            }
            Given::Fault(mut fault) => {
                fault.position.line += base;
                if self.is_next(0, fault.position) {
                    self.read(Given::Fault(fault), steps);
                }
                Ok(())
            }
        }
    }

    fn take_wrapped(
        &mut self,
        line: &[u8],
        now: Option<&Time>,
        steps: &mut Vec<Step>,
    ) -> Result<()> {
        let bad = |what: &str| Err(Error::Invalid(format!("a wrapped line {what}")));
        let Ok(wrapped) = serde_json::from_slice::<Wrapped>(line) else {
            return bad("cannot be read");
        };
        if let (Some(name), Some(text)) = (&wrapped.output, &wrapped.text) {
            self.pipeline.offloaded(name, text, steps);
            return Ok(());
        }
        let Some(number) = wrapped.line else { return bad("has no number") };
        let position = Position { line: number, column: 0, offset: wrapped.offset.unwrap_or(0) };
        let mark = self.marks.get(&wrapped.source).copied().unwrap_or_default();
        if mark.fed < mark.read && number > mark.read {
            // Lines between were read, and what was held back of them is gone.
            return Err(Error::Resend { acknowledged: mark.rest, key: None });
        }
        if !self.is_next(wrapped.source, position) {
            return Ok(());
        }
        if let Some(length) = wrapped.too_long {
            let fault =
                Malformed { reason: "line too long", position, length, source: wrapped.source };
            self.read(Given::Fault(fault), steps);
            return Ok(());
        }
        let Some(content) = wrapped.content() else { return bad("holds nothing") };
        let mut packet = Packet::new(&content, position);
        packet.arrived = now;
        packet.source = wrapped.source;
        packet.parent = wrapped.parent.as_deref();
        self.read(Given::Packet(packet), steps);
        Ok(())
    }

    /// Takes a packet of a file that says itself which place it has.
    pub(super) fn take_placed(&mut self, given: Given<'_>, steps: &mut Vec<Step>) {
        let (source, position) = match &given {
            Given::Packet(packet) => (packet.source, packet.position),
            Given::Fault(fault) => (fault.source, fault.position),
        };
        if self.is_next(source, position) {
            self.read(given, steps);
        }
    }

    fn read(&mut self, given: Given<'_>, steps: &mut Vec<Step>) {
        let before = steps.len();
        self.pipeline.push(given, steps);
        // What adds nothing to a session that is over leaves it so.
        if std::mem::take(&mut self.news) && (steps.len() > before || !self.pipeline.is_at_rest()) {
            self.ended = false;
        }
        self.look_for_rest(steps.len());
    }

    /// Refuses packets that come after some of which the end was held back by somebody who is gone, or
    /// elsewhere: it would be lost, and what it began would not be known. Those that this pipeline
    /// has are `known`.
    pub(super) fn check_place(&self, first: Option<u64>, known: u64) -> Result<()> {
        let main = self.marks.get(&0).copied().unwrap_or_default();
        let goes_on = first.is_none_or(|first| first > known + 1);
        if goes_on && known < main.read {
            return Err(Error::Resend { acknowledged: main.rest, key: None });
        }
        Ok(())
    }

    /// Whether all that was read is told, and what comes can be understood without it.
    pub(super) fn is_at_rest(&self) -> bool {
        self.pipeline.is_at_rest() && self.is_caught_up()
    }

    /// Whether nothing that was read before is still to be read again.
    pub(super) fn is_caught_up(&self) -> bool {
        self.marks.values().all(|m| m.fed >= m.read)
    }

    /// Takes what narrows itself has to tell, after everything that the agent has said up to now.
    pub(super) fn tell(&mut self, body: Body<Raw>, time: Option<Time>, steps: &mut Vec<Step>) {
        let line = self.marks.entry(OWN).or_default().fed + 1;
        if self.is_next(OWN, Position { line, column: 0, offset: 0 }) {
            self.pipeline.tell(Told { source: OWN, line, time, body }, steps);
            (self.news, self.ended) = (false, false);
            self.look_for_rest(steps.len());
        }
    }

    /// Leaves a packet out, as if it had said nothing but what its answer used.
    pub(super) fn pass_over(&mut self, packet: &Packet<'_>, steps: usize) {
        if self.is_next(packet.source, packet.position) {
            let used = self.pipeline.used_again(packet);
            self.used_again.extend(used.as_ref().and_then(sums::again));
            self.look_for_rest(steps);
        }
    }

    /// The lines that were taken of a source end here.
    pub(super) fn ends_at(&mut self, source: u32, place: Position) {
        if let Some(mark) = self.marks.get_mut(&source)
            && mark.fed == place.line
            && mark.resting == place.line
        {
            mark.resting_offset = place.offset;
        }
    }

    /// Remembers that nothing is held back after so many steps. Not while packets come again: what
    /// is known is ahead of them then.
    pub(super) fn look_for_rest(&mut self, steps: usize) {
        if self.is_at_rest() {
            self.rest_after = Some(steps);
            for mark in self.marks.values_mut().filter(|m| m.resting != m.fed) {
                (mark.resting, mark.resting_offset) = (mark.fed, 0);
            }
            self.take_records();
            self.resting_records.append(&mut self.loose_records);
            self.before_records.clear();
        }
    }

    fn take_records(&mut self) {
        let mut new = self.pipeline.records();
        self.loose_changed |= !new.is_empty();
        self.loose_records.append(&mut new);
    }

    /// The records that were read since the last rest, when they are not those that the store has.
    pub(super) fn new_loose(&mut self) -> Option<Vec<u64>> {
        self.take_records();
        if !std::mem::take(&mut self.loose_changed) {
            return None;
        }
        let loose = [&self.before_records, &self.resting_records, &self.loose_records];
        let mut loose: Vec<u64> = loose.into_iter().flatten().copied().collect();
        // Those that come again are in both.
        let mut known = HashSet::new();
        loose.retain(|record| known.insert(*record));
        loose.drain(..loose.len().saturating_sub(MAX_LOOSE));
        Some(loose)
    }

    /// Nothing comes again of other sources than these: what was read of them stays read.
    pub(super) fn only(&mut self, sources: &[u32]) {
        let others = self.marks.iter_mut().filter(|(number, _)| !sources.contains(number));
        let mut lost = false;
        for (_, mark) in others.filter(|(_, m)| m.fed < m.read) {
            (mark.fed, lost) = (mark.read, true);
        }
        if lost {
            let known = std::mem::take(&mut self.before_records);
            self.pipeline.recall_records(known.iter().copied());
            self.rested_records.extend(known);
            self.loose_changed = true;
        }
    }

    /// Everything up to the place where nothing was held back has been made into rows.
    pub(super) fn rested(&mut self) {
        let order = self.open.next_order;
        for mark in self.marks.values_mut().filter(|m| m.resting > m.rest) {
            (mark.rest, mark.rest_order, mark.changed) = (mark.resting, order, true);
        }
        for mark in self.marks.values_mut().filter(|m| m.rest == m.resting) {
            mark.changed |= mark.rest_offset != mark.resting_offset;
            mark.rest_offset = mark.resting_offset;
        }
        self.rested_records.append(&mut self.resting_records);
    }

    /// Whether this pipeline has not read the packet yet.
    fn is_next(&mut self, source: u32, position: Position) -> bool {
        let mark = self.marks.entry(source).or_default();
        if position.line <= mark.fed {
            return false;
        }
        if mark.resting == mark.fed && mark.resting_offset == 0 {
            mark.resting_offset = position.offset;
        }
        mark.fed = position.line;
        if position.line > mark.read {
            self.news = true;
            mark.read = position.line;
            mark.offset = position.offset;
            mark.changed = true;
            // A file that was written in the future was written by now.
            let now = narrows_store::now();
            self.heard = self.heard.max(Some(self.arrived.map_or(now, |at| at.min(now))));
        }
        true
    }
}

pub(super) fn last_event(source: &SourceMark) -> Option<EventId> {
    let (packet, index) = source.last.split_once('.')?;
    Some(EventId {
        source: source.number,
        packet: packet.parse().ok()?,
        index: index.parse().ok()?,
    })
}

pub(super) fn mark(source: &SourceMark, again: bool) -> Mark {
    Mark {
        read: source.read,
        rest: source.rest,
        fed: if again { source.rest } else { source.read },
        offset: source.offset,
        last: last_event(source),
        rest_order: source.rest_order,
        resting: source.rest,
        resting_offset: source.rest_offset,
        rest_offset: source.rest_offset,
        changed: false,
    }
}

pub(super) fn source_mark(
    number: u32,
    mark: &Mark,
    roots: &[String],
    format: Format,
    at: u64,
) -> SourceMark {
    SourceMark {
        number,
        format: Some(format.name().to_owned()),
        path: None,
        read: mark.read,
        rest: mark.rest,
        rest_order: mark.rest_order,
        rest_offset: mark.rest_offset,
        offset: mark.offset,
        last: mark.last.map(|id| format!("{}.{}", id.packet, id.index)).unwrap_or_default(),
        roots: roots.join("\n"),
        at,
    }
}
