//! Parses the bytes of a packet into its objects and salvages those of a damaged line.
//!
//! Every readable object of a damaged line is parsed; the damage itself is one event.

use super::output::AdapterOutput;
use crate::frame::packets::Packet;
use crate::json::{Index, Json, Kind};

/// The number of positions that are tried to find a complete object after a truncated one.
const MAX_CANDIDATES: usize = 64;

/// Calls `on_object` for each object of a packet: one, a batch of several, or several whose
/// separating line break is missing.
pub(super) fn for_each_object(
    index: &mut Index,
    packet: &Packet<'_>,
    out: &mut AdapterOutput,
    mut on_object: impl FnMut(Json<'_>, &mut AdapterOutput),
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
            Ok(doc) => return visit_root(doc.root(), packet, from, out, &mut on_object),
            Err(e) => (e.reason, e.at),
        };
        if reason == "text after the value" && rest.starts_with('{') {
            if let Ok(doc) = index.read(&rest[..at]) {
                visit_root(doc.root(), packet, from, out, &mut on_object);
            }
            if rest[at..].starts_with('{') {
                out.malformed(packet, "no line break between two packets", from + at);
            }
            from += at;
            continue;
        }
        out.malformed(packet, reason, from + at);
        let Some(next) = object_after(index, rest, at) else { return };
        from += next;
    }
}

fn visit_root(
    root: Json<'_>,
    packet: &Packet<'_>,
    from: usize,
    out: &mut AdapterOutput,
    on_object: &mut impl FnMut(Json<'_>, &mut AdapterOutput),
) {
    match root.kind() {
        Kind::Object => on_object(root, out),
        Kind::Array if root.items().all(|i| i.kind() == Kind::Object) => {
            root.items().for_each(|item| on_object(item, out));
        }
        _ => out.malformed(packet, "not an object", from),
    }
}

/// Finds where, after a truncated object, a complete one starts that ends with the line.
fn object_after(index: &mut Index, text: &str, at: usize) -> Option<usize> {
    let candidates = |from: usize| {
        let starts = memchr::memmem::find_iter(&text.as_bytes()[from..], b"{\"");
        starts.map(move |i| from + i).filter(|i| *i > 0).take(MAX_CANDIDATES)
    };
    let mut is_complete = |i: &usize| {
        let tail = text.get(*i..).unwrap_or_default();
        index.read(tail).is_ok_and(|doc| doc.root().get("type").is_some())
    };
    // Parsing fails just after the start of the complete object, or at the end of the line if that
    // object seemed to be part of the truncated one.
    candidates(at.saturating_sub(4))
        .find(&mut is_complete)
        .or_else(|| candidates(0).find(&mut is_complete))
}
