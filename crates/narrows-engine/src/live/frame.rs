//! Rows of the log as frames.

use super::filter::{Filter, View};
use bytes::Bytes;
use narrows::stored;
use narrows_store::{EventRow, Place};
use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::io::Write;
use std::sync::OnceLock;

/// Bytes around what a frame says, about.
const SSE: usize = 40;
const WS: usize = 60;

/// Calls `tell` for each frame of a row: its number, how many there are, and what it says. What must
/// be made for that is made in `made`.
fn frames(view: View, row: &EventRow, made: &mut Vec<u8>, mut tell: impl FnMut(u32, u32, &[u8])) {
    match view {
        View::Events => tell(0, 1, &row.event),
        View::Items => {
            if let Some(changes) = &row.changes {
                made.clear();
                let _ = write!(made, r#"{{"type":"changes","seq":{},"changes":"#, row.seq);
                made.extend_from_slice(changes);
                made.push(b'}');
                tell(0, 1, made);
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
            let Some(event) = event else { return };
            let changes = || {
                let text = row.changes.as_ref().and_then(|c| std::str::from_utf8(c).ok());
                text.and_then(|text| stored::changes(text).ok()).unwrap_or_default()
            };
            let packets = narrows::view::packets(&event, changes);
            for (at, packet) in (0..).zip(&packets) {
                made.clear();
                if narrows::json::print(made, packet).is_ok() {
                    tell(at, packets.len() as u32, made);
                }
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
    let (mut last, mut made) = (None, Vec::new());
    for row in rows.iter().filter(|row| row.seq > from.seq && filter.takes_row(view, row)) {
        frames(view, row, &mut made, |at, count, data| {
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

/// One frame of server-sent events.
fn sse_frame(out: &mut Vec<u8>, epoch: &str, view: View, place: Place, data: &[u8]) {
    let _ = write!(out, "id: {}", place.within(epoch));
    // Front ends of this view look for the name.
    out.extend_from_slice(if view == View::Packets {
        b"\nevent: message\ndata: "
    } else {
        b"\ndata: "
    });
    out.extend_from_slice(data);
    out.extend_from_slice(b"\n\n");
}

/// Text messages for a socket, one after the other in one buffer that all of them share.
pub struct TextFrames {
    bytes: Bytes,
    /// Where each message ends in `bytes`.
    ends: Vec<usize>,
    /// The messages in the text type of a transport.
    converted: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl TextFrames {
    /// The messages as slices of the shared buffer.
    pub fn iter(&self) -> impl Iterator<Item = Bytes> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| self.bytes.slice(start..*end))
    }

    /// The messages in the text type of a transport. The first call converts them; later calls, also
    /// by other subscribers, return the same texts: a transport validates UTF-8 once for all of them.
    pub fn converted<T>(&self, convert: impl Fn(Bytes) -> T) -> Cow<'_, [T]>
    where
        T: Clone + Send + Sync + 'static,
    {
        let texts = self
            .converted
            .get_or_init(|| Box::new(self.iter().map(&convert).collect::<Vec<T>>()))
            .downcast_ref::<Vec<T>>();
        match texts {
            Some(texts) => Cow::Borrowed(texts),
            // Another transport of the same process was first.
            None => Cow::Owned(self.iter().map(convert).collect()),
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
        f.debug_list().entries(self.iter()).finish()
    }
}

/// The messages of a socket's subscription, one after the other in the same bytes.
struct Messages<'a> {
    epoch: &'a str,
    /// The subscription's name, as JSON.
    name: String,
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Messages<'_> {
    /// One message: what it says, with the subscription and the cursor.
    fn add(&mut self, place: Place, data: &[u8]) {
        let data = data.strip_suffix(b"}").unwrap_or(data);
        self.bytes.extend_from_slice(data);
        let comma = if data.len() > 1 { "," } else { "" };
        let (name, cursor) = (&self.name, place.within(self.epoch));
        let _ = write!(self.bytes, "{comma}\"subscription\":{name},\"cursor\":\"{cursor}\"}}");
        self.ends.push(self.bytes.len());
    }

    fn cut(self) -> TextFrames {
        TextFrames { bytes: self.bytes.into(), ends: self.ends, converted: OnceLock::new() }
    }
}

/// The frames after a place for server-sent events; the cursor where the last ones were left out.
pub(super) fn encode_sse(
    epoch: &str,
    view: View,
    filter: &Filter,
    from: Place,
    rows: &[EventRow],
) -> Bytes {
    let mut out = Vec::with_capacity(rows.iter().map(|row| size(view, row) + SSE).sum());
    let last = walk(view, filter, from, rows, |place, data| {
        sse_frame(&mut out, epoch, view, place, data);
    });
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        // A cursor without a frame: there was nothing to tell up to it.
        let _ = write!(out, "id: {}\n\n", end.within(epoch));
    }
    out.into()
}

/// The same for a socket's subscription.
pub(super) fn encode_ws(
    epoch: &str,
    view: View,
    filter: &Filter,
    subscription: &str,
    from: Place,
    rows: &[EventRow],
) -> TextFrames {
    let mut out = Messages {
        epoch,
        name: serde_json::Value::from(subscription).to_string(),
        bytes: Vec::with_capacity(rows.iter().map(|row| size(view, row) + WS).sum()),
        ends: Vec::with_capacity(rows.len()),
    };
    let last = walk(view, filter, from, rows, |place, data| out.add(place, data));
    let end = Place::after(rows.last().map_or(from.seq, |r| r.seq));
    if last != Some(end) {
        out.add(end, br#"{"type":"cursor"}"#);
    }
    out.cut()
}

/// Bytes that a row takes in a view, about.
fn size(view: View, row: &EventRow) -> usize {
    match view {
        View::Events | View::Packets => row.event.len(),
        View::Items => row.changes.as_ref().map_or(0, |changes| changes.len() + 40),
        View::Activity => row.activity.as_ref().map_or(0, Bytes::len),
    }
}
