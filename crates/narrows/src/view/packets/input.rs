//! The arguments of a call: those of the agent, and the fields that every client expects, as text.

use super::call::{full_output, kind_of, tool_of};
use super::todo_status;
use crate::json::{Index, Json, Kind, to_writer};
use crate::model::tool::{Todo, ToolCall, ToolKind, ToolName};
use crate::sanitize::Clean;
use serde::Serialize;
use serde_json::value::RawValue;

/// Arguments that clients read as text: one of another type is omitted.
const TEXT_ARGUMENTS: [&str; 13] = [
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

pub(super) fn todo_item(todo: &Todo) -> TodoItem<'_> {
    TodoItem {
        content: &todo.content,
        status: todo_status(todo.status),
        active_form: &todo.active_form,
        priority: todo.priority.as_ref(),
    }
}

/// The arguments as a JSON object; none if it cannot be built.
pub(super) fn raw_input(c: &ToolCall) -> Option<Box<RawValue>> {
    let mut index = Index::default();
    let doc = c.input.as_ref().and_then(|tree| index.read(tree.json()).ok());
    let agent_input = doc.as_ref().map(|doc| doc.root()).filter(|root| root.kind() == Kind::Object);
    let mut object = ObjectWriter { out: vec![b'{'], narrows_fields: Vec::new() };
    add_expected_fields(c, agent_input, &mut object);
    for (key, value) in agent_input.into_iter().flat_map(Json::fields) {
        let is_mistyped = TEXT_ARGUMENTS.contains(&key) && value.kind() != Kind::String;
        // Clients treat a call with todos as one that writes the list.
        if object.narrows_fields.contains(&key) || is_mistyped || key == "todos" {
            continue;
        }
        object.write_key(key);
        let is_string = value.kind() == Kind::String;
        object.out.extend(is_string.then_some(b'"'));
        object.out.extend_from_slice(value.raw().as_bytes());
        object.out.extend(is_string.then_some(b'"'));
    }
    object.out.push(b'}');
    RawValue::from_string(String::from_utf8(object.out).ok()?).ok()
}

/// A JSON object under construction.
struct ObjectWriter {
    out: Vec<u8>,
    /// The fields that narrows set.
    narrows_fields: Vec<&'static str>,
}

impl ObjectWriter {
    fn write_key(&mut self, key: &str) {
        if self.out.len() > 1 {
            self.out.push(b',');
        }
        // The key is printed as the agent wrote it, with its escapes.
        self.out.push(b'"');
        self.out.extend_from_slice(key.as_bytes());
        self.out.extend_from_slice(b"\":");
    }

    fn add(&mut self, key: &'static str, value: &(impl Serialize + ?Sized)) {
        self.write_key(key);
        self.narrows_fields.push(key);
        if to_writer(&mut self.out, value).is_err() {
            self.out.extend_from_slice(b"null");
        }
    }
}

fn add_expected_fields(c: &ToolCall, agent_input: Option<Json<'_>>, object: &mut ObjectWriter) {
    let text = |t: &Option<Clean>| t.as_deref().unwrap_or_default().to_owned();
    let agent_or_known = |names: &[&str], known: &Option<Clean>| {
        let agent = agent_input.and_then(|g| names.iter().find_map(|name| g.text(name)));
        agent.map_or_else(|| text(known), std::borrow::Cow::into_owned)
    };
    match kind_of(c) {
        ToolKind::Execute => {
            object.add("command", &text(&c.command));
            object.add("description", &agent_or_known(&["description"], &c.description));
        }
        ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move => {
            object.add("filePath", &agent_or_known(&["filePath", "file_path"], &c.file_path));
        }
        ToolKind::Search => object.add("pattern", &text(&c.pattern)),
        _ => {}
    }
    match tool_of(c) {
        ToolName::Write => object.add("content", &agent_or_known(&["content"], &c.new_content)),
        ToolName::ApplyPatch => {
            object.add(
                "patchText",
                &agent_or_known(&["patchText", "patch_text", "patch", "input"], &None),
            );
        }
        ToolName::Task => {
            object.add("prompt", &agent_or_known(&["prompt"], &full_output(c).cloned()));
            object.add("description", &agent_or_known(&["description"], &c.description));
            object.add("subagent_type", &agent_or_known(&["subagent_type"], &c.subagent_type));
        }
        ToolName::TodoWrite => {
            let todos: Vec<_> = c.todos.iter().flatten().map(todo_item).collect();
            object.add("todos", &todos);
        }
        _ if kind_of(c) == ToolKind::Edit => {
            object.add("old_string", &agent_or_known(&["old_string", "oldString"], &c.old_content));
            object.add("new_string", &agent_or_known(&["new_string", "newString"], &c.new_content));
        }
        _ => {}
    }
}
