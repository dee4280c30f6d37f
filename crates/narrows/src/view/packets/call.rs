//! Packets of tool calls: one start with nothing but the name, then the known fields.

use super::input::raw_input;
use super::output::{RawOutput, raw_output, shown_output};
use super::{EmptyObject, PacketBody, TextContent};
use crate::model::event::ToolEvent;
use crate::model::tool::{
    Diff, Location, ToolCall, ToolKind, ToolName, ToolOutput, ToolStatus, TriState,
};
use crate::sanitize::Clean;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct CallBody<'a> {
    tool_call_id: &'a Clean,
    title: &'a str,
    tool_name: ToolName,
    kind: &'static str,
    status: ToolStatus,
    raw_input: RawInput,
    raw_output: Option<RawOutput<'a>>,
    content: Option<Vec<CallContent<'a>>>,
    locations: Option<Vec<CallLocation<'a>>>,
    #[serde(rename = "_meta")]
    meta: (),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RawInput {
    Object(Box<RawValue>),
    Empty(EmptyObject),
}

#[derive(Debug)]
enum CallContent<'a> {
    Content(TextContent<'a>),
    Diff { diff: &'a Diff, old: Option<&'a str>, new: &'a str },
}

#[derive(Debug, Serialize)]
struct CallLocation<'a> {
    path: &'a Clean,
    line: Option<u64>,
    #[serde(rename = "_meta")]
    meta: (),
}

impl Serialize for CallContent<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        match self {
            CallContent::Content(text) => {
                map.serialize_entry("type", "content")?;
                map.serialize_entry("content", text)?;
            }
            CallContent::Diff { diff, old, new } => {
                map.serialize_entry("type", "diff")?;
                map.serialize_entry("path", &diff.path)?;
                // An empty old text means a new file; an unknown one is omitted.
                if let Some(old) = old {
                    map.serialize_entry("oldText", old)?;
                }
                map.serialize_entry("newText", new)?;
            }
        }
        map.serialize_entry("_meta", &())?;
        map.end()
    }
}

/// The start of a call: its name and nothing else.
pub(super) fn start(tool: &ToolEvent) -> PacketBody<'_> {
    let c = &tool.call;
    PacketBody::Call(Box::new(CallBody {
        tool_call_id: &tool.id,
        title: tool_label(c),
        tool_name: tool_of(c),
        kind: kind_label(c),
        status: ToolStatus::Pending,
        raw_input: RawInput::Empty(EmptyObject {}),
        raw_output: None,
        content: None,
        locations: Some(Vec::new()),
        meta: (),
    }))
}

/// The progress packet after the start, if the first event of a call has more than its name.
pub(super) fn after_start(tool: &ToolEvent) -> Option<PacketBody<'_>> {
    let c = &tool.call;
    let is_set = |t: &Option<Clean>| t.as_ref().is_some_and(|t| !t.is_empty());
    let has_more = c.status.is_some_and(|s| s != ToolStatus::Pending)
        || c.input.is_some()
        || [&c.command, &c.file_path, &c.pattern].into_iter().any(is_set)
        || c.diffs.is_some()
        || c.todos.is_some()
        || c.locations.as_ref().is_some_and(|l| !l.is_empty());
    if has_more { progress(tool) } else { None }
}

/// Whether the event has the answer of a subagent.
pub(super) fn is_answer(tool: &ToolEvent) -> bool {
    tool.call.tool_name == ToolName::Task && tool.call.status == Some(ToolStatus::Completed)
}

/// The known fields of a call. Clients replace their state, so a packet that would remove something
/// is not sent.
pub(super) fn progress(tool: &ToolEvent) -> Option<PacketBody<'_>> {
    let c = &tool.call;
    let status = c.status.unwrap_or(ToolStatus::Pending);
    let ended = status.is_final();
    // Long after its end only the updated fields are known: a packet without output would empty the
    // card.
    if ended && c.output.is_none() {
        return None;
    }
    if c.is_todo && c.todos.as_ref().is_none_or(Vec::is_empty) {
        return None;
    }
    let raw_input = raw_input(c).map_or(RawInput::Empty(EmptyObject {}), RawInput::Object);
    let title = c.agent_title.as_deref().or(c.title.as_deref()).filter(|t| !t.is_empty());
    Some(PacketBody::Call(Box::new(CallBody {
        tool_call_id: &tool.id,
        title: title.unwrap_or_else(|| tool_label(c)),
        tool_name: tool_of(c),
        kind: kind_label(c),
        status,
        raw_input,
        raw_output: ended.then(|| raw_output(c, status)),
        content: content(c, ended),
        locations: c.locations.as_ref().map(|list| list.iter().map(location_body).collect()),
        meta: (),
    })))
}

