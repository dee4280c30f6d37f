//! One canonical fact of a session.
//!
//! [`Event`] is generic over the stage of its text: adapters produce `Event<Raw>`, every stage
//! after redaction takes `Event` (= `Event<Clean>`). [`Body`] is closed and matched without a
//! catch-all, so that a new kind must be handled everywhere.

mod file;
mod message;
mod permission;
mod question;
mod session;
mod tool;
mod turn;
mod unparsed;

pub use file::{AgentFile, Artifact, ArtifactInfo, FileAction, FileChange};
pub use message::{PromptOrigin, TextChunk, UserMessage};
pub use permission::{DecisionOutcome, PermissionDecision, PermissionOption, PermissionRequest};
pub use question::{Question, QuestionAnswer, QuestionOption, QuestionPart, QuestionResponse};
pub use session::{BackgroundTask, Compaction, ErrorEvent, Notice, SessionUpdate, SlashCommand};
pub use tool::ToolEvent;
pub use turn::{MessageUsage, PlanEntry, PlanUpdate, TurnEnd, Usage, UsageUpdate};
pub use unparsed::{Malformed, Position, UnknownPacket};

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::{
    BackgroundTask as Background, Compaction as Summary, DecisionOutcome as Decision,
    ErrorEvent as Failure, MessageUsage as AnswerUsage, Notice as Note,
    PermissionDecision as Answer, PermissionOption as Choice, PermissionRequest as Ask,
    PlanUpdate as Plan, PrintedEvent as Row, PromptOrigin as Origin,
    QuestionResponse as GivenAnswer, SessionUpdate as Info, SlashCommand as Command,
    TextChunk as Chunk, TurnEnd as Response, UnknownPacket as Unknown, UsageUpdate as Gauge,
    UserMessage as Message,
};

use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// One fact, in the order of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct Event<T = Clean> {
    /// Id of the event; assigned by the pipeline.
    pub id: EventId,
    /// For a chunk of text the id of its first chunk, otherwise that of the event itself.
    pub began: EventId,
    /// Time in the source, or of arrival if the host passes one.
    pub time: Option<Time>,
    /// The tool call of the subagent that produced the event.
    pub parent: Option<T>,
    /// Kind and payload.
    pub body: Body<T>,
}

/// Kind and payload of an event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
#[serde(bound(serialize = "T: Serialize, Tree<T>: Serialize"))]
pub enum Body<T = Clean> {
    /// A prompt.
    UserMessage(UserMessage<T>),
    /// A chunk of the agent's answer.
    TextChunk(TextChunk<T>),
    /// A chunk of the agent's thinking.
    ThinkingChunk(TextChunk<T>),
    /// The first event of a tool call.
    ToolCallStart(Box<ToolEvent<T>>),
    /// A later event of a tool call.
    ToolCallProgress(Box<ToolEvent<T>>),
    /// The agent's plan, in full.
    PlanUpdate(PlanUpdate<T>),
    /// The end of a turn.
    PromptResponse(Box<TurnEnd<T>>),
    /// A file or an app that a person may want to open.
    ArtifactCreated(Box<Artifact<T>>),
    /// A file of the session changed.
    FileChanged(Box<FileChange<T>>),
    /// The agent asks for permission to run a call.
    PermissionRequest(Box<PermissionRequest<T>>),
    /// A permission request was decided.
    PermissionAnswer(Box<PermissionDecision<T>>),
    /// An update of the session header.
    SessionInfo(Box<SessionUpdate<T>>),
    /// Context size, cost and token usage.
    Usage(Box<UsageUpdate<T>>),
    /// The conversation so far was replaced by a summary.
    Compaction(Box<Compaction<T>>),
    /// A background task started, progressed or ended.
    BackgroundTask(Box<BackgroundTask<T>>),
    /// The agent asks the user a question.
    QuestionRequest(Box<Question<T>>),
    /// The user answered a question.
    QuestionAnswer(Box<QuestionAnswer<T>>),
    /// The agent wrote its plan to a file.
    PlanFile(Box<AgentFile<T>>),
    /// The agent reads a skill.
    SkillFile(Box<AgentFile<T>>),
    /// A notice for the user that is neither prompt nor answer.
    Notice(Notice<T>),
    /// An error.
    Error(Box<ErrorEvent<T>>),
    /// A packet of an unknown kind.
    Unknown(UnknownPacket<T>),
    /// A line that is no valid packet.
    Malformed(Malformed),
}

/// An event as it is stored in the log and printed by the `events` view.
#[derive(Debug, Clone, Copy, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PrintedEvent<'a> {
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

