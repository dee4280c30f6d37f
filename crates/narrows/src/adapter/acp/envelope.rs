//! What identifies a packet as ACP, and its kind for the drift check.

use super::update::is_own_update;
use crate::adapter::packet_shape::{PacketShape, kind_name};
use crate::json::{Json, Kind};
use std::borrow::Cow;

/// The keys of an object that identify ACP.
#[derive(Default)]
pub(in crate::adapter) struct EnvelopeKeys<'a> {
    /// A key that only ACP messages, their recorders and their database rows have.
    pub(in crate::adapter) has_protocol_key: bool,
    /// The value of `sessionUpdate`.
    pub(in crate::adapter) update_kind: Option<Cow<'a, str>>,
}

impl<'a> EnvelopeKeys<'a> {
    pub(in crate::adapter) fn read(object: Json<'a>) -> Self {
        let mut keys = EnvelopeKeys::default();
        for (key, value) in object.fields() {
            let is_object = |json: Json<'_>| json.kind() == Kind::Object;
            match key {
                "jsonrpc" | "messageMetadata" | "message_metadata" | "method" => {
                    keys.has_protocol_key = true;
                }
                "sessionUpdate" | "session_update" => keys.update_kind = value.str(),
                "update" => keys.has_protocol_key |= is_object(value),
                "params" => keys.has_protocol_key |= value.get("update").is_some_and(is_object),
                "dir" => keys.has_protocol_key |= value.str().is_some_and(|d| d.contains("->")),
                _ => {}
            }
        }
        keys
    }

    /// Whether the object is an ACP packet.
    pub(in crate::adapter) fn matches(&self, object: Json<'_>) -> bool {
        let kind = || object.fields().filter(|(key, _)| *key == "type").last();
        self.has_protocol_key
            || self.update_kind.is_some()
            || kind().and_then(|(_, kind)| kind.str()).is_some_and(|kind| is_own_update(&kind))
    }

    /// Whether the message in the envelope of a recorder is one of ACP.
    pub(in crate::adapter) fn is_message(message: Json<'_>) -> bool {
        message.any(&["jsonrpc", "method", "sessionUpdate", "update"]).is_some()
    }
}

/// Describes an update, a request or a response; none when the packet is none of these.
pub(in crate::adapter) fn packet_shape(object: Json<'_>) -> Option<PacketShape<'_>> {
    let update = object.path(&["params", "update"]).or_else(|| object.get("update"));
    if let Some(update) = update.filter(|u| u.kind() == Kind::Object) {
        let kind = update.any(&["sessionUpdate", "session_update", "type"]);
        let kind = format!("update:{}", kind_name(kind));
        return Some(PacketShape { kind, objects: vec![("".into(), update)] });
    }
    if let Some(method) = object.get("method") {
        return Some(PacketShape::of_kind(format!("method:{}", kind_name(Some(method)))));
    }
    let is_response = object.get("type").is_none() && object.get("id").is_some();
    is_response.then(|| PacketShape::of_kind("answer"))
}
