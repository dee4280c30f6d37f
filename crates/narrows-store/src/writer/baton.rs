//! A baton that the small commits of a node's writers pass on: while a writer waits, more appends
//! join its commit. Large commits run concurrently.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a writer waits for the baton: its holder may itself wait for another node.
const WAIT_TIMEOUT: Duration = Duration::from_millis(5);

/// The baton of a node's writers.
#[derive(Debug, Default)]
pub(crate) struct CommitBaton {
    held: Mutex<bool>,
    released: Condvar,
}

/// The held baton, passed on when dropped.
#[derive(Debug)]
pub(super) struct BatonGuard(Arc<CommitBaton>);

impl CommitBaton {
    /// Waits for the baton; none on timeout.
    pub(super) fn acquire(self: &Arc<Self>) -> Option<BatonGuard> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.released.wait_timeout_while(held, WAIT_TIMEOUT, |held| *held);
        let (mut held, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *held = true;
        Some(BatonGuard(Arc::clone(self)))
    }
}

impl Drop for BatonGuard {
    fn drop(&mut self) {
        *self.0.held.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.released.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baton_is_exclusive_with_timeout() {
        let baton = Arc::new(CommitBaton::default());
        let first = baton.acquire();
        assert!(first.is_some() && baton.acquire().is_none());
        drop(first);
        assert!(baton.acquire().is_some());
    }
}
