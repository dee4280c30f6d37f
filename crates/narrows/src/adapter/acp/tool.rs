//! Tool calls: who they are, and what one packet says of them.

use super::Acp;
use super::diffs::{diffs, images, is_new, locations};
use super::fields::Fields;
use super::tool_output::{self as given, Given};
use crate::adapter::Yield;
use crate::adapter::input::{read_input, todo_list};
use crate::event::{Body, ToolEvent};
use crate::json::{Json, Kind};
use crate::sanitize::{Raw, Tree};
use crate::tool::{
    Fresh, Todo, ToolCall, ToolKind, ToolName, ToolStatus, agrees, by_name, by_notes, by_shape,
};

/// In which kind of packet something is said of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Said {
    Start,
    Progress,
    /// Beside a question for leave, which repeats the call with less than is known.
    ForLeave,
}

/// What the adapter remembers of a call: who it is.
#[derive(Debug, Default)]
pub(super) struct Known {
    pub(super) tool: Option<ToolName>,
    pub(super) kind: Option<ToolKind>,
    /// The agent named the tool: its shape does not count.
    pub(super) named: bool,
    /// A better file path than the title is known.
    pub(super) path: bool,
    /// It searches for something.
    pub(super) searches: bool,
    /// The agent's description, to tell it from output.
    pub(super) said: Option<Box<str>>,
}

impl Acp {
    /// Yields what a packet says of a call; returns the call's id.
    pub(super) fn tool(&mut self, f: &Fields<'_>, said: Said, out: &mut Yield) -> String {
        let id = match f.call_id().and_then(Json::scalar).filter(|id| !id.is_empty()) {
            Some(id) => own_id(&id).to_owned(),
            None => format!("line-{}", self.line),
        };
        if let Some(done) = self.compacts(&id, f, out) {
            return done;
        }
        let (known, first) = self.calls.open(&id);
        let meta = Meta::read(f.meta());
        let input = f.input().filter(|i| i.kind() == Kind::Object);
        let word = f.tool_kind().and_then(Json::str);
        let kind = word.as_deref().and_then(ToolKind::parse);
        if kind.is_some() && (known.kind.is_none() || known.kind == Some(ToolKind::Other)) {
            known.kind = kind;
        }
        let own_name = explicit_name(f, &meta, &id);
        identify(known, own_name.as_deref(), f, input, &meta);

        let mut call: ToolCall<Raw> = ToolCall::unknown();
        call.tool_name = known.tool.unwrap_or(ToolName::Unknown);
        call.kind = call.tool_name.kind().or(known.kind).unwrap_or(ToolKind::Other);
        // Gemini does not say what its list holds: then the call is all there is to see.
        let bare = id.contains("__call_") && f.input().is_none();
        call.is_todo = call.tool_name == ToolName::TodoWrite && !bare;
        call.raw_kind = word.filter(|_| kind.is_none()).map(Raw::new);
        call.name = own_name.map(Raw::new);
        call.status = f.status().and_then(Json::str).and_then(|s| ToolStatus::parse(&s));
        known.searches |= input.is_some_and(|i| i.get("pattern").is_some());
        // A permission request repeats the call: the next stage decides what of it is new.
        let about = said == Said::ForLeave && !first;
        call.agent_title = f.title().and_then(Json::str).filter(|t| !t.is_empty()).map(Raw::new);
        read_input(&mut call, input, f.input());
        if let Some(said) = &call.said {
            known.said = Some(said.peek().into());
        }
        let content = f.content().filter(|c| c.kind() == Kind::Array);
        let output = Given { call: &call, known, meta: &meta, content, output: f.output(), input };
        let given = given::read(&output);
        call.said = call.said.or(given.said);
        call.output = given.output;
        call.error = given.error;
        call.exit_code = given.exit_code;
        call.task_output = given.task_output;
        let notes = f.output().and_then(|o| o.get("metadata"));
        read_notes(&mut call, notes, &meta);
        call.todos = todos(&call, input, notes);
        // Gemini's diffs, and those of a write, are whole files.
        let whole = call.tool_name == ToolName::Write || id.contains("__call_");
        call.diffs = diffs(&call, content, input, notes, whole);
        call.is_new_file = is_new(&call, notes, &meta, content);
        call.images = images(content, out);
        call.locations = locations(f.locations());
        command_of_title(&mut call, f, &id);
        if about {
            let diff = call.diffs.iter().flatten().map(|d| &d.path).find(|p| !p.is_empty());
            call.file_path = call.file_path.or(diff.cloned());
            call.status = None;
        }
        file_path(&mut call, known, f.title());
        // Arguments and output are sent whole each time that there is more of them.
        let grows = said != Said::ForLeave && !call.status.is_some_and(ToolStatus::is_final);
        let parent = meta.parent.and_then(Json::str).map(Raw::new);
        let event = Box::new(ToolEvent {
            id: Raw::new(id.as_str()),
            call,
            fresh: Fresh::default(),
            grew_from: None,
            first,
            grows,
            repeats: about,
        });
        out.push_in(
            parent,
            match said {
                Said::Start => Body::ToolCallStart(event),
                Said::Progress | Said::ForLeave => Body::ToolCallProgress(event),
            },
        );
        id
    }
}

