//! Payloads about a turn: its plan, its end, its token usage.

use crate::model::tool::ToolStatus;
use crate::sanitize::Clean;
use serde::Serialize;

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
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
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
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
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
