//! Whoever waits for another node, by session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Whoever waits for another node.
#[derive(Debug, Default)]
pub(in crate::run) struct Wakes {
    waiting: Mutex<HashMap<i64, watch::Sender<()>>>,
}

impl Wakes {
    /// Changes when there may be something new of a session.
    pub(in crate::run) fn of(&self, session: i64) -> watch::Receiver<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(session).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    pub(super) fn wake(&self, session: i64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.get(&session).is_some_and(|tell| tell.send(()).is_err()) {
            // Nobody waits any more.
            waiting.remove(&session);
        }
    }

    pub(super) fn wake_all(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, tell| tell.send(()).is_ok());
    }
}
