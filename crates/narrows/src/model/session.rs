//! The header of a session.

use crate::model::event::{MessageUsage, TurnEnd, Usage};
use crate::model::usage::TokenLedger;
use crate::sanitize::Clean;
use serde::Serialize;

/// Status of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SessionStatus {
    #[default]
    Idle,
    Running,
    Failed,
}

impl SessionStatus {
    /// Its name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            SessionStatus::Idle => "idle",
            SessionStatus::Running => "running",
            SessionStatus::Failed => "failed",
        }
    }
}

/// The header of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Status.
    pub status: SessionStatus,
    /// The last error.
    pub error: Option<Clean>,
    /// Name of the agent.
    pub agent: Option<Clean>,
    /// Version of the agent.
    pub version: Option<Clean>,
    /// Model.
    pub model: Option<Clean>,
    /// Mode.
    pub mode: Option<Clean>,
    /// Title.
    pub title: Option<Clean>,
    /// Working directory.
    pub cwd: Option<Clean>,
    /// The agent's own id of the session.
    pub native_id: Option<Clean>,
    /// Prompts so far.
    pub turns: u64,
    /// Answers so far.
    pub answers: u64,
    /// Tokens in the context.
    pub context_used: Option<u64>,
    /// Tokens that fit into the context.
    pub context_size: Option<u64>,
    /// Cost so far in US dollars, as the agent reports it.
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
    pub cost_usd: Option<f64>,
    /// Tokens that the session itself used, if the agent reports them for each answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens that its subagents used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_usage: Option<Usage>,
    /// Events of unknown kinds.
    pub unknown: u64,
    /// Lines that are no valid packets.
    pub malformed: u64,
    /// State of the token count.
    #[serde(skip)]
    pub(crate) ledger: TokenLedger,
    /// Whether the last turn was answered.
    #[serde(skip)]
    pub answered: bool,
    /// Whether the agent reported the end of the last turn. An error alone ends a turn too, but its
    /// usage still follows.
    #[serde(skip)]
    pub(crate) ended: bool,
    /// Time of the last answer, in milliseconds since 1970.
    #[serde(skip)]
    pub(crate) answered_at: Option<i64>,
    /// The user set the title: a generated title does not replace it.
    #[serde(skip)]
    pub(crate) named: bool,
}

impl SessionInfo {
    /// The usage of the turn's last answer, corrected by the response that ends the turn
    /// ([`TokenLedger::correct_last`]).
    pub fn rest(&self, response: &TurnEnd) -> Option<MessageUsage> {
        self.ledger.correct_last(response)
    }

    /// Records usage in the ledger and updates the sums.
    pub(crate) fn record_usage(&mut self, record: impl FnOnce(&mut TokenLedger)) {
        record(&mut self.ledger);
        self.usage = self.ledger.session().cloned();
        self.subagent_usage = self.ledger.subagents().cloned();
    }
}

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::SessionStatus as Status;
