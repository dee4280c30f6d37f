//! Packets of calls: one start with nothing but the name, then what is known.

use super::input::raw_input;
use super::output::{RawOutput, raw_output, text_of};
use super::{Empty, Shape, Text};
use crate::model::event::ToolEvent;
use crate::model::tool::{Diff, Location, Output, ToolCall, ToolKind, ToolName, ToolStatus, Tri};
use crate::sanitize::Clean;
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Call<'a> {
    tool_call_id: &'a Clean,
    title: &'a str,
    tool_name: ToolName,
    kind: &'static str,
    status: ToolStatus,
    raw_input: RawInput,
    raw_output: Option<RawOutput<'a>>,
    content: Option<Vec<Block<'a>>>,
    locations: Option<Vec<Place<'a>>>,
    #[serde(rename = "_meta")]
    meta: (),
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum RawInput {
    Given(Box<RawValue>),
    Empty(Empty),
}

#[derive(Debug)]
enum Block<'a> {
    Content(Text<'a>),
    Diff { diff: &'a Diff, old: Option<&'a str>, new: &'a str },
}

#[derive(Debug, Serialize)]
struct Place<'a> {
    path: &'a Clean,
    line: Option<u64>,
    #[serde(rename = "_meta")]
    meta: (),
}

impl Serialize for Block<'_> {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        let mut map = s.serialize_map(None)?;
        match self {
            Block::Content(text) => {
                map.serialize_entry("type", "content")?;
                map.serialize_entry("content", text)?;
            }
            Block::Diff { diff, old, new } => {
                map.serialize_entry("type", "diff")?;
                map.serialize_entry("path", &diff.path)?;
                // An empty old text means a new file; one that nobody told is left out.
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

/// The announcement of a call: who it is, and nothing else.
pub(super) fn start(tool: &ToolEvent) -> Shape<'_> {
    let c = &tool.call;
    Shape::Call(Box::new(Call {
        tool_call_id: &tool.id,
        title: name_of(c),
        tool_name: tool_of(c),
        kind: word(c),
        status: ToolStatus::Pending,
        raw_input: RawInput::Empty(Empty {}),
        raw_output: None,
        content: None,
        locations: Some(Vec::new()),
        meta: (),
    }))
}

/// What the first event of a call tells beyond its name.
pub(super) fn after_start(tool: &ToolEvent) -> Option<Shape<'_>> {
    let c = &tool.call;
    let told = |t: &Option<Clean>| t.as_ref().is_some_and(|t| !t.is_empty());
    let more = c.status.is_some_and(|s| s != ToolStatus::Pending)
        || c.input.is_some()
        || [&c.command, &c.file_path, &c.pattern].into_iter().any(told)
        || c.diffs.is_some()
        || c.todos.is_some()
        || c.locations.as_ref().is_some_and(|l| !l.is_empty());
    if more { progress(tool) } else { None }
}

/// Whether this tells what a subagent answered.
pub(super) fn is_answer(tool: &ToolEvent) -> bool {
    tool.call.tool_name == ToolName::Task && tool.call.status == Some(ToolStatus::Completed)
}

/// What is known of a call by now. Front ends replace what they have, so that a packet which would
/// take something away is not told.
pub(super) fn progress(tool: &ToolEvent) -> Option<Shape<'_>> {
    let c = &tool.call;
    let status = c.status.unwrap_or(ToolStatus::Pending);
    let ended = status.is_final();
    // Long after its end only what the event brings is known: without output it would empty the card.
    if ended && c.output.is_none() {
        return None;
    }
    if c.is_todo && c.todos.as_ref().is_none_or(Vec::is_empty) {
        return None;
    }
    let raw_input = raw_input(c).map_or(RawInput::Empty(Empty {}), RawInput::Given);
    let title = c.agent_title.as_deref().or(c.title.as_deref()).filter(|t| !t.is_empty());
    Some(Shape::Call(Box::new(Call {
        tool_call_id: &tool.id,
        title: title.unwrap_or_else(|| name_of(c)),
        tool_name: tool_of(c),
        kind: word(c),
        status,
        raw_input,
        raw_output: ended.then(|| raw_output(c, status)),
        content: content(c, ended),
        locations: c.locations.as_ref().map(|list| list.iter().map(place).collect()),
        meta: (),
    })))
}

fn place(l: &Location) -> Place<'_> {
    Place { path: &l.path, line: l.line, meta: () }
}

fn content<'a>(c: &'a ToolCall, ended: bool) -> Option<Vec<Block<'a>>> {
    let mut blocks = Vec::new();
    if ended {
        let text = text_of(c);
        if !text.is_empty() {
            blocks.push(Block::Content(Text(text)));
        }
    }
    let is_new = c.is_new_file == Some(Tri::Yes);
    for (at, diff) in c.diffs.iter().flatten().enumerate() {
        // The texts of the call are those of its first file.
        let of_call = |text: &'a Option<Clean>| text.as_deref().filter(|_| at == 0);
        let old = diff.old_text.as_deref().or_else(|| of_call(&c.old_content));
        let old = old.or(is_new.then_some(""));
        let new = diff.new_text.as_deref().or_else(|| of_call(&c.new_content));
        blocks.push(Block::Diff { diff, old, new: new.unwrap_or_default() });
    }
    (!blocks.is_empty()).then_some(blocks)
}

/// The name of the tool, which is the title of a call that begins.
fn name_of(c: &ToolCall) -> &str {
    let own = || c.name.as_deref().or(c.agent_title.as_deref()).filter(|t| !t.is_empty());
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
        ToolName::Mcp => own().unwrap_or("mcp"),
        ToolName::Unknown => own().unwrap_or("unknown"),
    }
}

/// The tool as these front ends have it: for them a call that writes todos is its list, and nothing
/// where no list is told.
pub(super) fn tool_of(c: &ToolCall) -> ToolName {
    if c.tool_name == ToolName::TodoWrite && !c.is_todo { ToolName::Unknown } else { c.tool_name }
}

/// What a call does: these front ends go by the name of the tool first.
pub(super) fn kind_of(c: &ToolCall) -> ToolKind {
    tool_of(c).kind().unwrap_or(c.kind)
}

/// The kinds that these front ends know; `toolName` tells the others apart.
fn word(c: &ToolCall) -> &'static str {
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

/// The whole output that an event tells.
pub(super) fn whole(c: &ToolCall) -> Option<&Clean> {
    match &c.output {
        Some(Output::Whole(text)) => Some(text),
        _ => None,
    }
}

pub(super) fn owned(text: &'static str) -> Cow<'static, Clean> {
    Cow::Owned(Clean::literal(text))
}
