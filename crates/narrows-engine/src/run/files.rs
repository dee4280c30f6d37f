//! Files of a session's root that come, change and go.

use super::writers::Writers;
use narrows::event::{FileAction, FileChange};
use narrows::{Body, Raw};
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Folders that are watched at most, and changes that wait.
const MAX_FOLDERS: usize = 2000;
const MAX_WAITING: usize = 4096;
/// Files that are remembered, to know which are new.
const MAX_KNOWN: usize = 50_000;
/// Changes that come within this are told together.
const TOGETHER: Duration = Duration::from_millis(300);
/// What programs keep for themselves.
const NOT_OURS: [&str; 10] = [
    ".git",
    ".hg",
    ".svn",
    "node_modules",
    "target",
    ".venv",
    "__pycache__",
    ".next",
    ".cache",
    ".idea",
];

/// The files of a session's root.
#[derive(Debug)]
pub(super) struct Files {
    root: PathBuf,
    session: i64,
    writers: Arc<Writers>,
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    changed: mpsc::Receiver<PathBuf>,
    /// What has changed, and when that was seen first.
    waiting: BTreeMap<PathBuf, Instant>,
    due: Option<tokio::time::Instant>,
    known: BTreeMap<PathBuf, Seen>,
}

/// What a file looked like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    size: u64,
    modified: Option<std::time::SystemTime>,
}

impl Files {
    /// Watches a root. What cannot be watched is not told.
    pub(super) fn watch(root: &Path, session: i64, writers: Arc<Writers>) -> Files {
        let (tell, changed) = mpsc::channel(MAX_WAITING);
        let told = move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            let of_interest = !matches!(
                event.kind,
                EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_))
            );
            if of_interest {
                // When too much waits, what is lost was one of many.
                event.paths.into_iter().for_each(|path| drop(tell.try_send(path)));
            }
        };
        let mut files = Files {
            root: root.to_owned(),
            session,
            writers,
            watcher: notify::recommended_watcher(told).ok(),
            folders: BTreeSet::new(),
            changed,
            waiting: BTreeMap::new(),
            due: None,
            known: BTreeMap::new(),
        };
        let mut there = Vec::new();
        files.add(root, &mut there);
        for path in there {
            files.remember(&path);
        }
        files
    }

    /// Watches a folder and those below it; names the files in them.
    fn add(&mut self, folder: &Path, there: &mut Vec<PathBuf>) {
        let mut next = vec![folder.to_owned()];
        while let Some(folder) = next.pop() {
            if self.folders.len() >= MAX_FOLDERS || self.folders.contains(&folder) {
                continue;
            }
            let Some(watcher) = &mut self.watcher else { return };
            if watcher.watch(&folder, RecursiveMode::NonRecursive).is_err() {
                continue;
            }
            self.folders.insert(folder.clone());
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && !is_not_ours(&entry.file_name()) {
                    next.push(entry.path());
                } else if kind.is_file() && there.len() < MAX_KNOWN {
                    there.push(entry.path());
                }
            }
        }
    }

    fn remember(&mut self, path: &Path) -> Option<(Seen, Option<Seen>)> {
        // Links are not followed: they may lead anywhere.
        let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        let now = Seen { size: found.len(), modified: found.modified().ok() };
        let before = self.known.get(path).copied();
        if before.is_some() || self.known.len() < MAX_KNOWN {
            self.known.insert(path.to_owned(), now);
        }
        Some((now, before))
    }

    /// Waits for changes; what they mean. Whoever stops waiting misses nothing.
    pub(super) async fn next(&mut self) -> Vec<Body<Raw>> {
        loop {
            let more = match self.due {
                None => Ok(self.changed.recv().await),
                Some(due) => tokio::time::timeout_at(due, self.changed.recv()).await,
            };
            match more {
                Ok(Some(path)) => {
                    self.waiting.entry(path).or_insert_with(Instant::now);
                    self.due.get_or_insert_with(|| tokio::time::Instant::now() + TOGETHER);
                }
                Ok(None) => std::future::pending().await,
                Err(_) => {
                    self.due = None;
                    let mut bodies = Vec::new();
                    for (path, at) in std::mem::take(&mut self.waiting) {
                        self.look(&path, at, &mut bodies);
                    }
                    if !bodies.is_empty() {
                        return bodies;
                    }
                }
            }
        }
    }

    fn look(&mut self, path: &Path, at: Instant, bodies: &mut Vec<Body<Raw>>) {
        let Ok(inside) = path.strip_prefix(&self.root) else { return };
        if inside.components().any(|c| is_not_ours(c.as_os_str())) {
            return;
        }
        if path.is_dir() && !path.is_symlink() {
            let mut there = Vec::new();
            self.add(path, &mut there);
            for file in there {
                self.file(&file, at, bodies);
            }
        } else {
            self.file(path, at, bodies);
        }
    }

    fn file(&mut self, path: &Path, at: Instant, bodies: &mut Vec<Body<Raw>>) {
        let (action, size) = match self.remember(path) {
            Some((now, before)) if before == Some(now) => return,
            Some((now, Some(_))) => (FileAction::Modified, Some(now.size)),
            Some((now, None)) => (FileAction::Created, Some(now.size)),
            None if self.known.remove(path).is_some() => (FileAction::Deleted, None),
            None => return,
        };
        let Some(name) = path.to_str() else { return };
        // What no call of this session has written is told quietly.
        let call = self.writers.call(self.session, path, at);
        bodies.push(Body::FileChanged(Box::new(FileChange {
            path: Raw::new(name),
            action,
            size_bytes: size,
            tool_call_id: call.map(Raw::new),
        })));
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.writers.gone(self.session);
    }
}

