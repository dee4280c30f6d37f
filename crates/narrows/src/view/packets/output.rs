//! The result of a call that has ended.

use super::EmptyObject;
use super::call::{full_output, kind_of, literal, tool_of};
use super::input::{TodoItem, todo_item};
use crate::json::to_writer;
use crate::model::tool::{Diff, DiffAction, ToolCall, ToolKind, ToolName, ToolStatus, TriState};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;
use std::borrow::Cow;

/// Characters of a file in the preview of a read.
const PREVIEW_CHARS: usize = 500;

#[derive(Debug, Serialize)]
pub(super) struct RawOutput<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Cow<'a, Clean>>,
    output: Cow<'a, str>,
    /// Set for an empty file, for which clients would otherwise print the other fields.
    #[serde(skip_serializing_if = "Option::is_none")]
    content: Option<&'static str>,
    metadata: OutputMetadata<'a>,
}

#[derive(Debug, Default, Serialize)]
struct OutputMetadata<'a> {
    truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Cow<'a, Clean>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exit: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    preview: Option<Clean>,
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filepath: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    exists: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diagnostics: Option<Diagnostics<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    diff: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<Vec<PatchedFile<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    todos: Option<Vec<TodoItem<'a>>>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Diagnostics<'a> {
    Object(&'a Tree<Clean>),
    Empty(EmptyObject),
}

/// A file that a patch changed.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchedFile<'a> {
    file_path: &'a Clean,
    relative_path: &'a Clean,
    r#type: &'static str,
    diff: String,
    before: &'a str,
    after: &'a str,
    additions: u64,
    deletions: u64,
}

/// The text that a client shows as the output of an ended call.
pub(super) fn shown_output(c: &ToolCall) -> Cow<'_, Clean> {
    let output = match (tool_of(c), kind_of(c)) {
        // The item of a task shows the prompt as output; in packets its output is the answer.
        (ToolName::Task, _) => c.task_output.as_ref(),
        (_, ToolKind::Edit) if c.diffs.iter().flatten().next().is_some() => match c.status {
            Some(ToolStatus::Completed) => return literal("Wrote file successfully."),
            _ => None,
        },
        _ => full_output(c),
    };
    match output {
        Some(text) if !text.is_empty() => Cow::Borrowed(text),
        _ => c.error.as_ref().map_or_else(|| literal(""), Cow::Borrowed),
    }
}

pub(super) fn raw_output(c: &ToolCall, status: ToolStatus) -> RawOutput<'_> {
    let text = shown_output(c);
    let error = (status != ToolStatus::Completed).then(|| match (&c.error, status) {
        (Some(error), _) if !error.is_empty() => Cow::Borrowed(error),
        (_, ToolStatus::Failed) if !text.is_empty() => text.clone(),
        (_, ToolStatus::Cancelled) => match c.permission.as_ref().map(|p| p.decision.as_str()) {
            Some("rejected") => literal("The user rejected permission to use this tool call."),
            _ => literal("The call was cancelled."),
        },
        _ => literal("The call failed."),
    });
    let content = (kind_of(c) == ToolKind::Read && text.is_empty()).then_some("");
    let metadata = metadata(c, status, &text);
    let output = match (&metadata.todos, &metadata.files) {
        (Some(todos), _) => {
            let mut json = Vec::new();
            let _ = to_writer(&mut json, todos);
            Cow::Owned(String::from_utf8(json).unwrap_or_default())
        }
        (None, Some(files)) if status == ToolStatus::Completed && !files.is_empty() => {
            let mut list = String::from("Success. Updated the following files:");
            for file in files {
                let status = match file.r#type {
                    "add" => 'A',
                    "delete" => 'D',
                    _ => 'M',
                };
                list.push('\n');
                list.push(status);
                list.push(' ');
                list.push_str(file.relative_path);
            }
            Cow::Owned(list)
        }
        _ => match text {
            Cow::Borrowed(text) => Cow::Borrowed(text.as_str()),
            Cow::Owned(text) => Cow::Owned(text.as_str().to_owned()),
        },
    };
    RawOutput { error, output, content, metadata }
}

fn metadata<'a>(c: &'a ToolCall, status: ToolStatus, text: &Cow<'a, Clean>) -> OutputMetadata<'a> {
    let mut m =
        OutputMetadata { truncated: c.truncated == Some(true), ..OutputMetadata::default() };
    m.exit = c.exit_code;
    match kind_of(c) {
        ToolKind::Execute => {
            m.output = Some(text.clone());
            // A completed command without an exit code has not failed.
            m.exit = m.exit.or((status == ToolStatus::Completed).then_some(0));
            m.description = Some(c.description.as_deref().unwrap_or_default());
        }
        ToolKind::Read => m.preview = Some(text.head(PREVIEW_CHARS)),
        ToolKind::Search => {
            let lines = text.lines().filter(|l| !l.trim().is_empty()).count() as u64;
            let is_none =
                text.starts_with("No files found") || text.starts_with("No matches found");
            m.count = Some(c.count.unwrap_or(if is_none { 0 } else { lines }));
        }
        ToolKind::Edit => {
            let diagnostics = c.diagnostics.as_ref().filter(|t| t.json().starts_with('{'));
            m.diagnostics =
                Some(diagnostics.map_or(Diagnostics::Empty(EmptyObject {}), Diagnostics::Object));
            m.filepath = Some(c.file_path.as_deref().unwrap_or_default());
            m.exists = Some(match c.is_new_file {
                Some(TriState::Yes) => false,
                Some(TriState::No) => true,
                Some(TriState::Unknown) | None => tool_of(c) != ToolName::Write,
            });
        }
        _ => {}
    }
    match tool_of(c) {
        ToolName::TodoWrite => m.todos = Some(c.todos.iter().flatten().map(todo_item).collect()),
        ToolName::ApplyPatch => {
            let files: Vec<PatchedFile<'_>> = c.diffs.iter().flatten().map(patched_file).collect();
            let diffs: Vec<&str> = files.iter().map(|f| f.diff.as_str()).collect();
            m.diff = Some(diffs.join("\n"));
            m.files = Some(files);
        }
        _ => {}
    }
    m
}

fn patched_file(diff: &Diff) -> PatchedFile<'_> {
    let (additions, deletions) = diff.changed_lines();
    let r#type = match diff.action {
        Some(DiffAction::Add) => "add",
        Some(DiffAction::Delete) => "delete",
        Some(DiffAction::Update | DiffAction::Move) => "update",
        None if diff.old_text.as_deref() == Some("") => "add",
        None => "update",
    };
    let format_hunk = |hunk: &crate::model::tool::Hunk| {
        let lines: Vec<&str> = hunk.lines.iter().map(Clean::as_str).collect();
        let (o, ol, n, nl) = (hunk.old_start, hunk.old_lines, hunk.new_start, hunk.new_lines);
        format!("@@ -{o},{ol} +{n},{nl} @@\n{}", lines.join("\n"))
    };
    let hunks = || diff.hunks.iter().flatten().map(format_hunk).collect::<Vec<_>>().join("\n");
    PatchedFile {
        file_path: &diff.path,
        relative_path: &diff.path,
        r#type,
        diff: diff.patch.as_ref().map_or_else(hunks, ToString::to_string),
        before: diff.old_text.as_deref().unwrap_or_default(),
        after: diff.new_text.as_deref().unwrap_or_default(),
        additions,
        deletions,
    }
}
