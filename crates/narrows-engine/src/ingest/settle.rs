//! Rows of items that wait for each other: the log is ahead of them for a moment.

use super::live::Live;
use super::open::Rows;
use super::{Held, Intake};
use futures_util::future::join_all;
use narrows_store::{Error, Result};
use std::collections::BTreeSet;
use std::sync::atomic::Ordering;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

/// Rows wait no longer than this.
const SOON: Duration = Duration::from_millis(50);
/// When they cannot be written, it is tried again ever later, up to this.
const LATEST: Duration = Duration::from_secs(10);
/// Whoever writes a session for longer than this writes its rows too.
const PATIENCE: Duration = Duration::from_millis(200);

impl Intake {
    /// Sees to it that the rows of a session which is held now are written soon.
    pub(super) fn settle_soon(&self, session: i64) {
        let new = self.waiting().insert(session);
        if new {
            let intake = self.clone();
            tokio::spawn(async move {
                let mut wait = SOON;
                loop {
                    tokio::time::sleep(wait).await;
                    if intake.settle_now(session).await {
                        break;
                    }
                    wait = (wait * 2).min(LATEST);
                }
            });
        }
    }

    /// Writes the rows of a session that wait. What was answered before is in its rows after this.
    pub async fn settle(&self, session: i64) {
        if self.waiting().contains(&session) {
            let intake = self.clone();
            // To the end, also if whoever asks goes away.
            let _ = tokio::spawn(async move { intake.settle_now(session).await }).await;
        }
    }

    /// The same for all sessions, for whoever looks at the rows of many.
    pub async fn settle_all(&self) {
        let waiting: Vec<i64> = self.waiting().iter().copied().collect();
        join_all(waiting.into_iter().map(|session| self.settle(session))).await;
    }

    /// False when it must be tried again.
    async fn settle_now(&self, session: i64) -> bool {
        let Ok(mut held) = self.hold(session, PATIENCE).await else { return false };
        let settled = self.settle_held(&mut held, session).await;
        // While the session is held: whoever writes next says anew that something waits.
        let over = match settled {
            Ok(()) => true,
            Err(error) => {
                tracing::warn!(%error, "rows that wait could not be written");
                !error.is_retryable()
            }
        };
        if over {
            self.waiting().remove(&session);
        }
        over
    }

    async fn settle_held(&self, held: &mut Held, session: i64) -> Result<()> {
        let (store, hub) = (&self.inner.store, &self.inner.hub);
        if let Some(live) = held.as_mut() {
            live.settle(store, hub, Rows::Closed).await;
        }
        let is_usable = |live: &Live| !live.broken.load(Ordering::Relaxed);
        if held.as_ref().is_some_and(is_usable) {
            return Ok(());
        }
        // Whoever knew which rows wait is gone; the log knows it too.
        **held = None;
        match store.settle(session).await {
            // It was written, or deleted, meanwhile.
            Err(Error::Conflict { .. } | Error::NotFound(_)) => Ok(()),
            done => done,
        }
    }

    /// Writes the rows that somebody left behind who could not any more, as after a crash. False when
    /// something could not be written.
    pub async fn recover(&self) -> bool {
        let left = match self.inner.store.unsettled().await {
            Ok(left) => left,
            Err(error) => {
                tracing::warn!(%error, "what was left behind could not be looked for");
                return false;
            }
        };
        let mut all = true;
        for session in left {
            // Whoever has it in memory writes them.
            let Ok(mut held) = self.hold(session, PATIENCE).await else { continue };
            if held.is_none()
                && let Err(error) = self.settle_held(&mut held, session).await
            {
                tracing::warn!(%error, "rows that were left behind could not be written");
                all = false;
            }
        }
        all
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeSet<i64>> {
        self.inner.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
