//! Identities: derived from the source, never random and never from the clock.

use serde::{Serialize, Serializer};

/// An event's identity: the packet it came from and its number among that packet's events.
///
/// The same packet at the same place of the same source always gives the same ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventId {
    /// Which source of the session, where it has several.
    pub source: u32,
    /// The packet's number in its source, from 1.
    pub packet: u64,
    /// The event's number within the packet, from 0.
    pub index: u32,
}

impl std::fmt::Display for EventId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.source > 0 {
            write!(f, "{}-", self.source)?;
        }
        write!(f, "{}.{}", self.packet, self.index)
    }
}

impl Serialize for EventId {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
