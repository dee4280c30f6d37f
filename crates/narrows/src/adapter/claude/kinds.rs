//! Which records are part of the transcript and which are bookkeeping.

use crate::json::{Index, Json};

/// Records that only the program itself needs: request logs, latches, positions in its own lists.
pub(crate) fn is_quiet(kind: &str) -> bool {
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

/// Whether a line is one whole record of bookkeeping, seen without reading it: most bytes of a kept
/// session are such records.
///
/// A quote within a string is escaped, so `{"` is always where an object begins; one that does not
/// stand where a value may stand is another record, whose line break is lost.
pub(super) fn is_whole_bookkeeping(line: &[u8]) -> bool {
    const TYPE: &[u8] = b"{\"type\":\"";
    let Some(rest) = line.strip_prefix(TYPE) else { return false };
    let Some(end) = memchr::memchr(b'"', rest.get(..32).unwrap_or(rest)) else { return false };
    let kind = std::str::from_utf8(&rest[..end]).unwrap_or_default();
    let alone = |at: usize| matches!(line[at - 1], b':' | b',' | b'[' | b' ');
    is_quiet(kind)
        && line.ends_with(b"}")
        && memchr::memmem::find_iter(&line[1..], b"{\"").all(|at| alone(at + 1))
}

/// Kinds whose names no other agent uses: a record of one tells the format by itself, whatever
/// fields it has.
pub(crate) fn is_own_kind(kind: &str) -> bool {
    let shared = matches!(kind, "attachment" | "mode" | "progress" | "summary" | "tag");
    is_kept_kind(kind) && !shared
}

/// Records that are found in kept sessions only.
pub(crate) fn is_kept_kind(kind: &str) -> bool {
    is_quiet(kind)
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

/// Parts of `system` records that nobody needs to see.
pub(super) fn is_quiet_system(subtype: &str) -> bool {
    matches!(
        subtype,
        "background_tasks_changed"
            // What had to be done at an address is done: the answer to the request tells it.
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

/// The subagent and the call that a kept record says belong together.
///
/// Older versions say nowhere else whose call a subagent's file belongs to.
pub fn launched(line: &[u8]) -> Option<(String, String)> {
    memchr::memmem::find(line, b"\"agentId\"")?;
    let text = std::str::from_utf8(line).ok()?;
    let mut index = Index::default();
    let doc = index.read(text).ok()?;
    let agent = doc.root().path(&["toolUseResult", "agentId"]).and_then(Json::owned)?;
    let blocks = doc.root().path(&["message", "content"])?;
    let call = blocks.items().find_map(|b| b.get("tool_use_id")).and_then(Json::owned)?;
    Some((agent, call))
}