impl<'a> PrintedEvent<'a> {
    /// Wraps an event with its seq in the log of `session`, which is the id that narrows gave it.
    pub fn new(seq: u64, session: &'a str, event: &'a Event) -> Self {
        PrintedEvent {
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

impl<T> Event<T> {
    /// An event that the pipeline derives from another one, before it has an id.
    pub(crate) fn derived(time: Option<Time>, parent: Option<T>, body: Body<T>) -> Self {
        Event { id: EventId::default(), began: EventId::default(), time, parent, body }
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
            Body::Compaction(_) => "compaction",
            Body::BackgroundTask(_) => "background_task",
            Body::QuestionRequest(_) => "question_request",
            Body::QuestionAnswer(_) => "question_answer",
            Body::PlanFile(_) => "plan_file",
            Body::SkillFile(_) => "skill_file",
            Body::Notice(_) => "notice",
            Body::Error(_) => "error",
            Body::Unknown(_) => "unknown",
            Body::Malformed(_) => "malformed",
        }
    }

    /// Whether this event ends a streaming text.
    ///
    /// Events that merely happen at the same time (output of a running call, usage, the plan) are
    /// not in every format of a session, so they must not split the text.
    pub fn ends_text(&self) -> bool {
        match self {
            Body::ToolCallProgress(call) => call.first,
            Body::UserMessage(_)
            | Body::TextChunk(_)
            | Body::ThinkingChunk(_)
            | Body::ToolCallStart(_)
            | Body::Compaction(_)
            | Body::Notice(_)
            | Body::QuestionRequest(_)
            | Body::Error(_) => true,
            // The end of a turn is not always its last event.
            Body::PromptResponse(_)
            | Body::PlanUpdate(_)
            | Body::ArtifactCreated(_)
            | Body::FileChanged(_)
            | Body::PermissionRequest(_)
            | Body::PermissionAnswer(_)
            | Body::SessionInfo(_)
            | Body::Usage(_)
            | Body::BackgroundTask(_)
            | Body::QuestionAnswer(_)
            | Body::PlanFile(_)
            | Body::SkillFile(_)
            | Body::Unknown(_)
            | Body::Malformed(_) => false,
        }
    }

    /// Whether held-back text must be emitted before this event, though the text may continue after
    /// it.
    pub(crate) fn flushes_held_text(&self) -> bool {
        matches!(
            self,
            Body::PromptResponse(_)
                | Body::PlanUpdate(_)
                | Body::ArtifactCreated(_)
                | Body::PermissionRequest(_)
                | Body::BackgroundTask(_)
        )
    }

    /// The payload of a tool call event.
    pub fn tool(&self) -> Option<&ToolEvent<T>> {
        match self {
            Body::ToolCallStart(call) | Body::ToolCallProgress(call) => Some(call),
            _ => None,
        }
    }

    /// The payload of a tool call event, mutable.
    pub(crate) fn tool_mut(&mut self) -> Option<&mut ToolEvent<T>> {
        match self {
            Body::ToolCallStart(call) | Body::ToolCallProgress(call) => Some(call),
            _ => None,
        }
    }

    /// The text of a prompt or a chunk.
    pub(crate) fn text_mut(&mut self) -> Option<&mut T> {
        match self {
            Body::UserMessage(m) => Some(&mut m.text),
            Body::TextChunk(c) | Body::ThinkingChunk(c) => Some(&mut c.text),
            _ => None,
        }
    }

    /// Whether the text comes in chunks.
    pub(crate) fn is_streamed(&self) -> bool {
        match self {
            Body::UserMessage(m) => m.origin == PromptOrigin::Agent && !m.whole,
            Body::TextChunk(_) | Body::ThinkingChunk(_) => true,
            _ => false,
        }
    }

    /// Whether this is a full text, not a chunk of one.
    pub(crate) fn is_final_text(&self) -> bool {
        matches!(self, Body::TextChunk(c) | Body::ThinkingChunk(c) if c.whole)
    }

    /// Whether images come with it.
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

    /// Whether two chunks belong to one text.
    pub(crate) fn is_same_block(&self, other: &Self) -> bool {
        match (self, other) {
            (Body::UserMessage(a), Body::UserMessage(b)) => a.block_id == b.block_id,
            (Body::TextChunk(a), Body::TextChunk(b))
            | (Body::ThinkingChunk(a), Body::ThinkingChunk(b)) => a.block_id == b.block_id,
            _ => false,
        }
    }
}
