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
    /// Sessions of which something new was read.
    pub fresh: u64,
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
    /// How many sessions were done when nothing waited last.
    rested: Mutex<u64>,
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

    /// How many of the sessions that wait, or waited with them, were read, and how many there are;
    /// none when nothing waits.
    pub fn waiting(&self) -> Option<(u64, u64)> {
        let sums = self.sums();
        let rested = *self.rested.lock().unwrap_or_else(PoisonError::into_inner);
        let (done, total) =
            (sums.done.saturating_sub(rested), sums.sessions.saturating_sub(rested));
        (done < total).then_some((done, total))
    }

    /// One session more is to be read.
    pub(super) fn count(&self, bytes: u64) {
        self.add(|s| {
            if s.done >= s.sessions {
                *self.rested.lock().unwrap_or_else(PoisonError::into_inner) = s.done;
            }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_waits_is_counted_since_nothing_did() {
        let progress = Progress::default();
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
