//! The header of a session.

use utoipa::ToSchema;

/// Whether something is going on.
#[derive(Debug, Clone, Copy, ToSchema)]
#[schema(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum SessionStatus {
    Idle,
    Running,
    Failed,
}

shapes! {
    /// What is known about a session as a whole.
    SessionInfo {
        /// Whether something is going on.
        status: SessionStatus,
        /// What failed last.
        error: Option<String>,
        /// The agent.
        agent: Option<String>,
        /// Its version.
        version: Option<String>,
        /// The model.
        model: Option<String>,
        /// The mode.
        mode: Option<String>,
        /// What the session is about.
        title: Option<String>,
        /// The working directory.
        cwd: Option<String>,
        /// The agent's own id of the session.
        native_id: Option<String>,
        /// Prompts so far.
        turns: u64,
        /// Answers so far.
        answers: u64,
        /// Tokens in the context.
        context_used: Option<u64>,
        /// Tokens that it can hold.
        context_size: Option<u64>,
        /// What it cost so far, as the agent reports it.
        cost_usd: Option<f64>,
        /// Events of a kind that nobody modelled.
        unknown: u64,
        /// Lines that could not be read.
        malformed: u64,
        ;
        /// Tokens that the session itself used, where the agent tells them answer by answer.
        usage: Usage,
        /// Tokens that its subagents used.
        subagent_usage: Usage,
    }

    /// Tokens.
    Usage {
        /// Read, without what was cached.
        input_tokens: Option<u64>,
        /// Written.
        output_tokens: Option<u64>,
        /// All, where the agent tells a sum.
        total_tokens: Option<u64>,
        /// Read from a cache.
        cached_read_tokens: Option<u64>,
        /// Written to a cache.
        cached_write_tokens: Option<u64>,
        /// Of what was written, thoughts.
        thought_tokens: Option<u64>,
        ;
        /// Of those written to a cache, those kept for five minutes.
        #[schema(rename = "cachedWrite5mTokens")]
        cached_write_5m_tokens: u64,
        /// Of those written to a cache, those kept for an hour.
        #[schema(rename = "cachedWrite1hTokens")]
        cached_write_1h_tokens: u64,
    }
}
