//! Payloads of permission requests and decisions.

use crate::model::tool::{Permission, ToolCall};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// A permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct PermissionRequest<T = Clean> {
    /// Id of the request.
    pub request_id: T,
    /// The call that waits for the decision.
    pub tool_call_id: T,
    /// The requested action in one line: a command, a file, or the agent's words.
    pub title: Option<T>,
    /// The offered options.
    pub options: Vec<PermissionOption<T>>,
    /// The exact action of the call: its command, diffs, plan or arguments.
    #[serde(rename = "toolCall", skip_serializing_if = "Option::is_none", default)]
    pub call: Option<Box<ToolCall<T>>>,
}

/// One offered option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct PermissionOption<T = Clean> {
    /// Id of the option.
    pub option_id: T,
    /// Label.
    pub name: T,
    /// `allow_once`, `allow_always`, `reject_once` or `reject_always`.
    pub kind: T,
}

/// The decision on a permission request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct PermissionDecision<T = Clean> {
    /// Id of the request.
    pub request_id: T,
    /// The call that waited for the decision.
    pub tool_call_id: T,
    /// The decision.
    pub decision: DecisionOutcome,
    /// Id of the chosen option.
    pub option_id: Option<T>,
    /// Label of the chosen option.
    pub option: Option<T>,
    /// Total time in milliseconds that the call waited for decisions, if the times are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "stored", serde(default))]
    pub waited_ms: Option<u64>,
}

/// Outcome of a permission request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DecisionOutcome {
    Allowed,
    Rejected,
    Cancelled,
}

impl From<&PermissionDecision> for Permission {
    fn from(answer: &PermissionDecision) -> Self {
        let decision = match answer.decision {
            DecisionOutcome::Allowed => "allowed",
            DecisionOutcome::Rejected => "rejected",
            DecisionOutcome::Cancelled => "cancelled",
        };
        Permission {
            decision: Clean::literal(decision),
            option: answer.option.clone(),
            waited_ms: answer.waited_ms,
        }
    }
}
