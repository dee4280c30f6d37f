//! Item rows that are flushed after their request was answered: the log is ahead of them for a moment,
//! so that many small requests share one write of the rows.

use super::item_flush::FlushPolicy;
use super::{Ingest, WriterGuard};
use futures_util::future::join_all;
use narrows_store::{Error, Result};
use std::collections::BTreeSet;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// How long item rows wait at most.
const FLUSH_DELAY: Duration = Duration::from_millis(50);
/// The longest delay between attempts to flush; it doubles after each failure.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(10);
/// A request that holds the writer for longer flushes the rows itself.
const WRITER_LOCK_TIMEOUT: Duration = Duration::from_millis(200);

impl Ingest {
    /// Schedules a flush of a session's item rows. The caller holds the writer.
    pub(super) fn schedule_flush(&self, session: i64) {
        let is_new = self.pending_flushes().insert(session);
        if is_new {
            let ingest = self.clone();
            tokio::spawn(async move {
                let mut delay = FLUSH_DELAY;
                loop {
                    tokio::time::sleep(delay).await;
                    if ingest.try_flush(session).await {
                        break;
                    }
                    delay = (delay * 2).min(MAX_RETRY_DELAY);
                }
            });
        }
    }

    /// Flushes a session's item rows: afterwards they include all requests that were answered before.
    pub async fn flush_items(&self, session: i64) {
        if self.pending_flushes().contains(&session) {
            let ingest = self.clone();
            // A task of its own: it completes even if the caller is cancelled.
            let _ = tokio::spawn(async move { ingest.try_flush(session).await }).await;
        }
    }

    /// Flushes the item rows of all sessions, for queries over many.
    pub async fn flush_all_items(&self) {
        let pending: Vec<i64> = self.pending_flushes().iter().copied().collect();
        join_all(pending.into_iter().map(|session| self.flush_items(session))).await;
    }

    /// Returns false when the flush must be retried.
    async fn try_flush(&self, session: i64) -> bool {
        let Ok(mut guard) = self.lock_writer(session, WRITER_LOCK_TIMEOUT).await else {
            return false;
        };
        let flushed = self.flush_locked(&mut guard, session).await;
        let done = match flushed {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "cannot flush item rows");
                !error.is_retryable()
            }
        };
        // While the writer is locked: the next request schedules its own flush.
        if done {
            self.pending_flushes().remove(&session);
        }
        done
    }

    async fn flush_locked(&self, guard: &mut WriterGuard, session: i64) -> Result<()> {
        let (store, hub) = (&self.inner.store, &self.inner.hub);
        if let Some(writer) = guard.as_mut() {
            writer.flush_items(store, hub, FlushPolicy::Closed).await;
        }
        if guard.as_ref().is_some_and(|writer| !writer.is_poisoned()) {
            return Ok(());
        }
        // The writer that knew the pending rows is gone; the log has them too.
        **guard = None;
        match store.settle(session).await {
            // Another writer has appended, or the session was deleted.
            Err(Error::Conflict { .. } | Error::NotFound(_)) => Ok(()),
            result => result,
        }
    }

    /// Writes item rows that an earlier process did not, as after a crash. Returns false when some could
    /// not be written.
    pub async fn recover_items(&self) -> bool {
        let sessions = match self.inner.store.unsettled().await {
            Ok(sessions) => sessions,
            Err(error) => {
                tracing::warn!(%error, "cannot list sessions with pending item rows");
                return false;
            }
        };
        let mut complete = true;
        for session in sessions {
            // A request that holds the writer writes the rows itself.
            let Ok(mut guard) = self.lock_writer(session, WRITER_LOCK_TIMEOUT).await else {
                continue;
            };
            if guard.is_none()
                && let Err(error) = self.flush_locked(&mut guard, session).await
            {
                tracing::warn!(%error, "cannot write pending item rows");
                complete = false;
            }
        }
        complete
    }

    fn pending_flushes(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.inner.pending_flushes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
