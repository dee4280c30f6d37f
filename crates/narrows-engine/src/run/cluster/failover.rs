//! Failover: closes runs whose node was lost, and collects commands of other nodes.

use super::super::turns::{self, InterruptedTurns};
use super::super::{RunError, RunState, Runs};
use super::{REMOTE_TIMEOUT, RemoteReply, state_replication};
use crate::live::Wake;
use narrows_store::{Error, Result, RunRow, Session, Taken};
use std::sync::atomic::Ordering;

/// The message of a run whose node was lost.
const LOST: &str = "The node that ran this agent was lost, and the agent with it.";

/// Every n-th scan prunes abandoned commands.
const PRUNE_EVERY_SCANS: u64 = 16;

impl Runs {
    /// Scans for commands of other nodes and for lost runs, in the background.
    pub fn look(&self) {
        self.inner.waiters.wake_all();
        if !self.inner.store.is_shared() || self.inner.scanning.swap(true, Ordering::Relaxed) {
            return;
        }
        let runs = self.clone();
        tokio::spawn(async move {
            if let Err(error) = runs.scan_remote().await {
                tracing::warn!(%error, "cannot scan for lost runs");
            }
            runs.inner.scanning.store(false, Ordering::Relaxed);
        });
    }

    /// Closes what an earlier server left open: its agents ended with it. In a cluster, runs of living
    /// nodes continue.
    pub async fn settle(&self) {
        let result = if self.inner.store.is_shared() {
            self.scan_remote().await
        } else {
            turns::close_all(&self.inner.store, &self.inner.ingest).await
        };
        if let Err(error) = result {
            tracing::warn!(%error, "cannot close interrupted runs");
        }
    }

    async fn scan_remote(&self) -> Result<()> {
        let store = &self.inner.store;
        for session in store.asked_sessions().await? {
            self.execute_remote(session);
        }
        for id in store.lost_runs().await? {
            match self.close_lost_run(&id).await {
                // Another node was faster, or the session was deleted.
                Ok(()) | Err(Error::Fenced | Error::NotFound(_)) => {}
                Err(error) => tracing::warn!(%error, session = id, "cannot close a lost run"),
            }
        }
        // A caller that went away leaves its command row.
        if self.inner.scans.fetch_add(1, Ordering::Relaxed).is_multiple_of(PRUNE_EVERY_SCANS) {
            store.forget_commands(REMOTE_TIMEOUT * 3).await?;
        }
        Ok(())
    }

    /// Closes the run of a lost node; the next message starts it again.
    async fn close_lost_run(&self, id: &str) -> Result<()> {
        let (store, leases) = (&self.inner.store, &self.inner.leases);
        let session = store.session(id).await?;
        let _start_lock = self.start_lock(session.key).lock().await;
        // This node may have been unavailable itself; its actor will notice a lost lease.
        if self.local_actor(session.key).is_ok() {
            return Ok(());
        }
        let taken = store.take_run(session.key, leases.node.clone(), leases.duration, true).await?;
        let Some(taken) = taken else { return Ok(()) };
        let (session, run) = self.recover(&session, &taken).await?;
        let idle = RunState::at_rest(Some(&run), true);
        let mut state = state_replication::resumed_state(idle, taken.shown.as_deref(), true);
        state.error = Some(LOST.to_owned());
        let state = serde_json::to_string(&state).ok();
        store.give_back(session.key, taken.fence, state).await?;
        self.inner.hub.bus().tell(Wake::Run { session: session.key });
        self.inner.waiters.wake(session.key);
        Ok(())
    }

    /// Closes what was left open of a session whose lease was just acquired; returns its current rows.
    pub(super) async fn recover(
        &self,
        session: &Session,
        taken: &Taken,
    ) -> Result<(Session, RunRow)> {
        let (store, ingest) = (&self.inner.store, &self.inner.ingest);
        let session = store.session(&session.id).await?;
        let run = store.run(session.key).await?.ok_or(Error::NotFound("run"))?;
        let alive =
            state_replication::parse(taken.shown.as_deref()).is_some_and(|s| s.state.is_alive());
        let left = InterruptedTurns {
            fence: Some(taken.fence),
            what: LOST,
            code: "NODE_LOST",
            announce: taken.lost && alive,
        };
        turns::close(store, ingest, &session, left).await?;
        if taken.lost {
            tracing::warn!(session = %session.id, "closed a run whose node was lost");
            let gone = Error::Unavailable("the node that ran this agent was lost".to_owned());
            let taken_commands = RemoteReply::Refused(RunError::Store(gone)).to_json();
            let unowned = RemoteReply::Nobody.to_json();
            store.answer_commands(session.key, taken.fence, unowned, taken_commands).await?;
        }
        Ok((session, run))
    }
}
