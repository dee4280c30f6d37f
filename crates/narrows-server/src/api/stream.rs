//! The messages of streams, as the OpenAPI document tells them.

use narrows_engine::live::View;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// What is followed.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct StreamQuery {
    /// The view; items, if nothing is said.
    #[param(inline)]
    pub view: Option<View>,
    /// The cursor to go on from, `end` for what is new, nothing for the start. `Last-Event-ID` beats it.
    pub after: Option<String>,
    /// Only what events of these types give, commas between; not for activity.
    pub types: Option<String>,
    /// Activity: leave out calls with `false`.
    #[serde(rename = "includeToolCalls")]
    pub include_tool_calls: Option<bool>,
    /// Activity: leave out results with `false`.
    #[serde(rename = "includeToolResults")]
    pub include_tool_results: Option<bool>,
    /// Activity: leave out what the agent says with `false`.
    #[serde(rename = "includeOutput")]
    pub include_output: Option<bool>,
    /// Activity: leave out files with `false`.
    #[serde(rename = "includeFileChanges")]
    pub include_file_changes: Option<bool>,
    /// Activity: leave out progress with `false`.
    #[serde(rename = "includeProgress")]
    pub include_progress: Option<bool>,
}

/// The tools that activity tells apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolWord {
    Read,
    Write,
    Edit,
    Bash,
    Grep,
    Glob,
    WebFetch,
    WebSearch,
    Other,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileWord {
    Created,
    Modified,
    Deleted,
}

/// Whose activity it is, and where it stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Origin {
    /// The session's label, or its id.
    pub work_order_id: String,
    /// The run; the session's id without one.
    pub run_id: String,
    /// The event it comes from, and which of its messages this is: no other has the same.
    pub event_id: String,
    /// Its number in the log.
    pub seq: u64,
    /// When it was, where that is known.
    pub timestamp: Option<String>,
    /// The call of the subagent that did this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent_tool_call_id: Option<String>,
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The cursor, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// The agent calls a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentToolCallEvent {
    /// Where it stands.
    #[serde(flatten)]
    pub origin: Origin,
    /// The call.
    pub tool_use_id: String,
    /// The tool.
    pub tool: ToolWord,
    /// The agent's own name of it.
    pub name: String,
    /// The arguments.
    #[schema(value_type = Object)]
    pub input: Value,
}

/// A call has ended.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentToolResultEvent {
    /// Where it stands.
    #[serde(flatten)]
    pub origin: Origin,
    /// The call.
    pub tool_use_id: String,
    /// Whether it did what it should.
    pub success: bool,
    /// The first 500 characters of the result.
    pub content_preview: String,
    /// Its length in characters.
    pub content_length: u64,
    /// How long it took, where that is known.
    pub duration_ms: Option<u64>,
}

/// The agent has said or thought something.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentOutputEvent {
    /// Where it stands.
    #[serde(flatten)]
    pub origin: Origin,
    /// What it said.
    pub content: String,
    /// Whether it was a thought.
    pub thinking: bool,
}

/// A file has changed.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangedEvent {
    /// Where it stands.
    #[serde(flatten)]
    pub origin: Origin,
    /// The file, relative to the session's root.
    pub path: String,
    /// What happened to it.
    pub action: FileWord,
    /// Its new size, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
}

/// How far a turn is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ProgressUpdateEvent {
    /// Where it stands.
    #[serde(flatten)]
    pub origin: Origin,
    /// From 0 to 100; 100 only at the end.
    #[schema(maximum = 100)]
    pub percentage: u64,
    /// What is being done.
    pub current_phase: String,
    /// Calls so far.
    pub tool_call_count: u64,
    /// Seconds so far.
    pub elapsed_seconds: u64,
    /// Seconds that are left, where that can be guessed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated_remaining_seconds: Option<u64>,
    /// Which turn.
    pub turn: u64,
}

/// A message without anything of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct Control {
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The cursor that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
    /// Why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// A subscription has begun.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubscriptionConfirmed {
    /// Its name.
    pub subscription: String,
    /// The session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The session's label, or its id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub work_order_id: Option<String>,
    /// The view.
    pub view: String,
    /// Where it begins.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Codes of a socket's errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ErrorCode {
    InvalidMessage,
    ParseError,
    NotFound,
    InternalError,
}

/// Something was wrong with a message; the socket stays open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ErrorMessage {
    /// What kind.
    pub code: ErrorCode,
    /// What it was.
    pub message: String,
    /// The subscription that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
}

/// Changes of items that one event made.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct ChangesFrame {
    /// The event's number.
    pub seq: u64,
    /// `put`, `set`, `append`, `remove`, `info`.
    #[schema(value_type = Vec<crate::api::item::Change>)]
    pub changes: Vec<Value>,
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The cursor, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// Text that is not in the log yet, because more of it may show that it must be hidden. It is told when
/// its source pauses, to be shown beside the items until the next frame that has a cursor as its id, or
/// `changes`, `cursor` or `preview` on a socket: then it is taken back. Nothing may be kept of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct PreviewFrame {
    /// `put` of an item that is about to come, or `append` to one; none takes back what was shown.
    #[schema(value_type = Vec<crate::api::item::Change>)]
    pub changes: Vec<Value>,
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
    /// The cursor behind which it is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

/// A session of the list, new or changed.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct SessionFrame {
    /// The session, whole.
    pub session: crate::api::Session,
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
}

/// A session of the list that was deleted.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RemovedFrame {
    /// The session.
    pub session_id: String,
    /// The subscription, on a socket.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subscription: Option<String>,
}

/// What a server sends over a socket. Events and packets of the views of these names come too.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
#[expect(missing_docs, reason = "each holds what it is")]
pub enum ServerMessage {
    AgentToolCall(AgentToolCallEvent),
    AgentToolResult(AgentToolResultEvent),
    AgentOutput(AgentOutputEvent),
    FileChanged(FileChangedEvent),
    ProgressUpdate(ProgressUpdateEvent),
    SubscriptionConfirmed(SubscriptionConfirmed),
    Unsubscribed(Control),
    Pong,
    /// An agent was given an answer.
    #[serde(rename_all = "camelCase")]
    Answered {
        /// The session.
        session_id: String,
        /// The question.
        request_id: String,
    },
    Error(ErrorMessage),
    Ready(Control),
    Cursor(Control),
    Reset(Control),
    Ended(Control),
    Closed(Control),
    Changes(ChangesFrame),
    Preview(PreviewFrame),
    Session(Box<SessionFrame>),
    Removed(RemovedFrame),
}

/// What a stream of server-sent events says, in its `data`.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(untagged)]
pub enum StreamFrame {
    /// A message as over a socket.
    Message(Box<ServerMessage>),
    /// An event or packet of the views of these names; packets are as `Packet` tells.
    #[schema(value_type = Object)]
    Event(Value),
}
