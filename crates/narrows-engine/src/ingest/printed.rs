//! Rows of the log as they are kept and told: printed one after the other into the same memory, which
//! all of them share.

use super::live::unprintable;
use bytes::Bytes;
use narrows_store::{EventRow, Result};
use serde::Serialize;
use std::ops::Range;

/// What a row takes, about.
const ROW: usize = 512;

/// Rows that are being printed.
#[derive(Debug)]
pub(super) struct Printed {
    bytes: Vec<u8>,
    rows: Vec<Spans>,
}

/// Where the parts of a row stand.
#[derive(Debug)]
struct Spans {
    seq: u64,
    kind: &'static str,
    event: Range<usize>,
    changes: Range<usize>,
    activity: Range<usize>,
}

impl Printed {
    pub(super) fn for_rows(count: usize) -> Printed {
        Printed { bytes: Vec::with_capacity(ROW * count), rows: Vec::with_capacity(count) }
    }

    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Adds a row: an event, what it changed, and its messages, a line each. Returns the bytes of the
    /// changes.
    pub(super) fn add<C: Serialize>(
        &mut self,
        seq: u64,
        kind: &'static str,
        event: &impl Serialize,
        changes: &[C],
        messages: &[impl Serialize],
    ) -> Result<usize> {
        let event = self.print(event)?;
        let changes = if changes.is_empty() { 0..0 } else { self.print(&changes)? };
        let mut activity = self.bytes.len()..self.bytes.len();
        for message in messages {
            if !activity.is_empty() {
                self.bytes.push(b'\n');
            }
            activity.end = self.print(message)?.end;
        }
        let size = changes.len();
        self.rows.push(Spans { seq, kind, event, changes, activity });
        Ok(size)
    }

    fn print(&mut self, value: &impl Serialize) -> Result<Range<usize>> {
        let from = self.bytes.len();
        narrows::json::print(&mut self.bytes, value).map_err(unprintable)?;
        Ok(from..self.bytes.len())
    }

    /// The rows.
    pub(super) fn rows(mut self) -> Vec<EventRow> {
        self.bytes.shrink_to_fit();
        let all = Bytes::from(self.bytes);
        let some = |span: Range<usize>| (!span.is_empty()).then(|| all.slice(span));
        let row = |Spans { seq, kind, event, changes, activity }| EventRow {
            seq,
            kind: kind.into(),
            event: all.slice(event),
            changes: some(changes),
            activity: some(activity),
        };
        self.rows.into_iter().map(row).collect()
    }
}

/// The seconds of its turn that rows told last.
pub(super) fn last_elapsed(turn: &[EventRow]) -> u64 {
    let told = turn.iter().rev().filter_map(|row| row.activity.as_deref());
    let mut messages = told.flat_map(|told| told.rsplit(|b| *b == b'\n'));
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
    fn each_row_has_its_own_parts() {
        let mut printed = Printed::for_rows(1);
        let none: [u8; 0] = [];
        assert_eq!(printed.add(4, "a", &"first", &[1, 2], &["x", "y"]).expect("row"), 5);
        assert_eq!(printed.add(5, "b", &"second", &none, &none).expect("row"), 0);
        let rows = printed.rows();
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
