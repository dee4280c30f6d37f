//! Permission requests: their exact title, and which fields of the call they change.

use crate::model::tool::{ToolCall, ToolName};
use crate::sanitize::Clean;
use serde_json::{Map, Value};

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

/// Drops the fields of a permission request that repeat the known call: agents leave out fields there.
/// If the request differs from the announced call, all its fields are kept: the request is what will
/// run.
pub(super) fn drop_repeated(known: &ToolCall, requested: &mut ToolCall) {
    let is_set = |text: &Option<Clean>| text.as_ref().is_some_and(|text| !text.is_empty());
    let differs =
        |old: &Option<Clean>, new: &Option<Clean>| is_set(old) && is_set(new) && old != new;
    let input_fields = |call: &ToolCall| -> Map<String, Value> {
        let tree = call.input.as_ref().and_then(|input| serde_json::from_str(input.json()).ok());
        tree.unwrap_or_default()
    };
    let (known_input, input) = (input_fields(known), input_fields(requested));
    let mut is_same = input.iter().all(|(name, value)| known_input.get(name) == Some(value));
    if known_input.is_empty() && !input.is_empty() {
        // The known input was not kept, or was never announced.
        is_same = !differs(&known.command, &requested.command) && is_set(&known.command);
    }
    let mut diff_paths = requested.diffs.iter().flatten().map(|diff| &diff.path).peekable();
    let diffs_other_files = diff_paths.peek().is_some()
        && diff_paths.all(|path| known.file_path.as_ref() != Some(path));
    if is_same {
        requested.input = None;
        for (old, new) in [
            (&known.command, &mut requested.command),
            (&known.pattern, &mut requested.pattern),
            (&known.said, &mut requested.said),
            (&known.subagent_type, &mut requested.subagent_type),
            (&known.plan, &mut requested.plan),
        ] {
            new.take_if(|_| is_set(old));
        }
        requested.file_path.take_if(|_| is_set(&known.file_path) && !diffs_other_files);
        requested.agent_title.take_if(|_| !known_input.is_empty());
    }
}
