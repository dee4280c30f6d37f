//! Rows of the log encoded as frames, for server-sent events and for sockets. Each frame carries the
//! cursor after which a client resumes.

use super::filter::{Filter, View};
use bytes::Bytes;
use narrows::stored;
use narrows_store::{EventRow, Place};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::OnceLock;

/// Approximate size of a frame without its data, in bytes.
const SSE_OVERHEAD_BYTES: usize = 40;
const WS_OVERHEAD_BYTES: usize = 60;

/// Calls `emit` for each frame of a row with its index, the number of frames and its data. `buffer` is
/// reused for data that must be assembled.
fn row_frames(
    view: View,
    row: &EventRow,
    buffer: &mut Vec<u8>,
    mut emit: impl FnMut(u32, u32, &[u8]),
) {
    match view {
        View::Events => emit(0, 1, &row.event),
        View::Items => {
            if let Some(changes) = &row.changes {
                buffer.clear();
                let _ = write!(buffer, r#"{{"type":"changes","seq":{},"changes":"#, row.seq);
                buffer.extend_from_slice(changes);
                buffer.push(b'}');
                emit(0, 1, buffer);
            }
        }
        View::Activity => {
            if let Some(messages) = &row.activity {
                let count = messages.split(|b| *b == b'\n').count() as u32;
                for (at, message) in (0..).zip(messages.split(|b| *b == b'\n')) {
                    emit(at, count, message);
                }
            }
        }
        View::Packets => {
            let event = std::str::from_utf8(&row.event).ok().and_then(|e| stored::event(e).ok());
            let Some(event) = event else { return };
            let changes = || {
                let text = row.changes.as_ref().and_then(|c| std::str::from_utf8(c).ok());
                text.and_then(|text| stored::changes(text).ok()).unwrap_or_default()
            };
            let packets = narrows::view::packets(&event, changes);
            for (at, packet) in (0..).zip(&packets) {
                buffer.clear();
                if narrows::json::print(buffer, packet).is_ok() {
                    emit(at, packets.len() as u32, buffer);
                }
            }
        }
    }
}

/// Calls `emit` for each frame that comes after a position and passes the filter. Returns the position
/// of the last one.
fn emit_frames(
    view: View,
    filter: &Filter,
    from: Place,
    rows: &[EventRow],
    mut emit: impl FnMut(Place, &[u8]),
) -> Option<Place> {
    let (mut last, mut buffer) = (None, Vec::new());
    for row in rows.iter().filter(|row| row.seq > from.seq && filter.accepts_row(view, row)) {
        row_frames(view, row, &mut buffer, |at, count, data| {
            let was_sent = row.seq == from.seq + 1 && at < from.part;
            if was_sent || (view == View::Activity && !filter.accepts_message(data)) {
                return;
            }
            let place = if at + 1 == count {
                Place::after(row.seq)
            } else {
                Place { seq: row.seq - 1, part: at + 1 }
            };
            emit(place, data);
            last = Some(place);
        });
    }
    last
}

/// Encodes one server-sent event.
fn sse_frame(out: &mut Vec<u8>, epoch: &str, view: View, place: Place, data: &[u8]) {
    let _ = write!(out, "id: {}", place.within(epoch));
    // Clients of this view listen for the event name.
    out.extend_from_slice(if view == View::Packets {
        b"\nevent: message\ndata: "
    } else {
        b"\ndata: "
    });
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Text messages for a socket. They share one buffer.
pub struct TextFrames {
    bytes: Bytes,
    /// Where each message ends in `bytes`.
    ends: Vec<usize>,
    /// The messages in the text type of a transport.
    converted: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl TextFrames {
    /// The messages as slices of the shared buffer.
    pub fn texts(&self) -> impl Iterator<Item = Bytes> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.slice(start..*end))
    }

    /// The messages in the text type of a transport. The first call converts them; later calls, also
    /// for other subscribers, return the same texts: UTF-8 is validated once per batch, not per client.
    pub fn converted<T>(&self, convert: impl Fn(&Bytes) -> T) -> Cow<'_, [T]>
    where
        T: Clone + Send + Sync + 'static,
    {
        let convert_all = || self.texts().map(|text| convert(&text)).collect::<Vec<T>>();
        let texts = self.converted.get_or_init(|| Box::new(convert_all())).downcast_ref::<Vec<T>>();
        match texts {
            Some(texts) => Cow::Borrowed(texts),
            // Another transport of this process has converted them first.
            None => Cow::Owned(convert_all()),
        }
    }
}

impl FromIterator<String> for TextFrames {
    fn from_iter<I: IntoIterator<Item = String>>(texts: I) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for text in texts {
            bytes.extend_from_slice(text.as_bytes());
            ends.push(bytes.len());
        }
        TextFrames { bytes: bytes.into(), ends, converted: OnceLock::new() }
    }
}

impl fmt::Debug for TextFrames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.texts()).finish()
    }
}

/// Builds the messages of a socket's subscription in one buffer.
struct MessageEncoder<'a> {
    epoch: &'a str,
    /// The subscription's name, as a JSON string.
    subscription: String,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl MessageEncoder<'_> {
    /// Adds one message: its data with the subscription and the cursor.
    fn add(&mut self, place: Place, data: &[u8]) {
        let data = data.strip_suffix(b"}").unwrap_or(data);
        self.bytes.extend_from_slice(data);
        let comma = if data.len() > 1 { "," } else { "" };
        let (name, cursor) = (&self.subscription, place.within(self.epoch));
        let _ = write!(self.bytes, "{comma}\"subscription\":{name},\"cursor\":\"{cursor}\"}}");
        self.ends.push(self.bytes.len());
    }

    fn finish(self) -> TextFrames {
        TextFrames { bytes: self.bytes.into(), ends: self.ends, converted: OnceLock::new() }
    }
}

/// Encodes the frames after a position as server-sent events. Where the last ones are left out, an event
/// with a cursor alone follows.
pub(super) fn encode_sse(
    epoch: &str,
    view: View,
    filter: &Filter,
    from: Place,
    rows: &[EventRow],
) -> Bytes {
    let mut out =
        Vec::with_capacity(rows.iter().map(|row| data_size(view, row) + SSE_OVERHEAD_BYTES).sum());
    let last = emit_frames(view, filter, from, rows, |place, data| {
        sse_frame(&mut out, epoch, view, place, data);
    });
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        // A cursor without data: the client need not read the skipped rows again.
        let _ = write!(out, "id: {}\n\n", end.within(epoch));
    }
    out.into()
}

/// Encodes the frames after a position as messages of a socket's subscription.
pub(super) fn encode_ws(
    epoch: &str,
    view: View,
    filter: &Filter,
    subscription: &str,
    from: Place,
    rows: &[EventRow],
) -> TextFrames {
    let mut out = MessageEncoder {
        epoch,
        subscription: serde_json::Value::from(subscription).to_string(),
        bytes: Vec::with_capacity(
            rows.iter().map(|row| data_size(view, row) + WS_OVERHEAD_BYTES).sum(),
        ),
        ends: Vec::with_capacity(rows.len()),
    };
    let last = emit_frames(view, filter, from, rows, |place, data| out.add(place, data));
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        out.add(end, br#"{"type":"cursor"}"#);
    }
    out.finish()
}

/// Approximate size of a row's data in a view, in bytes.
fn data_size(view: View, row: &EventRow) -> usize {
    match view {
        View::Events | View::Packets => row.event.len(),
        View::Items => row.changes.as_ref().map_or(0, |changes| changes.len() + 40),
        View::Activity => row.activity.as_ref().map_or(0, Bytes::len),
    }
}
