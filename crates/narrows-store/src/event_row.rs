//! One event as the log stores it and as clients receive it.

use bytes::Bytes;
use std::borrow::Cow;

/// One row of the log.
#[derive(Debug, Clone)]
pub struct EventRow {
    /// Its number.
    pub seq: u64,
    /// Its type.
    pub kind: Cow<'static, str>,
    /// The event, as it is served.
    pub event: Bytes,
    /// The changes it made, an array.
    pub changes: Option<Bytes>,
    /// The messages of the activity view, an array.
    pub activity: Option<Bytes>,
}

impl EventRow {
    /// Bytes of what it says.
    pub(crate) fn said(&self) -> usize {
        let len = |b: &Option<Bytes>| b.as_ref().map_or(0, Bytes::len);
        self.event.len() + len(&self.changes) + len(&self.activity)
    }

    /// Its bytes, about.
    pub fn size(&self) -> usize {
        96 + self.said()
    }
}
