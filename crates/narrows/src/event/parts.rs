//! What the kinds of events hold. A type parameter is the stage of the text, as in [`super::Event`].

use crate::sanitize::{Clean, Tree};
use crate::tool::{Fresh, Image, ToolCall, ToolStatus};
use serde::Serialize;

/// What somebody asked.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
    /// The whole message at once.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
}

/// Who reports a prompt: an agent may repeat what its client sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Origin {
    Client,
    Agent,
}

/// A piece of text.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Chunk<T = Clean> {
    /// The piece.
    pub text: T,
    /// Pictures in the answer.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub images: Vec<Image>,
    /// Pieces with the same id are one text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub block_id: Option<T>,
    /// The whole text at once: it replaces what was streamed of it.
    #[serde(rename = "final", skip_serializing_if = "std::ops::Not::not", default)]
    pub whole: bool,
    /// The block has an id of its own: its pieces and its whole text are one thing, whatever comes
    /// between them.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub keyed: bool,
    /// The agent thought here and does not show what.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub hidden: bool,
}

impl<T: Default> Default for Chunk<T> {
    fn default() -> Self {
        Chunk {
            text: T::default(),
            images: Vec::new(),
            block_id: None,
            whole: false,
            keyed: false,
            hidden: false,
        }
    }
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
    /// Whether texts of the call may come again, longer: the ends of these are not final.
    #[serde(skip)]
    pub grows: bool,
    /// Whether a permission request repeats the call, with fewer fields or with others than before.
    #[serde(skip)]
    pub repeats: bool,
}

/// The agent's plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Plan<T = Clean> {
    /// Its entries, in order.
    pub entries: Vec<PlanEntry<T>>,
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct PlanEntry<T = Clean> {
    /// What is to be done.
    pub content: T,
    /// How far it is.
    pub status: ToolStatus,
    /// How much it matters.
    pub priority: Option<T>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Response<T = Clean> {
    /// Why the agent stopped.
    pub stop_reason: Option<T>,
    /// What the turn used.
    pub usage: Option<Usage>,
    /// The turn has ended with an error before: this is no second end.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub failed: bool,
    /// Why the turn failed, where its end is what tells so.
    #[serde(skip)]
    pub error: Option<T>,
    /// The usage is the truth about the turn's answers, of which only guesses were told before.
    #[serde(skip)]
    pub settles: bool,
    /// What it cost, as the agent reports it.
    #[serde(default, deserialize_with = "crate::stored::exact")]
    pub cost_usd: Option<f64>,
    /// From prompt to answer.
    pub duration_ms: Option<u64>,
}

/// Tokens.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the names say it")]
pub struct Usage {
    pub input_tokens: Option<u64>,
    pub output_tokens: Option<u64>,
    pub total_tokens: Option<u64>,
    pub cached_read_tokens: Option<u64>,
    pub cached_write_tokens: Option<u64>,
    /// Of the written ones, those kept for five minutes.
    #[serde(rename = "cachedWrite5mTokens", skip_serializing_if = "Option::is_none")]
    pub cached_write_5m_tokens: Option<u64>,
    /// Of the written ones, those kept for an hour.
    #[serde(rename = "cachedWrite1hTokens", skip_serializing_if = "Option::is_none")]
    pub cached_write_1h_tokens: Option<u64>,
    pub thought_tokens: Option<u64>,
}

/// How full the context is, and what one answer of the model used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Gauge<T = Clean> {
    /// Tokens in the context.
    pub used: Option<u64>,
    /// Tokens it can hold.
    pub size: Option<u64>,
    /// What the session cost so far, as the agent reports it.
    #[serde(default, deserialize_with = "crate::stored::exact")]
    pub cost_usd: Option<f64>,
    /// What one answer of the model used. The last one of an answer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerUsage<T>>,
}

impl<T> Default for Gauge<T> {
    fn default() -> Self {
        Gauge { used: None, size: None, cost_usd: None, answer: None }
    }
}

/// What one answer of the model used.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct AnswerUsage<T = Clean> {
    /// The model's message.
    pub message_id: T,
    /// The request that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<T>,
    /// The model that gave it, where that is not known to be the session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<T>,
    /// Its tokens.
    pub usage: Usage,
}

/// Something to open. Its fields keep the names of the packets they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Artifact<T = Clean> {
    /// The artifact.
    pub artifact: ArtifactInfo<T>,
}

