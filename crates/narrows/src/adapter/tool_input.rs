//! Parses the arguments of tool calls, for which agents use similar names.

use crate::json::{Json, Kind};
use crate::model::tool::{Todo, ToolCall, ToolName, ToolStatus};
use crate::sanitize::{Raw, Tree};

/// The number of locations, todos or edits that are read from one packet.
pub(super) const MAX_LIST: usize = 10_000;

/// Derives the fields of a call from its arguments. `input` is the object of arguments, `raw_input`
/// the same value of any type.
pub(super) fn read_input(
    call: &mut ToolCall<Raw>,
    input: Option<Json<'_>>,
    raw_input: Option<Json<'_>>,
) {
    call.input = raw_input.filter(|i| !i.is_empty()).map(|i| match i.kind() {
        Kind::String => Tree::checked(&format!("\"{}\"", i.raw())),
        _ => Tree::checked(i.raw()),
    });
    let mut url = None;
    for (key, value) in input.into_iter().flat_map(Json::fields) {
        let slot = match key {
            "description" => &mut call.said,
            "command" | "cmd" if value.kind() == Kind::Array => {
                call.command = command_line(value);
                continue;
            }
            "command" | "cmd" => &mut call.command,
            "pattern" | "query" => &mut call.pattern,
            "subagent_type" | "subagentType" => &mut call.subagent_type,
            "filePath" | "file_path" => &mut call.file_path,
            "path" | "filepath" if call.file_path.is_none() => &mut call.file_path,
            "url" => &mut url,
            "notebook_path" => &mut call.file_path,
            "plan" if call.tool_name == ToolName::PlanMode => &mut call.plan,
            _ => continue,
        };
        if let Some(text) = value.str().filter(|t| !t.is_empty()) {
            *slot = Some(Raw::new(text));
        }
    }
    if call.tool_name == ToolName::WebFetch && call.said.is_none() {
        call.said = url;
    }
}

/// Joins the words of a command; of `bash -lc …` only the script counts.
fn command_line(list: Json<'_>) -> Option<Raw> {
    let words: Vec<_> = list.items().take(MAX_LIST).filter_map(Json::scalar).collect();
    match words.as_slice() {
        [] => None,
        [_, flag, script] if flag == "-lc" || flag == "-c" => Some(Raw::new(script.as_ref())),
        words => Some(Raw::new(words.join(" "))),
    }
}

/// Parses a todo list.
pub(super) fn todo_list(list: Json<'_>) -> Vec<Todo<Raw>> {
    let todo = |t: Json<'_>| {
        let content = t.any(&["content", "step"]).and_then(Json::str).unwrap_or_default();
        let active = t.any(&["activeForm", "active_form"]).and_then(Json::str);
        Todo {
            active_form: Raw::new(active.unwrap_or_else(|| content.clone())),
            content: Raw::new(content),
            status: todo_status(t.text("status").as_deref()),
            priority: t.text("priority").map(Raw::new),
            id: None,
        }
    };
    list.items().filter(|t| t.kind() == Kind::Object).take(MAX_LIST).map(todo).collect()
}

/// Parses the status of a todo; an unknown one is pending.
pub(super) fn todo_status(status: Option<&str>) -> ToolStatus {
    match status {
        Some("in_progress" | "inProgress") => ToolStatus::InProgress,
        Some("completed") => ToolStatus::Completed,
        Some("cancelled") => ToolStatus::Cancelled,
        _ => ToolStatus::Pending,
    }
}
