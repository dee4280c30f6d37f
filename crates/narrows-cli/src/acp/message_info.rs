//! The fields of a message that decide to which session it belongs.

use narrows::json::{Index, Json, Kind};

/// Updates with transcript content; others describe the state of the session.
const CONTENT_UPDATES: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

/// The fields of a message that decide to which session it belongs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct MessageInfo {
    pub(super) method: Option<String>,
    /// The raw JSON: `1` and `"1"` are different ids.
    pub(super) id: Option<String>,
    /// The session in the parameters.
    pub(super) session: Option<String>,
    /// The session in the result.
    pub(super) created_session: Option<String>,
    pub(super) cwd: Option<String>,
    /// The message is an error response.
    pub(super) failed: bool,
    /// The message is an update with transcript content.
    pub(super) is_content: bool,
}

/// Parses a line; none if it is not a JSON object.
pub(super) fn parse(index: &mut Index, line: &[u8]) -> Option<MessageInfo> {
    let text = std::str::from_utf8(line).ok()?;
    let doc = index.read(text).ok()?;
    let root = doc.root();
    if root.kind() != Kind::Object {
        return None;
    }
    let to_string =
        |json: Option<Json<'_>>| json.and_then(Json::str).map(std::borrow::Cow::into_owned);
    let params = root.get("params");
    let param = |name: &str| to_string(params.and_then(|p| p.get(name)));
    let id = root.get("id").filter(|id| matches!(id.kind(), Kind::Number | Kind::String));
    let raw_id = |id: Json<'_>| match id.kind() {
        Kind::String => format!("\"{}\"", id.raw()),
        _ => id.raw().to_owned(),
    };
    let update = params.and_then(|p| p.path(&["update", "sessionUpdate"]));
    Some(MessageInfo {
        method: to_string(root.get("method")),
        id: id.map(raw_id),
        session: param("sessionId"),
        created_session: to_string(root.path(&["result", "sessionId"])),
        cwd: param("cwd"),
        failed: root.get("error").is_some_and(|e| !e.is_null()),
        is_content: update
            .and_then(Json::str)
            .is_some_and(|kind| CONTENT_UPDATES.contains(&&*kind)),
    })
}
