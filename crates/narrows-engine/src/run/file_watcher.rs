//! Reports files that are created, changed and deleted in a session's workspace.

use super::file_attribution::FileAttribution;
use narrows::event::{FileAction, FileChange};
use narrows::{Body, Raw};
use notify::event::{EventKind, ModifyKind};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Directories that are watched, and changes that may queue.
const MAX_WATCHED_DIRS: usize = 2000;
const MAX_QUEUED_CHANGES: usize = 4096;
/// Files that are tracked, to detect new ones.
const MAX_TRACKED_FILES: usize = 50_000;
/// Changes within this time are reported together.
const DEBOUNCE: Duration = Duration::from_millis(300);
/// Directories that programs keep for themselves.
const IGNORED_DIRS: [&str; 10] = [
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

/// Watches the files of a workspace.
#[derive(Debug)]
pub(super) struct FileWatcher {
    root: PathBuf,
    session: i64,
    attribution: Arc<FileAttribution>,
    watcher: Option<RecommendedWatcher>,
    folders: BTreeSet<PathBuf>,
    changed: mpsc::Receiver<PathBuf>,
    /// Changed paths, and when each change was first seen.
    pending: BTreeMap<PathBuf, Instant>,
    due: Option<tokio::time::Instant>,
    tracked: BTreeMap<PathBuf, FileVersion>,
}

/// The version of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileVersion {
    size: u64,
    modified: Option<std::time::SystemTime>,
}

impl FileWatcher {
    /// Watches a workspace. Directories that cannot be watched are not reported.
    pub(super) fn watch(
        root: &Path,
        session: i64,
        attribution: Arc<FileAttribution>,
    ) -> FileWatcher {
        let (sender, changed) = mpsc::channel(MAX_QUEUED_CHANGES);
        let on_event = move |event: notify::Result<notify::Event>| {
            let Ok(event) = event else { return };
            let is_relevant = !matches!(
                event.kind,
                EventKind::Access(_) | EventKind::Modify(ModifyKind::Metadata(_))
            );
            if is_relevant {
                // If the queue is full, the lost change was one of many.
                event.paths.into_iter().for_each(|path| drop(sender.try_send(path)));
            }
        };
        let mut files = FileWatcher {
            root: root.to_owned(),
            session,
            attribution,
            watcher: notify::recommended_watcher(on_event).ok(),
            folders: BTreeSet::new(),
            changed,
            pending: BTreeMap::new(),
            due: None,
            tracked: BTreeMap::new(),
        };
        let mut files_found = Vec::new();
        files.watch_dir(root, &mut files_found);
        for path in files_found {
            files.track(&path);
        }
        files
    }

    /// Watches a directory and those below it; collects their files.
    fn watch_dir(&mut self, folder: &Path, files_found: &mut Vec<PathBuf>) {
        let mut next = vec![folder.to_owned()];
        while let Some(folder) = next.pop() {
            if self.folders.len() >= MAX_WATCHED_DIRS || self.folders.contains(&folder) {
                continue;
            }
            let Some(watcher) = &mut self.watcher else { return };
            if watcher.watch(&folder, RecursiveMode::NonRecursive).is_err() {
                continue;
            }
            self.folders.insert(folder.clone());
            for entry in std::fs::read_dir(&folder).into_iter().flatten().flatten() {
                let Ok(kind) = entry.file_type() else { continue };
                if kind.is_dir() && !is_ignored(&entry.file_name()) {
                    next.push(entry.path());
                } else if kind.is_file() && files_found.len() < MAX_TRACKED_FILES {
                    files_found.push(entry.path());
                }
            }
        }
    }

    fn track(&mut self, path: &Path) -> Option<(FileVersion, Option<FileVersion>)> {
        // Links are not followed: they may lead anywhere.
        let found = path.symlink_metadata().ok().filter(std::fs::Metadata::is_file)?;
        let now = FileVersion { size: found.len(), modified: found.modified().ok() };
        let before = self.tracked.get(path).copied();
        if before.is_some() || self.tracked.len() < MAX_TRACKED_FILES {
            self.tracked.insert(path.to_owned(), now);
        }
        Some((now, before))
    }

    /// Waits for changes and returns their events. Cancelling the future loses nothing.
    pub(super) async fn next(&mut self) -> Vec<Body<Raw>> {
        loop {
            let more = match self.due {
                None => Ok(self.changed.recv().await),
                Some(due) => tokio::time::timeout_at(due, self.changed.recv()).await,
            };
            match more {
                Ok(Some(path)) => {
                    self.pending.entry(path).or_insert_with(Instant::now);
                    self.due.get_or_insert_with(|| tokio::time::Instant::now() + DEBOUNCE);
                }
                Ok(None) => std::future::pending().await,
                Err(_) => {
                    self.due = None;
                    let mut bodies = Vec::new();
                    for (path, at) in std::mem::take(&mut self.pending) {
                        self.check_path(&path, at, &mut bodies);
                    }
                    if !bodies.is_empty() {
                        return bodies;
                    }
                }
            }
        }
    }

    fn check_path(&mut self, path: &Path, at: Instant, bodies: &mut Vec<Body<Raw>>) {
        let Ok(inside) = path.strip_prefix(&self.root) else { return };
        if inside.components().any(|c| is_ignored(c.as_os_str())) {
            return;
        }
        if path.is_dir() && !path.is_symlink() {
            let mut files_found = Vec::new();
            self.watch_dir(path, &mut files_found);
            for file in files_found {
                self.check_file(&file, at, bodies);
            }
        } else {
            self.check_file(path, at, bodies);
        }
    }

    fn check_file(&mut self, path: &Path, at: Instant, bodies: &mut Vec<Body<Raw>>) {
        let (action, size) = match self.track(path) {
            Some((now, before)) if before == Some(now) => return,
            Some((now, Some(_))) => (FileAction::Modified, Some(now.size)),
            Some((now, None)) => (FileAction::Created, Some(now.size)),
            None if self.tracked.remove(path).is_some() => (FileAction::Deleted, None),
            None => return,
        };
        let Some(name) = path.to_str() else { return };
        // A change without a call of this session is reported without one.
        let call = self.attribution.writer_of(self.session, path, at);
        bodies.push(Body::FileChanged(Box::new(FileChange {
            path: Raw::new(name),
            action,
            size_bytes: size,
            tool_call_id: call.map(Raw::new),
        })));
    }
}

impl Drop for FileWatcher {
    fn drop(&mut self) {
        self.attribution.remove_session(self.session);
    }
}

fn is_ignored(name: &std::ffi::OsStr) -> bool {
    name.to_str().is_some_and(|n| IGNORED_DIRS.contains(&n))
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows::Doing;

    #[tokio::test]
    async fn created_modified_and_deleted_files_are_reported() {
        let folder = tempfile::tempdir().expect("folder");
        let root = folder.path().canonicalize().expect("root");
        std::fs::create_dir_all(root.join("outputs")).expect("outputs");
        std::fs::write(root.join("old.txt"), "1").expect("old");
        let attribution = Arc::new(FileAttribution::default());
        let mut files = FileWatcher::watch(&root, 1, Arc::clone(&attribution));
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
        assert_eq!(calls(&bodies), [false], "no active call");
        let (id, words) = ("c1".to_owned(), String::new());
        attribution.record_calls(
            1,
            &root,
            vec![Doing { id, words, may_write: true, ended: false }],
        );
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
