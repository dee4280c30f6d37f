//! Requests for leave: what they are about.

use crate::model::tool::{ToolCall, ToolName};
use crate::sanitize::Clean;

/// What will be done, not what the agent calls it; none where nothing exact is known.
pub(super) fn title(call: &ToolCall) -> Option<Clean> {
    let full = |text: &&Clean| !text.trim().is_empty();
    if call.tool_name == ToolName::PlanMode || call.plan.is_some() {
        let enters = call.name.as_deref().is_some_and(|name| name.starts_with("Enter"));
        return Some(Clean::literal(if enters { "Enter plan mode" } else { "Leave plan mode" }));
    }
    [&call.command, &call.file_path].into_iter().flatten().find(full).cloned()
}
