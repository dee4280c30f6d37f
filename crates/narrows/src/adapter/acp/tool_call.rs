//! Tool calls: their identity, and the content of one packet about them.

use super::AcpParser;
use super::diffs::{diffs, images, is_new_file, locations};
use super::fields::MessageFields;
use super::tool_output::{OutputSource, parse_output};
use crate::adapter::output::AdapterOutput;
use crate::adapter::tool_input::{read_input, todo_list};
use crate::json::{Json, Kind};
use crate::model::event::{Body, ToolEvent};
use crate::model::tool::{
    ChangedFields, Todo, ToolCall, ToolKind, ToolName, ToolStatus, kind_agrees,
    search_tool_by_metadata, tool_by_input, tool_by_name,
};
use crate::sanitize::{Raw, Tree};

/// The kind of packet that describes a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolUpdate {
    Start,
    Progress,
    /// Part of a permission request, which repeats the call with fewer fields or with other ones.
    PermissionRequest,
}

/// The identity of a call: which tool it uses, and what is known about it.
#[derive(Debug, Default)]
pub(super) struct ToolIdentity {
    pub(super) tool: Option<ToolName>,
    pub(super) kind: Option<ToolKind>,
    /// The agent named the tool: the shape of the arguments is ignored.
    pub(super) has_name: bool,
    /// A better file path than the title is known.
    pub(super) has_path: bool,
    /// An argument is a search pattern.
    pub(super) has_pattern: bool,
    /// The agent's description, which must not be mistaken for output.
    pub(super) description: Option<Box<str>>,
}

impl AcpParser {
    /// Emits the content of a packet about a call; returns the call's id.
    pub(super) fn tool_call(
        &mut self,
        f: &MessageFields<'_>,
        update: ToolUpdate,
        out: &mut AdapterOutput,
    ) -> String {
        let id = match f.call_id().and_then(Json::scalar).filter(|id| !id.is_empty()) {
            Some(id) => stable_id(&id).to_owned(),
            None => format!("line-{}", self.line),
        };
        if let Some(id) = self.compaction_call(&id, f, out) {
            return id;
        }
        let (known, first) = self.tool_calls.get_or_insert(&id);
        let meta = ToolMeta::read(f.meta());
        let input = f.input().filter(|i| i.kind() == Kind::Object);
        let kind_text = f.tool_kind().and_then(Json::str);
        let kind = kind_text.as_deref().and_then(ToolKind::parse);
        if kind.is_some() && (known.kind.is_none() || known.kind == Some(ToolKind::Other)) {
            known.kind = kind;
        }
        let name = explicit_name(f, &meta, &id);
        identify(known, name.as_deref(), f, input, &meta);

        let mut call: ToolCall<Raw> = ToolCall::unknown();
        call.tool_name = known.tool.unwrap_or(ToolName::Unknown);
        call.kind = call.tool_name.kind().or(known.kind).unwrap_or(ToolKind::Other);
        // Gemini does not send the entries of its todo list: the call itself is shown instead.
        let is_bare = id.contains("__call_") && f.input().is_none();
        call.is_todo = call.tool_name == ToolName::TodoWrite && !is_bare;
        call.raw_kind = kind_text.filter(|_| kind.is_none()).map(Raw::new);
        call.name = name.map(Raw::new);
        call.status = f.status().and_then(Json::str).and_then(|s| ToolStatus::parse(&s));
        known.has_pattern |= input.is_some_and(|i| i.get("pattern").is_some());
        // A permission request repeats the call: the next stage decides which fields are new.
        let is_repeat = update == ToolUpdate::PermissionRequest && !first;
        call.agent_title = f.title().and_then(Json::str).filter(|t| !t.is_empty()).map(Raw::new);
        read_input(&mut call, input, f.input());
        if let Some(description) = &call.said {
            known.description = Some(description.peek().into());
        }
        let content = f.content().filter(|c| c.kind() == Kind::Array);
        let output = f.output();
        let source = OutputSource { call: &call, known, meta: &meta, content, output, input };
        let parsed = parse_output(&source);
        call.said = call.said.or(parsed.description);
        call.output = parsed.output;
        call.error = parsed.error;
        call.exit_code = parsed.exit_code;
        call.task_output = parsed.task_output;
        let metadata = f.output().and_then(|o| o.get("metadata"));
        read_metadata(&mut call, metadata, &meta);
        call.todos = todos(&call, input, metadata);
        // The diffs of Gemini and of a write contain the whole file.
        let is_whole_file = call.tool_name == ToolName::Write || id.contains("__call_");
        call.diffs = diffs(&call, content, input, metadata, is_whole_file);
        call.is_new_file = is_new_file(&call, metadata, &meta, content);
        call.images = images(content, out);
        call.locations = locations(f.locations());
        command_from_title(&mut call, f, &id);
        if is_repeat {
            let diff = call.diffs.iter().flatten().map(|d| &d.path).find(|p| !p.is_empty());
            call.file_path = call.file_path.or(diff.cloned());
            call.status = None;
        }
        file_path(&mut call, known, f.title());
        // Each update repeats the arguments and the output in full.
        let grows = update != ToolUpdate::PermissionRequest
            && !call.status.is_some_and(ToolStatus::is_final);
        let parent = meta.parent.and_then(Json::str).map(Raw::new);
        let event = Box::new(ToolEvent {
            id: Raw::new(id.as_str()),
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first,
            grows,
            repeats: is_repeat,
        });
        out.push_in(
            parent,
            match update {
                ToolUpdate::Start => Body::ToolCallStart(event),
                ToolUpdate::Progress | ToolUpdate::PermissionRequest => {
                    Body::ToolCallProgress(event)
                }
            },
        );
        id
    }
}

