//! How agents are run, and what is allowed.

use super::agents::AgentSpec;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// How agents are run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Whether they are: it means running code.
    pub allow: bool,
    /// Those that can be asked for.
    pub agents: Vec<AgentSpec>,
    /// The program that keeps their processes: narrows itself. Without it, they end with their group.
    pub keeper: Option<PathBuf>,
    /// Where sessions without a folder of their own get one.
    pub roots: PathBuf,
    /// The environment from which agents get what they are allowed.
    pub env: Vec<(OsString, OsString)>,
    /// Agents get all of it but what is dangerous, not only what their lists name: for a server that
    /// nobody else uses.
    pub whole_env: bool,
    /// What is allowed at most.
    pub limits: RunLimits,
}

impl RunOptions {
    /// Where programs are looked for.
    pub(super) fn path(&self) -> Option<&OsStr> {
        self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str())
    }
}

/// What is allowed at most.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// Agents at once.
    pub agents: usize,
    /// Messages of one session that wait.
    pub queue: usize,
    /// How long an agent may take to begin.
    pub start: Duration,
    /// After so much silence it is said that an agent may need a login.
    pub silence: Duration,
    /// How long an agent may take to cancel a turn; then it is ended.
    pub cancel: Duration,
    /// An agent that nobody speaks to for so long is ended.
    pub idle: Duration,
    /// Bytes of memory of an agent with everything that it starts.
    pub memory: Option<u64>,
    /// Processes of an agent.
    pub processes: Option<u64>,
    /// Where several nodes share a store: one that is silent for so long has lost its agents.
    pub lease: Duration,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            agents: 64,
            queue: 32,
            start: Duration::from_mins(1),
            silence: Duration::from_secs(10),
            cancel: Duration::from_secs(10),
            idle: Duration::from_mins(30),
            memory: None,
            processes: None,
            lease: Duration::from_secs(10),
        }
    }
}
