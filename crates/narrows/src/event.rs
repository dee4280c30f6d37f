//! One canonical fact of a session.
//!
//! [`Event`] is generic over the stage of its text: adapters make `Event<Raw>`, everything after
//! the sanitizer takes `Event` (= `Event<Clean>`). [`Body`] is closed and matched without a
//! catch-all: a new kind must be thought about everywhere.

use crate::id::EventId;
use crate::sanitize::{Clean, Tree};
use crate::time::Time;
use crate::tool::{Fresh, Image, ToolCall, ToolStatus};
use serde::Serialize;

/// One fact, in the agent's order.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<T = Clean> {
    /// Set by the pipeline.
    pub id: EventId,
    /// Where the text that this is a piece of began; the event itself for everything else.
    pub began: EventId,
    /// When, if the source or the caller told.
    pub time: Option<Time>,
    /// The call in which a subagent did this.
    pub parent: Option<T>,
    /// What happened.
    pub body: Body<T>,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub enum Body<T = Clean> {
    /// Somebody asked something.
    UserMessage(Message<T>),
    /// Part of the agent's answer.
    TextChunk(Chunk<T>),
    /// Part of the agent's thinking.
    ThinkingChunk(Chunk<T>),
    /// A call began.
    ToolCallStart(Box<ToolEvent<T>>),
    /// Something new of a call.
    ToolCallProgress(Box<ToolEvent<T>>),
    /// The agent's plan, whole.
    PlanUpdate(Plan<T>),
    /// The agent has answered the prompt.
    PromptResponse(Box<Response<T>>),
    /// Something was made that a person may want to open.
    ArtifactCreated(Box<Artifact<T>>),
    /// A file of the session changed.
    FileChanged(Box<FileChange<T>>),
    /// The agent asks leave for a call.
    PermissionRequest(Box<Ask<T>>),
    /// Somebody gave or refused it.
    PermissionAnswer(Box<Answer<T>>),
    /// What is known about the session.
    SessionInfo(Box<Info<T>>),
    /// How full the context is, and what it cost so far.
    Usage(Gauge),
    /// Something the user should know that nobody said.
    Notice(Note<T>),
    /// Something failed.
    Error(Box<Failure<T>>),
    /// A kind that nobody modelled.
    Unknown(Unknown<T>),
    /// A line that could not be read.
    Malformed(Malformed),
}

/// What somebody asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message<T = Clean> {
    /// What was typed.
    pub text: T,
    /// Pictures sent along.
    pub images: Vec<Image>,
    /// Who reports it.
    pub origin: Origin,
    /// Pieces with the same id are one message.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
}

/// Who reports a prompt: an agent may repeat what its client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Origin {
    Client,
    Agent,
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chunk<T = Clean> {
    /// The piece.
    pub text: T,
    /// Pictures in the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Pieces with the same id are one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// The whole text at once: it replaces what was streamed of it.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not")]
    pub whole: bool,
}

/// A tool call's event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub struct ToolEvent<T = Clean> {
    /// The call.
    #[serde(rename = "toolCallId")]
    pub id: T,
    /// What is known of it.
    #[serde(flatten)]
    pub call: ToolCall<T>,
    /// What of that is new.
    #[serde(skip)]
    pub fresh: Fresh,
    /// Where the new part of the output begins, when it only grew.
    #[serde(skip)]
    pub grew_from: Option<usize>,
    /// Whether this is the first event of the call.
    #[serde(skip)]
    pub first: bool,
}

/// The agent's plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Plan<T = Clean> {
    /// Its entries, in order.
    pub entries: Vec<PlanEntry<T>>,
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlanEntry<T = Clean> {
    /// What is to be done.
    pub content: T,
    /// How far it is.
    pub status: ToolStatus,
    /// How much it matters.
    pub priority: Option<T>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Response<T = Clean> {
    /// Why the agent stopped.
    pub stop_reason: Option<T>,
    /// What the turn used.
    pub usage: Option<Usage>,
    /// What it cost, as the agent reports it.
    pub cost_usd: Option<f64>,
    /// From prompt to answer.
    pub duration_ms: Option<u64>,
}

/// Tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub cached_read_tokens: Option<u64>,
    pub cached_write_tokens: Option<u64>,
    pub thought_tokens: Option<u64>,
}