/// The id of a call without what is put before it and is another when the session is loaded (kimi:
/// `turn/call`).
fn own_id(id: &str) -> &str {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    match id.rsplit_once('/') {
        Some((_, own)) if own.len() >= 16 && own.bytes().all(plain) => own,
        _ => id,
    }
}

/// What agents put into `_meta`.
#[derive(Debug, Default)]
pub(super) struct Meta<'a> {
    tool_name: Option<Json<'a>>,
    parent: Option<Json<'a>>,
    /// Claude Code's own result of the call.
    pub(super) response: Option<Json<'a>>,
    pub(super) terminal_delta: Option<Json<'a>>,
    pub(super) terminal_exit: Option<Json<'a>>,
    mcp: bool,
}

impl<'a> Meta<'a> {
    fn read(meta: Option<Json<'a>>) -> Self {
        let mut m = Meta::default();
        for (key, value) in meta.into_iter().flat_map(Json::fields) {
            match key {
                "toolName" => m.tool_name = Some(value),
                "claudeCode" => {
                    m.tool_name = value.get("toolName").or(m.tool_name);
                    m.parent = value.get("parentToolUseId");
                    m.response = value.get("toolResponse");
                }
                "terminal_output_delta" => m.terminal_delta = value.get("data"),
                "terminal_exit" => m.terminal_exit = value.get("exit_code"),
                "is_mcp_tool_call" => m.mcp = value.bool() == Some(true),
                _ => {}
            }
        }
        m
    }
}

/// The tool's name where the agent tells it: a field, `_meta`, or the front of gemini's ids.
fn explicit_name(f: &Fields<'_>, meta: &Meta<'_>, id: &str) -> Option<String> {
    let told = [f.tool_name(), f.name(), meta.tool_name];
    let told = told.into_iter().flatten().filter_map(Json::str).find(|n| !n.is_empty());
    match told {
        Some(name) => Some(name.into_owned()),
        None => id.split_once("__call_").map(|(name, _)| name.to_owned()),
    }
}

/// Unknown may become known; known never changes.
fn identify(
    known: &mut Known,
    own_name: Option<&str>,
    f: &Fields<'_>,
    input: Option<Json<'_>>,
    meta: &Meta<'_>,
) {
    if known.tool.is_some() {
        return;
    }
    if let Some(name) = own_name {
        known.named = true;
        known.tool = by_name(name, known.kind);
        return;
    }
    if meta.mcp {
        known.tool = Some(ToolName::Mcp);
        return;
    }
    if known.named {
        return;
    }
    let title = f.title().and_then(Json::str);
    let pattern = input.and_then(|i| i.text("pattern"));
    let titled = title
        .as_deref()
        .filter(|t| pattern.as_deref() != Some(*t))
        .and_then(|t| by_name(t, known.kind))
        .filter(|tool| agrees(*tool, known.kind));
    let notes = f.output().and_then(|o| o.get("metadata"));
    let searched = known.searches.then(|| by_notes(notes)).flatten();
    let shaped = by_shape(input, notes).or(searched);
    // A read, an edit and a write share a shape that grows: believe the kind.
    let shaped = shaped.filter(|tool| match (tool, known.kind) {
        (ToolName::Read, Some(kind)) => kind == ToolKind::Read,
        _ => true,
    });
    known.tool = titled.or(shaped).or_else(|| by_kind(known.kind, title.as_deref(), f, input));
}

