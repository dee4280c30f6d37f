//! Tool calls: their identity and their arguments.

use super::ClaudeParser;
use super::tasks::TaskListChange;
use crate::adapter::output::AdapterOutput;
use crate::adapter::tool_input::{MAX_LIST, read_input, todo_list};
use crate::json::{Json, Kind};
use crate::model::event::{Body, Question, QuestionOption, QuestionPart, ToolEvent};
use crate::model::tool::{
    ChangedFields, Diff, DiffScope, ToolCall, ToolKind, ToolName, ToolOutput, ToolStatus,
    tool_by_name,
};
use crate::sanitize::Raw;

/// The number of questions of a call, and of options of a question.
const MAX_QUESTIONS: usize = 64;
/// The longest description or todo that is tracked, in bytes.
const MAX_TRACKED_TEXT_BYTES: usize = 1024;

/// The state of a call that its later records need.
#[derive(Debug, Default)]
pub(super) struct ToolUseState {
    /// The agent's name of the tool.
    pub(super) name: Box<str>,
    pub(super) tool: Option<ToolName>,
    pub(super) description: Option<Box<str>>,
    /// The edit of the todo list by a call of the task tools.
    pub(super) task_change: Option<TaskListChange>,
}

impl ToolUseState {
    /// Sets the tool by its name, once.
    pub(super) fn identify(&mut self, name: &str) {
        if self.name.is_empty() {
            self.name = name.into();
            self.tool = tool_by_name(name, None);
        }
    }

    /// Sets the tool of a call without a record by the shape of its result.
    pub(super) fn identify_by_result(&mut self, value: Option<Json<'_>>) {
        let has = |name: &str| value.is_some_and(|v| v.get(name).is_some());
        if self.name.is_empty() && self.tool.is_none() {
            self.tool = if has("structuredPatch") || has("originalFile") {
                Some(if has("content") { ToolName::Write } else { ToolName::Edit })
            } else {
                None
            };
        }
    }

    /// Copies the identity to a call.
    pub(super) fn describe(&self, call: &mut ToolCall<Raw>) {
        call.tool_name = self.tool.unwrap_or(ToolName::Unknown);
        call.kind = call.tool_name.kind().unwrap_or(ToolKind::Other);
        call.is_todo = call.tool_name == ToolName::TodoWrite;
    }
}

impl ClaudeParser {
    /// Emits a call and, for `AskUserQuestion`, its questions.
    pub(super) fn tool_use(
        &mut self,
        block: Json<'_>,
        parent: Option<Raw>,
        out: &mut AdapterOutput,
    ) {
        let name = block.text("name").unwrap_or_default();
        let id = match block.get("id").and_then(Json::scalar).filter(|id| !id.is_empty()) {
            Some(id) => id.into_owned(),
            None => format!("line-{}", self.line),
        };
        let input = block.get("input").filter(|i| i.kind() == Kind::Object);
        let (known, first) = self.tool_uses.get_or_insert(&id);
        known.identify(&name);
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.describe(&mut call);
        // The title of an unknown tool is its name.
        if matches!(call.tool_name, ToolName::Unknown | ToolName::Mcp) {
            call.agent_title = Some(Raw::new(&*name)).filter(|n| !n.is_empty());
        }
        call.name = Some(Raw::new(name));
        call.status = Some(ToolStatus::InProgress);
        read_input(&mut call, input, block.get("input"));
        known.description = call.said.as_ref().map(|s| truncate(s.peek()).into());
        call.diffs = input.and_then(|i| input_diffs(&call, i));
        match call.tool_name {
            ToolName::Task => {
                let prompt = input.and_then(|i| i.text("prompt"));
                if let Some(prompt) = &prompt {
                    self.tasks.add_prompt(prompt, &id);
                }
                // The output of a task is its prompt.
                call.output = prompt.map(|p| ToolOutput::Whole(Raw::new(p)));
            }
            ToolName::TodoWrite => {
                let list = input.and_then(|i| i.get("todos"));
                call.todos = list.filter(|l| l.kind() == Kind::Array).map(todo_list);
                known.task_change = TaskListChange::parse(&known.name, input);
            }
            _ => {}
        }
        let is_question = call.tool_name == ToolName::Question;
        let questions = input.filter(|_| is_question).map(questions).unwrap_or_default();
        let call_id = Raw::new(id);
        let event = ToolEvent {
            id: call_id.clone(),
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first,
            grows: false,
            repeats: false,
        };
        out.push_in(parent.clone(), Body::ToolCallStart(Box::new(event)));
        if !questions.is_empty() {
            let question = Question { request_id: None, tool_call_id: call_id, questions };
            out.push_in(parent, Body::QuestionRequest(Box::new(question)));
        }
    }
}

/// Truncates a text to the length that is tracked.
pub(super) fn truncate(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TRACKED_TEXT_BYTES)]
}

/// Returns the diffs in the arguments of an edit.
pub(super) fn input_diffs(call: &ToolCall<Raw>, input: Json<'_>) -> Option<Vec<Diff<Raw>>> {
    let path = call.file_path.clone().unwrap_or_default();
    let text = |json: Json<'_>, name: &str| json.text(name).map(Raw::new);
    let diff = |json: Json<'_>| Diff {
        old_text: text(json, "old_string"),
        new_text: text(json, "new_string"),
        ..Diff::new(path.clone(), DiffScope::Hunk)
    };
    match call.tool_name {
        ToolName::Write => {
            let new_text = text(input, "content");
            Some(vec![Diff { new_text, ..Diff::new(path, DiffScope::File) }])
        }
        ToolName::Edit => {
            let edits = input.get("edits").filter(|e| e.kind() == Kind::Array);
            Some(match edits {
                Some(list) => list.items().take(MAX_LIST).map(diff).collect(),
                None => vec![diff(input)],
            })
        }
        ToolName::Notebook => {
            let new_text = text(input, "new_source");
            Some(vec![Diff { new_text, ..Diff::new(path, DiffScope::Hunk) }])
        }
        _ => None,
    }
}

/// Parses the questions of a call that asks the user.
pub(super) fn questions(input: Json<'_>) -> Vec<QuestionPart<Raw>> {
    let list = input.get("questions").filter(|q| q.kind() == Kind::Array);
    let text = |json: Json<'_>, name: &str| json.text(name).map(Raw::new);
    let option = |o: Json<'_>| {
        let label = text(o, "label").or_else(|| o.str().map(Raw::new))?;
        Some(QuestionOption { label, description: text(o, "description") })
    };
    let question = |q: Json<'_>| {
        let options = q.get("options").into_iter().flat_map(Json::items).take(MAX_QUESTIONS);
        Some(QuestionPart {
            question: text(q, "question")?,
            header: text(q, "header"),
            options: options.filter_map(option).collect(),
            multi_select: q.get("multiSelect").and_then(Json::bool) == Some(true),
            ..QuestionPart::default()
        })
    };
    list.into_iter().flat_map(Json::items).take(MAX_QUESTIONS).filter_map(question).collect()
}