/// How full the context is.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Gauge {
    /// Tokens in the context.
    pub used: Option<u64>,
    /// Tokens it can hold.
    pub size: Option<u64>,
    /// What the session cost so far, as the agent reports it.
    pub cost_usd: Option<f64>,
}

/// Something to open. Its fields keep the names of the packets they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Artifact<T = Clean> {
    /// The artifact.
    pub artifact: ArtifactInfo<T>,
}

/// What an artifact is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactInfo<T = Clean> {
    /// Its id.
    pub id: T,
    /// `file`, `image`, `web_app`, `nextjs_app` or the agent's own word.
    pub r#type: T,
    /// Its name.
    pub name: T,
    /// Relative to the session root.
    pub path: T,
    /// Where it can be looked at.
    pub preview_url: Option<T>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange<T = Clean> {
    /// Relative to the session root.
    pub path: T,
    /// What happened to it.
    pub action: FileAction,
    /// Its new size, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The call that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileAction {
    Created,
    Modified,
    Deleted,
}

/// A question for leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Ask<T = Clean> {
    /// The question.
    pub request_id: T,
    /// The call it is about.
    pub tool_call_id: T,
    /// The agent's words.
    pub title: Option<T>,
    /// The answers on offer.
    pub options: Vec<Choice<T>>,
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Choice<T = Clean> {
    /// Its id.
    pub option_id: T,
    /// Its words.
    pub name: T,
    /// `allow_once`, `allow_always`, `reject_once`, `reject_always`.
    pub kind: T,
}

/// An answer to a question for leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<T = Clean> {
    /// The question.
    pub request_id: T,
    /// The call it was about.
    pub tool_call_id: T,
    /// What was decided.
    pub decision: Decision,
    /// The chosen option.
    pub option_id: Option<T>,
    /// Its words.
    pub option: Option<T>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Decision {
    Allowed,
    Rejected,
    Cancelled,
}

/// What is known about the session. An absent field leaves what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Info<T = Clean> {
    /// The agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<T>,
    /// Its version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<T>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<T>,
    /// The mode, as `plan` or `yolo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<T>,
    /// What the session is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<T>,
    /// The agent's own word for what it is doing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<T>,
    /// The working directory: `.` when it is the session root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<T>,
    /// The agent's own id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<T>,
    /// Commands on offer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Command<T>>>,
}

impl<T> Default for Info<T> {
    fn default() -> Self {
        Info {
            agent: None,
            version: None,
            model: None,
            mode: None,
            title: None,
            status: None,
            cwd: None,
            native_id: None,
            commands: None,
        }
    }
}

/// One command on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command<T = Clean> {
    /// What to type.
    pub name: T,
    /// What it does.
    pub description: Option<T>,
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Note<T = Clean> {
    /// `interrupted`, `internal`, `compaction` …
    pub kind: T,
    /// The words.
    pub text: T,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub struct Failure<T = Clean> {
    /// What, in words.
    pub message: T,
    /// A number or a word, as the source has it.
    pub code: Option<Tree<T>>,
    /// More about it.
    pub details: Option<Tree<T>>,
    /// Whether trying again may help; none when nobody knows.
    pub retryable: Option<bool>,
}

/// A kind that nobody modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub struct Unknown<T = Clean> {
    /// Its own name.
    pub kind: T,
    /// Everything it said.
    pub tree: Option<Tree<T>>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Malformed {
    /// What is wrong with it.
    pub reason: &'static str,
    /// Where.
    pub position: Position,
    /// How long the line is.
    pub length: u64,
}

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 0.
    pub column: u64,
    /// The byte in the source, from 0.
    pub offset: u64,
}

/// An event as a log holds it and a view prints it.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row<'a> {
    r#type: &'static str,
    seq: u64,
    session_id: &'a str,
    id: EventId,
    timestamp: Option<&'a Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<&'a Clean>,
    #[serde(flatten)]
    body: &'a Body,
}

impl<'a> Row<'a> {
    /// The event under its number in the log of `session`, narrows' own id.
    pub fn new(seq: u64, session: &'a str, event: &'a Event) -> Self {
        Row {
            r#type: event.body.kind(),
            seq,
            session_id: session,
            id: event.id,
            timestamp: event.time.as_ref(),
            parent_tool_call_id: event.parent.as_ref(),
            body: &event.body,
        }
    }
}

