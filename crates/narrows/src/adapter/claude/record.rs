//! Reads the fields of one record. The live stream and the session file spell some differently.

use crate::json::{Json, Kind};
use crate::model::time::Time;
use std::borrow::Cow;

/// The fields of a record. Absent and null are the same.
#[derive(Debug, Default)]
pub(super) struct ClaudeRecord<'a> {
    pub(super) kind: Option<Cow<'a, str>>,
    pub(super) subtype: Option<Cow<'a, str>>,
    pub(super) uuid: Option<Json<'a>>,
    pub(super) time: Option<Time>,
    pub(super) session: Option<Json<'a>>,
    /// The record came from a session file.
    pub(super) is_history: bool,
    /// The call whose subagent wrote it; in the live stream only.
    pub(super) parent: Option<Json<'a>>,
    /// A subagent wrote it; in session files only.
    pub(super) is_sidechain: bool,
    pub(super) agent: Option<Json<'a>>,
    pub(super) cwd: Option<Json<'a>>,
    pub(super) version: Option<Json<'a>>,
    pub(super) mode: Option<Json<'a>>,
    pub(super) message: RecordMessage<'a>,
    /// The structured result of a call, next to the text for the model.
    pub(super) structured_result: Option<Json<'a>>,
    /// The program wrote it, not the user.
    pub(super) is_synthetic: bool,
    /// It is the summary of a compaction.
    pub(super) is_summary: bool,
    /// The request to the model failed.
    pub(super) is_api_error: bool,
    pub(super) error: Option<Json<'a>>,
    pub(super) request: Option<Json<'a>>,
    pub(super) decision: Option<Json<'a>>,
    pub(super) decisions: Option<Json<'a>>,
    /// The output of a slash command in the model's role.
    pub(super) is_command_output: bool,
    /// The origin of a prompt.
    pub(super) origin: Option<Json<'a>>,
    pub(super) attachment: Option<Json<'a>>,
    pub(super) event: Option<Json<'a>>,
}

impl<'a> ClaudeRecord<'a> {
    pub(super) fn read(object: Json<'a>) -> Self {
        let mut r = ClaudeRecord::default();
        for (key, value) in object.fields() {
            if value.is_null() {
                continue;
            }
            // Matches the length first, which distinguishes most keys without comparing them.
            match (key.len(), key) {
                (3, "cwd") => r.cwd = Some(value),
                (4, "type") => r.kind = value.str(),
                (4, "uuid") => r.uuid = Some(value),
                (5, "error") => r.error = Some(value),
                (5, "event") => r.event = Some(value),
                (6, "isMeta") => r.is_synthetic |= value.bool() == Some(true),
                (6, "origin") => r.origin = Some(value),
                (7, "message") => r.message = RecordMessage::read(value),
                (7, "version") => r.version = Some(value),
                (7, "subtype") => r.subtype = value.str(),
                (7, "agentId") => r.agent = Some(value),
                (8, "agent_id") => r.agent = Some(value),
                (9, "sessionId") => (r.session, r.is_history) = (Some(value), true),
                (9, "timestamp") => r.time = value.str().and_then(|t| Time::parse(&t)),
                (9, "requestId") => r.request = Some(value),
                (10, "session_id") => r.session = Some(value),
                (10, "request_id") => r.request = Some(value),
                (10, "attachment") => r.attachment = Some(value),
                (11, "isSidechain") => r.is_sidechain = value.bool() == Some(true),
                (11, "isSynthetic") => r.is_synthetic |= value.bool() == Some(true),
                (13, "toolUseResult") => r.structured_result = Some(value),
                (14, "permissionMode") => r.mode = Some(value),
                (15, "tool_use_result") => r.structured_result = Some(value),
                (16, "isCompactSummary") => r.is_summary = value.bool() == Some(true),
                (16, "tool_result_meta") => r.decisions = Some(value),
                (17, "isApiErrorMessage") => r.is_api_error = value.bool() == Some(true),
                (18, "parent_tool_use_id") => r.parent = Some(value),
                (18, "permissionDecision") => r.decision = Some(value),
                (19, "claude_code_version") => r.version = Some(value),
                (20, "is_api_error_message") => r.is_api_error = value.bool() == Some(true),
                (20, "local_command_source") => r.is_command_output = true,
                _ => {}
            }
        }
        r
    }

    /// The content of the message: a list, a string, or the single flat block of older versions.
    pub(super) fn blocks(&self) -> ContentBlocks<'a> {
        let Some(message) = self.message.json else { return ContentBlocks::None };
        if message.kind() == Kind::String {
            return ContentBlocks::Text(message);
        }
        let is_flat = self.message.kind.is_some_and(|t| {
            matches!(t.raw(), "text" | "thinking" | "tool_use" | "tool_result" | "image")
        });
        match self.message.content {
            _ if is_flat => ContentBlocks::One(message),
            Some(content) if content.kind() == Kind::Array => ContentBlocks::List(content),
            Some(content) if content.kind() == Kind::String => ContentBlocks::Text(content),
            Some(content) if content.kind() == Kind::Object => ContentBlocks::One(content),
            _ => ContentBlocks::None,
        }
    }
}

/// The fields of a message.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordMessage<'a> {
    json: Option<Json<'a>>,
    kind: Option<Json<'a>>,
    content: Option<Json<'a>>,
    pub(super) id: Option<Json<'a>>,
    pub(super) model: Option<Json<'a>>,
    pub(super) usage: Option<Json<'a>>,
    pub(super) stop_reason: Option<Json<'a>>,
}

impl<'a> RecordMessage<'a> {
    fn read(message: Json<'a>) -> Self {
        let mut m = RecordMessage { json: Some(message), ..RecordMessage::default() };
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

    /// Whether the program wrote it in the model's role.
    pub(super) fn is_synthetic(&self) -> bool {
        self.model.is_some_and(|m| m.raw() == "<synthetic>")
    }
}

/// The content of a message.
#[derive(Debug, Clone, Copy)]
pub(super) enum ContentBlocks<'a> {
    None,
    Text(Json<'a>),
    One(Json<'a>),
    List(Json<'a>),
}

impl<'a> ContentBlocks<'a> {
    /// The blocks; none for a plain string.
    pub(super) fn iter(self) -> impl Iterator<Item = Json<'a>> {
        let single = if let ContentBlocks::One(block) = self { Some(block) } else { None };
        let list = if let ContentBlocks::List(list) = self { Some(list) } else { None };
        let list = list.into_iter().flat_map(Json::items).filter(|b| b.kind() == Kind::Object);
        single.into_iter().chain(list)
    }

    /// The number of tool results among the blocks.
    pub(super) fn tool_results(self) -> usize {
        self.iter().filter(|b| b.text("type").as_deref() == Some("tool_result")).count()
    }
}
