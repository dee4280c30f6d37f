//! Payloads about the session as a whole: header fields, compaction, background tasks, notices, errors.

use crate::model::tool::ToolStatus;
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// An update of the session header. An absent field keeps its old value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct SessionUpdate<T = Clean> {
    /// Name of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<T>,
    /// Version of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<T>,
    /// Model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<T>,
    /// Mode, such as `plan` or `yolo`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<T>,
    /// Title of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<T>,
    /// The agent's own word for its current activity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<T>,
    /// Working directory; `.` if it is the session root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<T>,
    /// The agent's own id of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub native_id: Option<T>,
    /// Available slash commands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<SlashCommand<T>>>,
    /// The user set the title.
    #[serde(skip)]
    pub named: bool,
}

impl<T> Default for SessionUpdate<T> {
    fn default() -> Self {
        SessionUpdate {
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

/// A slash command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct SlashCommand<T = Clean> {
    /// Text to type.
    pub name: T,
    /// Explanation.
    pub description: Option<T>,
}

/// A compaction: the summary that replaced the conversation so far.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Compaction<T = Clean> {
    /// The agent's own id of the compaction; events with the same id are one compaction.
    #[serde(rename = "compactionId", default, skip_serializing_if = "Option::is_none")]
    pub id: Option<T>,
    /// The summary.
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

/// A task that runs in the background.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct BackgroundTask<T = Clean> {
    /// Id of the task.
    pub task_id: T,
    /// The call that started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
    /// Purpose of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<T>,
    /// Progress of the task.
    pub status: ToolStatus,
    /// Result of the task.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<T>,
}

/// A notice for the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Notice<T = Clean> {
    /// `interrupted`, `retry`, `warning` …
    pub kind: T,
    /// Text of the notice.
    pub text: T,
}

/// An error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct ErrorEvent<T = Clean> {
    /// Error message.
    pub message: T,
    /// Error code, a number or a string as in the source.
    pub code: Option<Tree<T>>,
    /// Further details.
    pub details: Option<Tree<T>>,
    /// Whether a retry may help; none if unknown.
    pub retryable: Option<bool>,
    /// Whether the agent is gone, so that its open calls will not end. Set only by events of the
    /// host program.
    #[serde(skip)]
    pub is_end: bool,
}
