//! Wakeups of tasks that wait for another node, by session.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use tokio::sync::watch;

/// Tasks that wait for another node.
#[derive(Debug, Default)]
pub(in crate::run) struct Waiters {
    waiting: Mutex<HashMap<i64, watch::Sender<()>>>,
}

impl Waiters {
    /// A receiver that changes when a session may have news.
    pub(in crate::run) fn subscribe(&self, session: i64) -> watch::Receiver<()> {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(session).or_insert_with(|| watch::channel(()).0).subscribe()
    }

    pub(super) fn wake(&self, session: i64) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        if waiting.get(&session).is_some_and(|sender| sender.send(()).is_err()) {
            // Its receivers are gone.
            waiting.remove(&session);
        }
    }

    pub(super) fn wake_all(&self) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|_, sender| sender.send(()).is_ok());
    }
}
