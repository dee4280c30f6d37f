//! Event blocks: rows of the log that hold several small events, compressed together.
//!
//! Text chunks arrive by the hundred, and a row of its own would cost each more than its content. A
//! block has the key of its last event, so the row that contains the event after `n` is still the
//! first one with a higher key.

use crate::compress::{self, compress_raw, decompress_raw};
use crate::error::{Error, Result};
use crate::event_row::EventRow;
use bytes::Bytes;
use std::borrow::Cow;

/// The value of the column `kind` for a block.
pub(crate) const BLOCK_KIND: &str = "bundle";
/// The first byte of a block; neither JSON nor otherwise compressed data begins with it.
const FORMAT_TAG: u8 = 3;
/// Bytes of a block before compression: the maximum, and the minimum below which events get rows of
/// their own.
const MAX_BLOCK_BYTES: usize = 64 << 10;
const MIN_BLOCK_BYTES: usize = 1024;
/// The maximum number of events in a block.
const MAX_BLOCK_EVENTS: usize = 1024;
/// Larger events get rows of their own.
const MAX_SHARED_EVENT_BYTES: usize = 16 << 10;
/// Turn ends get rows of their own: an index finds them by kind.
const NEVER_SHARED_KIND: &str = "prompt_response";
const NO_PART: u32 = u32::MAX;
/// The lengths stored per event: of its kind and its three parts.
const LENGTHS_PER_EVENT: usize = 4;
/// Bytes of the lengths and the kind of an event.
const MAX_EVENT_OVERHEAD: usize = 4 * LENGTHS_PER_EVENT + MAX_KIND_BYTES;
const MAX_KIND_BYTES: usize = 64;

/// A row of the log: an event, or a block of consecutive events.
#[derive(Debug)]
pub(crate) enum LogRow {
    Event(EventRow),
    Block { first: u64, last: u64, data: Vec<u8> },
}

/// Packs events into rows, in order.
pub(crate) fn pack_events(events: impl Iterator<Item = EventRow>, mut emit: impl FnMut(LogRow)) {
    let (mut pending, mut size) = (Vec::new(), 0);
    for event in events {
        let bytes = event.payload_len();
        let is_never_shared = bytes > MAX_SHARED_EVENT_BYTES || event.kind == NEVER_SHARED_KIND;
        let follows = pending.last().is_none_or(|last: &EventRow| last.seq + 1 == event.seq);
        if is_never_shared
            || !follows
            || size + bytes > MAX_BLOCK_BYTES
            || pending.len() == MAX_BLOCK_EVENTS
        {
            flush(&mut pending, std::mem::take(&mut size), &mut emit);
        }
        if is_never_shared {
            emit(LogRow::Event(event));
        } else {
            size += bytes;
            pending.push(event);
        }
    }
    flush(&mut pending, size, &mut emit);
}

fn flush(pending: &mut Vec<EventRow>, size: usize, emit: &mut impl FnMut(LogRow)) {
    let data = if size < MIN_BLOCK_BYTES { None } else { encode_block(pending, size) };
    match (data, &pending[..]) {
        (Some(data), [first, .., last]) => {
            emit(LogRow::Block { first: first.seq, last: last.seq, data });
        }
        _ => pending.drain(..).for_each(|one| emit(LogRow::Event(one))),
    }
    pending.clear();
}

/// Encodes a block: the lengths of all parts, then the parts.
fn encode_block(events: &[EventRow], size: usize) -> Option<Vec<u8>> {
    let count = u32::try_from(events.len()).ok().filter(|count| *count > 1)?;
    if events.iter().any(|event| event.kind.len() > MAX_KIND_BYTES) {
        return None;
    }
    let mut all = Vec::with_capacity(size + events.len() * MAX_EVENT_OVERHEAD);
    let length = |part: Option<&[u8]>| part.map_or(Some(NO_PART), |p| u32::try_from(p.len()).ok());
    for event in events {
        for part in parts(event) {
            all.extend(length(part)?.to_le_bytes());
        }
    }
    events.iter().flat_map(parts).flatten().for_each(|part| all.extend_from_slice(part));
    let compressed = compress_raw(&all)?;
    let mut data = Vec::with_capacity(9 + compressed.len());
    data.push(FORMAT_TAG);
    data.extend(count.to_le_bytes());
    data.extend(u32::try_from(all.len()).ok()?.to_le_bytes());
    data.extend(compressed);
    Some(data)
}

fn parts(event: &EventRow) -> [Option<&[u8]>; LENGTHS_PER_EVENT] {
    let kind = Some(event.kind.as_bytes());
    [kind, Some(&event.event), event.changes.as_deref(), event.activity.as_deref()]
}

/// The events of a block whose last event is `last`; `None` if the data is no block.
pub(crate) fn unpack_events(last: u64, data: &[u8]) -> Result<Option<Vec<EventRow>>> {
    if data.first() != Some(&FORMAT_TAG) {
        return Ok(None);
    }
    decode_block(last, data)
        .map(Some)
        .ok_or_else(|| Error::Damaged("events cannot be read".to_owned()))
}

