//! The arguments of a call: the agent's own, and the fields that every front end looks for, as text.

use super::call::{kind_of, tool_of, whole};
use super::todo_status;
use crate::json::{Index, Json, Kind, print};
use crate::model::tool::{Todo, ToolCall, ToolKind, ToolName};
use crate::sanitize::Clean;
use serde::Serialize;
use serde_json::value::RawValue;

/// Arguments that front ends read as text: one of another type is left out.
const TEXTS: [&str; 13] = [
    "command",
    "description",
    "file_path",
    "filePath",
    "path",
    "pattern",
    "content",
    "old_string",
    "new_string",
    "patchText",
    "prompt",
    "subagent_type",
    "subagentType",
];

/// One entry of a todo list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TodoItem<'a> {
    content: &'a Clean,
    status: &'static str,
    active_form: &'a Clean,
    #[serde(skip_serializing_if = "Option::is_none")]
    priority: Option<&'a Clean>,
}

pub(super) fn todo(todo: &Todo) -> TodoItem<'_> {
    TodoItem {
        content: &todo.content,
        status: todo_status(todo.status),
        active_form: &todo.active_form,
        priority: todo.priority.as_ref(),
    }
}

/// The object, or none while nothing is known.
pub(super) fn raw_input(c: &ToolCall) -> Option<Box<RawValue>> {
    let mut index = Index::default();
    let doc = c.input.as_ref().and_then(|tree| index.read(tree.json()).ok());
    let given = doc.as_ref().map(|doc| doc.root()).filter(|root| root.kind() == Kind::Object);
    let mut object = Object { out: vec![b'{'], own: Vec::new() };
    own_fields(c, given, &mut object);
    for (key, value) in given.into_iter().flat_map(Json::fields) {
        let mistyped = TEXTS.contains(&key) && value.kind() != Kind::String;
        // A list of todos makes a call one that writes them.
        if object.own.contains(&key) || mistyped || key == "todos" {
            continue;
        }
        object.key(key);
        let quote = value.kind() == Kind::String;
        object.out.extend(quote.then_some(b'"'));
        object.out.extend_from_slice(value.raw().as_bytes());
        object.out.extend(quote.then_some(b'"'));
    }
    object.out.push(b'}');
    RawValue::from_string(String::from_utf8(object.out).ok()?).ok()
}

/// An object that is being printed.
struct Object {
    out: Vec<u8>,
    /// The fields that narrows gave.
    own: Vec<&'static str>,
}

impl Object {
    fn key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        // A key stands here as the agent wrote it, escapes and all.
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn add(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        self.key(key);
        self.own.push(key);
        if print(&mut self.out, value).is_err() {
            self.out.extend_from_slice(b"null");
        }
    }
}

fn own_fields(c: &ToolCall, given: Option<Json<'_>>, object: &mut Object) {
    let text = |t: &Option<Clean>| t.as_deref().unwrap_or_default().to_owned();
    let own = |names: &[&str], known: &Option<Clean>| {
        let agent = given.and_then(|g| names.iter().find_map(|name| g.text(name)));
        agent.map_or_else(|| text(known), std::borrow::Cow::into_owned)
    };
    match kind_of(c) {
        ToolKind::Execute => {
            object.add("command", &text(&c.command));
            object.add("description", &own(&["description"], &c.description));
        }
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
            object.add("filePath", &own(&["filePath", "file_path"], &c.file_path));
        }
        ToolKind::Search => object.add("pattern", &text(&c.pattern)),
        _ => {}
    }
    match tool_of(c) {
        ToolName::Write => object.add("content", &own(&["content"], &c.new_content)),
        ToolName::ApplyPatch => {
            object.add("patchText", &own(&["patchText", "patch_text", "patch", "input"], &None));
        }
        ToolName::Task => {
            object.add("prompt", &own(&["prompt"], &whole(c).cloned()));
            object.add("description", &own(&["description"], &c.description));
            object.add("subagent_type", &own(&["subagent_type"], &c.subagent_type));
        }
        ToolName::TodoWrite => {
            let todos: Vec<_> = c.todos.iter().flatten().map(todo).collect();
            object.add("todos", &todos);
        }
        _ if kind_of(c) == ToolKind::Edit => {
            object.add("old_string", &own(&["old_string", "oldString"], &c.old_content));
            object.add("new_string", &own(&["new_string", "newString"], &c.new_content));
        }
        _ => {}
    }
}
