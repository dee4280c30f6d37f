//! Tool calls for every format: status, name, subject and outcome.

use super::{diff, escape};
use crate::format;
use narrows::Clean;
use narrows::event::{Background, Summary};
use narrows::item::TodoList;
use narrows::json::{Index, Kind};
use narrows::tool::{Image, Output, ToolCall, ToolKind, ToolName, ToolStatus};

/// Shorter durations are not shown.
const MIN_SHOWN_DURATION_MS: u64 = 500;

/// The summary line of a call. All texts are on one line and escaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallSummary {
    pub(crate) status: ToolStatus,
    /// `Read`, `$`, `Task`.
    pub(crate) name: String,
    /// The command, the file or the pattern.
    pub(crate) subject: String,
    /// `+3 −1`, `exit 101`, `2.3 s`.
    pub(crate) details: Vec<String>,
    /// The first line of the error, unless an exit code says as much.
    pub(crate) error: Option<String>,
}

/// An argument that the summary line does not show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// A string unquoted, any other value as JSON.
    pub(crate) value: String,
    pub(crate) is_text: bool,
}

pub(crate) fn status_glyph(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "✓",
        ToolStatus::Failed => "✗",
        ToolStatus::Cancelled => "⊘",
        ToolStatus::Pending | ToolStatus::InProgress => "◌",
    }
}

/// Returns the status as a word.
pub(crate) fn status_word(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "done",
        ToolStatus::Failed => "failed",
        ToolStatus::Cancelled => "cancelled",
        ToolStatus::Pending => "waiting",
        ToolStatus::InProgress => "running",
    }
}

impl CallSummary {
    pub(crate) fn of(call: &ToolCall) -> CallSummary {
        let status = call.status.unwrap_or(ToolStatus::Pending);
        let mut details = Vec::new();
        // A failed or refused call changed nothing.
        let had_no_effect = matches!(status, ToolStatus::Failed | ToolStatus::Cancelled);
        if let (Some(added), Some(removed)) = diff::line_counts(call)
            && !had_no_effect
        {
            details.push(match (added, removed) {
                (added, 0) => format!("+{added}"),
                (0, removed) => format!("−{removed}"),
                _ => format!("+{added} −{removed}"),
            });
        }
        if let Some(n) = call.count.filter(|_| call.kind == ToolKind::Search) {
            details.push(format::count(usize::try_from(n).unwrap_or(usize::MAX), "hit"));
        }
        if let Some(permission) = call.permission.as_ref().filter(|p| &p.decision != "allowed") {
            details.push(match permission.decision.as_str() {
                "rejected" => "not allowed".to_owned(),
                other => escape::line(other),
            });
        }
        if let Some(code) = call.exit_code.filter(|code| *code != 0) {
            details.push(format!("exit {code}"));
        }
        if matches!(status, ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Cancelled) {
            details.push(status_word(status).to_owned());
        }
        if let Some(ms) = call.duration_ms.filter(|ms| *ms >= MIN_SHOWN_DURATION_MS) {
            details.push(format::duration(ms));
        }
        let failed = status == ToolStatus::Failed && call.exit_code.is_none_or(|code| code == 0);
        let error = non_blank(call.error.as_ref()).filter(|_| failed).map(first_line);
        CallSummary { status, name: name(call), subject: subject(call), details, error }
    }
}

