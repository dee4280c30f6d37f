//! Describes an input that no adapter can parse. The descriptions are fixed texts: nothing of the
//! input is shown.

use crate::json::{Index, Json, Kind};

/// The number of lines that are inspected.
const MAX_LINES: usize = 32;

/// Describes an input of which nothing was parsed, from its first bytes.
///
/// ```
/// assert_eq!(narrows::looks_like(b""), "it is empty");
/// assert_eq!(narrows::looks_like(b"root:x:0:0::/root:/bin/sh\n"), "it looks like plain text");
/// ```
pub fn looks_like(head: &[u8]) -> &'static str {
    if head.trim_ascii().is_empty() {
        return "it is empty";
    }
    if let Some(description) = unsupported_agent(head) {
        return description;
    }
    if head.starts_with(b"SQLite format 3") {
        return "it looks like an SQLite database";
    }
    let text = String::from_utf8_lossy(head);
    let binary_chars =
        text.chars().filter(|c| *c == '\0' || *c == char::REPLACEMENT_CHARACTER).count();
    if binary_chars > 1 + text.len() / 100 {
        return "it looks like binary data";
    }
    let start = text.trim_start_matches(['\u{feff}', ' ', '\t', '\r', '\n']);
    let lower: String = start.chars().take(64).collect::<String>().to_ascii_lowercase();
    if ["<!doctype", "<html", "<?xml", "<svg"].iter().any(|tag| lower.starts_with(tag)) {
        return "it looks like HTML or XML";
    }
    let mut index = Index::default();
    let mut objects = start.lines().take(MAX_LINES);
    if objects.any(|line| index.read(line.trim()).is_ok_and(|d| d.root().kind() == Kind::Object)) {
        return "it looks like JSON lines of a program that is not known";
    }
    match start.as_bytes().first() {
        Some(b'{' | b'[') => "it looks like one JSON document, not one JSON object per line",
        _ => "it looks like plain text",
    }
}

/// Describes the file or the output of a known agent in a format that has no adapter.
fn unsupported_agent(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    if text.trim_start().starts_with("# aider chat started") {
        return Some("it looks like an aider chat");
    }
    let mut index = Index::default();
    let lines = text.lines().take(MAX_LINES);
    let identify = |line: &str| {
        let line = line.strip_prefix("data:").unwrap_or(line).trim();
        index.read(line).ok().and_then(|doc| identify_object(doc.root()))
    };
    lines.filter(|l| !l.is_empty()).find_map(identify).or_else(|| identify_document(&text))
}

/// Identifies a document of many lines, which may be incomplete, by its first keys.
fn identify_document(text: &str) -> Option<&'static str> {
    let start = text.trim_start();
    if !start.starts_with(['{', '[']) {
        return None;
    }
    let has = |key: &str| start.contains(&format!("\"{key}\":"));
    if has("projectHash") && has("sessionId") {
        return Some(GEMINI);
    }
    if has("sessionID") && has("providerID") {
        return Some(OPENCODE);
    }
    None
}

const CODEX: &str = "it looks like a Codex session; narrows reads Codex over ACP only";
const GEMINI: &str = "it looks like a Gemini CLI session; narrows reads Gemini CLI over ACP only";
const QWEN: &str = "it looks like a Qwen Code session file; narrows reads Qwen Code over ACP only";
const OPENCODE: &str = "it looks like an opencode session; narrows reads opencode over ACP only";
const COPILOT: &str =
    "it looks like a GitHub Copilot CLI session; narrows reads Copilot CLI over ACP only";
const KIMI: &str = "it looks like a Kimi Code session; narrows reads Kimi Code over ACP only";
const PI: &str = "it looks like a pi session, which narrows does not support";
const DROID: &str = "it looks like a Factory Droid session, which narrows does not support";
const CLINE: &str = "it looks like a Cline session, which narrows does not support";
const OPENHANDS: &str = "it looks like an OpenHands session, which narrows does not support";
const VIBE: &str = "it looks like a Mistral Vibe session, which narrows does not support";

/// Identifies the agent that wrote an object.
fn identify_object(o: Json<'_>) -> Option<&'static str> {
    if o.kind() != Kind::Object {
        return None;
    }
    let has = |name: &str| o.get(name).is_some();
    let is = |name: &str, kind: Kind| o.get(name).is_some_and(|v| v.kind() == kind);
    let kind = o.text("type").unwrap_or_default();
    let method = o.text("method").or_else(|| o.path(&["msg", "method"]).and_then(Json::str));
    let method = method.unwrap_or_default();
    match &*kind {
        "session_meta" | "response_item" | "event_msg" | "turn_context" if has("payload") => {
            return Some(CODEX);
        }
        "thread.started" | "turn.started" | "item.started" | "item.completed" => {
            return Some(CODEX);
        }
        "init" if has("session_id") && has("model") => return Some(GEMINI),
        "gemini" if has("content") => return Some(GEMINI),
        "session" if has("version") && has("cwd") => return Some(PI),
        "session_start" if has("version") && has("cwd") => return Some(DROID),
        "hook_event" | "agent_event" => return Some(CLINE),
        "metadata" if has("protocol_version") => return Some(KIMI),
        "system.version" if has("role") => return Some(KIMI),
        "message" if has("turnId") && has("generationStatus") => return Some(VIBE),
        "message" if has("role") && has("timestamp") && has("session_id") => return Some(DROID),
        kind if kind.starts_with("session.") && is("data", Kind::Object) => return Some(COPILOT),
        kind if kind.starts_with("assistant.") && is("data", Kind::Object) => return Some(COPILOT),
        _ => {}
    }
    if ["thread/", "turn/", "item/"].iter().any(|m| method.starts_with(m)) {
        return Some(CODEX);
    }
    if has("projectHash") && has("startTime") {
        return Some(GEMINI);
    }
    if is("sessionID", Kind::String) || o.path(&["properties", "sessionID"]).is_some() {
        return Some(OPENCODE);
    }
    if has("parentUuid") && o.path(&["message", "parts"]).is_some() {
        return Some(QWEN);
    }
    if has("source") && (has("tool_call_id") || has("llm_message") || has("system_prompt")) {
        return Some(OPENHANDS);
    }
    if o.path(&["payload", "client_command_id"]).is_some() {
        return Some(VIBE);
    }
    None
}
