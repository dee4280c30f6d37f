//! Which packets were read, and after which of them nothing is held back.

use super::Reading;
use super::live::Live;
use super::wrapped::Wrapped;
use narrows::event::{Malformed, Position};
use narrows::id::EventId;
use narrows::time::Time;
use narrows::{Format, Given, Packet, Step};
use narrows_store::{Error, Result, SourceMark};

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
                    self.pipeline.push(Given::Packet(packet), steps);
                    self.look_for_rest(steps.len());
                }
                Ok(())
            }
            Given::Fault(mut fault) => {
                fault.position.line += base;
                if self.is_next(0, fault.position) {
                    self.pipeline.push(Given::Fault(fault), steps);
                    self.look_for_rest(steps.len());
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
        if !self.is_next(wrapped.source, position) {
            return Ok(());
        }
        if let Some(length) = wrapped.too_long {
            let fault =
                Malformed { reason: "line too long", position, length, source: wrapped.source };
            self.pipeline.push(Given::Fault(fault), steps);
            self.look_for_rest(steps.len());
            return Ok(());
        }
        let Some(content) = wrapped.content() else { return bad("holds nothing") };
        let mut packet = Packet::new(&content, position);
        packet.arrived = now;
        packet.source = wrapped.source;
        packet.parent = wrapped.parent.as_deref();
        self.pipeline.push(Given::Packet(packet), steps);
        self.look_for_rest(steps.len());
        Ok(())
    }

    /// Remembers that nothing is held back after so many steps. Not while packets come again: what
    /// is known is ahead of them then.
    pub(super) fn look_for_rest(&mut self, steps: usize) {
        if self.pipeline.is_at_rest() && self.marks.values().all(|m| m.fed >= m.read) {
            self.rest_after = Some(steps);
            self.marks.values_mut().for_each(|m| m.resting = m.fed);
        }
    }

    /// Everything up to the place where nothing was held back has been made into rows.
    pub(super) fn rested(&mut self) {
        let order = self.open.next_order;
        for mark in self.marks.values_mut().filter(|m| m.resting > m.rest) {
            (mark.rest, mark.rest_order, mark.changed) = (mark.resting, order, true);
        }
    }

    /// Whether this pipeline has not read the packet yet.
    fn is_next(&mut self, source: u32, position: Position) -> bool {
        let mark = self.marks.entry(source).or_default();
        if position.line <= mark.fed {
            return false;
        }
        mark.fed = position.line;
        self.ended = false;
        if position.line > mark.read {
            mark.read = position.line;
            mark.offset = position.offset;
            mark.changed = true;
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
        offset: mark.offset,
        last: mark.last.map(|id| format!("{}.{}", id.packet, id.index)).unwrap_or_default(),
        roots: roots.join("\n"),
        at,
    }
}
