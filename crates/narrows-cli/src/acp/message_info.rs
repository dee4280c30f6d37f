//! What of a message tells where it belongs.

use narrows::json::{Index, Json, Kind};

/// Updates that tell the transcript; others tell how the session is.
const TELLS: [&str; 6] = [
    "user_message_chunk",
    "agent_message_chunk",
    "agent_thought_chunk",
    "tool_call",
    "tool_call_update",
    "plan",
];

/// What of a message tells where it belongs.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) method: Option<String>,
    /// As it is written: `1` and `"1"` are two ids.
    pub(super) id: Option<String>,
    /// The session it names.
    pub(super) session: Option<String>,
    /// The session that an answer names.
    pub(super) made: Option<String>,
    pub(super) cwd: Option<String>,
    /// An answer that is an error.
    pub(super) failed: bool,
    /// An update that tells a part of the transcript.
    pub(super) tells: bool,
}

/// Reads a line; none when it is no message.
pub(super) fn read(index: &mut Index, line: &[u8]) -> Option<Facts> {
    let text = std::str::from_utf8(line).ok()?;
    let doc = index.read(text).ok()?;
    let root = doc.root();
    if root.kind() != Kind::Object {
        return None;
    }
    let own = |json: Option<Json<'_>>| json.and_then(Json::str).map(std::borrow::Cow::into_owned);
    let params = root.get("params");
    let of = |name: &str| own(params.and_then(|p| p.get(name)));
    let id = root.get("id").filter(|id| matches!(id.kind(), Kind::Number | Kind::String));
    let written = |id: Json<'_>| match id.kind() {
        Kind::String => format!("\"{}\"", id.raw()),
        _ => id.raw().to_owned(),
    };
    let update = params.and_then(|p| p.path(&["update", "sessionUpdate"]));
    Some(Facts {
        method: own(root.get("method")),
        id: id.map(written),
        session: of("sessionId"),
        made: own(root.path(&["result", "sessionId"])),
        cwd: of("cwd"),
        failed: root.get("error").is_some_and(|e| !e.is_null()),
        tells: update.and_then(Json::str).is_some_and(|kind| TELLS.contains(&&*kind)),
    })
}
