//! Columns that are derived from an item: its parent, and the row of its tool call.

use crate::db::{Db, params};
use crate::error::Result;
use narrows::Item;
use narrows::item::ItemBody;
use narrows::tool::{ChangedFile, ToolName, ToolStatus};

/// The row of a finished tool call.
#[derive(Debug)]
pub(crate) struct ToolCallRow {
    pub(crate) name: String,
    pub(crate) at: Option<i64>,
    pub(crate) ms: Option<u64>,
    pub(crate) failed: bool,
    pub(crate) files: Vec<ChangedFile>,
}

/// The parent call of an item; an item is never its own parent.
pub(crate) fn parent(item: &Item) -> Option<&str> {
    item.parent.as_ref().filter(|parent| **parent != item.id).map(narrows::Clean::as_str)
}

/// The row of an item's tool call.
pub(crate) fn tool_call_row(item: &Item) -> Option<ToolCallRow> {
    let ItemBody::ToolCall { tool_call } = &item.body else { return None };
    let call = &tool_call.call;
    // One name for the same tool of every agent, where the tool is known.
    let name = match (call.tool_name, &call.name) {
        (ToolName::Unknown, Some(agent_name)) => agent_name.as_str().to_owned(),
        (known, _) => serde_json::to_string(&known).unwrap_or_default().replace('"', ""),
    };
    let at = item.time.as_ref().map(narrows::time::Time::millis);
    let failed = call.status == Some(ToolStatus::Failed);
    Some(ToolCallRow { name, at, ms: call.duration_ms, failed, files: call.changed_files() })
}

/// Whether an item has a row.
pub(crate) fn row_exists(db: &Db<'_>, session: i64, id: &str) -> Result<bool> {
    db.exists("SELECT 1 FROM item WHERE session = ?1 AND id = ?2", &params![session, id])
}