fn is_not_ours(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|n| NOT_OURS.contains(&n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows::Doing;

    #[tokio::test]
    async fn files_that_come_change_and_go_are_told() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        std::fs::create_dir_all(root.join("outputs")).expect("outputs");
        std::fs::write(root.join("old.txt"), "1").expect("old");
        let writers = Arc::new(Writers::default());
        let mut files = Files::watch(&root, 1, Arc::clone(&writers));
        let actions = |bodies: &[Body<Raw>]| -> Vec<FileAction> {
            let changes = bodies.iter().filter_map(|body| match body {
                Body::FileChanged(change) => Some(change.action),
                _ => None,
            });
            changes.collect()
        };
        std::fs::write(root.join("old.txt"), "22").expect("write");
        assert_eq!(actions(&files.next().await), [FileAction::Modified]);
        std::fs::write(root.join("outputs/new.md"), "hello").expect("write");
        let bodies = files.next().await;
        assert_eq!(actions(&bodies), [FileAction::Created]);
        let calls = |bodies: &[Body<Raw>]| -> Vec<bool> {
            let changes = bodies.iter().filter_map(|body| match body {
                Body::FileChanged(change) => Some(change.tool_call_id.is_some()),
                _ => None,
            });
            changes.collect()
        };
        assert_eq!(calls(&bodies), [false], "nobody was at work");
        let (id, words) = ("c1".to_owned(), String::new());
        writers.heard(1, &root, vec![Doing { id, words, may_write: true, ended: false }]);
        std::fs::write(root.join("outputs/new.md"), "hello again").expect("write");
        assert_eq!(calls(&files.next().await), [true]);
        std::fs::create_dir(root.join("deep")).expect("deep");
        std::fs::create_dir(root.join("node_modules")).expect("modules");
        std::fs::write(root.join("deep/in.txt"), "x").expect("write");
        std::fs::write(root.join("node_modules/x.js"), "x").expect("write");
        assert_eq!(actions(&files.next().await), [FileAction::Created]);
        std::fs::remove_file(root.join("old.txt")).expect("remove");
        assert_eq!(actions(&files.next().await), [FileAction::Deleted]);
    }
}
