//! The progress of discovery.

use std::sync::Mutex;
use std::sync::PoisonError;

/// Totals of finished and outstanding work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiscoveryTotals {
    /// Sessions to read.
    pub sessions: u64,
    /// Sessions that are finished.
    pub done: u64,
    /// Sessions with new content.
    pub fresh: u64,
    /// Bytes to read.
    pub bytes: u64,
    /// Bytes that were read.
    pub read: u64,
    /// New events.
    pub events: u64,
    /// Sessions that failed.
    pub failed: u64,
}

/// The progress of discovery, shared with its observers.
#[derive(Debug, Default)]
pub struct DiscoveryProgress {
    sums: Mutex<DiscoveryTotals>,
    /// Finished sessions when the queue was last empty.
    rested: Mutex<u64>,
    /// The last error.
    fault: Mutex<Option<String>>,
}

impl DiscoveryProgress {
    /// The current totals.
    pub fn sums(&self) -> DiscoveryTotals {
        *self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The last error.
    pub fn fault(&self) -> Option<String> {
        self.fault.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn add(&self, change: impl FnOnce(&mut DiscoveryTotals)) {
        change(&mut self.sums.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// How many of the sessions that were queued together are finished, and their number; `None` if none is
    /// outstanding.
    pub fn waiting(&self) -> Option<(u64, u64)> {
        let sums = self.sums();
        let rested = *self.rested.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) =
            (sums.done.saturating_sub(rested), sums.sessions.saturating_sub(rested));
        (done < total).then_some((done, total))
    }

    /// Counts one more session to read.
    pub(super) fn count(&self, bytes: u64) {
        self.add(|s| {
            if s.done >= s.sessions {
                *self.rested.lock().unwrap_or_else(PoisonError::into_inner) = s.done;
            }
            s.sessions += 1;
            s.bytes += bytes;
        });
    }

    /// Takes back the count of a session that is not read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_counts_since_queue_was_empty() {
        let progress = DiscoveryProgress::default();
        assert_eq!(progress.waiting(), None);
        (0..3).for_each(|_| progress.count(9));
        progress.add(|s| s.done += 1);
        assert_eq!(progress.waiting(), Some((1, 3)));
        progress.uncount(9);
        progress.add(|s| s.done += 1);
        assert_eq!(progress.waiting(), None);
        progress.count(9);
        assert_eq!(progress.waiting(), Some((0, 1)));
    }
}
