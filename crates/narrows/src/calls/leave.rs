//! Permission requests: which call they are about, exactly.

use crate::sanitize::Clean;
use crate::tool::{ToolCall, ToolName};
use serde_json::{Map, Value};

/// What will be done, not what the agent calls it; none where nothing exact is known.
pub(super) fn title(call: &ToolCall) -> Option<Clean> {
    let full = |text: &&Clean| !text.trim().is_empty();
    if call.tool_name == ToolName::PlanMode || call.plan.is_some() {
        let enters = call.name.as_deref().is_some_and(|name| name.starts_with("Enter"));
        return Some(Clean::literal(if enters { "Enter plan mode" } else { "Leave plan mode" }));
    }
    [&call.command, &call.file_path].into_iter().flatten().find(full).cloned()
}

/// Drops from the call of a permission request what repeats the known call, as agents leave out
/// fields there. A request that differs from what was announced is kept: it is what will run.
pub(super) fn drop_repeated(known: &ToolCall, asked: &mut ToolCall) {
    let full = |text: &Option<Clean>| text.as_ref().is_some_and(|text| !text.is_empty());
    let other = |old: &Option<Clean>, new: &Option<Clean>| full(old) && full(new) && old != new;
    let fields = |call: &ToolCall| -> Map<String, Value> {
        let tree = call.input.as_ref().and_then(|input| serde_json::from_str(input.json()).ok());
        tree.unwrap_or_default()
    };
    let (before, now) = (fields(known), fields(asked));
    let mut same = now.iter().all(|(name, value)| before.get(name) == Some(value));
    if before.is_empty() && !now.is_empty() {
        // The input was not kept, or not announced.
        same = !other(&known.command, &asked.command) && full(&known.command);
    }
    let mut diffs = asked.diffs.iter().flatten().map(|diff| &diff.path).peekable();
    let of_others =
        diffs.peek().is_some() && diffs.all(|path| known.file_path.as_ref() != Some(path));
    if same {
        asked.input = None;
        for (old, new) in [
            (&known.command, &mut asked.command),
            (&known.pattern, &mut asked.pattern),
            (&known.said, &mut asked.said),
            (&known.subagent_type, &mut asked.subagent_type),
            (&known.plan, &mut asked.plan),
        ] {
            new.take_if(|_| full(old));
        }
        asked.file_path.take_if(|_| full(&known.file_path) && !of_others);
        asked.agent_title.take_if(|_| !before.is_empty());
    }
}