/// Returns the display name of a known tool, else the agent's name for it.
fn name(call: &ToolCall) -> String {
    let builtin = match call.tool_name {
        ToolName::Glob => "Find",
        ToolName::Grep => "Grep",
        ToolName::Read => "Read",
        ToolName::Write => "Write",
        ToolName::Edit | ToolName::ApplyPatch => "Edit",
        ToolName::Notebook => "Notebook",
        ToolName::Bash => "$",
        ToolName::Task => "Task",
        ToolName::TodoWrite => "Todos",
        ToolName::WebFetch => "Fetch",
        ToolName::WebSearch => "Web search",
        ToolName::Skill => "Skill",
        ToolName::List => "List",
        ToolName::Lsp => "Language server",
        ToolName::Question => "Question",
        ToolName::PlanMode => "Plan mode",
        ToolName::Mcp | ToolName::Unknown => "",
    };
    if !builtin.is_empty() {
        return builtin.to_owned();
    }
    if let Some(name) = non_blank(call.name.as_ref()) {
        // `mcp__server__tool` becomes `server: tool`.
        let name = escape::line(name);
        return match name.strip_prefix("mcp__").and_then(|rest| rest.split_once("__")) {
            Some((server, tool)) => format!("{server}: {tool}"),
            None => name,
        };
    }
    let kind = match call.kind {
        ToolKind::Search => "Search",
        ToolKind::Read => "Read",
        ToolKind::Execute => "$",
        ToolKind::Edit => "Edit",
        ToolKind::Task => "Task",
        ToolKind::Delete => "Delete",
        ToolKind::Move => "Move",
        ToolKind::Think => "Think",
        ToolKind::Fetch => "Fetch",
        ToolKind::SwitchMode => "Mode",
        ToolKind::Other => "",
    };
    match (kind, non_blank(call.title.as_ref())) {
        ("", Some(title)) => escape::line(title),
        ("", None) => "Tool".to_owned(),
        (kind, _) => kind.to_owned(),
    }
}

/// Returns the subject of a call.
fn subject(call: &ToolCall) -> String {
    if let Some(command) = non_blank(call.command.as_ref()) {
        return match command.trim().split_once('\n') {
            Some((first, rest)) => {
                let more = format::count(rest.lines().count(), "more line");
                format!("{} … ({more})", escape::line(first))
            }
            None => escape::line(command),
        };
    }
    if let Some(pattern) = non_blank(call.pattern.as_ref()) {
        let location =
            non_blank(call.file_path.as_ref()).map(|p| format!(" in {}", escape::line(p)));
        return format!("{}{}", escape::line(pattern), location.unwrap_or_default());
    }
    if let Some(path) = non_blank(call.file_path.as_ref()) {
        let more = call.diffs.as_ref().map_or(0, |d| d.len().saturating_sub(1));
        let path = escape::line(path);
        return if more > 0 { format!("{path} and {more} more") } else { path };
    }
    let description = non_blank(call.description.as_ref()).filter(|d| !repeats_tool_name(call, d));
    let description = description
        .or_else(|| non_blank(call.agent_title.as_ref()).filter(|d| !repeats_tool_name(call, d)));
    let description = description.map(escape::line).unwrap_or_default();
    let description = if description.is_empty() { first_text(call) } else { description };
    match non_blank(call.subagent_type.as_ref()) {
        Some(kind) => format!("{description} ({})", escape::line(kind)).trim_start().to_owned(),
        None => description,
    }
}

/// Returns whether a text only repeats the name of the tool.
fn repeats_tool_name(call: &ToolCall, text: &str) -> bool {
    let matches_text = |t: &Option<Clean>| t.as_deref().is_some_and(|t| t == text);
    matches_text(&call.name) || matches_text(&call.title)
}

/// Returns the first line of the first argument that is a string.
fn first_text(call: &ToolCall) -> String {
    let text = arguments(call).into_iter().find(|a| a.is_text).map(|a| first_line(&a.value));
    text.unwrap_or_default()
}

/// Returns the arguments that neither the summary line nor the diffs show.
pub(crate) fn arguments(call: &ToolCall) -> Vec<Argument> {
    let Some(input) = &call.input else { return Vec::new() };
    let mut index = Index::default();
    let Ok(doc) = index.read(input.json()) else { return Vec::new() };
    let has_diffs = call.diffs.as_ref().is_some_and(|d| !d.is_empty());
    let is_shown = |key: &str, value: &str| match key {
        "command" | "cmd" => non_blank(call.command.as_ref()).is_some(),
        "description" => [&call.description, &call.agent_title]
            .iter()
            .any(|t| t.as_deref().is_some_and(|t| t == value)),
        "file_path" | "filePath" | "path" | "absolute_path" | "notebook_path" => {
            call.file_path.as_deref().is_some_and(|t| t == value)
        }
        "pattern" => non_blank(call.pattern.as_ref()).is_some(),
        "content" | "old_string" | "new_string" | "oldString" | "newString" | "edits"
        | "patchText" | "patch_text" | "new_source" => has_diffs,
        "subagent_type" | "subagentType" => non_blank(call.subagent_type.as_ref()).is_some(),
        "todos" => call.todos.is_some() || call.is_todo,
        "questions" => call.tool_name == ToolName::Question,
        "plan" => call.plan.is_some(),
        _ => false,
    };
    let mut out = Vec::new();
    for (key, value) in doc.root().fields() {
        let text = match value.kind() {
            Kind::String => value.str().map_or_else(String::new, std::borrow::Cow::into_owned),
            _ => value.raw().to_owned(),
        };
        if !value.is_null() && !is_shown(key, &text) {
            let is_text = value.kind() == Kind::String;
            out.push(Argument { name: narrows::json::decode(key), value: text, is_text });
        }
    }
    if out.is_empty() && doc.root().kind() != Kind::Object {
        let value = input.json().to_owned();
        out.push(Argument { name: "input".to_owned(), value, is_text: false });
    }
    out
}

