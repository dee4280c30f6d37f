//! Options and limits of runs.

use super::agents::AgentSpec;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::time::Duration;

/// The options of runs.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Whether agents may be run; this means running code.
    pub allow: bool,
    /// The agents that clients may request.
    pub agents: Vec<AgentSpec>,
    /// The supervisor program: narrows itself. Without it, processes are stopped by their process group.
    pub keeper: Option<PathBuf>,
    /// Where sessions without a working directory get one.
    pub roots: PathBuf,
    /// The environment from which agents inherit variables.
    pub env: Vec<(OsString, OsString)>,
    /// Agents inherit all variables except dangerous ones, not only listed ones: for a server with a single
    /// user.
    pub whole_env: bool,
    /// The limits.
    pub limits: RunLimits,
}

impl RunOptions {
    /// The search path of programs.
    pub(super) fn path(&self) -> Option<&OsStr> {
        self.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str())
    }
}

/// The limits of runs.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// Concurrent agents.
    pub agents: usize,
    /// Queued messages per session.
    pub queue: usize,
    /// How long an agent may take to start.
    pub start: Duration,
    /// After this silence a login hint is shown.
    pub silence: Duration,
    /// How long an agent may take to cancel a turn before it is stopped.
    pub cancel: Duration,
    /// An agent without messages for this time is stopped.
    pub idle: Duration,
    /// Bytes of memory of an agent with all its descendants.
    pub memory: Option<u64>,
    /// Processes of an agent.
    pub processes: Option<u64>,
    /// The lease time in a cluster: a node that does not renew for this long loses its runs.
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