/// What an artifact is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileAction {
    Created,
    Modified,
    Deleted,
}

/// A question for leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct Ask<T = Clean> {
    /// The question.
    pub request_id: T,
    /// The call it is about.
    pub tool_call_id: T,
    /// What is asked for, in one line: a command, a file, or the agent's words.
    pub title: Option<T>,
    /// The answers on offer.
    pub options: Vec<Choice<T>>,
    /// What the call is about to do, to the letter: its command, diffs, plan or arguments.
    #[serde(rename = "toolCall", skip_serializing_if = "Option::is_none", default)]
    pub call: Option<Box<ToolCall<T>>>,
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
    /// How long the call has waited for answers, in milliseconds, where the times are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "stored", serde(default))]
    pub waited_ms: Option<u64>,
}

/// What was decided.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Decision {
    Allowed,
    Rejected,
    Cancelled,
}

/// What is known about the session. An absent field leaves what is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
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
    /// Somebody gave the session its title.
    #[serde(skip)]
    pub named: bool,
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
            named: false,
        }
    }
}

/// One command on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Command<T = Clean> {
    /// What to type.
    pub name: T,
    /// What it does.
    pub description: Option<T>,
}

/// A summary of what came before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Summary<T = Clean> {
    /// The agent's own id of the compaction: what is told of it again is the same one.
    #[serde(rename = "compactionId", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<T>,
    /// The words.
    pub text: T,
    /// `manual` or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger: Option<T>,
    /// Tokens in the context before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_before: Option<u64>,
    /// Whether the turn or the input ended before the summary did.
    #[serde(skip)]
    pub unfinished: bool,
}

/// Work that goes on beside the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Background<T = Clean> {
    /// The task.
    pub task_id: T,
    /// The call that began it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
    /// What it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
    /// How far it is.
    pub status: ToolStatus,
    /// What came of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<T>,
}

/// Questions to the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Question<T = Clean> {
    /// The request to answer; none where nobody can answer any more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<T>,
    /// The call that asks.
    pub tool_call_id: T,
    /// What is asked.
    pub questions: Vec<QuestionPart<T>>,
}

/// One question.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionPart<T = Clean> {
    /// Its words.
    pub question: T,
    /// A word for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header: Option<T>,
    /// The answers on offer.
    pub options: Vec<QuestionOption<T>>,
    /// Whether several may be chosen.
    pub multi_select: bool,
    /// The field of a form that the answer fills in: answers are given by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<T>,
    /// What an answer has to be: `number`, `integer`, `date`, `email` …; `url` is an address to visit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub format: Option<T>,
    /// What is suggested as the answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<T>,
    /// Whether it may be left without an answer.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub optional: bool,
}

/// One answer on offer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct QuestionOption<T = Clean> {
    /// Its words.
    pub label: T,
    /// What it means.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
}

/// What the user answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct QuestionAnswer<T = Clean> {
    /// The call that asked.
    pub tool_call_id: T,
    /// The answers.
    pub answers: Vec<GivenAnswer<T>>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct GivenAnswer<T = Clean> {
    /// The question's words.
    pub question: T,
    /// What was chosen or typed.
    pub answer: T,
}

/// A file of the agent's own: a plan, a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct AgentFile<T = Clean> {
    /// Relative inside the session root, else from the home folder.
    pub path: T,
    /// The call that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}

/// Something the user should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Note<T = Clean> {
    /// `interrupted`, `retry`, `warning` …
    pub kind: T,
    /// The words.
    pub text: T,
}

/// Something failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct Failure<T = Clean> {
    /// What, in words.
    pub message: T,
    /// A number or a word, as the source has it.
    pub code: Option<Tree<T>>,
    /// More about it.
    pub details: Option<Tree<T>>,
    /// Whether trying again may help; none when nobody knows.
    pub retryable: Option<bool>,
    /// Whether the agent is gone: what was open stays undone. Told by the program itself only.
    #[serde(skip)]
    pub is_end: bool,
}

/// A kind that nobody modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
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
    /// Which file of the session it is in, as in a packet.
    #[serde(skip)]
    pub source: u32,
}

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 0.
    pub column: u64,
    /// The byte in the source, from 0.
    pub offset: u64,
}
