//! The session files of agents: the trait that an agent's module implements, and the options.

use super::claude::ClaudeHome;
use super::{SessionFile, SessionFiles};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An agent whose sessions are stored in files.
pub trait SessionSource: Send + Sync + std::fmt::Debug {
    /// The agent's name.
    fn name(&self) -> &'static str;
    /// The directories that hold its sessions; some may not exist.
    fn places(&self) -> Vec<PathBuf>;
    /// Lists the session files below a root. Unreadable paths are added to `refused` with the reason.
    fn list(
        &self,
        place: &Path,
        unreadable: &mut Vec<(PathBuf, String)>,
    ) -> io::Result<Vec<SessionFile>>;
    /// The main file of the session to which a path below a root belongs.
    fn session_of(&self, place: &Path, path: &Path) -> Option<PathBuf>;
    /// The files of the session with this main file.
    fn files(&self, main: &Path) -> io::Result<SessionFiles>;
    /// The agent's working directory.
    fn cwd(&self, main: &Path) -> Option<String>;
    /// Days without a change after which the agent deletes a session.
    fn keeps_days(&self) -> Option<u32>;
}

/// Where to find sessions.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Directories of Claude Code; by default the usual ones.
    pub claude_dirs: Vec<PathBuf>,
    /// Directories whose projects are excluded, with all below them.
    pub exclude: Vec<PathBuf>,
    /// Poll all files instead of waiting for notifications.
    pub poll: bool,
    /// A session whose files have been silent for this long is ended; five minutes by default.
    pub silence: Option<Duration>,
}

/// The default of `silence`.
const DEFAULT_SILENCE_LIMIT: Duration = Duration::from_mins(5);

impl SourceOptions {
    /// How long the files of an open session may be silent.
    pub(super) fn silence(&self) -> Duration {
        self.silence.unwrap_or(DEFAULT_SILENCE_LIMIT)
    }

    /// Returns whether the sessions of a working directory are excluded.
    pub(super) fn leaves_out(&self, cwd: &str) -> bool {
        self.exclude.iter().any(|folder| Path::new(cwd).starts_with(folder))
    }
}

/// The agents whose sessions can be read.
pub fn agents(options: &SourceOptions) -> Vec<Arc<dyn SessionSource>> {
    vec![Arc::new(ClaudeHome::new(options))]
}
