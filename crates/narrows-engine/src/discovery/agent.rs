//! Agents that keep their sessions in files. One small module each.

use super::claude_home::ClaudeHome;
use super::{Found, Lying};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// An agent, and where it keeps its sessions.
pub trait Agent: Send + Sync + std::fmt::Debug {
    /// What it is called.
    fn name(&self) -> &'static str;
    /// The folders under which its sessions lie; some may not be there.
    fn places(&self) -> Vec<PathBuf>;
    /// The files of the sessions in a place. What of it cannot be looked at is added to `refused`, with
    /// the reason.
    fn list(&self, place: &Path, refused: &mut Vec<(PathBuf, String)>) -> io::Result<Vec<Lying>>;
    /// The session's own file, for any path below a place that has to do with a session.
    fn session_of(&self, place: &Path, path: &Path) -> Option<PathBuf>;
    /// The files of the session whose own file this is.
    fn files(&self, main: &Path) -> io::Result<Found>;
    /// The folder in which the agent worked.
    fn cwd(&self, main: &Path) -> Option<String>;
    /// After how many days without a change it deletes a session.
    fn keeps_days(&self) -> Option<u32>;
}

/// Where sessions are looked for.
#[derive(Debug, Clone, Default)]
pub struct SourceOptions {
    /// The home directory.
    pub home: Option<PathBuf>,
    /// Folders in which Claude Code keeps its settings and sessions; else the usual ones.
    pub claude_dirs: Vec<PathBuf>,
    /// Projects that are left out: folders, with all below them.
    pub exclude: Vec<PathBuf>,
    /// Look at all files again and again, rather than waiting to be told of changes.
    pub poll: bool,
    /// A session whose files have not changed for so long is taken to be over; else five minutes.
    pub silence: Option<Duration>,
}

/// How long the files of a session that goes on may be silent.
const SILENCE: Duration = Duration::from_mins(5);

impl SourceOptions {
    /// How long the files of a session that goes on may be silent.
    pub(super) fn silence(&self) -> Duration {
        self.silence.unwrap_or(SILENCE)
    }

    /// Whether the sessions of a working directory are left out.
    pub(super) fn leaves_out(&self, cwd: &str) -> bool {
        self.exclude.iter().any(|folder| Path::new(cwd).starts_with(folder))
    }
}

/// The agents whose sessions can be read.
pub fn agents(options: &SourceOptions) -> Vec<Arc<dyn Agent>> {
    vec![Arc::new(ClaudeHome::new(options))]
}
