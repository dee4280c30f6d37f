//! Payloads about the session as a whole: header fields, compaction, background tasks, notices, errors.

use crate::model::tool::ToolStatus;
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

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
