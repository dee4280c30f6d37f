//! Executes the commands of other nodes for runs of this node.

use super::super::Runs;
use super::super::request::RunRequest;
use super::super::retry::retry_unavailable;
use super::{MAX_COMMAND_AGE, RemoteReply, version_mismatch};
use crate::live::Wake;
use narrows_store::Error;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Sessions whose commands are being executed, and whether more may have arrived.
#[derive(Debug, Default)]
pub(in crate::run) struct CommandWorkers(Mutex<HashMap<i64, bool>>);

impl CommandWorkers {
    /// Returns true if the caller shall execute; otherwise a worker is active and will scan once more.
    fn begin(&self, session: i64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&session) {
            Some(has_more) => {
                *has_more = true;
                false
            }
            None => all.insert(session, false).is_none(),
        }
    }

    /// Returns true if more commands may have arrived.
    fn end(&self, session: i64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&session) {
            Some(has_more) if *has_more => {
                *has_more = false;
                true
            }
            _ => {
                all.remove(&session);
                false
            }
        }
    }
}

impl Runs {
    /// Handles a wakeup: another node has sent a command for the session, or a reply.
    pub fn woken(&self, session: i64) {
        self.inner.waiters.wake(session);
        self.execute_remote(session);
    }

    /// Executes the commands of other nodes for a session that runs here.
    pub(super) fn execute_remote(&self, session: i64) {
        if self.local_actor(session).is_err() || !self.inner.command_workers.begin(session) {
            return;
        }
        let runs = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = runs.execute_pending(session).await {
                    tracing::warn!(%error, "cannot read commands of other nodes");
                }
                if !runs.inner.command_workers.end(session) {
                    return;
                }
            }
        });
    }

    async fn execute_pending(&self, session: i64) -> Result<(), Error> {
        let store = &self.inner.store;
        for (id, body) in store.commands(session, MAX_COMMAND_AGE).await? {
            let Ok(handle) = self.local_actor(session) else { return Ok(()) };
            let Some(fence) = handle.fence else { return Ok(()) };
            if !store.take_command(id.clone(), session, fence, MAX_COMMAND_AGE).await? {
                continue;
            }
            let reply = if let Ok(request) = serde_json::from_str::<RunRequest>(&body) {
                RemoteReply::from_result(self.execute(&handle, session, &request).await)
            } else {
                RemoteReply::Refused(version_mismatch())
            };
            // The caller must see the new state after the reply.
            let state = serde_json::to_string(&*handle.state.borrow()).unwrap_or_default();
            if let Err(error) = store.show_run(session, fence, state).await {
                tracing::debug!(%error, "cannot store the state of a run");
            }
            let reply = reply.to_json();
            retry_unavailable(true, || store.answer_command(id.clone(), reply.clone())).await?;
            self.inner.hub.bus().tell(Wake::Run { session });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_arriving_meanwhile_are_executed() {
        let command_workers = CommandWorkers::default();
        assert!(command_workers.begin(1) && command_workers.begin(2));
        assert!(!command_workers.end(2));
        assert!(!command_workers.begin(1) && !command_workers.begin(1));
        assert!(command_workers.end(1), "once more");
        assert!(!command_workers.end(1));
        assert!(command_workers.begin(1));
    }
}
