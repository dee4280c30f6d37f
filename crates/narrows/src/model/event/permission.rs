//! Payloads of permission requests and decisions.

use crate::model::tool::{Permission, ToolCall};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

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

impl From<&Answer> for Permission {
    fn from(answer: &Answer) -> Self {
        let decision = match answer.decision {
            Decision::Allowed => "allowed",
            Decision::Rejected => "rejected",
            Decision::Cancelled => "cancelled",
        };
        Permission {
            decision: Clean::literal(decision),
            option: answer.option.clone(),
            waited_ms: answer.waited_ms,
        }
    }
}
