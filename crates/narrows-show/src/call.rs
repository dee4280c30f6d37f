//! What is told of a call, whatever the form: its sign, its name, what it is about, how it went.

use super::{diff, escape};
use crate::words;
use narrows::Clean;
use narrows::event::{Background, Summary};
use narrows::item::TodoList;
use narrows::json::{Index, Kind};
use narrows::tool::{Image, Output, ToolCall, ToolKind, ToolName, ToolStatus};

/// Shorter ones are not told on the line of a call.
const SHORT_MS: u64 = 500;

/// The line of a call. All texts are on one line, without escapes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CallLine {
    pub(crate) status: ToolStatus,
    /// `Read`, `$`, `Task`.
    pub(crate) name: String,
    /// The command, the file, the pattern.
    pub(crate) about: String,
    /// `+3 −1`, `exit 101`, `2.3 s`.
    pub(crate) facts: Vec<String>,
    /// Why it failed, where nothing shorter tells it.
    pub(crate) why: Option<String>,
}

/// An argument that the line of the call does not tell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Argument {
    pub(crate) name: String,
    /// As text: strings as they are, others as JSON.
    pub(crate) value: String,
    pub(crate) is_text: bool,
}

pub(crate) fn sign(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "✓",
        ToolStatus::Failed => "✗",
        ToolStatus::Cancelled => "⊘",
        ToolStatus::Pending | ToolStatus::InProgress => "◌",
    }
}

/// The status in a word, for those that are not done.
pub(crate) fn status_word(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "done",
        ToolStatus::Failed => "failed",
        ToolStatus::Cancelled => "cancelled",
        ToolStatus::Pending => "waiting",
        ToolStatus::InProgress => "running",
    }
}

impl CallLine {
    pub(crate) fn of(call: &ToolCall) -> CallLine {
        let status = call.status.unwrap_or(ToolStatus::Pending);
        let mut facts = Vec::new();
        // What failed or was refused changed nothing.
        let undone = matches!(status, ToolStatus::Failed | ToolStatus::Cancelled);
        if let (Some(added), Some(removed)) = diff::counts(call)
            && !undone
        {
            facts.push(match (added, removed) {
                (added, 0) => format!("+{added}"),
                (0, removed) => format!("−{removed}"),
                _ => format!("+{added} −{removed}"),
            });
        }
        if let Some(n) = call.count.filter(|_| call.kind == ToolKind::Search) {
            facts.push(words::count(usize::try_from(n).unwrap_or(usize::MAX), "hit"));
        }
        if let Some(permission) = call.permission.as_ref().filter(|p| &p.decision != "allowed") {
            facts.push(match permission.decision.as_str() {
                "rejected" => "not allowed".to_owned(),
                other => escape::line(other),
            });
        }
        if let Some(code) = call.exit_code.filter(|code| *code != 0) {
            facts.push(format!("exit {code}"));
        }
        if matches!(status, ToolStatus::Pending | ToolStatus::InProgress | ToolStatus::Cancelled) {
            facts.push(status_word(status).to_owned());
        }
        if let Some(ms) = call.duration_ms.filter(|ms| *ms >= SHORT_MS) {
            facts.push(words::duration(ms));
        }
        let failed = status == ToolStatus::Failed && call.exit_code.is_none_or(|code| code == 0);
        let why = given(call.error.as_ref()).filter(|_| failed).map(first_line);
        CallLine { status, name: name(call), about: about(call), facts, why }
    }
}

