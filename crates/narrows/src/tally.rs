//! How much of an input was understood.

use crate::model::event::{Body, Event};

/// Counts of packets by outcome. An input of which nothing was understood has no items; the counts
/// distinguish it from an empty session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Tally {
    /// Packets, and lines that are no packets.
    pub packets: u64,
    /// Packets with content: a text, a call, the end of a turn, usage.
    pub told: u64,
    /// Known packets without content: bookkeeping, facts about the session.
    pub quiet: u64,
    /// Packets of an unknown kind.
    pub unknown: u64,
    /// Lines that are not valid packets.
    pub malformed: u64,
    /// The format was configured or detected for certain.
    pub decided: bool,
    /// The last input was a session file that the agent stores, not its output stream.
    pub kept: bool,
}

impl Tally {
    /// Counts one packet by its events.
    pub(crate) fn packet<T>(&mut self, events: &[Event<T>], is_ignored: bool) {
        self.packets += 1;
        let any = |is: fn(&Body<T>) -> bool| events.iter().any(|e| is(&e.body));
        if any(|b| matches!(b, Body::Malformed(_))) {
            self.malformed += 1;
        } else if any(|b| matches!(b, Body::Unknown(_))) {
            self.unknown += 1;
        }
        if any(|b| !matches!(b, Body::Malformed(_) | Body::Unknown(_) | Body::SessionInfo(_))) {
            self.told += 1;
        } else if is_ignored || any(|b| matches!(b, Body::SessionInfo(_))) {
            self.quiet += 1;
        }
    }

    /// Counts a line that is no packet.
    pub(crate) fn malformed_line(&mut self) {
        self.packets += 1;
        self.malformed += 1;
    }

    /// Whether at least part of the input was understood. If the format was not detected for certain,
    /// most packets must have content: a few may match by chance.
    pub fn is_understood(&self) -> bool {
        let failed = self.unknown + self.malformed;
        if self.decided {
            self.told > 0 || (self.quiet > 0 && failed == 0)
        } else {
            self.told > failed
        }
    }
}
