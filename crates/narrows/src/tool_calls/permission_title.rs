//! Titles of permission requests.

use crate::model::tool::{ToolCall, ToolName};
use crate::sanitize::Clean;

/// The action that a permission request is about: the exact command or file, not the agent's words for
/// it. None if neither is known.
pub(super) fn title(call: &ToolCall) -> Option<Clean> {
    let is_set = |text: &&Clean| !text.trim().is_empty();
    if call.tool_name == ToolName::PlanMode || call.plan.is_some() {
        let enters = call.name.as_deref().is_some_and(|name| name.starts_with("Enter"));
        return Some(Clean::literal(if enters { "Enter plan mode" } else { "Leave plan mode" }));
    }
    [&call.command, &call.file_path].into_iter().flatten().find(is_set).cloned()
}
