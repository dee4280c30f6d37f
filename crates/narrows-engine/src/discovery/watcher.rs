//! Watches session directories for changes.

use notify::event::{EventKind, Flag};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Changed paths that are remembered; more lead to a full scan.
const MAX_PATHS: usize = 10_000;
/// Linked directories that are watched; more are found by full scans.
const MAX_LINKED: usize = 1000;

/// The paths that changed since the last look.
#[derive(Debug, Default)]
pub(super) struct DirtyPaths {
    state: Mutex<DirtyState>,
    pub(super) notify: Notify,
}

#[derive(Debug, Default)]
struct DirtyState {
    paths: BTreeSet<PathBuf>,
    /// The targets of watched links, and the links.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Notifications were missed.
    all: bool,
}

impl DirtyPaths {
    fn add(&self, paths: impl IntoIterator<Item = PathBuf>, all: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all |= all;
        for path in paths {
            let through_link =
                |(to, link): (&PathBuf, &PathBuf)| Some(link.join(path.strip_prefix(to).ok()?));
            let known = state.links.iter().find_map(through_link);
            state.paths.insert(known.unwrap_or(path));
        }
        if state.paths.len() > MAX_PATHS {
            state.all = true;
            state.paths.clear();
        }
        drop(state);
        self.notify.notify_one();
    }

    /// The target of a watched link.
    fn link_target(&self, link: &Path) -> Option<PathBuf> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.links.iter().find(|(_, known)| *known == link).map(|(to, _)| to.clone())
    }

    fn add_link(&self, to: PathBuf, link: PathBuf) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Every path lies below the file system root, so it cannot be mapped.
        if to.parent().is_some() {
            state.links.insert(to, link);
        }
    }

    /// Takes the changed paths, and whether a full scan is needed.
    pub(super) fn take(&self) -> (BTreeSet<PathBuf>, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut state.paths), std::mem::take(&mut state.all))
    }
}

/// Watches roots; those that cannot be watched must be polled.
#[derive(Debug)]
pub(super) struct SourceWatcher {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Linked directories below the roots.
    linked: BTreeSet<PathBuf>,
    /// Roots that exist and cannot be watched.
    unreadable: BTreeSet<PathBuf>,
    dirty: Arc<DirtyPaths>,
}

impl SourceWatcher {
    pub(super) fn new(poll: bool) -> SourceWatcher {
        let dirty = Arc::<DirtyPaths>::default();
        let on_dirty = Arc::clone(&dirty);
        let on_event = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) => on_dirty.add(event.paths, event.attrs.flag() == Some(Flag::Rescan)),
            // The kernel's queue overflowed, or a directory disappeared.
            Err(_) => on_dirty.add([], true),
        };
        // A link may lead to the file system root or in a circle.
        let config = Config::default().with_follow_symlinks(false);
        let watcher = if poll { None } else { RecommendedWatcher::new(on_event, config).ok() };
        SourceWatcher {
            watcher,
            watched: BTreeSet::new(),
            linked: BTreeSet::new(),
            unreadable: BTreeSet::new(),
            dirty,
        }
    }

    pub(super) fn dirty(&self) -> Arc<DirtyPaths> {
        Arc::clone(&self.dirty)
    }

    /// Watches the roots that exist; returns whether all of them are watched.
    pub(super) fn watch_roots(&mut self, roots: &[PathBuf]) -> bool {
        roots.iter().for_each(|root| self.watch_links(root));
        let Some(watcher) = &mut self.watcher else { return false };
        let mut all = true;
        for root in roots.iter().filter(|root| root.is_dir()) {
            if self.watched.contains(root) {
                continue;
            }
            let first = self.unreadable.insert(root.clone());
            // A linked root is watched at its target.
            let to = root.canonicalize().unwrap_or_else(|_| root.clone());
            let is_link = root.is_symlink();
            if is_link {
                self.dirty.add_link(to.clone(), root.clone());
            }
            match watcher.watch(if is_link { &to } else { root }, RecursiveMode::Recursive) {
                Ok(()) => {
                    self.unreadable.remove(root);
                    self.watched.insert(root.clone());
                }
                Err(error) => {
                    if first {
                        let what = "cannot watch a directory; falling back to polling";
                        tracing::warn!(%error, "{what}");
                    }
                    all = false;
                }
            }
        }
        all
    }

    /// Watches linked directories directly below a root, without their subdirectories.
    fn watch_links(&mut self, root: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        for entry in std::fs::read_dir(root).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_symlink() || self.linked.len() >= MAX_LINKED {
                continue;
            }
            let Ok(to) = path.canonicalize() else { continue };
            // Directories that cannot be watched are found by full scans.
            if to.is_dir() && self.linked.insert(path.clone()) && !to.starts_with(root) {
                self.dirty.add_link(to.clone(), path);
                let _ = watcher.watch(&to, RecursiveMode::NonRecursive);
            }
        }
    }

    /// Returns whether a root has appeared or disappeared.
    pub(super) fn roots_changed(&mut self, roots: &[PathBuf]) -> bool {
        let mut changed = false;
        if self.watcher.is_none() {
            return false;
        }
        for root in roots {
            let known = self.watched.contains(root) || self.unreadable.contains(root);
            if root.is_dir() != known {
                self.unwatch(root);
                changed = true;
            }
        }
        changed
    }

    /// Stops watching a root that disappeared: a new one of that name must be watched again.
    pub(super) fn unwatch(&mut self, root: &Path) {
        self.unreadable.remove(root);
        if self.watched.remove(root)
            && let Some(watcher) = &mut self.watcher
        {
            // Fails if the directory is gone; then there is nothing to stop.
            let to = self.dirty.link_target(root);
            let _ = watcher.unwatch(to.as_deref().unwrap_or(root));
        }
    }
}
