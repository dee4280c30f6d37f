//! Replicates the state of a run from its node to the nodes that show it.

use super::super::state::RunState;
use super::super::turns::TurnProgress;
use super::super::{Runs, RunsInner};
use super::waiters::Waiters;
use crate::live::{Hub, Wake};
use narrows_store::{Error, Holding, Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// Minimum time between two writes of the state.
const PUBLISH_INTERVAL: Duration = Duration::from_millis(100);
/// Delay before a write to an unavailable database is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// How often a watched state is polled without a wakeup.
const POLL_INTERVAL: Duration = Duration::from_secs(1);
/// How often a message's turn is polled without a wakeup.
const FOLLOW_INTERVAL: Duration = Duration::from_millis(300);
/// A lost node may have published versions that it did not write. The gap makes every later version newer
/// than those.
const VERSION_GAP: u64 = 1000;

/// The states of remote runs that clients of this node watch.
#[derive(Debug, Default)]
pub(in crate::run) struct RemoteStates {
    watched: Mutex<HashMap<i64, Arc<watch::Sender<RunState>>>>,
}

/// Parses a stored state.
pub(super) fn parse(shown: Option<&str>) -> Option<RunState> {
    serde_json::from_str(shown?).ok()
}

/// The initial state of a resumed run: its versions continue where they ended.
pub(super) fn resumed_state(mut idle: RunState, shown: Option<&str>, lost: bool) -> RunState {
    let version = parse(shown).map_or(0, |state| state.version);
    idle.version = if lost { version + VERSION_GAP } else { version };
    idle
}

/// Writes the state of a run whenever it changes. The final state is written when the lease is released.
pub(super) async fn publish(
    store: Store,
    hub: Hub,
    session: i64,
    fence: u64,
    mut state: watch::Receiver<RunState>,
) {
    loop {
        let now = serde_json::to_string(&*state.borrow_and_update()).unwrap_or_default();
        let ended = loop {
            match store.show_run(session, fence, now.clone()).await {
                Ok(()) => break false,
                Err(Error::Unavailable(_)) if state.has_changed().is_ok() => {
                    tokio::time::sleep(RETRY_DELAY).await;
                    if state.has_changed().unwrap_or(true) {
                        break false;
                    }
                }
                Err(_) => break true,
            }
        };
        hub.bus().tell(Wake::Run { session });
        if ended {
            return;
        }
        tokio::time::sleep(PUBLISH_INTERVAL).await;
        if state.changed().await.is_err() {
            return;
        }
    }
}

impl RunsInner {
    /// Loads the state of a run that no actor of this node owns.
    async fn remote_state(&self, session: i64) -> Result<RunState> {
        let allow = self.options.allow;
        let Some(holding) = self.store.holding(session).await? else {
            return Ok(RunState::at_rest(None, allow));
        };
        let mut state = state_of(&holding, allow);
        if holding.left.is_none() {
            self.add_held(&holding.run, &mut state).await?;
        }
        Ok(state)
    }
}

/// The state of a run according to its row.
fn state_of(holding: &Holding, allow: bool) -> RunState {
    let published = parse(holding.shown.as_deref());
    match (published, holding.left) {
        (Some(published), Some(_)) => published,
        (published, _) => {
            let published = published.unwrap_or_default();
            let idle = RunState::at_rest(Some(&holding.run), allow);
            RunState { version: published.version, error: published.error, ..idle }
        }
    }
}

impl Runs {
    /// Watches the state of a run that no actor of this node owns.
    pub(in crate::run) async fn watched(&self, session: i64) -> Result<watch::Receiver<RunState>> {
        let now = self.inner.remote_state(session).await?;
        let mut all =
            self.inner.remote_states.watched.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(sender) = all.get(&session) {
            set_state(sender, now);
            return Ok(sender.subscribe());
        }
        let (sender, state) = watch::channel(now);
        let sender = Arc::new(sender);
        all.insert(session, Arc::clone(&sender));
        let runs = self.clone();
        tokio::spawn(async move { runs.watch(session, &sender).await });
        Ok(state)
    }

    /// Polls a run while it has watchers.
    async fn watch(&self, session: i64, sender: &watch::Sender<RunState>) {
        let mut wakeups = self.inner.waiters.subscribe(session);
        loop {
            let _ = tokio::time::timeout(POLL_INTERVAL, wakeups.changed()).await;
            {
                let mut all =
                    self.inner.remote_states.watched.lock().unwrap_or_else(PoisonError::into_inner);
                if sender.receiver_count() == 0 {
                    all.remove(&session);
                    return;
                }
            }
            // It may run here by now.
            let here = self.local_actor(session).ok().map(|handle| handle.state.borrow().clone());
            let now = match here {
                Some(now) => Ok(now),
                None => self.inner.remote_state(session).await,
            };
            if let Ok(now) = now {
                set_state(sender, now);
            }
        }
    }
}

fn set_state(sender: &watch::Sender<RunState>, now: RunState) {
    sender.send_if_modified(|state| {
        let new = *state != now;
        *state = now;
        new
    });
}

/// Follows a message's turn by its row, until it is over or has no waiters.
pub(in crate::run) async fn follow(
    store: Store,
    waiters: Arc<Waiters>,
    session: i64,
    number: u64,
    sender: watch::Sender<TurnProgress>,
) {
    let mut wakeups = waiters.subscribe(session);
    loop {
        match store.message(session, number).await {
            Ok(Some(row)) => {
                let now = TurnProgress::of(&row);
                sender.send_if_modified(|known| std::mem::replace(known, now) != now);
                if now.is_over() {
                    return;
                }
            }
            Ok(None) | Err(Error::Closed) => return,
            // Polled again soon.
            Err(_) => {}
        }
        tokio::select! {
            () = sender.closed() => return,
            _ = tokio::time::timeout(FOLLOW_INTERVAL, wakeups.changed()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunChoice, RunPhase};
    use narrows_store::RunRow;

    #[test]
    fn state_survives_replication() {
        let state = RunState {
            version: 7,
            allow_run: true,
            agent: Some("claude".to_owned()),
            state: RunPhase::Waiting,
            modes: vec![RunChoice { id: "plan".to_owned(), name: "Plan".to_owned(), group: None }],
            requests: vec!["r1:2".to_owned()],
            error: Some("it is gone".to_owned()),
            ..RunState::default()
        };
        let text = serde_json::to_string(&state).expect("text");
        assert_eq!(parse(Some(&text)), Some(state.clone()));
        let holding = Holding { left: Some(5), shown: Some(text), ..Holding::default() };
        assert_eq!(state_of(&holding, false), state);
        // After a release nothing runs, and the versions continue.
        let run = RunRow { agent: "claude".to_owned(), ..RunRow::default() };
        let idle = state_of(&Holding { left: None, run, ..holding.clone() }, false);
        assert_eq!((idle.version, idle.state, idle.allow_run), (7, RunPhase::Ended, false));
        let shown = holding.shown.as_deref();
        assert_eq!(resumed_state(RunState::default(), shown, false).version, 7);
        assert!(resumed_state(RunState::default(), shown, true).version > 500);
    }
}