impl<T> Body<T> {
    /// The event's `type` in JSON.
    pub fn kind(&self) -> &'static str {
        match self {
            Body::UserMessage(_) => "user_message",
            Body::TextChunk(_) => "text_chunk",
            Body::ThinkingChunk(_) => "thinking_chunk",
            Body::ToolCallStart(_) => "tool_call_start",
            Body::ToolCallProgress(_) => "tool_call_progress",
            Body::PlanUpdate(_) => "plan_update",
            Body::PromptResponse(_) => "prompt_response",
            Body::ArtifactCreated(_) => "artifact_created",
            Body::FileChanged(_) => "file_changed",
            Body::PermissionRequest(_) => "permission_request",
            Body::PermissionAnswer(_) => "permission_answer",
            Body::SessionInfo(_) => "session_info",
            Body::Usage(_) => "usage",
            Body::Notice(_) => "notice",
            Body::Error(_) => "error",
            Body::Unknown(_) => "unknown",
            Body::Malformed(_) => "malformed",
        }
    }

    /// Whether a text that streams is over when this comes.
    ///
    /// What merely happens beside the text (a running call's output, usage, the plan) is not in
    /// every form of a session, so it must not split the text.
    pub fn ends_text(&self) -> bool {
        match self {
            Body::ToolCallProgress(call) => call.first,
            Body::UserMessage(_)
            | Body::TextChunk(_)
            | Body::ThinkingChunk(_)
            | Body::ToolCallStart(_)
            | Body::Notice(_)
            | Body::Error(_) => true,
            // The answer to a prompt is not always the last thing of its turn.
            Body::PromptResponse(_)
            | Body::PlanUpdate(_)
            | Body::ArtifactCreated(_)
            | Body::FileChanged(_)
            | Body::PermissionRequest(_)
            | Body::PermissionAnswer(_)
            | Body::SessionInfo(_)
            | Body::Usage(_)
            | Body::Unknown(_)
            | Body::Malformed(_) => false,
        }
    }

    /// Whether text that is held back must come out before this, though it may go on after it.
    pub(crate) fn pauses_text(&self) -> bool {
        matches!(
            self,
            Body::PromptResponse(_)
                | Body::PlanUpdate(_)
                | Body::ArtifactCreated(_)
                | Body::PermissionRequest(_)
        )
    }

    /// The call of a tool event.
    pub fn tool(&self) -> Option<&ToolEvent<T>> {
        match self {
            Body::ToolCallStart(call) | Body::ToolCallProgress(call) => Some(call),
            _ => None,
        }
    }

    /// The text of a message or a chunk.
    pub(crate) fn text_mut(&mut self) -> Option<&mut T> {
        match self {
            Body::UserMessage(m) => Some(&mut m.text),
            Body::TextChunk(c) | Body::ThinkingChunk(c) => Some(&mut c.text),
            _ => None,
        }
    }

    /// Whether the text comes in pieces.
    pub(crate) fn is_streamed(&self) -> bool {
        match self {
            Body::UserMessage(m) => m.origin == Origin::Agent,
            Body::TextChunk(_) | Body::ThinkingChunk(_) => true,
            _ => false,
        }
    }

    /// Whether this is a text at once rather than a piece of one.
    pub(crate) fn is_whole(&self) -> bool {
        matches!(self, Body::TextChunk(c) | Body::ThinkingChunk(c) if c.whole)
    }

    /// Whether pictures come with it.
    pub(crate) fn has_images(&self) -> bool {
        match self {
            Body::UserMessage(m) => !m.images.is_empty(),
            Body::TextChunk(c) | Body::ThinkingChunk(c) => !c.images.is_empty(),
            _ => false,
        }
    }
}

impl<T: PartialEq> Body<T> {
    pub(crate) fn drop_images(&mut self) {
        match self {
            Body::UserMessage(m) => m.images.clear(),
            Body::TextChunk(c) | Body::ThinkingChunk(c) => c.images.clear(),
            _ => {}
        }
    }

    /// Whether two pieces belong to one text.
    pub(crate) fn same_block(&self, other: &Self) -> bool {
        match (self, other) {
            (Body::UserMessage(a), Body::UserMessage(b)) => a.block_id == b.block_id,
            (Body::TextChunk(a), Body::TextChunk(b))
            | (Body::ThinkingChunk(a), Body::ThinkingChunk(b)) => a.block_id == b.block_id,
            _ => false,
        }
    }
}
