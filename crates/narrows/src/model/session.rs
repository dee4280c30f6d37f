//! What is known about a session as a whole.

use crate::model::event::{AnswerUsage, Response, Usage};
use crate::model::usage::Ledger;
use crate::sanitize::Clean;
use serde::Serialize;

/// Whether something is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Status {
    #[default]
    Idle,
    Running,
    Failed,
}

impl Status {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Status::Idle => "idle",
            Status::Running => "running",
            Status::Failed => "failed",
        }
    }
}

/// The header of a session.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct SessionInfo {
    /// Whether something is going on.
    pub status: Status,
    /// What failed last.
    pub error: Option<Clean>,
    /// The agent.
    pub agent: Option<Clean>,
    /// Its version.
    pub version: Option<Clean>,
    /// The model.
    pub model: Option<Clean>,
    /// The mode.
    pub mode: Option<Clean>,
    /// What the session is about.
    pub title: Option<Clean>,
    /// The working directory.
    pub cwd: Option<Clean>,
    /// The agent's own id of the session.
    pub native_id: Option<Clean>,
    /// Prompts so far.
    pub turns: u64,
    /// Answers so far.
    pub answers: u64,
    /// Tokens in the context.
    pub context_used: Option<u64>,
    /// Tokens that it can hold.
    pub context_size: Option<u64>,
    /// What it cost so far, as the agent reports it.
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
    pub cost_usd: Option<f64>,
    /// Tokens that the session itself used, where the agent tells them answer by answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens that its subagents used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subagent_usage: Option<Usage>,
    /// Events of a kind that nobody modelled.
    pub unknown: u64,
    /// Lines that could not be read.
    pub malformed: u64,
    /// How the tokens were counted.
    #[serde(skip)]
    pub(crate) ledger: Ledger,
    /// Whether the last turn has been answered.
    #[serde(skip)]
    pub answered: bool,
    /// Whether its end was told: an error alone is one, too, but what the turn used comes after it.
    #[serde(skip)]
    pub(crate) ended: bool,
    /// When it was, in milliseconds since 1970.
    #[serde(skip)]
    pub(crate) answered_at: Option<i64>,
    /// Somebody gave the session its title: one that is made up does not replace it.
    #[serde(skip)]
    pub(crate) named: bool,
}

impl SessionInfo {
    /// The last answer of the turn that a response ends ([`Ledger::rest`]).
    pub fn rest(&self, response: &Response) -> Option<AnswerUsage> {
        self.ledger.rest(response)
    }

    /// Counts tokens.
    pub(crate) fn record_usage(&mut self, record: impl FnOnce(&mut Ledger)) {
        record(&mut self.ledger);
        self.usage = self.ledger.session().cloned();
        self.subagent_usage = self.ledger.subagents().cloned();
    }
}