fn decode_block(last: u64, data: &[u8]) -> Option<Vec<EventRow>> {
    let (count, rest) = data.get(1..)?.split_first_chunk()?;
    let (size, compressed) = rest.split_first_chunk()?;
    let [count, size] = [count, size].map(|n| u32::from_le_bytes(*n) as usize);
    // Reject sizes that the encoder cannot produce before allocating.
    if count > MAX_BLOCK_EVENTS
        || size > MAX_BLOCK_BYTES + count * MAX_EVENT_OVERHEAD
        || last < count as u64
    {
        return None;
    }
    let all = Bytes::from(decompress_raw(compressed, size)?);
    let mut at = Some(count * 4 * LENGTHS_PER_EVENT).filter(|at| *at <= all.len())?;
    let mut events = Vec::with_capacity(count);
    for (n, lengths) in all[..at].chunks_exact(4 * LENGTHS_PER_EVENT).enumerate() {
        let mut lengths = lengths.chunks_exact(4).filter_map(|n| n.try_into().ok());
        let mut part = || -> Option<Option<Bytes>> {
            let length = u32::from_le_bytes(lengths.next()?);
            if length == NO_PART {
                return Some(None);
            }
            let end = at.checked_add(length as usize).filter(|end| *end <= all.len())?;
            Some(Some(all.slice(std::mem::replace(&mut at, end)..end)))
        };
        let kind = String::from_utf8(part()??.into()).ok()?;
        let (event, changes, activity) = (part()??, part()?, part()?);
        let seq = last + 1 + n as u64 - count as u64;
        events.push(EventRow { seq, kind: Cow::Owned(kind), event, changes, activity });
    }
    (at == all.len()).then_some(events)
}

/// The uncompressed parts of a stored column.
pub fn column_parts(data: &[u8]) -> Vec<Option<Vec<u8>>> {
    if let Ok(Some(events)) = unpack_events(u64::from(u32::MAX), data) {
        let parts = events.into_iter().flat_map(|e| [Some(e.event), e.changes, e.activity]);
        return parts.map(|part| part.map(Vec::from)).collect();
    }
    compress::decompress_parts(data).unwrap_or_else(|_| vec![Some(data.to_vec())])
}

/// The uncompressed content of a stored column, for full-text inspection.
pub fn plain(data: &[u8]) -> Vec<u8> {
    column_parts(data).into_iter().flatten().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(seq: u64, kind: &'static str, size: usize) -> EventRow {
        let text = format!("{{\"n\":{seq},\"said\":\"{}\"}}", "word ".repeat(size / 5));
        EventRow {
            seq,
            kind: kind.into(),
            event: Bytes::from(text.clone()),
            changes: seq.is_multiple_of(2).then(|| Bytes::from(format!("[{text}]"))),
            activity: seq.is_multiple_of(3).then(|| Bytes::from(text)),
        }
    }

    /// Packs events; returns the first and last event of each row, and all events after unpacking.
    fn through(events: &[EventRow]) -> (Vec<(u64, u64)>, Vec<EventRow>) {
        let (mut rows, mut out) = (Vec::new(), Vec::new());
        pack_events(events.iter().cloned(), |row| match row {
            LogRow::Event(one) => {
                rows.push((one.seq, one.seq));
                out.push(one);
            }
            LogRow::Block { first, last, data } => {
                rows.push((first, last));
                out.extend(unpack_events(last, &data).expect("a bundle").expect("events"));
                for cut in 0..data.len().min(64) {
                    assert!(cut == 0 || unpack_events(last, &data[..cut]).is_err(), "{cut}");
                }
            }
        });
        (rows, out)
    }

    #[test]
    fn invalid_block_is_rejected_before_decompression() {
        let mut data = Vec::new();
        pack_events((1..9).map(|seq| event(seq, "text_chunk", 300)), |row| {
            if let LogRow::Block { data: made, .. } = row {
                data = made;
            }
        });
        assert!(unpack_events(8, &data).expect("a bundle").is_some());
        assert!(unpack_events(7, &data).is_err(), "more events than there were");
        for (at, wrong) in [(1, u32::MAX), (1, 7), (1, 9), (5, u32::MAX), (5, 100_000_000), (5, 3)]
        {
            let mut data = data.clone();
            data[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
            assert!(unpack_events(u64::from(u32::MAX), &data).is_err(), "{wrong} at {at}");
        }
    }

    #[test]
    fn packed_events_round_trip_in_order() {
        let all = |list: &[(&'static str, usize)]| -> Vec<EventRow> {
            (7..).zip(list).map(|(seq, (kind, size))| event(seq, kind, *size)).collect()
        };
        let many = vec![("text_chunk", 100); 900];
        for (list, rows) in [
            (&[][..], vec![]),
            (&[("a", 100)][..], vec![(7, 7)]),
            (&[("a", 100), ("a", 100)][..], vec![(7, 7), (8, 8)]),
            (&[("a", 500), ("b", 500), ("c", 100)][..], vec![(7, 9)]),
            (
                &[
                    ("a", 600),
                    ("a", 600),
                    (NEVER_SHARED_KIND, 10),
                    ("a", 600),
                    ("b", 20_000),
                    ("a", 600),
                    ("a", 600),
                ][..],
                vec![(7, 8), (9, 9), (10, 10), (11, 11), (12, 13)],
            ),
        ] {
            let events = all(list);
            let (ranges, out) = through(&events);
            assert_eq!(ranges, rows);
            assert_eq!(format!("{out:?}"), format!("{events:?}"));
        }
        let short = vec![("text_chunk", 10); 3000];
        assert_eq!(through(&all(&short)).1.len(), 3000);
        let events = all(&many);
        let (ranges, out) = through(&events);
        assert!((2..10).contains(&ranges.len()), "{ranges:?}");
        assert_eq!(format!("{out:?}"), format!("{events:?}"));
    }
}