/// Its name: ours where the tool is known, else the agent's.
fn name(call: &ToolCall) -> String {
    let known = match call.tool_name {
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
    if !known.is_empty() {
        return known.to_owned();
    }
    if let Some(name) = given(call.name.as_ref()) {
        // `mcp__server__tool` reads better in two words.
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
    match (kind, given(call.title.as_ref())) {
        ("", Some(title)) => escape::line(title),
        ("", None) => "Tool".to_owned(),
        (kind, _) => kind.to_owned(),
    }
}

/// What it is about.
fn about(call: &ToolCall) -> String {
    if let Some(command) = given(call.command.as_ref()) {
        return match command.trim().split_once('\n') {
            Some((first, rest)) => {
                let more = words::count(rest.lines().count(), "more line");
                format!("{} … ({more})", escape::line(first))
            }
            None => escape::line(command),
        };
    }
    if let Some(pattern) = given(call.pattern.as_ref()) {
        let place = given(call.file_path.as_ref()).map(|p| format!(" in {}", escape::line(p)));
        return format!("{}{}", escape::line(pattern), place.unwrap_or_default());
    }
    if let Some(path) = given(call.file_path.as_ref()) {
        let more = call.diffs.as_ref().map_or(0, |d| d.len().saturating_sub(1));
        let path = escape::line(path);
        return if more > 0 { format!("{path} and {more} more") } else { path };
    }
    let said = given(call.description.as_ref()).filter(|d| !is_name(call, d));
    let said = said.or_else(|| given(call.agent_title.as_ref()).filter(|d| !is_name(call, d)));
    let said = said.map(escape::line).unwrap_or_default();
    let said = if said.is_empty() { first_text(call) } else { said };
    match given(call.subagent_type.as_ref()) {
        Some(kind) => format!("{said} ({})", escape::line(kind)).trim_start().to_owned(),
        None => said,
    }
}

/// Whether a text only says again which tool it is.
fn is_name(call: &ToolCall, text: &str) -> bool {
    let same = |t: &Option<Clean>| t.as_deref().is_some_and(|t| t == text);
    same(&call.name) || same(&call.title)
}

/// The first argument that is a short text.
fn first_text(call: &ToolCall) -> String {
    let text = arguments(call).into_iter().find(|a| a.is_text).map(|a| first_line(&a.value));
    text.unwrap_or_default()
}

/// The arguments that neither the line of the call nor its diffs tell.
pub(crate) fn arguments(call: &ToolCall) -> Vec<Argument> {
    let Some(input) = &call.input else { return Vec::new() };
    let mut index = Index::default();
    let Ok(doc) = index.read(input.json()) else { return Vec::new() };
    let has_diffs = call.diffs.as_ref().is_some_and(|d| !d.is_empty());
    let told = |key: &str, value: &str| match key {
        "command" | "cmd" => given(call.command.as_ref()).is_some(),
        "description" => [&call.description, &call.agent_title]
            .iter()
            .any(|t| t.as_deref().is_some_and(|t| t == value)),
        "file_path" | "filePath" | "path" | "absolute_path" | "notebook_path" => {
            call.file_path.as_deref().is_some_and(|t| t == value)
        }
        "pattern" => given(call.pattern.as_ref()).is_some(),
        "content" | "old_string" | "new_string" | "oldString" | "newString" | "edits"
        | "patchText" | "patch_text" | "new_source" => has_diffs,
        "subagent_type" | "subagentType" => given(call.subagent_type.as_ref()).is_some(),
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
        if !value.is_null() && !told(key, &text) {
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

/// All arguments as JSON, set out over lines.
pub(crate) fn pretty(json: &str) -> String {
    let tree: Option<serde_json::Value> = serde_json::from_str(json).ok();
    tree.and_then(|t| serde_json::to_string_pretty(&t).ok()).unwrap_or_else(|| json.to_owned())
}

/// What the call gave, where its diffs, its answer or its error do not tell it.
pub(crate) fn output(call: &ToolCall) -> Option<&str> {
    let Some(Output::Whole(text) | Output::More(text)) = &call.output else { return None };
    // The output of an edit is the new text, that of a subagent what it was asked.
    let told = call.diffs.as_ref().is_some_and(|d| !d.is_empty()) || call.task_output.is_some();
    let same = call.error.as_ref().is_some_and(|e| e.trim() == text.trim());
    Some(text.as_str()).filter(|t| !t.trim().is_empty() && !told && !same)
}

/// Whether what it gave is data, whose lines are not to be broken.
pub(crate) fn is_data(call: &ToolCall) -> bool {
    matches!(
        call.kind,
        ToolKind::Execute | ToolKind::Read | ToolKind::Search | ToolKind::Edit | ToolKind::Other
    ) && call.tool_name != ToolName::Question
}

/// A field that is there and not empty.
pub(crate) fn given(field: Option<&Clean>) -> Option<&str> {
    field.map(Clean::as_str).filter(|t| !t.trim().is_empty())
}

fn first_line(text: &str) -> String {
    escape::line(text.trim().lines().next().unwrap_or_default())
}

/// `image png, 79 bytes`.
pub(crate) fn image(image: &Image) -> String {
    let kind = escape::line(image.mime_type.trim_start_matches("image/"));
    format!("image {kind}, {}", words::bytes(image.size))
}

/// `2 of 3 done`.
pub(crate) fn progress(list: &TodoList) -> String {
    let done = list.todos.iter().filter(|t| t.status == ToolStatus::Completed).count();
    format!("{done} of {} done", list.todos.len())
}

/// `[x]`, `[ ]`, for lists that are read as plain text.
pub(crate) fn tick(status: ToolStatus) -> &'static str {
    match status {
        ToolStatus::Completed => "☑",
        ToolStatus::InProgress => "◐",
        ToolStatus::Failed | ToolStatus::Cancelled => "☒",
        ToolStatus::Pending => "☐",
    }
}

/// What a task beside the conversation is about, and how far it is.
pub(crate) fn background(task: &Background) -> String {
    let about = escape::line(given(task.description.as_ref()).unwrap_or(&task.task_id));
    match given(task.summary.as_ref()).map(escape::line) {
        // Agents say again what it was about.
        Some(end) if end.contains(&about) => end,
        Some(end) => format!("{about} · {end}"),
        None => format!("{about} · {}", status_word(task.status)),
    }
}

/// `the context was summarised (auto, 120k tokens before)`.
pub(crate) fn compaction(summary: &Summary) -> String {
    let trigger = given(summary.trigger.as_ref()).map(escape::line);
    let tokens = summary.tokens_before.map(|n| format!("{} tokens before", words::amount(n)));
    let facts: Vec<String> = [trigger, tokens].into_iter().flatten().collect();
    let facts = if facts.is_empty() { String::new() } else { format!(" ({})", facts.join(", ")) };
    format!("the context was summarised{facts}")
}

/// Whether an answer names an option; several are told with commas between.
pub(crate) fn is_chosen(said: &str, label: &str, several: bool) -> bool {
    said == label || (several && said.split(", ").any(|part| part == label))
}
