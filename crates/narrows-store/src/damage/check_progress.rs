//! The progress of the initial check of a store.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Counts checked sessions while the initial check runs.
#[derive(Debug, Default)]
pub(crate) struct CheckProgress {
    is_running: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
}

impl CheckProgress {
    pub(crate) fn set_running(&self, is_running: bool) {
        self.is_running.store(is_running, Ordering::Relaxed);
    }

    pub(crate) fn set_total(&self, sessions: u64) {
        self.total.store(sessions, Ordering::Relaxed);
    }

    pub(crate) fn set_done(&self, sessions: u64) {
        self.done.store(sessions, Ordering::Relaxed);
    }

    /// Checked sessions and all sessions, while the check runs.
    pub(crate) fn get(&self) -> Option<(u64, u64)> {
        let order = Ordering::Relaxed;
        self.is_running.load(order).then(|| (self.done.load(order), self.total.load(order)))
    }
}
