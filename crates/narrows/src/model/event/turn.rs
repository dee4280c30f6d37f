//! Payloads about a turn: its plan, its end, its token usage.

use crate::model::tool::ToolStatus;
use crate::sanitize::Clean;
use serde::Serialize;

/// The agent's plan.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct PlanUpdate<T = Clean> {
    /// Entries in order.
    pub entries: Vec<PlanEntry<T>>,
}

/// One entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct PlanEntry<T = Clean> {
    /// The task.
    pub content: T,
    /// Progress of the task.
    pub status: ToolStatus,
    /// `high`, `medium` or `low`.
    pub priority: Option<T>,
}

/// The end of a turn.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct TurnEnd<T = Clean> {
    /// Why the agent stopped.
    pub stop_reason: Option<T>,
    /// Tokens that the turn used.
    pub usage: Option<Usage>,
    /// An error event ended the turn before: this is no second end.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub failed: bool,
    /// Error message of a failed turn, if only its end carries it.
    #[serde(skip)]
    pub error: Option<T>,
    /// `usage` is exact; the usage of the turn's answers so far was estimated.
    #[serde(skip)]
    pub usage_is_exact: bool,
    /// Cost in US dollars as the agent reports it.
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
    pub cost_usd: Option<f64>,
    /// Time from prompt to answer, in milliseconds.
    pub duration_ms: Option<u64>,
}

/// Token counts.
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
    /// Tokens of `cached_write_tokens` that are cached for five minutes.
    #[serde(rename = "cachedWrite5mTokens", skip_serializing_if = "Option::is_none")]
    pub cached_write_5m_tokens: Option<u64>,
    /// Tokens of `cached_write_tokens` that are cached for an hour.
    #[serde(rename = "cachedWrite1hTokens", skip_serializing_if = "Option::is_none")]
    pub cached_write_1h_tokens: Option<u64>,
    pub thought_tokens: Option<u64>,
}

/// Context size, cost and the usage of one answer of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct UsageUpdate<T = Clean> {
    /// Tokens in the context.
    pub used: Option<u64>,
    /// Tokens that fit into the context.
    pub size: Option<u64>,
    /// Cost of the session so far in US dollars, as the agent reports it.
    #[serde(default, deserialize_with = "crate::model::read_back::exact_f64")]
    pub cost_usd: Option<f64>,
    /// Usage of one answer of the model; the last event of an answer counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<MessageUsage<T>>,
}

impl<T> Default for UsageUpdate<T> {
    fn default() -> Self {
        UsageUpdate { used: None, size: None, cost_usd: None, answer: None }
    }
}

/// Token usage of one answer of the model.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct MessageUsage<T = Clean> {
    /// Id of the model's message.
    pub message_id: T,
    /// Id of the request that it answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<T>,
    /// The model, if it may differ from that of the session.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<T>,
    /// Tokens used.
    pub usage: Usage,
}
