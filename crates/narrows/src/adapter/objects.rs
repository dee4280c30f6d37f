//! From the bytes of a packet to its objects, also where a file was damaged.
//!
//! What can be read of a damaged line is read; the damage itself is one event.

use super::Yield;
use crate::json::{Index, Json, Kind};
use crate::packet::Packet;

/// Places that are tried to find a whole object behind a torn one.
const MAX_TRIES: usize = 64;

/// Calls `take` for each object of a packet: one, a batch of several, or several that lost the
/// line break between them.
pub(super) fn each(
    index: &mut Index,
    packet: &Packet<'_>,
    out: &mut Yield,
    mut take: impl FnMut(Json<'_>, &mut Yield),
) {
    let text = match simdutf8::compat::from_utf8(packet.bytes) {
        Ok(text) => text,
        Err(e) => return out.malformed(packet, "not UTF-8", e.valid_up_to()),
    };
    let mut from = 0;
    loop {
        // A crash leaves runs of NUL where a line should be.
        let rest = text[from..].trim_matches('\0');
        if rest.len() < text.len() - from {
            out.malformed(packet, "NUL bytes", from);
            from += text[from..].len() - text[from..].trim_start_matches('\0').len();
            if rest.is_empty() {
                return;
            }
        }
        let (reason, at) = match index.read(rest) {
            Ok(doc) => return objects(doc.root(), packet, from, out, &mut take),
            Err(e) => (e.reason, e.at),
        };
        if reason == "text after the value" && rest.starts_with('{') {
            if let Ok(doc) = index.read(&rest[..at]) {
                objects(doc.root(), packet, from, out, &mut take);
            }
            if rest[at..].starts_with('{') {
                out.malformed(packet, "no line break between two packets", from + at);
            }
            from += at;
            continue;
        }
        out.malformed(packet, reason, from + at);
        let Some(whole) = behind(index, rest, at) else { return };
        from += whole;
    }
}

fn objects(
    root: Json<'_>,
    packet: &Packet<'_>,
    from: usize,
    out: &mut Yield,
    take: &mut impl FnMut(Json<'_>, &mut Yield),
) {
    match root.kind() {
        Kind::Object => take(root, out),
        Kind::Array if root.items().all(|i| i.kind() == Kind::Object) => {
            root.items().for_each(|item| take(item, out));
        }
        _ => out.malformed(packet, "not an object", from),
    }
}

/// Where behind a torn object a whole one begins that ends with the line.
fn behind(index: &mut Index, text: &str, at: usize) -> Option<usize> {
    let starts = |from: usize| {
        let found = memchr::memmem::find_iter(&text.as_bytes()[from..], b"{\"");
        found.map(move |i| from + i).filter(|i| *i > 0).take(MAX_TRIES)
    };
    let mut whole = |i: &usize| {
        let tail = text.get(*i..).unwrap_or_default();
        index.read(tail).is_ok_and(|doc| doc.root().get("type").is_some())
    };
    // Reading fails just behind its beginning, or at the end if it seemed to lie in the torn one.
    starts(at.saturating_sub(4)).find(&mut whole).or_else(|| starts(0).find(&mut whole))
}
