//! Being told of files that change.

use notify::event::{EventKind, Flag};
use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Notify;

/// Changed paths that are remembered; beyond that everything is looked at.
const MAX_PATHS: usize = 10_000;

/// What has changed since somebody looked.
#[derive(Debug, Default)]
pub(super) struct Dirty {
    state: Mutex<State>,
    pub(super) told: Notify,
}

#[derive(Debug, Default)]
struct State {
    paths: BTreeSet<PathBuf>,
    /// Something was missed.
    all: bool,
}

impl Dirty {
    fn add(&self, paths: impl IntoIterator<Item = PathBuf>, all: bool) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.all |= all;
        state.paths.extend(paths);
        if state.paths.len() > MAX_PATHS {
            state.all = true;
            state.paths.clear();
        }
        drop(state);
        self.told.notify_one();
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
        let watcher = if poll { None } else { notify::recommended_watcher(tell).ok() };
        Watch { watcher, watched: BTreeSet::new(), refused: BTreeSet::new(), dirty }
    }

    pub(super) fn dirty(&self) -> Arc<Dirty> {
        Arc::clone(&self.dirty)
    }

    /// Watches those of these places that are there. True when each of them is watched.
    pub(super) fn set(&mut self, places: &[PathBuf]) -> bool {
        let Some(watcher) = &mut self.watcher else { return false };
        let mut all = true;
        for place in places.iter().filter(|place| place.is_dir()) {
            if self.watched.contains(place) {
                continue;
            }
            let first = self.refused.insert(place.clone());
            match watcher.watch(place, RecursiveMode::Recursive) {
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
            let _ = watcher.unwatch(place);
        }
    }
}
