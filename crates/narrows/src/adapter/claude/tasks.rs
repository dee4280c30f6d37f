//! Todo lists that single calls edit, and background tasks.

use super::tool_use::{ToolUseState, truncate};
use super::{ClaudeParser, MAX_TRACKED};
use crate::adapter::output::AdapterOutput;
use crate::adapter::synthetic_text::tagged;
use crate::adapter::tool_input::todo_status;
use crate::bounded_map::BoundedMap;
use crate::json::Json;
use crate::model::event::{BackgroundTask, Body};
use crate::model::tool::{Todo, ToolStatus};
use crate::sanitize::Raw;
use std::collections::VecDeque;

/// The number of entries of a todo list.
const MAX_TODOS: usize = 1000;
/// The number of subagent prompts that are tracked.
const MAX_PROMPTS: usize = 64;

/// The todo list, the background tasks and the prompts of subagents.
#[derive(Debug)]
pub(super) struct Tasks {
    list: Vec<TaskEntry>,
    /// The ids of background tasks.
    background: BoundedMap<()>,
    /// The prompts of subagents that have not been seen yet, with the calls that started them.
    prompts: VecDeque<(Box<str>, String)>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks {
            list: Vec::new(),
            background: BoundedMap::new(MAX_TRACKED),
            prompts: VecDeque::new(),
        }
    }
}

#[derive(Debug)]
struct TaskEntry {
    id: String,
    subject: String,
    active: Option<String>,
    status: ToolStatus,
}

/// The edit of the todo list by one call of the task tools.
#[derive(Debug)]
pub(super) enum TaskListChange {
    Create { subject: String, active: Option<String> },
    Update { id: String, subject: Option<String>, active: Option<String>, status: Option<String> },
}

impl TaskListChange {
    pub(super) fn parse(name: &str, input: Option<Json<'_>>) -> Option<TaskListChange> {
        let input = input?;
        let text =
            |name: &str| input.get(name).and_then(Json::scalar).map(|t| truncate(&t).to_owned());
        let active = text("activeForm");
        match name {
            "TaskCreate" => Some(TaskListChange::Create { subject: text("subject")?, active }),
            "TaskUpdate" => Some(TaskListChange::Update {
                id: text("taskId")?,
                subject: text("subject"),
                active,
                status: text("status"),
            }),
            _ => None,
        }
    }
}

impl Tasks {
    /// Adds the prompt of a subagent.
    pub(super) fn add_prompt(&mut self, prompt: &str, call: &str) {
        if self.prompts.len() >= MAX_PROMPTS {
            self.prompts.pop_front();
        }
        self.prompts.push_back((prompt.into(), call.to_owned()));
    }

    /// Returns and removes the call that started a subagent with this prompt.
    pub(super) fn take_call_of_prompt(&mut self, prompt: &str) -> Option<String> {
        let at = self.prompts.iter().position(|(p, _)| **p == *prompt)?;
        self.prompts.remove(at).map(|(_, call)| call)
    }

    /// Restores the list from its last item.
    pub(super) fn restore(&mut self, list: &[Todo]) {
        let entry = |(at, todo): (usize, &Todo)| TaskEntry {
            id: todo.id.as_ref().map_or_else(|| default_id(at), ToString::to_string),
            subject: todo.content.to_string(),
            active: Some(todo.active_form.to_string()).filter(|a| *a != *todo.content),
            status: todo.status,
        };
        self.list = list.iter().enumerate().map(entry).collect();
    }

    /// Adds a background task.
    pub(super) fn add_background(&mut self, task: &str) {
        self.background.get_or_insert(task);
    }

