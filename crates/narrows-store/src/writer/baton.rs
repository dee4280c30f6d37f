//! Writers of one node that take turns while there is little to write: whoever waits for the other has
//! more in its own commit then. Much at once goes beside each other.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// One that takes longer is not waited for: it may itself wait for another node.
const PATIENCE: Duration = Duration::from_millis(5);

/// Whether somebody writes.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    taken: Mutex<bool>,
    given: Condvar,
}

/// It is somebody's turn until this is dropped.
#[derive(Debug)]
pub(super) struct Taken(Arc<Turn>);

impl Turn {
    /// Waits for its turn; none when another one takes too long.
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
