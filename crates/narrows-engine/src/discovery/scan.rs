//! Finds session files by their metadata, without reading them.

use super::SessionSource;
use narrows_store::FileMark;
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file of a session.
#[derive(Debug, Clone)]
pub struct SessionFile {
    /// The path.
    pub path: PathBuf,
    /// The session's main file.
    pub main: PathBuf,
    /// Device and inode.
    pub node: String,
    /// The length in bytes.
    pub size: u64,
    /// When it was modified, in microseconds since 1970.
    pub changed: i64,
}

impl SessionFile {
    /// The file at a path, if it is a regular file.
    pub(super) fn at(path: PathBuf, main: PathBuf) -> io::Result<Option<SessionFile>> {
        // Links are not followed: they would show one session twice.
        let about = std::fs::symlink_metadata(&path)?;
        let (node, size, changed) = fingerprint(&about);
        Ok(about.is_file().then_some(SessionFile { path, main, node, size, changed }))
    }
}

/// The fingerprint of a file: its node, length and modification time in microseconds.
pub(super) fn fingerprint(about: &Metadata) -> (String, u64, i64) {
    let node = format!("{}:{}", about.dev(), about.ino());
    let changed = about.modified().unwrap_or(UNIX_EPOCH);
    let micros = changed.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_micros();
    (node, about.len(), i64::try_from(micros).unwrap_or(i64::MAX))
}

/// The time since a file was modified.
pub(super) fn age(changed: i64) -> Duration {
    let at = UNIX_EPOCH + Duration::from_micros(changed.unsigned_abs());
    SystemTime::now().duration_since(at).unwrap_or(Duration::ZERO)
}

/// The sessions of one agent.
#[derive(Debug)]
pub struct ScanResult {
    /// The agent.
    pub agent: Arc<dyn SessionSource>,
    /// The files by main file.
    pub sessions: BTreeMap<PathBuf, Vec<SessionFile>>,
    /// Roots that were read.
    pub places: Vec<PathBuf>,
    /// Roots that do not exist.
    pub missing: Vec<PathBuf>,
    /// Roots, directories and files that could not be read, with the reason.
    pub refused: Vec<(PathBuf, String)>,
}

/// Scans the files of all agents.
pub fn look(agents: &[Arc<dyn SessionSource>]) -> Vec<ScanResult> {
    let mut all = Vec::new();
    for agent in agents {
        let mut seen = ScanResult {
            agent: Arc::clone(agent),
            sessions: BTreeMap::new(),
            places: Vec::new(),
            missing: Vec::new(),
            refused: Vec::new(),
        };
        for place in agent.places() {
            match agent.list(&place, &mut seen.refused) {
                Ok(files) => {
                    for file in files {
                        seen.sessions.entry(file.main.clone()).or_default().push(file);
                    }
                    seen.places.push(place);
                }
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => seen.missing.push(place),
                Err(e) => seen.refused.push((place, e.to_string())),
            }
        }
        // Files of a session without its main file cannot be read.
        seen.sessions.retain(|main, files| files.iter().any(|f| f.path == *main));
        all.push(seen);
    }
    all
}

impl ScanResult {
    /// The sessions with changes, newest first: modification time, bytes to read and main file.
    pub(super) fn changed_sessions(
        &self,
        known: &HashMap<String, FileMark>,
        silence: Duration,
    ) -> Vec<(i64, u64, PathBuf)> {
        let mut sessions: Vec<(i64, u64, PathBuf)> = Vec::new();
        for (main, files) in &self.sessions {
            let mut bytes = 0;
            let mut changed = false;
            for file in files {
                match known.get(&*file.path.to_string_lossy()) {
                    Some(mark) if is_unchanged(mark, file) => {}
                    Some(mark) => {
                        bytes += file.size.saturating_sub(mark.size);
                        changed = true;
                    }
                    None => {
                        bytes += file.size;
                        changed = true;
                    }
                }
            }
            let newest = files.iter().map(|f| f.changed).max().unwrap_or(0);
            // A session that has become silent is read once more, to end it.
            let own = known.get(&*main.to_string_lossy());
            changed |= own.is_some_and(|m| !m.ended) && age(newest) > silence;
            if changed {
                sessions.push((newest, bytes, main.clone()));
            }
        }
        sessions.sort_by(|a, b| b.cmp(a));
        sessions
    }

    /// Returns whether a path lies below a root of this agent, existing or not.
    pub(super) fn covers(&self, path: &Path) -> bool {
        self.places.iter().chain(&self.missing).any(|place| path.starts_with(place))
    }
}

fn is_unchanged(mark: &FileMark, file: &SessionFile) -> bool {
    !mark.gone
        && mark.size == file.size
        && mark.changed == file.changed
        && mark.node == file.node
        && mark.parser >= narrows::PARSER
}