    /// Applies the edit of a finished call; returns the complete list.
    pub(super) fn apply(
        &mut self,
        known: &mut ToolUseState,
        value: Option<Json<'_>>,
        is_error: bool,
    ) -> Option<Vec<Todo<Raw>>> {
        let change = known.task_change.take().filter(|_| !is_error)?;
        let result_field =
            |names: &[&str]| value.and_then(|v| v.path(names)).and_then(Json::scalar);
        match change {
            TaskListChange::Create { subject, active } => {
                let next_id = || {
                    let ids = self.list.iter().filter_map(|e| e.id.parse::<u64>().ok());
                    ids.max().unwrap_or(0).saturating_add(1).to_string()
                };
                let id = result_field(&["task", "id"])
                    .map_or_else(next_id, std::borrow::Cow::into_owned);
                if self.list.len() < MAX_TODOS && self.list.iter().all(|e| e.id != id) {
                    self.list.push(TaskEntry { id, subject, active, status: ToolStatus::Pending });
                }
            }
            TaskListChange::Update { id, subject, active, status } => {
                if status.as_deref() == Some("deleted") {
                    self.list.retain(|e| e.id != id);
                } else if let Some(entry) = self.list.iter_mut().find(|e| e.id == id) {
                    entry.subject = subject.unwrap_or_else(|| std::mem::take(&mut entry.subject));
                    entry.active = active.or(entry.active.take());
                    if status.is_some() {
                        entry.status = todo_status(status.as_deref());
                    }
                }
            }
        }
        let todo = |(at, e): (usize, &TaskEntry)| Todo {
            content: Raw::new(e.subject.as_str()),
            active_form: Raw::new(e.active.as_deref().unwrap_or(&e.subject)),
            status: e.status,
            priority: None,
            id: Some(e.id.as_str()).filter(|id| *id != default_id(at)).map(Raw::new),
        };
        Some(self.list.iter().enumerate().map(todo).collect())
    }
}

/// The id of an entry that has the usual number.
fn default_id(at: usize) -> String {
    (at + 1).to_string()
}

impl ClaudeParser {
    /// Handles the end of a background task as a record of the program.
    pub(super) fn task_notification_record(&mut self, object: Json<'_>, out: &mut AdapterOutput) {
        let text = |name: &str| object.get(name).and_then(Json::scalar);
        let id = text("task_id").unwrap_or_default();
        // Foreground calls are reported too: their results contain the same.
        if !self.tasks.background.contains_key(&id) {
            out.ignore();
            return;
        }
        out.push(Body::BackgroundTask(Box::new(BackgroundTask {
            task_id: Raw::new(id.into_owned()),
            tool_call_id: text("tool_use_id").map(|t| Raw::new(t.into_owned())),
            description: None,
            status: task_status(text("status").as_deref()),
            summary: text("summary").filter(|s| !s.is_empty()).map(|t| Raw::new(t.into_owned())),
        })));
    }

    /// Handles the end of a background task as text for the model, which session files record.
    pub(super) fn task_notification_text(text: &str, out: &mut AdapterOutput) {
        let field = |name: &str| tagged(text, name).map(str::trim);
        let Some(id) = field("task-id") else {
            out.ignore();
            return;
        };
        let summary = field("result").or_else(|| field("summary")).filter(|s| !s.is_empty());
        out.push(Body::BackgroundTask(Box::new(BackgroundTask {
            task_id: Raw::new(id),
            tool_call_id: field("tool-use-id").map(Raw::new),
            description: None,
            status: task_status(field("status")),
            summary: summary.map(Raw::new),
        })));
    }
}

fn task_status(status: Option<&str>) -> ToolStatus {
    match status {
        Some("completed") => ToolStatus::Completed,
        Some("failed" | "error") => ToolStatus::Failed,
        Some("killed" | "stopped" | "cancelled" | "canceled") => ToolStatus::Cancelled,
        _ => ToolStatus::InProgress,
    }
}

/// Removes the reminders for the model that the program appends to a text.
pub(super) fn without_reminders(text: &str) -> &str {
    let mut text = text;
    while let Some(rest) = text.trim_end().strip_suffix("</system-reminder>") {
        match rest.rfind("<system-reminder>") {
            Some(at) => text = rest[..at].trim_end_matches('\n'),
            None => break,
        }
    }
    text
}
