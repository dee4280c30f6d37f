//! Ids, derived from the source alone: never random, never from the clock.

use serde::{Serialize, Serializer};

/// The id of an event: its packet, and its number among the events of that packet.
///
/// The same packet at the same place of the same source always gives the same ids.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct EventId {
    /// Number of the source, where the session has several.
    pub source: u32,
    /// Number of the packet in its source, from 1.
    pub packet: u64,
    /// Number of the event in its packet, from 0.
    pub index: u32,
}

impl EventId {
    /// Parses a printed id; none if it is invalid.
    pub fn parse(text: &str) -> Option<EventId> {
        let (source, rest) = match text.split_once('-') {
            Some((source, rest)) => (source.parse().ok()?, rest),
            None => (0, text),
        };
        let (packet, index) = rest.split_once('.')?;
        Some(EventId { source, packet: packet.parse().ok()?, index: index.parse().ok()? })
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for EventId {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'_, str>::deserialize(d)?;
        EventId::parse(&text).ok_or_else(|| serde::de::Error::custom("invalid event id"))
    }
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
