//! Which format a packet is of, where it tells.

use super::claude::is_kept_kind;
use crate::json::{Index, Json, Kind};
use crate::packet::Format;

/// The format of a packet; none when it could be of any, or of none.
pub(super) fn format(bytes: &[u8]) -> Option<Format> {
    let text = std::str::from_utf8(bytes).ok()?.trim_matches('\0');
    let mut index = Index::default();
    let doc = index.read(text).ok()?;
    let object = doc.root();
    if object.kind() != Kind::Object {
        return None;
    }
    let (mut acp, mut stream, mut history) = (false, false, false);
    let (mut r#type, mut message, mut wrapped) = (None, None, None);
    for (key, value) in object.fields() {
        match key {
            "jsonrpc" | "sessionUpdate" | "session_update" | "update" | "dir"
            | "messageMetadata" | "message_metadata" | "method" => acp = true,
            "session_id" | "parent_tool_use_id" | "request" | "response" => stream = true,
            "sessionId" | "parentUuid" | "isSidechain" | "leafUuid" => history = true,
            "type" => r#type = value.str(),
            "message" => message = Some(value),
            "msg" => wrapped = Some(value),
            _ => {}
        }
    }
    if acp {
        return Some(Format::Acp);
    }
    if let Some(inner) = wrapped.filter(|m| m.get("type").is_some()) {
        return Some(inner)
            .filter(|m| m.get("sessionUpdate").is_none())
            .map(|_| Format::ClaudeStream);
    }
    let own = match r#type.as_deref()? {
        // These words are of both; only Claude Code puts a message inside.
        "assistant" | "user" => message.is_some_and(is_message),
        "system" | "result" => object.get("subtype").is_some(),
        "stream_event" | "control_request" | "control_response" | "control_cancel_request" => true,
        kind => history && is_kept_kind(kind),
    };
    match (own, history, stream) {
        (true, true, _) => Some(Format::ClaudeHistory),
        (true, false, _) => Some(Format::ClaudeStream),
        (false, false, false) => Some(Format::Acp).filter(|_| message.is_none()),
        _ => None,
    }
}

fn is_message(message: Json<'_>) -> bool {
    message.kind() == Kind::Object
        && (message.get("content").is_some() || message.get("type").is_some())
}
