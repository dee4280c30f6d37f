//! Detects the format of a packet.
//!
//! A packet that several formats could contain decides nothing. It is parsed as ACP, where it
//! becomes an `unknown` event as in every other format, so nothing has to be parsed again when a
//! later packet decides.

use super::acp::EnvelopeKeys;
use super::{Format, claude};
use crate::json::{Index, Json, Kind};

/// Returns the format of a packet; none when several formats could contain it, or none does.
pub(super) fn detect(bytes: &[u8]) -> Option<Format> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches('\0');
    let mut index = Index::default();
    let doc = index.read(text).ok()?;
    let root = doc.root();
    // The first message of a batch decides for the batch.
    let object = if root.kind() == Kind::Array { root.items().next()? } else { root };
    if object.kind() != Kind::Object {
        return None;
    }
    let acp = EnvelopeKeys::read(object);
    if !acp.has_protocol_key
        && acp.update_kind.is_none()
        && let Some(format) = claude::detect(object)
    {
        return Some(format);
    }
    if let Some(message) = recorded_message(object).filter(|_| !acp.has_protocol_key) {
        return if EnvelopeKeys::is_message(message) {
            Some(Format::Acp)
        } else {
            message.get("type").map(|_| Format::ClaudeStream)
        };
    }
    acp.matches(object).then_some(Format::Acp)
}

/// The message in the envelope `{ts, dir, run, msg}` of a recorder; a null counts as one.
fn recorded_message(object: Json<'_>) -> Option<Json<'_>> {
    object.fields().filter(|(key, _)| *key == "msg").last().map(|(_, message)| message)
}
