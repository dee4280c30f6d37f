//! Which format a packet is of, where it leaves no doubt.
//!
//! A packet that could be of any format decides nothing. It is read as ACP, where it is an
//! `unknown` event, which it would be in every format: so nothing has to be read again when a later
//! packet decides.

use super::acp::is_own_update;
use super::claude::{is_kept_kind, is_own_kind};
use crate::json::{Index, Json, Kind};
use crate::packet::Format;

/// The format of a packet; none when it could be of any, or of none.
pub(super) fn format(bytes: &[u8]) -> Option<Format> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches('\0');
    let mut index = Index::default();
    let doc = index.read(text).ok()?;
    let root = doc.root();
    // A batch is what its first message is.
    let object = if root.kind() == Kind::Array { root.items().next()? } else { root };
    if object.kind() != Kind::Object {
        return None;
    }
    let (mut acp, mut history) = (false, false);
    let (mut r#type, mut message, mut wrapped, mut update) = (None, None, None, None);
    for (key, value) in object.fields() {
        match key {
            "jsonrpc" | "messageMetadata" | "message_metadata" | "method" => acp = true,
            "sessionUpdate" | "session_update" => update = value.str(),
            "update" => acp |= value.kind() == Kind::Object,
            "params" => acp |= value.get("update").is_some_and(|u| u.kind() == Kind::Object),
            "dir" => acp |= value.str().is_some_and(|d| d.contains("->")),
            "sessionId" | "parentUuid" | "isSidechain" | "leafUuid" => history = true,
            "type" => r#type = value.str(),
            "message" => message = Some(value),
            "msg" => wrapped = Some(value),
            _ => {}
        }
    }
    if let Some(kind) = r#type.as_deref().filter(|_| !acp && update.is_none()) {
        let claude = match kind {
            // These words are of both; only Claude Code puts a message inside.
            "assistant" | "user" => message.is_some_and(is_message),
            "system" | "result" => object.get("subtype").is_some(),
            "stream_event" => object.get("event").is_some(),
            "control_request" => object.get("request").is_some(),
            "control_response" => object.get("response").is_some(),
            "control_cancel_request" => object.get("request_id").is_some(),
            kind => is_own_kind(kind) || (history && is_kept_kind(kind)),
        };
        if claude {
            return Some(if history { Format::ClaudeHistory } else { Format::ClaudeStream });
        }
    }
    if let Some(inner) = wrapped.filter(|_| !acp) {
        // A recorder's wrapping.
        let own = ["jsonrpc", "method", "sessionUpdate", "update"];
        return match inner.any(&own) {
            Some(_) => Some(Format::Acp),
            None => inner.get("type").map(|_| Format::ClaudeStream),
        };
    }
    let own = |kind: &Option<_>| kind.as_deref().is_some_and(is_own_update);
    (acp || update.is_some() || own(&r#type)).then_some(Format::Acp)
}

fn is_message(message: Json<'_>) -> bool {
    message.kind() == Kind::Object
        && (message.get("content").is_some() || message.get("type").is_some())
}
