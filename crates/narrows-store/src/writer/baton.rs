//! A baton that the small commits of a node's writers pass on: while a writer waits, more appends
//! join its commit. Large commits run concurrently.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// How long a writer waits for the baton: its holder may itself wait for another node.
const PATIENCE: Duration = Duration::from_millis(5);

/// The baton of a node's writers.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    given: Condvar,
}

/// The held baton, passed on when dropped.
#[derive(Debug)]
pub(super) struct Taken(Arc<Turn>);

impl Turn {
    /// Waits for the baton; none on timeout.
    pub(super) fn take(self: &Arc<Self>) -> Option<Taken> {
        let taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.given.wait_timeout_while(taken, PATIENCE, |taken| *taken);
        let (mut taken, waited) = waited.unwrap_or_else(PoisonError::into_inner);
        if waited.timed_out() {
            return None;
        }
        *taken = true;
        Some(Taken(Arc::clone(self)))
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        *self.0.taken.lock().unwrap_or_else(PoisonError::into_inner) = false;
        self.0.given.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_after_the_other_but_not_for_ever() {
        let turn = Arc::new(Turn::default());
        let first = turn.take();
        assert!(first.is_some() && turn.take().is_none());
        drop(first);
        assert!(turn.take().is_some());
    }
}
