//! One record of Claude Code: what it prints and what it keeps name the same things differently.

use crate::json::{Json, Kind};
use crate::time::Time;
use std::borrow::Cow;

/// The fields of a record. Absent and null are the same.
#[derive(Debug, Default)]
pub(super) struct Record<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) subtype: Option<Cow<'a, str>>,
    pub(super) uuid: Option<Json<'a>>,
    pub(super) time: Option<Time>,
    pub(super) session: Option<Json<'a>>,
    /// It was kept in a file, not printed.
    pub(super) kept: bool,
    /// The call whose subagent this is of; printed, not kept.
    pub(super) parent: Option<Json<'a>>,
    /// Of a subagent; kept, not printed.
    pub(super) sidechain: bool,
    pub(super) agent: Option<Json<'a>>,
    pub(super) cwd: Option<Json<'a>>,
    pub(super) version: Option<Json<'a>>,
    pub(super) mode: Option<Json<'a>>,
    pub(super) message: Message<'a>,
    /// The result of a call as the program has it, beside the text for the model.
    pub(super) structured: Option<Json<'a>>,
    /// The program wrote it, not the user.
    pub(super) internal: bool,
    /// It replaces what came before.
    pub(super) summary: bool,
    /// The model could not be asked.
    pub(super) failed: bool,
    pub(super) error: Option<Json<'a>>,
    pub(super) request: Option<Json<'a>>,
    pub(super) decision: Option<Json<'a>>,
    pub(super) decisions: Option<Json<'a>>,
    /// The answer of a slash command, printed as if the model had said it.
    pub(super) command: bool,
    /// Where a prompt comes from.
    pub(super) origin: Option<Json<'a>>,
    pub(super) attachment: Option<Json<'a>>,
    pub(super) event: Option<Json<'a>>,
}

impl<'a> Record<'a> {
    pub(super) fn read(object: Json<'a>) -> Self {
        let mut r = Record::default();
        for (key, value) in object.fields() {
            if value.is_null() {
                continue;
            }
            // By length first: most keys are told apart without looking at them.
            match (key.len(), key) {
                (3, "cwd") => r.cwd = Some(value),
                (4, "type") => r.kind = value.str(),
                (4, "uuid") => r.uuid = Some(value),
                (5, "error") => r.error = Some(value),
                (5, "event") => r.event = Some(value),
                (6, "isMeta") => r.internal |= value.bool() == Some(true),
                (6, "origin") => r.origin = Some(value),
                (7, "message") => r.message = Message::read(value),
                (7, "version") => r.version = Some(value),
                (7, "subtype") => r.subtype = value.str(),
                (7, "agentId") => r.agent = Some(value),
                (8, "agent_id") => r.agent = Some(value),
                (9, "sessionId") => (r.session, r.kept) = (Some(value), true),
                (9, "timestamp") => r.time = value.str().and_then(|t| Time::parse(&t)),
                (9, "requestId") => r.request = Some(value),
                (10, "session_id") => r.session = Some(value),
                (10, "request_id") => r.request = Some(value),
                (10, "attachment") => r.attachment = Some(value),
                (11, "isSidechain") => r.sidechain = value.bool() == Some(true),
                (11, "isSynthetic") => r.internal |= value.bool() == Some(true),
                (13, "toolUseResult") => r.structured = Some(value),
                (14, "permissionMode") => r.mode = Some(value),
                (15, "tool_use_result") => r.structured = Some(value),
                (16, "isCompactSummary") => r.summary = value.bool() == Some(true),
                (16, "tool_result_meta") => r.decisions = Some(value),
                (17, "isApiErrorMessage") => r.failed = value.bool() == Some(true),
                (18, "parent_tool_use_id") => r.parent = Some(value),
                (18, "permissionDecision") => r.decision = Some(value),
                (19, "claude_code_version") => r.version = Some(value),
                (20, "is_api_error_message") => r.failed = value.bool() == Some(true),
                (20, "local_command_source") => r.command = true,
                _ => {}
            }
        }
        r
    }

    /// The blocks of the message: a list, a string, or the one flat block of older programs.
    pub(super) fn blocks(&self) -> Blocks<'a> {
        let Some(message) = self.message.whole else { return Blocks::None };
        if message.kind() == Kind::String {
            return Blocks::Text(message);
        }
        let flat = self.message.kind.is_some_and(|t| {
            matches!(t.raw(), "text" | "thinking" | "tool_use" | "tool_result" | "image")
        });
        match self.message.content {
            _ if flat => Blocks::One(message),
            Some(content) if content.kind() == Kind::Array => Blocks::List(content),
            Some(content) if content.kind() == Kind::String => Blocks::Text(content),
            Some(content) if content.kind() == Kind::Object => Blocks::One(content),
            _ => Blocks::None,
        }
    }
}

/// The parts of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Message<'a> {
    whole: Option<Json<'a>>,
    kind: Option<Json<'a>>,
    content: Option<Json<'a>>,
    pub(super) id: Option<Json<'a>>,
    pub(super) model: Option<Json<'a>>,
    pub(super) usage: Option<Json<'a>>,
    pub(super) stop_reason: Option<Json<'a>>,
}

impl<'a> Message<'a> {
    fn read(message: Json<'a>) -> Self {
        let mut m = Message { whole: Some(message), ..Message::default() };
        for (key, value) in message.fields() {
            let slot = match (key.len(), key) {
                (2, "id") => &mut m.id,
                (4, "type") => &mut m.kind,
                (5, "model") => &mut m.model,
                (5, "usage") => &mut m.usage,
                (11, "stop_reason") => &mut m.stop_reason,
                (7, "content") => &mut m.content,
                _ => continue,
            };
            *slot = Some(value).filter(|v| !v.is_null());
        }
        m
    }

    /// The program said it in the model's place.
    pub(super) fn is_synthetic(&self) -> bool {
        self.model.is_some_and(|m| m.raw() == "<synthetic>")
    }
}

/// The content of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum Blocks<'a> {
    None,
    Text(Json<'a>),
    One(Json<'a>),
    List(Json<'a>),
}

impl<'a> Blocks<'a> {
    /// The blocks; none of a plain string.
    pub(super) fn each(self) -> impl Iterator<Item = Json<'a>> {
        let one = if let Blocks::One(block) = self { Some(block) } else { None };
        let list = if let Blocks::List(list) = self { Some(list) } else { None };
        let list = list.into_iter().flat_map(Json::items).filter(|b| b.kind() == Kind::Object);
        one.into_iter().chain(list)
    }

    /// How many results of calls are among them.
    pub(super) fn results(self) -> usize {
        self.each().filter(|b| b.text("type").as_deref() == Some("tool_result")).count()
    }
}