fn location_body(l: &Location) -> CallLocation<'_> {
    CallLocation { path: &l.path, line: l.line, meta: () }
}

fn content<'a>(c: &'a ToolCall, ended: bool) -> Option<Vec<CallContent<'a>>> {
    let mut blocks = Vec::new();
    if ended {
        let text = shown_output(c);
        if !text.is_empty() {
            blocks.push(CallContent::Content(TextContent(text)));
        }
    }
    let is_new = c.is_new_file == Some(TriState::Yes);
    for (at, diff) in c.diffs.iter().flatten().enumerate() {
        // The texts of the call are those of its first file.
        let call_text = |text: &'a Option<Clean>| text.as_deref().filter(|_| at == 0);
        let old = diff.old_text.as_deref().or_else(|| call_text(&c.old_content));
        let old = old.or(is_new.then_some(""));
        let new = diff.new_text.as_deref().or_else(|| call_text(&c.new_content));
        blocks.push(CallContent::Diff { diff, old, new: new.unwrap_or_default() });
    }
    (!blocks.is_empty()).then_some(blocks)
}

/// The name of the tool, which is the title of a call at its start.
fn tool_label(c: &ToolCall) -> &str {
    let agent_name = || c.name.as_deref().or(c.agent_title.as_deref()).filter(|t| !t.is_empty());
    match tool_of(c) {
        ToolName::Glob => "glob",
        ToolName::Grep => "grep",
        ToolName::Read => "read",
        ToolName::Write => "write",
        ToolName::Edit => "edit",
        ToolName::Bash => "bash",
        ToolName::Task => "task",
        ToolName::TodoWrite => "todowrite",
        ToolName::WebFetch => "webfetch",
        ToolName::WebSearch => "websearch",
        ToolName::ApplyPatch => "apply_patch",
        ToolName::Skill => "skill",
        ToolName::List => "list",
        ToolName::Lsp => "lsp",
        ToolName::Question => "question",
        ToolName::Notebook => "notebook",
        ToolName::PlanMode => "plan_mode",
        ToolName::Mcp => agent_name().unwrap_or("mcp"),
        ToolName::Unknown => agent_name().unwrap_or("unknown"),
    }
}

/// The tool as these clients define it: a call that writes todos is a todo list, and nothing if it
/// has no list.
pub(super) fn tool_of(c: &ToolCall) -> ToolName {
    if c.tool_name == ToolName::TodoWrite && !c.is_todo { ToolName::Unknown } else { c.tool_name }
}

/// The kind as these clients define it: by the tool first.
pub(super) fn kind_of(c: &ToolCall) -> ToolKind {
    tool_of(c).kind().unwrap_or(c.kind)
}

/// The kinds that these clients know; `toolName` distinguishes the others.
fn kind_label(c: &ToolCall) -> &'static str {
    match kind_of(c) {
        ToolKind::Search if tool_of(c) == ToolName::WebSearch => "other",
        ToolKind::Search => "search",
        ToolKind::Read => "read",
        ToolKind::Execute => "execute",
        ToolKind::Edit => "edit",
        ToolKind::Task
        | ToolKind::Other
        | ToolKind::Delete
        | ToolKind::Move
        | ToolKind::Think
        | ToolKind::Fetch
        | ToolKind::SwitchMode => "other",
    }
}

/// The full output, if the event has it.
pub(super) fn full_output(c: &ToolCall) -> Option<&Clean> {
    match &c.output {
        Some(ToolOutput::Whole(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn literal(text: &'static str) -> Cow<'static, Clean> {
    Cow::Owned(Clean::literal(text))
}
