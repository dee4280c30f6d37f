//! Rows of the log as they are stored and published, serialized into one buffer that all rows of an
//! append share.

use super::persist::serialize_error;
use bytes::Bytes;
use narrows_store::{EventRow, Result};
use serde::Serialize;
use std::ops::Range;

/// Approximate size of a row, in bytes.
const ROW_BYTES: usize = 512;

/// Serializes the rows of one append.
#[derive(Debug)]
pub(super) struct RowEncoder {
    bytes: Vec<u8>,
    rows: Vec<RowSpans>,
}

/// The parts of a row in the buffer.
#[derive(Debug)]
struct RowSpans {
    seq: u64,
    kind: &'static str,
    event: Range<usize>,
    changes: Range<usize>,
    activity: Range<usize>,
}

impl RowEncoder {
    pub(super) fn with_capacity(count: usize) -> RowEncoder {
        RowEncoder { bytes: Vec::with_capacity(ROW_BYTES * count), rows: Vec::with_capacity(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row: an event, its changes, and its activity messages, one per line. Returns the size of the
    /// changes in bytes.
    pub(super) fn add<C: Serialize>(
        &mut self,
        seq: u64,
        kind: &'static str,
        event: &impl Serialize,
        changes: &[C],
        messages: &[impl Serialize],
    ) -> Result<usize> {
        let event = self.serialize(event)?;
        let changes = if changes.is_empty() { 0..0 } else { self.serialize(&changes)? };
        let mut activity = self.bytes.len()..self.bytes.len();
        for message in messages {
            if !activity.is_empty() {
                self.bytes.push(b'\n');
            }
            activity.end = self.serialize(message)?.end;
        }
        let size = changes.len();
        self.rows.push(RowSpans { seq, kind, event, changes, activity });
        Ok(size)
    }

    fn serialize(&mut self, value: &impl Serialize) -> Result<Range<usize>> {
        let from = self.bytes.len();
        narrows::json::print(&mut self.bytes, value).map_err(serialize_error)?;
        Ok(from..self.bytes.len())
    }

    /// The rows, which share the buffer.
    pub(super) fn into_rows(mut self) -> Vec<EventRow> {
        self.bytes.shrink_to_fit();
        let all = Bytes::from(self.bytes);
        let some = |span: Range<usize>| (!span.is_empty()).then(|| all.slice(span));
        let row = |RowSpans { seq, kind, event, changes, activity }| EventRow {
            seq,
            kind: kind.into(),
            event: all.slice(event),
            changes: some(changes),
            activity: some(activity),
        };
        self.rows.into_iter().map(row).collect()
    }
}

/// The elapsed seconds of the turn in the newest activity message of its rows.
pub(super) fn last_elapsed_seconds(turn: &[EventRow]) -> u64 {
    let activity = turn.iter().rev().filter_map(|row| row.activity.as_deref());
    let mut messages = activity.flat_map(|messages| messages.rsplit(|b| *b == b'\n'));
    let seconds = |message| {
        let message: serde_json::Value = serde_json::from_slice(message).ok()?;
        message["elapsedSeconds"].as_u64()
    };
    messages.find_map(seconds).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn row_encoder_separates_parts_of_rows() {
        let mut encoder = RowEncoder::with_capacity(1);
        let none: [u8; 0] = [];
        assert_eq!(encoder.add(4, "a", &"first", &[1, 2], &["x", "y"]).expect("row"), 5);
        assert_eq!(encoder.add(5, "b", &"second", &none, &none).expect("row"), 0);
        let rows = encoder.into_rows();
        let text = |part: &Option<Bytes>| {
            part.as_ref().map(|p| String::from_utf8_lossy(p).into_owned()).unwrap_or_default()
        };
        assert_eq!((rows[0].seq, rows[1].seq), (4, 5));
        assert_eq!(
            (&rows[0].event[..], &rows[1].event[..]),
            (&b"\"first\""[..], &b"\"second\""[..])
        );
        assert_eq!(
            (text(&rows[0].changes), text(&rows[0].activity)),
            ("[1,2]".into(), "\"x\"\n\"y\"".into())
        );
        assert!(rows[1].changes.is_none() && rows[1].activity.is_none());
    }
}
