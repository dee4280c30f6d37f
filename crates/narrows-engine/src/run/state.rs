//! The state of a run, as clients see it.

use super::RunOptions;
use super::agents::AgentSpec;
use super::driver::{Prompt, RunChoice, RunOption};
use narrows::TextCleaner;
use narrows_store::RunRow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Characters of a queued message that are shown.
const PREVIEW_CHARS: usize = 200;

/// What an actor knows from its start.
#[derive(Debug, Clone)]
pub(super) struct RunContext {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) options: Arc<RunOptions>,
}

/// The phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// The session is not a run.
    #[default]
    None,
    /// No process is running; a message starts one.
    Ended,
    /// The process is starting.
    Starting,
    /// The agent waits for a message.
    Idle,
    /// A turn is running.
    Running,
    /// The agent waits for an answer.
    Waiting,
}

impl RunPhase {
    /// Whether a process is running.
    pub(super) fn is_alive(self) -> bool {
        !matches!(self, RunPhase::None | RunPhase::Ended)
    }
}

/// A queued message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuedMessage {
    /// Its id.
    pub id: String,
    /// The beginning of its text.
    pub text: String,
}

/// The running turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[cfg_attr(feature = "openapi", schema(as = TurnPlace))]
pub struct ActiveTurn {
    /// The message's id.
    pub id: String,
    /// The cursor from which the log has the turn.
    pub cursor: String,
}

/// The state of a session's run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// Increases with every change.
    pub version: u64,
    /// Whether this server runs agents.
    pub allow_run: bool,
    /// The agent's name.
    pub agent: Option<String>,
    /// The phase.
    pub state: RunPhase,
    /// Queued messages.
    pub queue: Vec<QueuedMessage>,
    /// The queued messages are held, because a turn was cancelled or the agent or its server ended. They
    /// continue after the next message, or when they are released.
    #[serde(default)]
    pub held: bool,
    /// The running turn.
    pub turn: Option<ActiveTurn>,
    /// Whether the turn is being cancelled.
    pub cancelling: bool,
    /// Modes to choose from.
    pub modes: Vec<RunChoice>,
    /// The mode.
    pub mode: Option<String>,
    /// Models to choose from.
    pub models: Vec<RunChoice>,
    /// The model.
    pub model: Option<String>,
    /// Other options of the agent.
    #[serde(default)]
    pub options: Vec<RunOption>,
    /// Ids of the open requests.
    pub requests: Vec<String>,
    /// Whether a refusal may have a reason (`message`).
    #[serde(default)]
    pub deny_reasons: bool,
    /// Why the last process ended, unless it was stopped on request.
    pub error: Option<String>,
}

impl RunState {
    /// The state of a run without a process.
    pub(super) fn at_rest(run: Option<&RunRow>, allow_run: bool) -> Self {
        RunState {
            allow_run,
            agent: run.map(|r| r.agent.clone()),
            state: if run.is_some() { RunPhase::Ended } else { RunPhase::None },
            mode: run.and_then(|r| r.mode.clone()),
            model: run.and_then(|r| r.model.clone()),
            ..RunState::default()
        }
    }

    /// Adds queued messages of a session without an actor, which are held.
    pub(super) fn set_held(&mut self, messages: &[(u64, Prompt)], cleaner: &mut TextCleaner) {
        self.queue =
            queue_preview(messages.iter().map(|(number, prompt)| (*number, prompt)), cleaner);
        self.held = !self.queue.is_empty();
    }
}

/// Previews of queued messages.
pub(super) fn queue_preview<'a>(
    messages: impl Iterator<Item = (u64, &'a Prompt)>,
    cleaner: &mut TextCleaner,
) -> Vec<QueuedMessage> {
    let previews = messages.map(|(number, prompt)| {
        let text: String = prompt.text.chars().take(PREVIEW_CHARS).collect();
        let text = cleaner.text(&text, narrows::sanitize::Mode::Text).as_str().to_owned();
        QueuedMessage { id: number.to_string(), text }
    });
    previews.collect()
}
