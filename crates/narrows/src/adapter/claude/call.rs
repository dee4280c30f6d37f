//! Calls: who they are, and what their arguments tell.

use super::Claude;
use crate::adapter::Yield;
use crate::adapter::input::{MAX_LIST, read_input, todo_list};
use crate::event::{Body, Question, QuestionOption, QuestionPart, ToolEvent};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;
use crate::tool::{Diff, Fresh, Output, Scope, ToolCall, ToolKind, ToolName, ToolStatus, by_name};

/// What the reader remembers of a call.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// The agent's own name of the tool.
    pub(super) name: Box<str>,
    pub(super) tool: Option<ToolName>,
    pub(super) description: Option<Box<str>>,
    /// What a call of the task tools is about.
    pub(super) task: Option<super::tasks::Change>,
}

impl Known {
    pub(super) fn identify(&mut self, name: &str) {
        if self.name.is_empty() {
            self.name = name.into();
            self.tool = by_name(name, None);
        }
    }

    /// A call that was not seen is what its result looks like.
    pub(super) fn identify_result(&mut self, value: Option<Json<'_>>) {
        let has = |name: &str| value.is_some_and(|v| v.get(name).is_some());
        if self.name.is_empty() && self.tool.is_none() {
            self.tool = if has("structuredPatch") || has("originalFile") {
                Some(if has("content") { ToolName::Write } else { ToolName::Edit })
            } else {
                None
            };
        }
    }

    /// Says who the call is.
    pub(super) fn tell(&self, call: &mut ToolCall<Raw>) {
        call.tool_name = self.tool.unwrap_or(ToolName::Unknown);
        call.kind = call.tool_name.kind().unwrap_or(ToolKind::Other);
        call.is_todo = call.tool_name == ToolName::TodoWrite;
    }
}

impl Claude {
    pub(super) fn call(&mut self, block: Json<'_>, parent: Option<Raw>, out: &mut Yield) {
        let name = block.text("name").unwrap_or_default();
        let id = match block.get("id").and_then(Json::scalar).filter(|id| !id.is_empty()) {
            Some(id) => id.into_owned(),
            None => format!("line-{}", self.line),
        };
        let input = block.get("input").filter(|i| i.kind() == Kind::Object);
        let (known, first) = self.calls.open(&id);
        known.identify(&name);
        let mut call: ToolCall<Raw> = ToolCall::unknown();
        known.tell(&mut call);
        // A tool that nobody knows is called by its own name.
        if matches!(call.tool_name, ToolName::Unknown | ToolName::Mcp) {
            call.agent_title = Some(Raw::new(&*name)).filter(|n| !n.is_empty());
        }
        call.name = Some(Raw::new(name));
        call.status = Some(ToolStatus::InProgress);
        read_input(&mut call, input, block.get("input"));
        known.description = call.said.as_ref().map(|s| short(s.peek()).into());
        call.diffs = input.and_then(|i| diffs(&call, i));
        match call.tool_name {
            ToolName::Task => {
                let prompt = input.and_then(|i| i.text("prompt"));
                if let Some(prompt) = &prompt {
                    self.tasks.ask(prompt, &id);
                }
                // The card of a task shows what was asked.
                call.output = prompt.map(|p| Output::Whole(Raw::new(p)));
            }
            ToolName::TodoWrite => {
                let list = input.and_then(|i| i.get("todos"));
                call.todos = list.filter(|l| l.kind() == Kind::Array).map(todo_list);
                known.task = super::tasks::Change::read(&known.name, input);
            }
            _ => {}
        }
        let asks = call.tool_name == ToolName::Question;
        let questions = input.filter(|_| asks).map(questions).unwrap_or_default();
        let call_id = Raw::new(id);
        let event = ToolEvent {
            id: call_id.clone(),
            call,
            fresh: Fresh::default(),
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

/// What is remembered of a text.
pub(super) fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(1024)]
}

/// What an edit is about to do.
pub(super) fn diffs(call: &ToolCall<Raw>, input: Json<'_>) -> Option<Vec<Diff<Raw>>> {
    let path = call.file_path.clone().unwrap_or_default();
    let text = |json: Json<'_>, name: &str| json.text(name).map(Raw::new);
    let one = |json: Json<'_>| Diff {
        old_text: text(json, "old_string"),
        new_text: text(json, "new_string"),
        ..Diff::of(path.clone(), Scope::Hunk)
    };
    match call.tool_name {
        ToolName::Write => {
            let new_text = text(input, "content");
            Some(vec![Diff { new_text, ..Diff::of(path, Scope::File) }])
        }
        ToolName::Edit => {
            let edits = input.get("edits").filter(|e| e.kind() == Kind::Array);
            Some(match edits {
                Some(list) => list.items().take(MAX_LIST).map(one).collect(),
                None => vec![one(input)],
            })
        }
        ToolName::Notebook => {
            let new_text = text(input, "new_source");
            Some(vec![Diff { new_text, ..Diff::of(path, Scope::Hunk) }])
        }
        _ => None,
    }
}

/// The questions of a call that asks the user.
pub(super) fn questions(input: Json<'_>) -> Vec<QuestionPart<Raw>> {
    let list = input.get("questions").filter(|q| q.kind() == Kind::Array);
    let text = |json: Json<'_>, name: &str| json.text(name).map(Raw::new);
    let option = |o: Json<'_>| {
        let label = text(o, "label").or_else(|| o.str().map(Raw::new))?;
        Some(QuestionOption { label, description: text(o, "description") })
    };
    let part = |q: Json<'_>| {
        let options = q.get("options").into_iter().flat_map(Json::items).take(64);
        Some(QuestionPart {
            question: text(q, "question")?,
            header: text(q, "header"),
            options: options.filter_map(option).collect(),
            multi_select: q.get("multiSelect").and_then(Json::bool) == Some(true),
            ..QuestionPart::default()
        })
    };
    list.into_iter().flat_map(Json::items).take(64).filter_map(part).collect()
}