/// Removes a prefix of the call id that changes when the session is loaded again (Kimi:
/// `turn/call`).
fn stable_id(id: &str) -> &str {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    match id.rsplit_once('/') {
        Some((_, suffix)) if suffix.len() >= 16 && suffix.bytes().all(is_plain) => suffix,
        _ => id,
    }
}

/// The `_meta` object of a tool call.
#[derive(Debug, Default)]
pub(super) struct ToolMeta<'a> {
    tool_name: Option<Json<'a>>,
    parent: Option<Json<'a>>,
    /// Claude Code's structured result of the call.
    pub(super) claude_result: Option<Json<'a>>,
    pub(super) terminal_delta: Option<Json<'a>>,
    pub(super) terminal_exit: Option<Json<'a>>,
    is_mcp: bool,
}

impl<'a> ToolMeta<'a> {
    fn read(meta: Option<Json<'a>>) -> Self {
        let mut m = ToolMeta::default();
        for (key, value) in meta.into_iter().flat_map(Json::fields) {
            match key {
                "toolName" => m.tool_name = Some(value),
                "claudeCode" => {
                    m.tool_name = value.get("toolName").or(m.tool_name);
                    m.parent = value.get("parentToolUseId");
                    m.claude_result = value.get("toolResponse");
                }
                "terminal_output_delta" => m.terminal_delta = value.get("data"),
                "terminal_exit" => m.terminal_exit = value.get("exit_code"),
                "is_mcp_tool_call" => m.is_mcp = value.bool() == Some(true),
                _ => {}
            }
        }
        m
    }
}

/// Returns the tool's name if the agent sends it: in a field, in `_meta`, or as the prefix of
/// Gemini's ids.
fn explicit_name(f: &MessageFields<'_>, meta: &ToolMeta<'_>, id: &str) -> Option<String> {
    let names = [f.tool_name(), f.name(), meta.tool_name];
    let name = names.into_iter().flatten().filter_map(Json::str).find(|n| !n.is_empty());
    match name {
        Some(name) => Some(name.into_owned()),
        None => id.split_once("__call_").map(|(name, _)| name.to_owned()),
    }
}

/// Identifies the tool of a call. A known tool never changes.
fn identify(
    known: &mut ToolIdentity,
    name: Option<&str>,
    f: &MessageFields<'_>,
    input: Option<Json<'_>>,
    meta: &ToolMeta<'_>,
) {
    if known.tool.is_some() {
        return;
    }
    if let Some(name) = name {
        known.has_name = true;
        known.tool = tool_by_name(name, known.kind);
        return;
    }
    if meta.is_mcp {
        known.tool = Some(ToolName::Mcp);
        return;
    }
    if known.has_name {
        return;
    }
    let title = f.title().and_then(Json::str);
    let pattern = input.and_then(|i| i.text("pattern"));
    let from_title = title
        .as_deref()
        .filter(|t| pattern.as_deref() != Some(*t))
        .and_then(|t| tool_by_name(t, known.kind))
        .filter(|tool| kind_agrees(*tool, known.kind));
    let metadata = f.output().and_then(|o| o.get("metadata"));
    let from_metadata = known.has_pattern.then(|| search_tool_by_metadata(metadata)).flatten();
    let from_shape = tool_by_input(input, metadata).or(from_metadata);
    // The growing arguments of a read, an edit and a write look alike at first: trust the kind.
    let from_shape = from_shape.filter(|tool| match (tool, known.kind) {
        (ToolName::Read, Some(kind)) => kind == ToolKind::Read,
        _ => true,
    });
    known.tool =
        from_title.or(from_shape).or_else(|| by_kind(known.kind, title.as_deref(), f, input));
}

