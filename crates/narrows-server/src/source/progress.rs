//! How far reading is.

use std::sync::Mutex;
use std::sync::PoisonError;

/// Sums of what was done and is to be done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sums {
    /// Sessions to be read.
    pub sessions: u64,
    /// Sessions that were.
    pub done: u64,
    /// Bytes to be read.
    pub bytes: u64,
    /// Bytes that were.
    pub read: u64,
    /// New events.
    pub events: u64,
    /// Sessions that could not be read.
    pub failed: u64,
}

/// How far reading is, for whoever wants to know.
#[derive(Debug, Default)]
pub struct Progress {
    sums: Mutex<Sums>,
    /// The last thing that went wrong.
    fault: Mutex<Option<String>>,
}

impl Progress {
    /// As it is now.
    pub fn sums(&self) -> Sums {
        *self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last thing that went wrong.
    pub fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn add(&self, change: impl FnOnce(&mut Sums)) {
        change(&mut self.sums.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// One session more is to be read.
    pub(super) fn count(&self, bytes: u64) {
        self.add(|s| {
            s.sessions += 1;
            s.bytes += bytes;
        });
    }

    /// It is not to be read after all.
    pub(super) fn uncount(&self, bytes: u64) {
        self.add(|s| {
            s.sessions = s.sessions.saturating_sub(1);
            s.bytes = s.bytes.saturating_sub(bytes);
        });
    }

    pub(super) fn failed(&self, what: String) {
        self.add(|s| s.failed += 1);
        *self.fault.lock().unwrap_or_else(PoisonError::into_inner) = Some(what);
    }
}
