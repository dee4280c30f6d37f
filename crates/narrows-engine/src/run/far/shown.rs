//! How a run stands, from the node that runs it to those that show it.

use super::super::state::RunState;
use super::super::turns::Progress;
use super::super::{Inner, Runs};
use super::wakes::Wakes;
use crate::live::{Hub, Wake};
use narrows_store::{Error, Holding, Result, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::watch;

/// It is written no more often than this.
const WRITE_EVERY: Duration = Duration::from_millis(100);
/// A database that was away is tried again after so long.
const AGAIN: Duration = Duration::from_millis(500);
/// How often it is looked at without being told, while somebody waits.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// The same of a message's turn.
const FOLLOW_EVERY: Duration = Duration::from_millis(300);
/// What a node that is lost may have told of its run and not written: whoever saw such a version sees
/// that there is a newer one.
const LEAP: u64 = 1000;

/// The states of other nodes' runs that somebody here looks at.
#[derive(Debug, Default)]
pub(in crate::run) struct Shown {
    looked_at: Mutex<HashMap<i64, Arc<watch::Sender<RunState>>>>,
}

/// How a run stood, as was told last.
pub(super) fn parse(shown: Option<&str>) -> Option<RunState> {
    serde_json::from_str(shown?).ok()
}

/// How a run stands when it is taken up: its versions go on where they ended.
pub(super) fn taken_up(mut rest: RunState, shown: Option<&str>, lost: bool) -> RunState {
    let version = parse(shown).map_or(0, |state| state.version);
    rest.version = if lost { version + LEAP } else { version };
    rest
}

/// Writes how a run stands, as long as it changes. Its end is written when the lease is given back.
pub(super) async fn publish(
    store: Store,
    hub: Hub,
    session: i64,
    fence: u64,
    mut state: watch::Receiver<RunState>,
) {
    loop {
        let now = serde_json::to_string(&*state.borrow_and_update()).unwrap_or_default();
        let over = loop {
            match store.show_run(session, fence, now.clone()).await {
                Ok(()) => break false,
                Err(Error::Unavailable(_)) if state.has_changed().is_ok() => {
                    tokio::time::sleep(AGAIN).await;
                    if state.has_changed().unwrap_or(true) {
                        break false;
                    }
                }
                Err(_) => break true,
            }
        };
        hub.bus().tell(Wake::Run { session });
        if over {
            return;
        }
        tokio::time::sleep(WRITE_EVERY).await;
        if state.changed().await.is_err() {
            return;
        }
    }
}

impl Inner {
    /// How a run stands that is not run here.
    async fn shown(&self, session: i64) -> Result<RunState> {
        let allow = self.options.allow;
        let Some(held) = self.store.holding(session).await? else {
            return Ok(RunState::at_rest(None, allow));
        };
        let mut state = shown_of(&held, allow);
        if held.left.is_none() {
            self.hold(&held.run, &mut state).await?;
        }
        Ok(state)
    }
}

/// How a run stands, as its row tells it.
fn shown_of(held: &Holding, allow: bool) -> RunState {
    let told = parse(held.shown.as_deref());
    match (told, held.left) {
        (Some(told), Some(_)) => told,
        (told, _) => {
            let told = told.unwrap_or_default();
            let rest = RunState::at_rest(Some(&held.run), allow);
            RunState { version: told.version, error: told.error, ..rest }
        }
    }
}

impl Runs {
    /// How a run stands that is not run here, and from now on.
    pub(in crate::run) async fn watched(&self, session: i64) -> Result<watch::Receiver<RunState>> {
        let now = self.inner.shown(session).await?;
        let mut all = self.inner.shown.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tell) = all.get(&session) {
            show(tell, now);
            return Ok(tell.subscribe());
        }
        let (tell, state) = watch::channel(now);
        let tell = Arc::new(tell);
        all.insert(session, Arc::clone(&tell));
        let runs = self.clone();
        tokio::spawn(async move { runs.watch(session, &tell).await });
        Ok(state)
    }

    /// Looks at a run as long as somebody waits.
    async fn watch(&self, session: i64, tell: &watch::Sender<RunState>) {
        let mut woken = self.inner.wakes.of(session);
        loop {
            let _ = tokio::time::timeout(LOOK_EVERY, woken.changed()).await;
            {
                let mut all =
                    self.inner.shown.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
                if tell.receiver_count() == 0 {
                    all.remove(&session);
                    return;
                }
            }
            // It may be run here by now.
            let here = self.known(session).ok().map(|handle| handle.state.borrow().clone());
            let now = match here {
                Some(now) => Ok(now),
                None => self.inner.shown(session).await,
            };
            if let Ok(now) = now {
                show(tell, now);
            }
        }
    }
}

fn show(tell: &watch::Sender<RunState>, now: RunState) {
    tell.send_if_modified(|state| {
        let new = *state != now;
        *state = now;
        new
    });
}

/// Follows a message's turn by its row, until it is over or nobody waits for it.
pub(in crate::run) async fn follow(
    store: Store,
    wakes: Arc<Wakes>,
    session: i64,
    number: u64,
    tell: watch::Sender<Progress>,
) {
    let mut woken = wakes.of(session);
    loop {
        match store.message(session, number).await {
            Ok(Some(row)) => {
                let now = Progress::of(&row);
                tell.send_if_modified(|known| std::mem::replace(known, now) != now);
                if now.is_over() {
                    return;
                }
            }
            Ok(None) | Err(Error::Closed) => return,
            // Looked at again soon.
            Err(_) => {}
        }
        tokio::select! {
            () = tell.closed() => return,
            _ = tokio::time::timeout(FOLLOW_EVERY, woken.changed()) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{RunChoice, RunPhase};
    use narrows_store::RunRow;

    #[test]
    fn a_state_is_the_same_on_another_node() {
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
        let held = Holding { left: Some(5), shown: Some(text), ..Holding::default() };
        assert_eq!(shown_of(&held, false), state);
        // Once it is given back, nothing runs, and the versions go on.
        let run = RunRow { agent: "claude".to_owned(), ..RunRow::default() };
        let rest = shown_of(&Holding { left: None, run, ..held.clone() }, false);
        assert_eq!((rest.version, rest.state, rest.allow_run), (7, RunPhase::Ended, false));
        let shown = held.shown.as_deref();
        assert_eq!(taken_up(RunState::default(), shown, false).version, 7);
        assert!(taken_up(RunState::default(), shown, true).version > 500);
    }
}