/// Returns the tool of a call without a name and without recognizable arguments: Codex edits files
/// without naming a tool, opencode titles MCP calls `server_tool`.
fn by_kind(
    kind: Option<ToolKind>,
    title: Option<&str>,
    f: &MessageFields<'_>,
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
        // Leaving plan mode presents a plan.
        ToolKind::SwitchMode => input?.text("plan").map(|_| ToolName::PlanMode),
        ToolKind::Other => title.filter(|t| is_mcp_title(t)).map(|_| ToolName::Mcp),
        _ => None,
    }
}

/// Whether a title is `server_tool`: an MCP server and its tool.
fn is_mcp_title(title: &str) -> bool {
    let is_plain = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
    let parts = title.split_once('_');
    // Codex reports the startup of a server like a call of it.
    parts.is_some_and(|(server, tool)| !server.is_empty() && !tool.is_empty())
        && title.bytes().all(is_plain)
        && !title.ends_with("__startup")
}

/// Reads the metadata of the output.
fn read_metadata(call: &mut ToolCall<Raw>, metadata: Option<Json<'_>>, meta: &ToolMeta<'_>) {
    let get = |name: &str| metadata.and_then(|m| m.get(name));
    call.truncated = get("truncated").and_then(Json::bool);
    call.count = get("count").or_else(|| get("matches")).and_then(Json::u64);
    let diagnostics = get("diagnostics").filter(|d| !d.is_empty());
    call.diagnostics = diagnostics.map(|d| Tree::checked(d.raw()));
    if call.tool_name == ToolName::Task {
        let child = get("sessionId").or_else(|| meta.claude_result.and_then(|r| r.get("agentId")));
        call.child_session_id = child.and_then(Json::str).map(Raw::new);
    }
}

fn todos(
    call: &ToolCall<Raw>,
    input: Option<Json<'_>>,
    metadata: Option<Json<'_>>,
) -> Option<Vec<Todo<Raw>>> {
    if !call.is_todo {
        return None;
    }
    let candidates = [(input, "todos"), (input, "plan"), (metadata, "todos")];
    let mut lists = candidates.iter().filter_map(|(json, name)| json.and_then(|j| j.get(name)));
    lists.find(|list| list.kind() == Kind::Array).map(todo_list)
}

/// Takes the command from the title: Gemini sends no arguments.
fn command_from_title(call: &mut ToolCall<Raw>, f: &MessageFields<'_>, id: &str) {
    let is_gemini =
        id.contains("__call_") && call.tool_name == ToolName::Bash && f.input().is_none();
    if is_gemini && call.command.is_none() {
        // The title of a replayed call is the tool's display name instead.
        call.command = call.agent_title.clone().filter(|t| t.peek() != "Shell");
    }
}

/// Determines the file of a call: from the arguments, a diff, a location, and last the title.
fn file_path(call: &mut ToolCall<Raw>, known: &mut ToolIdentity, title: Option<Json<'_>>) {
    let is_file_tool =
        matches!(call.kind, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move);
    if call.file_path.is_none() && !known.has_path && is_file_tool {
        let diff = call.diffs.iter().flatten().map(|d| &d.path).find(|p| !p.is_empty());
        let location = call.locations.iter().flatten().map(|l| &l.path).next();
        call.file_path = diff.or(location).cloned();
        if call.file_path.is_none() {
            let title = title.and_then(Json::str).filter(|t| looks_like_path(t));
            call.file_path = title.map(Raw::new);
            return;
        }
    }
    known.has_path |= call.file_path.is_some();
}

fn looks_like_path(title: &str) -> bool {
    title.contains(['/', '\\']) && !title.contains(char::is_whitespace) && !title.contains("://")
}
