//! Event blocks: rows of the log that hold several small events, compressed together.
//!
//! Text chunks arrive by the hundred, and a row of its own would cost each more than its content. A
//! block has the key of its last event, so the row that contains the event after `n` is still the
//! first one with a higher key.

use crate::compress::{self, squeeze, unsqueeze};
use crate::error::{Error, Result};
use crate::event_row::EventRow;
use bytes::Bytes;
use std::borrow::Cow;

/// The value of the column `kind` for a block.
pub(crate) const KIND: &str = "bundle";
/// The first byte of a block; neither JSON nor otherwise compressed data begins with it.
const FORM: u8 = 3;
/// Bytes of a block before compression: the maximum, and the minimum below which events get rows of
/// their own.
const MOST: usize = 64 << 10;
const LEAST: usize = 1024;
/// The maximum number of events in a block.
const MOST_EVENTS: usize = 1024;
/// Larger events get rows of their own.
const LARGE: usize = 16 << 10;
/// Turn ends get rows of their own: an index finds them by kind.
const ALONE: &str = "prompt_response";
const NONE: u32 = u32::MAX;
/// The lengths stored per event: of its kind and its three parts.
const LENGTHS: usize = 4;
/// Bytes of the lengths and the kind of an event.
const AROUND: usize = 4 * LENGTHS + MOST_KIND;
const MOST_KIND: usize = 64;

/// A row of the log: an event, or a block of consecutive events.
#[derive(Debug)]
pub(crate) enum Tied {
    One(EventRow),
    Bundle { first: u64, last: u64, kept: Vec<u8> },
}

/// Packs events into rows, in order.
pub(crate) fn tie(events: impl Iterator<Item = EventRow>, mut give: impl FnMut(Tied)) {
    let (mut some, mut size) = (Vec::new(), 0);
    for event in events {
        let bytes = event.said();
        let alone = bytes > LARGE || event.kind == ALONE;
        let follows = some.last().is_none_or(|last: &EventRow| last.seq + 1 == event.seq);
        if alone || !follows || size + bytes > MOST || some.len() == MOST_EVENTS {
            put(&mut some, std::mem::take(&mut size), &mut give);
        }
        if alone {
            give(Tied::One(event));
        } else {
            size += bytes;
            some.push(event);
        }
    }
    put(&mut some, size, &mut give);
}

fn put(some: &mut Vec<EventRow>, size: usize, give: &mut impl FnMut(Tied)) {
    let kept = if size < LEAST { None } else { pack(some, size) };
    match (kept, &some[..]) {
        (Some(kept), [first, .., last]) => {
            give(Tied::Bundle { first: first.seq, last: last.seq, kept });
        }
        _ => some.drain(..).for_each(|one| give(Tied::One(one))),
    }
    some.clear();
}

/// Encodes a block: the lengths of all parts, then the parts.
fn pack(events: &[EventRow], size: usize) -> Option<Vec<u8>> {
    let count = u32::try_from(events.len()).ok().filter(|count| *count > 1)?;
    if events.iter().any(|event| event.kind.len() > MOST_KIND) {
        return None;
    }
    let mut all = Vec::with_capacity(size + events.len() * AROUND);
    let length = |part: Option<&[u8]>| part.map_or(Some(NONE), |p| u32::try_from(p.len()).ok());
    for event in events {
        for part in parts(event) {
            all.extend(length(part)?.to_le_bytes());
        }
    }
    events.iter().flat_map(parts).flatten().for_each(|part| all.extend_from_slice(part));
    let packed = squeeze(&all)?;
    let mut kept = Vec::with_capacity(9 + packed.len());
    kept.push(FORM);
    kept.extend(count.to_le_bytes());
    kept.extend(u32::try_from(all.len()).ok()?.to_le_bytes());
    kept.extend(packed);
    Some(kept)
}

fn parts(event: &EventRow) -> [Option<&[u8]>; LENGTHS] {
    let kind = Some(event.kind.as_bytes());
    [kind, Some(&event.event), event.changes.as_deref(), event.activity.as_deref()]
}

