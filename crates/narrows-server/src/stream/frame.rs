//! Rows of the log as frames.

use super::filter::{Filter, View};
use axum::extract::ws::Utf8Bytes;
use bytes::Bytes;
use narrows::stored;
use narrows_store::{EventRow, Place};
use std::io::Write;

/// Calls `tell` for each frame of a row: its number, how many there are, and what it says.
fn frames(view: View, row: &EventRow, mut tell: impl FnMut(u32, u32, &[u8])) {
    match view {
        View::Events => tell(0, 1, &row.event),
        View::Items => {
            if let Some(changes) = &row.changes {
                let mut data = Vec::with_capacity(changes.len() + 64);
                let _ = write!(data, r#"{{"type":"changes","seq":{},"changes":"#, row.seq);
                data.extend_from_slice(changes);
                data.push(b'}');
                tell(0, 1, &data);
            }
        }
        View::Activity => {
            if let Some(messages) = &row.activity {
                let count = messages.split(|b| *b == b'\n').count() as u32;
                for (at, message) in (0..).zip(messages.split(|b| *b == b'\n')) {
                    tell(at, count, message);
                }
            }
        }
        View::Packets => {
            let event = std::str::from_utf8(&row.event).ok().and_then(|e| stored::event(e).ok());
            let mut data = Vec::with_capacity(row.event.len());
            if let Some(packet) = event.as_ref().and_then(narrows::view::packet)
                && narrows::json::print(&mut data, &packet).is_ok()
            {
                tell(0, 1, &data);
            }
        }
    }
}

/// Walks over the frames that come after a place and that a filter takes. Returns the place of the
/// last one.
fn walk(
    view: View,
    filter: &Filter,
    from: Place,
    rows: &[EventRow],
    mut tell: impl FnMut(Place, &[u8]),
) -> Option<Place> {
    let mut last = None;
    for row in rows.iter().filter(|row| row.seq > from.seq && filter.takes_row(view, row)) {
        frames(view, row, |at, count, data| {
            let known = row.seq == from.seq + 1 && at < from.part;
            if known || (view == View::Activity && !filter.takes_message(data)) {
                return;
            }
            let place = if at + 1 == count {
                Place::after(row.seq)
            } else {
                Place { seq: row.seq - 1, part: at + 1 }
            };
            tell(place, data);
            last = Some(place);
        });
    }
    last
}

/// A place as it is written in a cursor.
pub(super) fn cursor(epoch: &str, place: Place) -> String {
    narrows_store::Cursor { epoch: epoch.to_owned(), place }.to_string()
}

/// One frame of server-sent events.
fn sse_frame(out: &mut Vec<u8>, epoch: &str, view: View, place: Place, data: &[u8]) {
    out.extend_from_slice(b"id: ");
    out.extend_from_slice(cursor(epoch, place).as_bytes());
    // Front ends of this view look for the name.
    out.extend_from_slice(if view == View::Packets {
        b"\nevent: message\ndata: "
    } else {
        b"\ndata: "
    });
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// One message of a socket: what it says, with the subscription and the cursor.
fn ws_message(epoch: &str, subscription: &str, place: Place, data: &[u8]) -> Utf8Bytes {
    let data = String::from_utf8_lossy(data.strip_suffix(b"}").unwrap_or(data));
    let name = serde_json::Value::from(subscription);
    let comma = if data.len() > 1 { "," } else { "" };
    let cursor = cursor(epoch, place);
    format!("{data}{comma}\"subscription\":{name},\"cursor\":\"{cursor}\"}}").into()
}

/// The frames after a place for server-sent events; the cursor where the last ones were left out.
pub(crate) fn encode_sse(
    epoch: &str,
    view: View,
    filter: &Filter,
    from: Place,
    rows: &[EventRow],
) -> Bytes {
    let mut out = Vec::with_capacity(rows.iter().map(EventRow::size).sum());
    let last = walk(view, filter, from, rows, |place, data| {
        sse_frame(&mut out, epoch, view, place, data);
    });
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        sse_cursor(&mut out, epoch, end);
    }
    out.into()
}

/// A cursor without a frame: there was nothing to tell up to it.
fn sse_cursor(out: &mut Vec<u8>, epoch: &str, place: Place) {
    let _ = write!(out, "id: {}\n\n", cursor(epoch, place));
}

/// The same for a socket's subscription.
pub(crate) fn encode_ws(
    epoch: &str,
    view: View,
    filter: &Filter,
    subscription: &str,
    from: Place,
    rows: &[EventRow],
) -> Vec<Utf8Bytes> {
    let mut out = Vec::with_capacity(rows.len());
    let last = walk(view, filter, from, rows, |place, data| {
        out.push(ws_message(epoch, subscription, place, data));
    });
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        out.push(ws_message(epoch, subscription, end, br#"{"type":"cursor"}"#));
    }
    out
}
