//! The Agent Client Protocol.

pub(crate) mod sessions;
pub(crate) mod voice;

use super::scripted::wire;
use serde_json::{Value, json};

/// Tells an update of a session.
pub(crate) fn update(session: &str, update: &Value) {
    let params = json!({"sessionId": session, "update": update});
    wire::send(&json!({"jsonrpc": "2.0", "method": "session/update", "params": params}));
}
