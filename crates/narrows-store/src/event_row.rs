//! One event as the log stores it and as clients receive it.

use crate::damage::notice::{self, DamageEvent};
use bytes::Bytes;
use std::borrow::Cow;

/// One row of the log.
#[derive(Debug, Clone)]
pub struct EventRow {
    /// The number of the event.
    pub seq: u64,
    /// The type of the event.
    pub kind: Cow<'static, str>,
    /// The event as JSON, as it is served.
    pub event: Bytes,
    /// The changes made by the event, as a JSON array.
    pub changes: Option<Bytes>,
    /// The messages of the activity view, one JSON array per line.
    pub activity: Option<Bytes>,
}

impl EventRow {
    /// Bytes of the JSON parts.
    pub(crate) fn payload_len(&self) -> usize {
        let len = |b: &Option<Bytes>| b.as_ref().map_or(0, Bytes::len);
        self.event.len() + len(&self.changes) + len(&self.activity)
    }

    /// Approximate size in memory, in bytes.
    pub fn size(&self) -> usize {
        96 + self.payload_len()
    }
}

impl From<DamageEvent> for EventRow {
    fn from(DamageEvent { seq, event, changes }: DamageEvent) -> EventRow {
        EventRow { seq, kind: notice::KIND.into(), event, changes: Some(changes), activity: None }
    }
}
