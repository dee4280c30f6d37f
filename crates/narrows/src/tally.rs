//! How much of an input was understood.

use crate::model::event::{Body, Event};

/// Counts of what packets gave. Made for saying so: an input of which nothing was understood gives
/// nothing to see, and that must not look like an empty session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Packets, and lines that cannot be any.
    pub packets: u64,
    /// Packets that gave something that is seen or counted: a text, a call, a turn's end, usage.
    pub told: u64,
    /// Packets that are known and give nothing: bookkeeping, facts about the session.
    pub quiet: u64,
    /// Packets of a kind that nobody modelled.
    pub unknown: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// The format was given, or a packet left no doubt about it.
    pub decided: bool,
    /// What was read last is what an agent keeps, not what it prints.
    pub kept: bool,
}

impl Tally {
    /// Counts one packet by the events that it gave.
    pub(crate) fn packet<T>(&mut self, events: &[Event<T>], quiet: bool) {
        self.packets += 1;
        let any = |is: fn(&Body<T>) -> bool| events.iter().any(|e| is(&e.body));
        if any(|b| matches!(b, Body::Malformed(_))) {
            self.malformed += 1;
        } else if any(|b| matches!(b, Body::Unknown(_))) {
            self.unknown += 1;
        }
        if any(|b| !matches!(b, Body::Malformed(_) | Body::Unknown(_) | Body::SessionInfo(_))) {
            self.told += 1;
        } else if quiet || events.iter().any(|e| matches!(e.body, Body::SessionInfo(_))) {
            self.quiet += 1;
        }
    }

    /// Counts a line that could not be a packet.
    pub(crate) fn fault(&mut self) {
        self.packets += 1;
        self.malformed += 1;
    }

    /// Whether the input was understood, if only in part. Where no packet told the format for sure,
    /// what seems to fit by chance must be the greater part.
    pub fn is_understood(&self) -> bool {
        let not = self.unknown + self.malformed;
        if self.decided { self.told > 0 || (self.quiet > 0 && not == 0) } else { self.told > not }
    }
}
