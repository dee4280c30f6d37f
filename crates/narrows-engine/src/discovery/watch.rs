//! Being told of files that change.

use notify::event::{EventKind, Flag};
use notify::{Config, RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Changed paths that are remembered; beyond that everything is looked at.
const MAX_PATHS: usize = 10_000;
/// Folders that are links and are watched; more are looked at now and then.
const MAX_LINKED: usize = 1000;

/// What has changed since somebody looked.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    state: Mutex<State>,
    pub(super) told: Notify,
}

#[derive(Debug, Default)]
struct State {
    paths: BTreeSet<PathBuf>,
    /// What links lead to that are watched, and their own paths.
    links: BTreeMap<PathBuf, PathBuf>,
    /// Something was missed.
    all: bool,
}

impl Dirty {
    fn add(&self, paths: impl IntoIterator<Item = PathBuf>, all: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all |= all;
        for path in paths {
            let led =
                |(to, link): (&PathBuf, &PathBuf)| Some(link.join(path.strip_prefix(to).ok()?));
            let known = state.links.iter().find_map(led);
            state.paths.insert(known.unwrap_or(path));
        }
        if state.paths.len() > MAX_PATHS {
            state.all = true;
            state.paths.clear();
        }
        drop(state);
        self.told.notify_one();
    }

    /// What a link that is watched leads to.
    fn led_by(&self, link: &Path) -> Option<PathBuf> {
        let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.links.iter().find(|(_, known)| *known == link).map(|(to, _)| to.clone())
    }

    fn link(&self, to: PathBuf, link: PathBuf) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // Everything lies below the root of the disk.
        if to.parent().is_some() {
            state.links.insert(to, link);
        }
    }

    /// The paths, and whether everything must be looked at.
    pub(super) fn take(&self) -> (BTreeSet<PathBuf>, bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut state.paths), std::mem::take(&mut state.all))
    }
}

/// Watches places; what cannot be watched must be looked at again and again.
#[derive(Debug)]
pub(super) struct Watch {
    watcher: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// Folders below them that are links.
    linked: BTreeSet<PathBuf>,
    /// Places that are there and cannot be watched.
    refused: BTreeSet<PathBuf>,
    dirty: Arc<Dirty>,
}

impl Watch {
    pub(super) fn new(poll: bool) -> Watch {
        let dirty = Arc::<Dirty>::default();
        let told = Arc::clone(&dirty);
        let tell = move |event: notify::Result<notify::Event>| match event {
            Ok(event) if matches!(event.kind, EventKind::Access(_)) => {}
            Ok(event) => told.add(event.paths, event.attrs.flag() == Some(Flag::Rescan)),
            // The queue of the kernel ran over, or a folder went away.
            Err(_) => told.add([], true),
        };
        // A link may lead to the root of the disk, or in a circle.
        let config = Config::default().with_follow_symlinks(false);
        let watcher = if poll { None } else { RecommendedWatcher::new(tell, config).ok() };
        Watch {
            watcher,
            watched: BTreeSet::new(),
            linked: BTreeSet::new(),
            refused: BTreeSet::new(),
            dirty,
        }
    }

    pub(super) fn dirty(&self) -> Arc<Dirty> {
        Arc::clone(&self.dirty)
    }

    /// Watches those of these places that are there. True when each of them is watched.
    pub(super) fn set(&mut self, places: &[PathBuf]) -> bool {
        places.iter().for_each(|place| self.set_linked(place));
        let Some(watcher) = &mut self.watcher else { return false };
        let mut all = true;
        for place in places.iter().filter(|place| place.is_dir()) {
            if self.watched.contains(place) {
                continue;
            }
            let first = self.refused.insert(place.clone());
            // Links are watched by what they lead to.
            let to = place.canonicalize().unwrap_or_else(|_| place.clone());
            let is_link = place.is_symlink();
            if is_link {
                self.dirty.link(to.clone(), place.clone());
            }
            match watcher.watch(if is_link { &to } else { place }, RecursiveMode::Recursive) {
                Ok(()) => {
                    self.refused.remove(place);
                    self.watched.insert(place.clone());
                }
                Err(error) => {
                    if first {
                        let what = "a folder cannot be watched: it is looked at instead";
                        tracing::warn!(%error, "{what}");
                    }
                    all = false;
                }
            }
        }
        all
    }

    /// Watches the folders right below a place that are links: what lies in them, and no deeper.
    fn set_linked(&mut self, place: &Path) {
        let Some(watcher) = &mut self.watcher else { return };
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let path = entry.path();
            if !path.is_symlink() || self.linked.len() >= MAX_LINKED {
                continue;
            }
            let Ok(to) = path.canonicalize() else { continue };
            // What cannot be watched is looked at now and then.
            if to.is_dir() && self.linked.insert(path.clone()) && !to.starts_with(place) {
                self.dirty.link(to.clone(), path);
                let _ = watcher.watch(&to, RecursiveMode::NonRecursive);
            }
        }
    }

    /// Whether one of these places has come or gone since.
    pub(super) fn has_news(&mut self, places: &[PathBuf]) -> bool {
        let mut news = false;
        if self.watcher.is_none() {
            return false;
        }
        for place in places {
            let known = self.watched.contains(place) || self.refused.contains(place);
            if place.is_dir() != known {
                self.forget(place);
                news = true;
            }
        }
        news
    }

    /// A place went away: another one of that name is to be watched anew.
    pub(super) fn forget(&mut self, place: &Path) {
        self.refused.remove(place);
        if self.watched.remove(place)
            && let Some(watcher) = &mut self.watcher
        {
            // It is an error when the folder is gone, and nothing is left to do then.
            let to = self.dirty.led_by(place);
            let _ = watcher.unwatch(to.as_deref().unwrap_or(place));
        }
    }
}
