//! Looking at what lies on disk, without reading it.

use super::Agent;
use narrows_store::FileMark;
use std::collections::{BTreeMap, HashMap};
use std::fs::Metadata;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A file of some session, as it lies there.
#[derive(Debug, Clone)]
pub struct Lying {
    /// The file.
    pub path: PathBuf,
    /// The session's own file.
    pub main: PathBuf,
    /// What the disk calls it.
    pub node: String,
    /// Its length in bytes.
    pub size: u64,
    /// When it was written last, in microseconds since 1970.
    pub changed: i64,
}

impl Lying {
    /// The file at a path, if it is one.
    pub(super) fn at(path: PathBuf, main: PathBuf) -> io::Result<Option<Lying>> {
        // Links are not followed: they would show one session twice.
        let about = std::fs::symlink_metadata(&path)?;
        let (node, size, changed) = facts(&about);
        Ok(about.is_file().then_some(Lying { path, main, node, size, changed }))
    }
}

/// What tells whether a file has changed: its node, its length, its time.
pub(super) fn facts(about: &Metadata) -> (String, u64, i64) {
    let node = format!("{}:{}", about.dev(), about.ino());
    let changed = about.modified().unwrap_or(UNIX_EPOCH);
    let micros = changed.duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_micros();
    (node, about.len(), i64::try_from(micros).unwrap_or(i64::MAX))
}

/// How long ago a file was written.
pub(super) fn age(changed: i64) -> Duration {
    let at = UNIX_EPOCH + Duration::from_micros(changed.unsigned_abs());
    SystemTime::now().duration_since(at).unwrap_or(Duration::ZERO)
}

/// The sessions of an agent.
#[derive(Debug)]
pub struct Seen {
    /// The agent.
    pub agent: Arc<dyn Agent>,
    /// The files, by the session's own.
    pub sessions: BTreeMap<PathBuf, Vec<Lying>>,
    /// Places that could be looked at.
    pub places: Vec<PathBuf>,
    /// Places that are not there.
    pub missing: Vec<PathBuf>,
    /// Places, folders and files that are there and could not, and why.
    pub refused: Vec<(PathBuf, String)>,
}

/// Looks at everything.
pub fn look(agents: &[Arc<dyn Agent>]) -> Vec<Seen> {
    let mut all = Vec::new();
    for agent in agents {
        let mut seen = Seen {
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
        // What belongs to a session whose own file is gone cannot be read without it.
        seen.sessions.retain(|main, files| files.iter().any(|f| f.path == *main));
        all.push(seen);
    }
    all
}

impl Seen {
    /// The sessions of which something is not in the store, the newest first, with the bytes to read.
    pub(super) fn news(
        &self,
        known: &HashMap<String, FileMark>,
        silence: Duration,
    ) -> Vec<(i64, u64, PathBuf)> {
        let mut news: Vec<(i64, u64, PathBuf)> = Vec::new();
        for (main, files) in &self.sessions {
            let mut bytes = 0;
            let mut changed = false;
            for file in files {
                match known.get(&*file.path.to_string_lossy()) {
                    Some(mark) if is_same(mark, file) => {}
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
            // One that nobody writes any more is over: it is read once more to say so.
            let own = known.get(&*main.to_string_lossy());
            changed |= own.is_some_and(|m| !m.ended) && age(newest) > silence;
            if changed {
                news.push((newest, bytes, main.clone()));
            }
        }
        news.sort_by(|a, b| b.cmp(a));
        news
    }

    /// Whether a path lies where this agent's sessions are, or would be.
    pub(super) fn has_place_of(&self, path: &Path) -> bool {
        self.places.iter().chain(&self.missing).any(|place| path.starts_with(place))
    }
}

fn is_same(mark: &FileMark, file: &Lying) -> bool {
    !mark.gone
        && mark.size == file.size
        && mark.changed == file.changed
        && mark.node == file.node
        && mark.parser >= narrows::PARSER
}