/// The tool of a call that neither has a name nor the shape of one: codex edits files without saying
/// by what, opencode calls the tools of servers by both their names.
fn by_kind(
    kind: Option<ToolKind>,
    title: Option<&str>,
    f: &Fields<'_>,
    input: Option<Json<'_>>,
) -> Option<ToolName> {
    match kind? {
        ToolKind::Edit => {
            let is_diff = |c: &Json<'_>| c.text("type").as_deref() == Some("diff");
            let blocks = f.content().into_iter().flat_map(Json::items);
            let mut diffs = blocks.filter(is_diff).peekable();
            diffs.peek()?;
            let new = diffs.all(|d| d.any(&["oldText", "old_text"]).is_none_or(Json::is_null));
            Some(if new { ToolName::Write } else { ToolName::Edit })
        }
        ToolKind::Read => input?.get("path").map(|_| ToolName::Read),
        // Who leaves the mode for plans presents one.
        ToolKind::SwitchMode => input?.text("plan").map(|_| ToolName::PlanMode),
        ToolKind::Other => title.filter(|t| is_of_server(t)).map(|_| ToolName::Mcp),
        _ => None,
    }
}

/// Whether a title is the name of a server and of its tool, as `server_tool`.
fn is_of_server(title: &str) -> bool {
    let plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    let parts = title.split_once('_');
    // That a server of codex starts is no call of it.
    parts.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        && title.bytes().all(plain)
        && !title.ends_with("__startup")
}

fn read_notes(call: &mut ToolCall<Raw>, notes: Option<Json<'_>>, meta: &Meta<'_>) {
    let get = |name: &str| notes.and_then(|n| n.get(name));
    call.truncated = get("truncated").and_then(Json::bool);
    call.count = get("count").or_else(|| get("matches")).and_then(Json::u64);
    let checks = get("diagnostics").filter(|d| !d.is_empty());
    call.diagnostics = checks.map(|d| Tree::checked(d.raw()));
    if call.tool_name == ToolName::Task {
        let child = get("sessionId").or_else(|| meta.response.and_then(|r| r.get("agentId")));
        call.child_session_id = child.and_then(Json::str).map(Raw::new);
    }
}

fn todos(
    call: &ToolCall<Raw>,
    input: Option<Json<'_>>,
    notes: Option<Json<'_>>,
) -> Option<Vec<Todo<Raw>>> {
    if !call.is_todo {
        return None;
    }
    let given = [(input, "todos"), (input, "plan"), (notes, "todos")];
    let mut lists = given.iter().filter_map(|(json, name)| json.and_then(|j| j.get(name)));
    lists.find(|list| list.kind() == Kind::Array).map(todo_list)
}

/// Gemini sends no arguments: the title of a running command is the command.
fn command_of_title(call: &mut ToolCall<Raw>, f: &Fields<'_>, id: &str) {
    let gemini = id.contains("__call_") && call.tool_name == ToolName::Bash && f.input().is_none();
    if gemini && call.command.is_none() {
        // A replayed call has the tool's display name there instead.
        call.command = call.agent_title.clone().filter(|t| t.peek() != "Shell");
    }
}

/// The file of a call: the arguments, then a diff, a place, and last the title.
fn file_path(call: &mut ToolCall<Raw>, known: &mut Known, title: Option<Json<'_>>) {
    let files =
        matches!(call.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    if call.file_path.is_none() && !known.path && files {
        let diff = call.diffs.iter().flatten().map(|d| &d.path).find(|p| !p.is_empty());
        let place = call.locations.iter().flatten().map(|l| &l.path).next();
        call.file_path = diff.or(place).cloned();
        if call.file_path.is_none() {
            let title = title.and_then(Json::str).filter(|t| looks_like_path(t));
            call.file_path = title.map(Raw::new);
            return;
        }
    }
    known.path |= call.file_path.is_some();
}

fn looks_like_path(title: &str) -> bool {
    title.contains(['/', '\\']) && !title.contains(char::is_whitespace) && !title.contains("://")
}