/// Indents JSON.
pub(crate) fn pretty(json: &str) -> String {
    let tree: Option<serde_json::Value> = serde_json::from_str(json).ok();
    tree.and_then(|t| serde_json::to_string_pretty(&t).ok()).unwrap_or_else(|| json.to_owned())
}

/// Returns the output of a call, unless its diffs, its answer or its error show it.
pub(crate) fn output(call: &ToolCall) -> Option<&str> {
    let Some(Output::Whole(text) | Output::More(text)) = &call.output else { return None };
    // The output of an edit repeats the new text, that of a subagent its prompt.
    let is_shown = call.diffs.as_ref().is_some_and(|d| !d.is_empty()) || call.task_output.is_some();
    let matches_text = call.error.as_ref().is_some_and(|e| e.trim() == text.trim());
    Some(text.as_str()).filter(|t| !t.trim().is_empty() && !is_shown && !matches_text)
}

/// Returns whether the output is data whose lines must not be wrapped.
pub(crate) fn is_data(call: &ToolCall) -> bool {
    matches!(
        call.kind,
        ToolKind::Execute | ToolKind::Read | ToolKind::Search | ToolKind::Edit | ToolKind::Other
    ) && call.tool_name != ToolName::Question
}

/// Returns the text of a field that is present and not blank.
pub(crate) fn non_blank(field: Option<&Clean>) -> Option<&str> {
    field.map(Clean::as_str).filter(|t| !t.trim().is_empty())
}

fn first_line(text: &str) -> String {
    escape::line(text.trim().lines().next().unwrap_or_default())
}

/// Describes an image: `image png, 79 bytes`.
pub(crate) fn image(image: &Image) -> String {
    let kind = escape::line(image.mime_type.trim_start_matches("image/"));
    format!("image {kind}, {}", format::bytes(image.size))
}

/// Describes the progress of a todo list: `2 of 3 done`.
pub(crate) fn progress(list: &TodoList) -> String {
    let done = list.todos.iter().filter(|t| t.status == ToolStatus::Completed).count();
    format!("{done} of {} done", list.todos.len())
}

/// Returns the checkbox of a todo.
pub(crate) fn checkbox_glyph(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "☑",
        ToolStatus::InProgress => "◐",
        ToolStatus::Failed | ToolStatus::Cancelled => "☒",
        ToolStatus::Pending => "☐",
    }
}

/// Describes a background task and its progress.
pub(crate) fn background_task(task: &Background) -> String {
    let subject = escape::line(non_blank(task.description.as_ref()).unwrap_or(&task.task_id));
    match non_blank(task.summary.as_ref()).map(escape::line) {
        // Agents repeat the description in the summary.
        Some(end) if end.contains(&subject) => end,
        Some(end) => format!("{subject} · {end}"),
        None => format!("{subject} · {}", status_word(task.status)),
    }
}

/// Describes a compaction: `the context was summarised (auto, 120k tokens before)`.
pub(crate) fn compaction(summary: &Summary) -> String {
    let trigger = non_blank(summary.trigger.as_ref()).map(escape::line);
    let tokens = summary.tokens_before.map(|n| format!("{} tokens before", format::amount(n)));
    let details: Vec<String> = [trigger, tokens].into_iter().flatten().collect();
    let details =
        if details.is_empty() { String::new() } else { format!(" ({})", details.join(", ")) };
    format!("the context was summarised{details}")
}

/// Returns whether an answer names an option; several answers are separated by commas.
pub(crate) fn is_selected(answer: &str, label: &str, multi_select: bool) -> bool {
    answer == label || (multi_select && answer.split(", ").any(|part| part == label))
}
