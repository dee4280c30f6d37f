//! The kinds of Claude Code's records: which identify the format, and which are bookkeeping.

use crate::adapter::Format;
use crate::adapter::packet_shape::{PacketShape, kind_name};
use crate::json::{Index, Json, Kind};

/// Whether only the program itself needs the record: request logs, latches, positions in its own
/// lists.
pub(super) fn is_bookkeeping(kind: &str) -> bool {
    matches!(
        kind,
        "api-request"
            | "api-request-blob"
            | "api-request-shape"
            | "atis-latch"
            | "command_lifecycle"
            | "file-history-delta"
            | "file-history-snapshot"
            | "keep_alive"
            | "last-prompt"
            | "mode"
            | "permission-mode"
            | "progress"
            | "queue-operation"
            | "rate_limit_event"
            | "speculation-accept"
            | "tag"
            | "tool_progress"
            | "tools-used"
            | "worktree-state"
    )
}

/// Whether a line is exactly one bookkeeping record, determined without parsing it: most bytes of a
/// session file are such records.
///
/// A quote within a string is escaped, so `{"` always starts an object. An object that does not
/// stand where a value may stand is another record, whose line break is missing.
pub(super) fn is_bookkeeping_line(line: &[u8]) -> bool {
    const TYPE: &[u8] = b"{\"type\":\"";
    let Some(rest) = line.strip_prefix(TYPE) else { return false };
    let Some(end) = memchr::memchr(b'"', rest.get(..32).unwrap_or(rest)) else { return false };
    let kind = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    let is_value_at = |at: usize| matches!(line[at - 1], b':' | b',' | b'[' | b' ');
    is_bookkeeping(kind)
        && line.ends_with(b"}")
        && memchr::memmem::find_iter(&line[1..], b"{\"").all(|at| is_value_at(at + 1))
}

/// Whether no other agent has a kind of this name: such a record identifies the format by itself,
/// whatever its fields.
fn is_own_kind(kind: &str) -> bool {
    let is_shared = matches!(kind, "attachment" | "mode" | "progress" | "summary" | "tag");
    is_history_kind(kind) && !is_shared
}

/// Whether records of this kind occur in session files only.
fn is_history_kind(kind: &str) -> bool {
    is_bookkeeping(kind)
        || matches!(
            kind,
            "attachment"
                | "cost-state"
                | "summary"
                | "custom-title"
                | "ai-title"
                | "agent-name"
                | "pr-link"
        )
}

/// Whether a `system` record of this subtype has nothing to show.
pub(super) fn is_hidden_system(subtype: &str) -> bool {
    matches!(
        subtype,
        "background_tasks_changed"
            // The response to the request reports that the work at the URL is done.
            | "elicitation_complete"
            | "files_persisted"
            | "hook_progress"
            | "hook_started"
            | "permission_denied"
            | "session_state_changed"
            | "stop_hook_summary"
            | "task_progress"
            | "task_started"
            | "task_updated"
            | "thinking_tokens"
            | "turn_duration"
    )
}

/// Returns the format of a record, if it is one of Claude Code.
pub(in crate::adapter) fn detect(object: Json<'_>) -> Option<Format> {
    let (mut is_history, mut kind, mut message) = (false, None, None);
    for (key, value) in object.fields() {
        match key {
            "sessionId" | "parentUuid" | "isSidechain" | "leafUuid" => is_history = true,
            "type" => kind = value.str(),
            "message" => message = Some(value),
            _ => {}
        }
    }
    let is_own = match &*kind? {
        // Other agents have these kinds too; only Claude Code puts a message inside.
        "assistant" | "user" => message.is_some_and(is_message),
        "system" | "result" => object.get("subtype").is_some(),
        "stream_event" => object.get("event").is_some(),
        "control_request" => object.get("request").is_some(),
        "control_response" => object.get("response").is_some(),
        "control_cancel_request" => object.get("request_id").is_some(),
        kind => is_own_kind(kind) || (is_history && is_history_kind(kind)),
    };
    let format = if is_history { Format::ClaudeHistory } else { Format::ClaudeStream };
    is_own.then_some(format)
}

fn is_message(message: Json<'_>) -> bool {
    message.kind() == Kind::Object
        && (message.get("content").is_some() || message.get("type").is_some())
}

/// Describes a record for the drift check; none for bookkeeping.
pub(in crate::adapter) fn packet_shape(object: Json<'_>) -> Option<PacketShape<'_>> {
    let first = kind_name(object.any(&["type", "sessionUpdate", "session_update"]));
    if is_bookkeeping(&first) {
        return None;
    }
    let subtype = match &*first {
        "attachment" => object.path(&["attachment", "type"]),
        "stream_event" => object.path(&["event", "type"]),
        "control_request" => object.path(&["request", "subtype"]),
        _ => object.get("subtype"),
    };
    let kind = match subtype {
        Some(subtype) => format!("{first}:{}", kind_name(Some(subtype))),
        None => first.into_owned(),
    };
    let mut shape = PacketShape { kind, objects: vec![("".into(), object)] };
    for name in ["message", "attachment", "event", "request", "toolUseResult", "tool_use_result"] {
        let inner = object.get(name).filter(|i| i.kind() == Kind::Object);
        let Some(inner) = inner else { continue };
        // The live stream and the session file name the result of a tool differently.
        let name = if name == "tool_use_result" { "toolUseResult" } else { name };
        shape.objects.push((name.into(), inner));
        if name == "message" {
            let blocks = inner.get("content").into_iter().flat_map(Json::items);
            shape.objects.extend(blocks.filter(|block| block.kind() == Kind::Object).map(
                |block| (format!("message.content.{}", kind_name(block.get("type"))).into(), block),
            ));
        }
    }
    Some(shape)
}

/// Returns the subagent and the tool call that started it, from the record of the call's result.
///
/// Older versions do not record anywhere else which call a subagent's file belongs to.
pub fn subagent_launch(line: &[u8]) -> Option<(String, String)> {
    memchr::memmem::find(line, b"\"agentId\"")?;
    let text = std::str::from_utf8(line).ok()?;
    let mut index = Index::default();
    let doc = index.read(text).ok()?;
    let agent = doc.root().path(&["toolUseResult", "agentId"]).and_then(Json::owned)?;
    let blocks = doc.root().path(&["message", "content"])?;
    let call = blocks.items().find_map(|b| b.get("tool_use_id")).and_then(Json::owned)?;
    Some((agent, call))
}
