//! What a run stores outside the log while this node owns the session, and what happens when it loses the
//! session to another node.

use super::Actor;
use crate::live::Wake;
use crate::run::cluster::follow;
use crate::run::retry::retry_unavailable;
use crate::run::turns::TurnProgress;
use narrows_store::{Error, MessageState};
use std::sync::Arc;
use tokio::sync::watch;

impl Actor {
    /// The fencing token of the run, if the store is shared.
    pub(super) fn fence(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.fence)
    }

    /// Handles a failed write: notes a lost lease and logs the error.
    pub(super) fn on_store_error(&mut self, error: &Error, what: &str) {
        self.fenced |= *error == Error::Fenced;
        tracing::warn!(%error, session = %self.session.id, "{what}");
    }

    pub(super) async fn persist_run(&mut self) {
        let (store, run, fence) = (&self.store, &self.run, self.fence());
        let stored =
            retry_unavailable(fence.is_some(), || store.keep_run(run.clone(), fence)).await;
        if let Err(error) = stored {
            self.on_store_error(&error, "cannot store the settings of a run");
        }
    }

    pub(super) async fn persist_message(
        &mut self,
        number: u64,
        state: MessageState,
        bounds: (Option<u64>, Option<u64>),
    ) {
        let (store, session, fence) = (&self.store, self.session.key, self.fence());
        let persist = || store.set_message(session, number, state, bounds, fence);
        // A lost state change would leave clients of other nodes waiting forever.
        if let Err(error) = retry_unavailable(fence.is_some(), persist).await {
            self.on_store_error(&error, "cannot store the progress of a message");
        }
        // The sender may wait at another node.
        self.hub.bus().tell(Wake::Run { session });
    }

    /// Stores the state with the new agent: a node that takes over after a crash must know about it.
    pub(super) async fn persist_state(&mut self) {
        let Some(fence) = self.fence() else { return };
        let state = serde_json::to_string(&*self.state.borrow()).unwrap_or_default();
        let (store, session) = (&self.store, self.session.key);
        let stored =
            retry_unavailable(true, || store.show_run(session, fence, state.clone())).await;
        if let Err(error) = stored {
            self.on_store_error(&error, "cannot store the state of a run");
        }
    }

    /// Kills the process without logging it.
    pub(super) async fn kill_process(&mut self) {
        if let Some(process) = self.process.take() {
            process.services.close();
            process.child.stop().await;
        }
    }

    /// Gives up the session to another node: kills the agent and logs nothing.
    pub(super) async fn abandon(&mut self) {
        let turns: Vec<_> = self.turn.take().into_iter().chain(self.queue.drain(..)).collect();
        for turn in turns {
            self.follow_remotely(turn.number, turn.progress);
        }
        self.kill_process().await;
    }

    /// Lets the waiters of a turn follow its row, which the new owner updates.
    pub(super) fn follow_remotely(&self, number: u64, progress: watch::Sender<TurnProgress>) {
        let (store, waiters) = (self.store.clone(), Arc::clone(&self.waiters));
        tokio::spawn(follow(store, waiters, self.session.key, number, progress));
    }
}