/// The events of a block whose last event is `last`; `None` if the data is no block.
pub(crate) fn open(last: u64, kept: &[u8]) -> Result<Option<Vec<EventRow>>> {
    if kept.first() != Some(&FORM) {
        return Ok(None);
    }
    untie(last, kept).map(Some).ok_or_else(|| Error::Damaged("events cannot be read".to_owned()))
}

fn untie(last: u64, kept: &[u8]) -> Option<Vec<EventRow>> {
    let (count, rest) = kept.get(1..)?.split_first_chunk()?;
    let (size, packed) = rest.split_first_chunk()?;
    let [count, size] = [count, size].map(|n| u32::from_le_bytes(*n) as usize);
    // Reject sizes that the encoder cannot produce before allocating.
    if count > MOST_EVENTS || size > MOST + count * AROUND || last < count as u64 {
        return None;
    }
    let all = Bytes::from(unsqueeze(packed, size)?);
    let mut at = Some(count * 4 * LENGTHS).filter(|at| *at <= all.len())?;
    let mut events = Vec::with_capacity(count);
    for (n, lengths) in all[..at].chunks_exact(4 * LENGTHS).enumerate() {
        let mut lengths = lengths.chunks_exact(4).filter_map(|n| n.try_into().ok());
        let mut part = || -> Option<Option<Bytes>> {
            let length = u32::from_le_bytes(lengths.next()?);
            if length == NONE {
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
pub fn column_parts(kept: &[u8]) -> Vec<Option<Vec<u8>>> {
    if let Ok(Some(events)) = open(u64::from(u32::MAX), kept) {
        let parts = events.into_iter().flat_map(|e| [Some(e.event), e.changes, e.activity]);
        return parts.map(|part| part.map(Vec::from)).collect();
    }
    compress::unpack(kept).unwrap_or_else(|_| vec![Some(kept.to_vec())])
}

/// The uncompressed content of a stored column, for full-text inspection.
pub fn plain(kept: &[u8]) -> Vec<u8> {
    column_parts(kept).into_iter().flatten().flatten().collect()
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
        tie(events.iter().cloned(), |tied| match tied {
            Tied::One(one) => {
                rows.push((one.seq, one.seq));
                out.push(one);
            }
            Tied::Bundle { first, last, kept } => {
                rows.push((first, last));
                out.extend(open(last, &kept).expect("a bundle").expect("events"));
                for cut in 0..kept.len().min(64) {
                    assert!(cut == 0 || open(last, &kept[..cut]).is_err(), "{cut}");
                }
            }
        });
        (rows, out)
    }

    #[test]
    fn a_bundle_that_cannot_be_one_is_refused_before_it_is_opened() {
        let mut kept = Vec::new();
        tie((1..9).map(|seq| event(seq, "text_chunk", 300)), |tied| {
            if let Tied::Bundle { kept: made, .. } = tied {
                kept = made;
            }
        });
        assert!(open(8, &kept).expect("a bundle").is_some());
        assert!(open(7, &kept).is_err(), "more events than there were");
        for (at, wrong) in [(1, u32::MAX), (1, 7), (1, 9), (5, u32::MAX), (5, 100_000_000), (5, 3)]
        {
            let mut kept = kept.clone();
            kept[at..at + 4].copy_from_slice(&wrong.to_le_bytes());
            assert!(open(u64::from(u32::MAX), &kept).is_err(), "{wrong} at {at}");
        }
    }

    #[test]
    fn what_was_tied_comes_out_again_in_order() {
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
                    (ALONE, 10),
                    ("a", 600),
                    ("b", 20_000),
                    ("a", 600),
                    ("a", 600),
                ][..],
                vec![(7, 8), (9, 9), (10, 10), (11, 11), (12, 13)],
            ),
        ] {
            let events = all(list);
            let (tied, out) = through(&events);
            assert_eq!(tied, rows);
            assert_eq!(format!("{out:?}"), format!("{events:?}"));
        }
        let short = vec![("text_chunk", 10); 3000];
        assert_eq!(through(&all(&short)).1.len(), 3000);
        let events = all(&many);
        let (tied, out) = through(&events);
        assert!((2..10).contains(&tied.len()), "{tied:?}");
        assert_eq!(format!("{out:?}"), format!("{events:?}"));
    }
}
