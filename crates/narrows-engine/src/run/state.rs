//! How a run stands.

use super::RunOptions;
use super::agents::AgentSpec;
use super::driver::{Prompt, RunChoice, RunOption};
use narrows::TextCleaner;
use narrows_store::RunRow;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Characters of a message that are shown while it waits.
const SHOWN: usize = 200;

/// What a session's task knows from the beginning.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) spec: Arc<AgentSpec>,
    pub(super) options: Arc<RunOptions>,
}

/// How far an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum RunPhase {
    /// narrows does not run this session.
    #[default]
    None,
    /// No process is there; a message starts one.
    Ended,
    /// It is being started.
    Starting,
    /// It is there and has nothing to do.
    Idle,
    /// It works.
    Running,
    /// It waits for an answer.
    Waiting,
}

impl RunPhase {
    /// Whether a process is there.
    pub(super) fn is_alive(self) -> bool {
        !matches!(self, RunPhase::None | RunPhase::Ended)
    }
}

/// A message that waits for its turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct QueuedMessage {
    /// Its id.
    pub id: String,
    /// How it begins.
    pub text: String,
}

/// The turn that goes on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TurnPlace {
    /// The message's id.
    pub id: String,
    /// Follow the log from here.
    pub cursor: String,
}

/// How a session's run stands.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct RunState {
    /// Grows with every change.
    pub version: u64,
    /// Whether this server runs agents.
    pub allow_run: bool,
    /// The agent.
    pub agent: Option<String>,
    /// How far it is.
    pub state: RunPhase,
    /// Messages that wait for their turn.
    pub queue: Vec<QueuedMessage>,
    /// A turn was cancelled, or the agent or its server ended, while these waited: they go on after the
    /// next message, or when they are released.
    #[serde(default)]
    pub held: bool,
    /// The turn that goes on.
    pub turn: Option<TurnPlace>,
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
    /// Questions that wait for an answer.
    pub requests: Vec<String>,
    /// Whether a refusal may say why (`message`).
    #[serde(default)]
    pub deny_reasons: bool,
    /// Why the last process is not there any more, if that was not asked for.
    pub error: Option<String>,
}

impl RunState {
    /// A run of which no process is there.
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

    /// Messages wait, and nobody runs the session.
    pub(super) fn hold(&mut self, waiting: &[(u64, Prompt)], cleaner: &mut TextCleaner) {
        self.queue = queue(waiting.iter().map(|(number, prompt)| (*number, prompt)), cleaner);
        self.held = !self.queue.is_empty();
    }
}

/// Messages as they are shown while they wait.
pub(super) fn queue<'a>(
    waiting: impl Iterator<Item = (u64, &'a Prompt)>,
    cleaner: &mut TextCleaner,
) -> Vec<QueuedMessage> {
    let shown = waiting.map(|(number, prompt)| {
        let text: String = prompt.text.chars().take(SHOWN).collect();
        let text = cleaner.text(&text, narrows::sanitize::Mode::Text).as_str().to_owned();
        QueuedMessage { id: number.to_string(), text }
    });
    shown.collect()
}
