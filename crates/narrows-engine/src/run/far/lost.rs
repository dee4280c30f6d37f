//! What a lost node left: its runs are taken over to be closed.

use super::super::turns::{self, Left};
use super::super::{Refusal, RunState, Runs};
use super::{PATIENCE, Told, shown};
use crate::live::Wake;
use narrows_store::{Error, Result, RunRow, Session, Taken};
use std::sync::atomic::Ordering;

/// What is said of an agent whose node is lost.
const LOST: &str = "The node that ran this agent was lost, and the agent with it.";

/// One look in so many removes what nobody waits for.
const FORGET_EVERY: u64 = 16;

impl Runs {
    /// Looks at what other nodes ask, and at what they have left.
    pub fn look(&self) {
        self.inner.wakes.wake_all();
        if !self.inner.store.is_shared() || self.inner.looking.swap(true, Ordering::Relaxed) {
            return;
        }
        let runs = self.clone();
        tokio::spawn(async move {
            if let Err(error) = runs.look_now().await {
                tracing::warn!(%error, "what other nodes left could not be looked at");
            }
            runs.inner.looking.store(false, Ordering::Relaxed);
        });
    }

    /// What an earlier server left open is over: its agents ended with it. Where several nodes share a
    /// store, those of living nodes go on.
    pub async fn settle(&self) {
        let done = if self.inner.store.is_shared() {
            self.look_now().await
        } else {
            turns::settle(&self.inner.store, &self.inner.intake).await
        };
        if let Err(error) = done {
            tracing::warn!(%error, "what was left open could not be closed");
        }
    }

    async fn look_now(&self) -> Result<()> {
        let store = &self.inner.store;
        for session in store.asked_sessions().await? {
            self.serve(session);
        }
        for id in store.lost_runs().await? {
            match self.close_lost(&id).await {
                // Another node was faster, or the session is gone.
                Ok(()) | Err(Error::Fenced | Error::NotFound(_)) => {}
                Err(error) => tracing::warn!(%error, session = id, "a lost run is still open"),
            }
        }
        // Whoever asked and went away leaves a row.
        if self.inner.looks.fetch_add(1, Ordering::Relaxed).is_multiple_of(FORGET_EVERY) {
            store.forget_commands(PATIENCE * 3).await?;
        }
        Ok(())
    }

    /// Closes the run of a node that is lost; a message starts it again.
    async fn close_lost(&self, id: &str) -> Result<()> {
        let (store, leases) = (&self.inner.store, &self.inner.leases);
        let session = store.session(id).await?;
        let _gate = self.gate(session.key).lock().await;
        // This node was away itself; it is about to find out whether it may go on.
        if self.known(session.key).is_ok() {
            return Ok(());
        }
        let taken = store.take_run(session.key, leases.node.clone(), leases.time, true).await?;
        let Some(taken) = taken else { return Ok(()) };
        let (session, run) = self.take_up(&session, &taken).await?;
        let rest = RunState::at_rest(Some(&run), true);
        let mut state = shown::taken_up(rest, taken.shown.as_deref(), true);
        state.error = Some(LOST.to_owned());
        let state = serde_json::to_string(&state).ok();
        store.give_back(session.key, taken.fence, state).await?;
        self.inner.hub.bus().tell(Wake::Run { session: session.key });
        self.inner.wakes.wake(session.key);
        Ok(())
    }

    /// Closes what was left open of a session whose lease was just taken; returns it as it is now.
    pub(super) async fn take_up(
        &self,
        session: &Session,
        taken: &Taken,
    ) -> Result<(Session, RunRow)> {
        let (store, intake) = (&self.inner.store, &self.inner.intake);
        let session = store.session(&session.id).await?;
        let run = store.run(session.key).await?.ok_or(Error::NotFound("run"))?;
        let alive = shown::parse(taken.shown.as_deref()).is_some_and(|s| s.state.is_alive());
        let left = Left {
            fence: Some(taken.fence),
            what: LOST,
            code: "NODE_LOST",
            told: taken.lost && alive,
        };
        turns::close(store, intake, &session, left).await?;
        if taken.lost {
            tracing::warn!(session = %session.id, "the node that ran this agent was lost");
            let gone = Error::Unavailable("the node that ran this agent was lost".to_owned());
            let taken_by = Told::Refused(Refusal::Store(gone)).print();
            let nobody = Told::Nobody.print();
            store.answer_commands(session.key, taken.fence, nobody, taken_by).await?;
        }
        Ok((session, run))
    }
}
