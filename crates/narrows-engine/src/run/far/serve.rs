//! What other nodes want of agents that run here.

use super::super::Runs;
use super::super::patience::insist;
use super::super::wanted::Wanted;
use super::{MAX_AGE, Told, other_version};
use crate::live::Wake;
use narrows_store::Error;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Sessions whose commands are being done, and whether there may be more.
#[derive(Debug, Default)]
pub(in crate::run) struct Serving(Mutex<HashMap<i64, bool>>);

impl Serving {
    /// True when the caller is to look; else somebody is at it, and will look once more.
    fn begin(&self, session: i64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&session) {
            Some(again) => {
                *again = true;
                false
            }
            None => all.insert(session, false).is_none(),
        }
    }

    /// True when there may be more.
    fn end(&self, session: i64) -> bool {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get_mut(&session) {
            Some(again) if *again => {
                *again = false;
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
    /// Another node asks something of a session's agent, or has answered.
    pub fn woken(&self, session: i64) {
        self.inner.wakes.wake(session);
        self.serve(session);
    }

    /// Does what other nodes want of a session's agent, if it runs here.
    pub(super) fn serve(&self, session: i64) {
        if self.known(session).is_err() || !self.inner.serving.begin(session) {
            return;
        }
        let runs = self.clone();
        tokio::spawn(async move {
            loop {
                if let Err(error) = runs.serve_now(session).await {
                    tracing::warn!(%error, "what another node wants could not be read");
                }
                if !runs.inner.serving.end(session) {
                    return;
                }
            }
        });
    }

    async fn serve_now(&self, session: i64) -> Result<(), Error> {
        let store = &self.inner.store;
        for (id, body) in store.commands(session, MAX_AGE).await? {
            let Ok(handle) = self.known(session) else { return Ok(()) };
            let Some(fence) = handle.fence else { return Ok(()) };
            if !store.take_command(id.clone(), session, fence, MAX_AGE).await? {
                continue;
            }
            let told = if let Ok(wanted) = serde_json::from_str::<Wanted>(&body) {
                Told::of(self.obey(&handle, session, &wanted).await)
            } else {
                Told::Refused(other_version())
            };
            // Whoever asked finds it so afterwards.
            let now = serde_json::to_string(&*handle.state.borrow()).unwrap_or_default();
            if let Err(error) = store.show_run(session, fence, now).await {
                tracing::debug!(%error, "how a run stands could not be told");
            }
            let told = told.print();
            insist(true, || store.answer_command(id.clone(), told.clone())).await?;
            self.inner.hub.bus().tell(Wake::Run { session });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_comes_meanwhile_is_not_forgotten() {
        let serving = Serving::default();
        assert!(serving.begin(1) && serving.begin(2));
        assert!(!serving.end(2));
        assert!(!serving.begin(1) && !serving.begin(1));
        assert!(serving.end(1), "once more");
        assert!(!serving.end(1));
        assert!(serving.begin(1));
    }
}
