//! Todo lists that grow call by call, and work in the background.

use super::call::{Known, short};
use super::{Claude, MAX_FEW};
use crate::adapter::Yield;
use crate::adapter::input::todo_status;
use crate::adapter::internal::tagged;
use crate::event::{Background, Body};
use crate::json::Json;
use crate::recent::Recent;
use crate::sanitize::Raw;
use crate::tool::{Todo, ToolStatus};
use std::collections::VecDeque;

/// Entries that a list may have.
const MAX_TODOS: usize = 1000;
/// Prompts of subagents that are remembered.
const MAX_PROMPTS: usize = 64;

/// What is known of tasks of either sort.
#[derive(Debug)]
pub(super) struct Tasks {
    list: Vec<Entry>,
    /// Tasks that went into the background.
    background: Recent<()>,
    /// What subagents were asked, and the calls that asked.
    prompts: VecDeque<(Box<str>, String)>,
}

impl Default for Tasks {
    fn default() -> Self {
        Tasks { list: Vec::new(), background: Recent::new(MAX_FEW), prompts: VecDeque::new() }
    }
}

#[derive(Debug)]
struct Entry {
    id: String,
    subject: String,
    active: Option<String>,
    status: ToolStatus,
}

/// What a call of the task tools does to the list.
#[derive(Debug)]
pub(super) enum Change {
    Create { subject: String, active: Option<String> },
    Update { id: String, subject: Option<String>, active: Option<String>, status: Option<String> },
}

impl Change {
    pub(super) fn read(name: &str, input: Option<Json<'_>>) -> Option<Change> {
        let input = input?;
        let text =
            |name: &str| input.get(name).and_then(Json::scalar).map(|t| short(&t).to_owned());
        let active = text("activeForm");
        match name {
            "TaskCreate" => Some(Change::Create { subject: text("subject")?, active }),
            "TaskUpdate" => Some(Change::Update {
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
    /// Remembers what a subagent was asked.
    pub(super) fn ask(&mut self, prompt: &str, call: &str) {
        if self.prompts.len() >= MAX_PROMPTS {
            self.prompts.pop_front();
        }
        self.prompts.push_back((prompt.into(), call.to_owned()));
    }

    /// The call that asked this and whose subagent has not been seen yet.
    pub(super) fn asked(&mut self, prompt: &str) -> Option<String> {
        let at = self.prompts.iter().position(|(p, _)| **p == *prompt)?;
        self.prompts.remove(at).map(|(_, call)| call)
    }

    /// The list as it was shown last.
    pub(super) fn recall(&mut self, list: &[Todo]) {
        let entry = |(at, todo): (usize, &Todo)| Entry {
            id: todo.id.as_ref().map_or_else(|| place(at), ToString::to_string),
            subject: todo.content.to_string(),
            active: Some(todo.active_form.to_string()).filter(|a| *a != *todo.content),
            status: todo.status,
        };
        self.list = list.iter().enumerate().map(entry).collect();
    }

    /// A call goes on in the background.
    pub(super) fn began(&mut self, task: &str) {
        self.background.open(task);
    }

    /// Changes the list as a finished call says; returns all of it.
    pub(super) fn apply(
        &mut self,
        known: &mut Known,
        value: Option<Json<'_>>,
        failed: bool,
    ) -> Option<Vec<Todo<Raw>>> {
        let change = known.task.take().filter(|_| !failed)?;
        let told = |names: &[&str]| value.and_then(|v| v.path(names)).and_then(Json::scalar);
        match change {
            Change::Create { subject, active } => {
                let next = || {
                    let known = self.list.iter().filter_map(|e| e.id.parse::<u64>().ok());
                    known.max().unwrap_or(0).saturating_add(1).to_string()
                };
                let id = told(&["task", "id"]).map_or_else(next, std::borrow::Cow::into_owned);
                if self.list.len() < MAX_TODOS && self.list.iter().all(|e| e.id != id) {
                    self.list.push(Entry { id, subject, active, status: ToolStatus::Pending });
                }
            }
            Change::Update { id, subject, active, status } => {
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
        let todo = |(at, e): (usize, &Entry)| Todo {
            content: Raw::new(e.subject.as_str()),
            active_form: Raw::new(e.active.as_deref().unwrap_or(&e.subject)),
            status: e.status,
            priority: None,
            id: Some(e.id.as_str()).filter(|id| *id != place(at)).map(Raw::new),
        };
        Some(self.list.iter().enumerate().map(todo).collect())
    }
}

/// The id that an entry has as a rule.
fn place(at: usize) -> String {
    (at + 1).to_string()
}

impl Claude {
    /// Something in the background has ended, as the program prints it.
    pub(super) fn task_ended(&mut self, object: Json<'_>, out: &mut Yield) {
        let text = |name: &str| object.get(name).and_then(Json::scalar);
        let id = text("task_id").unwrap_or_default();
        // Calls in the foreground are told of too: their results say the same.
        if !self.tasks.background.has(&id) {
            out.quiet += 1;
            return;
        }
        out.push(Body::BackgroundTask(Box::new(Background {
            task_id: Raw::new(id.into_owned()),
            tool_call_id: text("tool_use_id").map(|t| Raw::new(t.into_owned())),
            description: None,
            status: status(text("status").as_deref()),
            summary: text("summary").filter(|s| !s.is_empty()).map(|t| Raw::new(t.into_owned())),
        })));
    }

    /// The same as a text for the model, which is how it is kept.
    pub(super) fn task_notification(text: &str, out: &mut Yield) {
        let field = |name: &str| tagged(text, name).map(str::trim);
        let Some(id) = field("task-id") else {
            out.quiet += 1;
            return;
        };
        let summary = field("result").or_else(|| field("summary")).filter(|s| !s.is_empty());
        out.push(Body::BackgroundTask(Box::new(Background {
            task_id: Raw::new(id),
            tool_call_id: field("tool-use-id").map(Raw::new),
            description: None,
            status: status(field("status")),
            summary: summary.map(Raw::new),
        })));
    }
}

fn status(word: Option<&str>) -> ToolStatus {
    match word {
        Some("completed") => ToolStatus::Completed,
        Some("failed" | "error") => ToolStatus::Failed,
        Some("killed" | "stopped" | "cancelled" | "canceled") => ToolStatus::Cancelled,
        _ => ToolStatus::InProgress,
    }
}

/// A text without what the program added at its end for the model.
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
