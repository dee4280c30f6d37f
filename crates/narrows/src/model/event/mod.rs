//! One canonical fact of a session.
//!
//! [`Event`] is generic over the stage of its text: adapters make `Event<Raw>`, everything after
//! the sanitizer takes `Event` (= `Event<Clean>`). [`Body`] is closed and matched without a
//! catch-all: a new kind must be thought about everywhere.

mod file;
mod message;
mod permission;
mod question;
mod session;
mod tool;
mod turn;
mod unparsed;

pub use file::{AgentFile, Artifact, ArtifactInfo, FileAction, FileChange};
pub use message::{Chunk, Message, Origin};
pub use permission::{Answer, Ask, Choice, Decision};
pub use question::{GivenAnswer, Question, QuestionAnswer, QuestionOption, QuestionPart};
pub use session::{Background, Command, Failure, Info, Note, Summary};
pub use tool::ToolEvent;
pub use turn::{AnswerUsage, Gauge, Plan, PlanEntry, Response, Usage};
pub use unparsed::{Malformed, Position, Unknown};

use crate::model::id::EventId;
use crate::model::time::Time;
use crate::sanitize::{Clean, Tree};
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
    Usage(Box<Gauge<T>>),
    /// What came before was replaced by a summary.
    Compaction(Box<Summary<T>>),
    /// Something goes on beside the conversation, or has ended there.
    BackgroundTask(Box<Background<T>>),
    /// The agent asks the user.
    QuestionRequest(Box<Question<T>>),
    /// The user has answered.
    QuestionAnswer(Box<QuestionAnswer<T>>),
    /// The agent wrote its plan to a file.
    PlanFile(Box<AgentFile<T>>),
    /// The agent reads a skill.
    SkillFile(Box<AgentFile<T>>),
    /// Something the user should know that nobody said.
    Notice(Note<T>),
    /// Something failed.
    Error(Box<Failure<T>>),
    /// A kind that nobody modelled.
    Unknown(Unknown<T>),
    /// A line that could not be read.
    Malformed(Malformed),
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
            | Body::Compaction(_)
            | Body::Notice(_)
            | Body::QuestionRequest(_)
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
            | Body::BackgroundTask(_)
            | Body::QuestionAnswer(_)
            | Body::PlanFile(_)
            | Body::SkillFile(_)
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
                | Body::BackgroundTask(_)
        )
    }

    /// The call of a tool event.
    pub fn tool(&self) -> Option<&ToolEvent<T>> {
        match self {
            Body::ToolCallStart(call) | Body::ToolCallProgress(call) => Some(call),
            _ => None,
        }
    }

    /// What is told of a call.
    pub(crate) fn tool_mut(&mut self) -> Option<&mut ToolEvent<T>> {
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
            Body::UserMessage(m) => m.origin == Origin::Agent && !m.whole,
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
