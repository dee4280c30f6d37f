//! What an input that is not understood looks like, in fixed words: nothing of it is shown.

use crate::json::{Index, Json, Kind};

/// Lines that are looked at.
const MAX_LINES: usize = 32;

/// What the beginning of an input looks like. For inputs of which nothing was understood.
///
/// ```
/// assert_eq!(narrows::looks_like(b""), "it is empty");
/// assert_eq!(narrows::looks_like(b"root:x:0:0::/root:/bin/sh\n"), "it looks like plain text");
/// ```
pub fn looks_like(head: &[u8]) -> &'static str {
    if head.trim_ascii().is_empty() {
        return "it is empty";
    }
    if let Some(agent) = agent(head) {
        return agent;
    }
    if head.starts_with(b"SQLite format 3") {
        return "it looks like a database of SQLite";
    }
    let text = String::from_utf8_lossy(head);
    let odd = text.chars().filter(|c| *c == '\0' || *c == char::REPLACEMENT_CHARACTER).count();
    if odd > 1 + text.len() / 100 {
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
        Some(b'{' | b'[') => "it looks like one JSON document, not one JSON object a line",
        _ => "it looks like plain text",
    }
}

/// The agent whose file or output it is, where one that is known but not read wrote it.
pub(crate) fn agent(head: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(head);
    if text.trim_start().starts_with("# aider chat started") {
        return Some("it looks like a chat of aider");
    }
    let mut index = Index::default();
    let lines = text.lines().take(MAX_LINES);
    let line = |line: &str| {
        let line = line.strip_prefix("data:").unwrap_or(line).trim();
        index.read(line).ok().and_then(|doc| object(doc.root()))
    };
    lines.filter(|l| !l.is_empty()).find_map(line).or_else(|| document(&text))
}

/// A document over many lines, which may be cut: its first keys tell.
fn document(text: &str) -> Option<&'static str> {
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

const CODEX: &str = "it looks like a session of Codex, which is read over ACP only";
const GEMINI: &str = "it looks like a session of Gemini CLI, which is read over ACP only";
const QWEN: &str = "it looks like a kept session of Qwen Code, which is read over ACP only";
const OPENCODE: &str = "it looks like a session of opencode, which is read over ACP only";
const COPILOT: &str = "it looks like a session of GitHub Copilot CLI, which is read over ACP only";
const KIMI: &str = "it looks like a session of Kimi Code, which is read over ACP only";
const PI: &str = "it looks like a session of pi, which is not read";
const DROID: &str = "it looks like a session of Factory Droid, which is not read";
const CLINE: &str = "it looks like a session of Cline, which is not read";
const OPENHANDS: &str = "it looks like a session of OpenHands, which is not read";
const VIBE: &str = "it looks like a session of Mistral Vibe, which is not read";

/// What one object tells.
fn object(o: Json<'_>) -> Option<&'static str> {
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
