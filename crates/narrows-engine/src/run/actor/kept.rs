//! What is kept of a run beside the log, while this node has the session; and its end when another
//! node has it.

use super::Actor;
use crate::live::Wake;
use crate::run::far::follow;
use crate::run::patience::insist;
use crate::run::turns::Progress;
use narrows_store::{Error, MessageState};
use std::sync::Arc;
use tokio::sync::watch;

impl Actor {
    /// The number by which this node has the session, where others could.
    pub(super) fn fence(&self) -> Option<u64> {
        self.lease.as_ref().map(|lease| lease.fence)
    }

    /// Something could not be kept.
    pub(super) fn refused(&mut self, error: &Error, what: &str) {
        self.fenced |= *error == Error::Fenced;
        tracing::warn!(%error, session = %self.session.id, "{what}");
    }

    pub(super) async fn keep_run(&mut self) {
        let (store, run, fence) = (&self.store, &self.run, self.fence());
        let kept = insist(fence.is_some(), || store.keep_run(run.clone(), fence)).await;
        if let Err(error) = kept {
            self.refused(&error, "how a session is run could not be kept");
        }
    }

    pub(super) async fn keep_message(
        &mut self,
        number: u64,
        state: MessageState,
        places: (Option<u64>, Option<u64>),
    ) {
        let (store, session, fence) = (&self.store, self.session.key, self.fence());
        let keep = || store.set_message(session, number, state, places, fence);
        // Whoever waits for it at another node would wait for ever.
        if let Err(error) = insist(fence.is_some(), keep).await {
            self.refused(&error, "how far a message is could not be kept");
        }
        // Whoever sent it may wait at another node.
        self.hub.bus().tell(Wake::Run { session });
    }

    /// An agent is there now: whoever finds this node lost must know of it.
    pub(super) async fn keep_shown(&mut self) {
        let Some(fence) = self.fence() else { return };
        let shown = serde_json::to_string(&*self.state.borrow()).unwrap_or_default();
        let (store, session) = (&self.store, self.session.key);
        let kept = insist(true, || store.show_run(session, fence, shown.clone())).await;
        if let Err(error) = kept {
            self.refused(&error, "how a run stands could not be kept");
        }
    }

    /// Ends the process without a word of it.
    pub(super) async fn end_process(&mut self) {
        if let Some(process) = self.process.take() {
            process.machine.close();
            process.child.stop().await;
        }
    }

    /// Another node has the session: the agent ends, and nothing is told of it here.
    pub(super) async fn cut(&mut self) {
        let turns: Vec<_> = self.turn.take().into_iter().chain(self.queue.drain(..)).collect();
        for turn in turns {
            self.hand_over(turn.number, turn.progress);
        }
        self.end_process().await;
    }

    /// Whoever waits for a turn is told of it by whoever has it now.
    pub(super) fn hand_over(&self, number: u64, progress: watch::Sender<Progress>) {
        let (store, wakes) = (self.store.clone(), Arc::clone(&self.wakes));
        tokio::spawn(follow(store, wakes, self.session.key, number, progress));
    }
}
