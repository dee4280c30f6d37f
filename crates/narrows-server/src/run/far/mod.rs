//! Agents that other nodes run: who has them, what is asked of them, and what a lost node left.
//!
//! A node runs a session's agent only while it holds the session's lease (`lease.rs`). What is wanted
//! of an agent on another node is a row that its node takes, does and answers; the bus only says that
//! there is one.

mod lease;
mod lost;
mod serve;
mod shown;
mod wakes;

pub(super) use lease::{Lease, Leases};
pub(super) use serve::Serving;
pub(super) use shown::{Shown, follow};
pub(super) use wakes::Wakes;

use super::actor::{Actor, Place};
use super::driver::Prompt;
use super::state::{Known, RunState};
use super::turns::{self, Progress};
use super::wanted::{Got, Wanted};
use super::{Accepted, Handle, MAX_ORDERS, Refusal, Runs, alive};
use narrows_store::{Asked, Error, MessageState, RunRow, Session, Wake};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long another node may take to do what is wanted. It begins with nothing that is older than the
/// second: whoever asked may have given up.
const PATIENCE: Duration = Duration::from_secs(20);
const MAX_AGE: Duration = Duration::from_secs(15);
/// How often is looked for an answer without being told.
const LOOK_EVERY: Duration = Duration::from_millis(300);
/// How soon a session is tried again that others take at the same time.
const AGAIN: Duration = Duration::from_millis(20);

/// What another node tells.
#[derive(Debug, Serialize, Deserialize)]
enum Told {
    Message {
        number: u64,
        /// It waits, and does not begin by itself.
        #[serde(default)]
        held: bool,
    },
    Done(bool),
    Refused(Refusal),
    /// It was not done: nobody runs the session.
    Nobody,
}

impl Told {
    fn of(done: Result<Got, Refusal>) -> Told {
        match done {
            Ok(Got::Message { number, progress }) => {
                let held = progress.is_some_and(|progress| {
                    progress.borrow().state == MessageState::Queued
                        && progress.has_changed().is_err()
                });
                Told::Message { number, held }
            }
            Ok(Got::Done(done)) => Told::Done(done),
            Err(refusal) => Told::Refused(refusal),
        }
    }

    fn print(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// Who runs a session.
enum Who {
    Here(Handle),
    There,
    Nobody,
}

fn silent() -> Refusal {
    Refusal::Store(Error::Unavailable("the node that runs this agent does not answer".to_owned()))
}

fn other_version() -> Refusal {
    let what = "the node that runs this agent is of another version";
    Refusal::Store(Error::Unavailable(what.to_owned()))
}

impl Runs {
    async fn who(&self, session: i64) -> Result<Who, Refusal> {
        if let Ok(handle) = self.known(session) {
            return Ok(Who::Here(handle));
        }
        if !self.inner.store.is_shared() {
            return Ok(Who::Nobody);
        }
        let held = self.inner.store.holding(session).await?;
        let there = held.is_some_and(|held| {
            held.is_held() && held.node.as_ref() != Some(&self.inner.leases.node)
        });
        Ok(if there { Who::There } else { Who::Nobody })
    }

    /// Does what is wanted of a session's agent, wherever that runs.
    pub(super) async fn want(&self, session: &Session, wanted: &Wanted) -> Result<Got, Refusal> {
        let until = Instant::now() + PATIENCE;
        loop {
            match self.who(session.key).await? {
                Who::Here(handle) => return self.obey(&handle, session.key, wanted).await,
                Who::There => {
                    if let Some(got) = self.ask_there(session.key, wanted, until).await? {
                        return Ok(got);
                    }
                }
                Who::Nobody if !self.starts(session.key, wanted).await? => {
                    return Err(Refusal::NotRunning);
                }
                Who::Nobody => {
                    if let Some(handle) = self.actor(session).await? {
                        return self.obey(&handle, session.key, wanted).await;
                    }
                }
            }
            if Instant::now() > until {
                return Err(silent());
            }
            // Somebody else was faster, or was lost: it is known soon who has it.
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// Whether a session that nobody runs is taken up for it.
    async fn starts(&self, session: i64, wanted: &Wanted) -> Result<bool, Refusal> {
        Ok(match wanted {
            Wanted::Send { .. } | Wanted::Choose { .. } | Wanted::Open => true,
            Wanted::TakeBack { number } => {
                let row = self.inner.store.message(session, *number).await?;
                row.is_some_and(|row| row.state == MessageState::Queued)
            }
            Wanted::Cancel | Wanted::Stop | Wanted::Answer { .. } => false,
        })
    }

    /// Asks the node that runs a session; none when no node does any more.
    async fn ask_there(
        &self,
        session: i64,
        wanted: &Wanted,
        until: Instant,
    ) -> Result<Option<Got>, Refusal> {
        let store = &self.inner.store;
        let body = serde_json::to_string(wanted)
            .map_err(|e| Refusal::Store(Error::Invalid(e.to_string())))?;
        let mut woken = self.inner.wakes.of(session);
        let mut closing = self.inner.hub.closing();
        let id = store.ask(session, body).await?;
        self.inner.hub.bus().tell(Wake::Run { session });
        loop {
            match store.asked(id.clone()).await {
                Ok(Asked::Answered(told)) => {
                    let _ = store.withdraw(id).await;
                    return got(&told);
                }
                Ok(Asked::Gone) => return Err(silent()),
                Ok(Asked::Open)
                    if matches!(self.who(session).await, Ok(Who::Nobody | Who::Here(_))) =>
                {
                    match store.withdraw(id.clone()).await? {
                        Asked::Answered(told) => return got(&told),
                        Asked::Open | Asked::Gone => return Ok(None),
                        Asked::Taken => {}
                    }
                }
                // Of a database that is away nothing is known.
                Ok(_) | Err(_) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            let closed = tokio::select! {
                _ = tokio::time::timeout(left.min(LOOK_EVERY), woken.changed()) => false,
                () = crate::hub::closed(&mut closing) => true,
            };
            if closed || left.is_zero() {
                return match store.withdraw(id).await? {
                    Asked::Answered(told) => got(&told),
                    _ => Err(silent()),
                };
            }
        }
    }

    /// How the turn of a message goes that another node has.
    pub(super) async fn accepted(&self, session: i64, number: u64) -> Result<Accepted, Refusal> {
        let store = self.inner.store.clone();
        let row = store.message(session, number).await?;
        let row = row.ok_or(Refusal::Store(Error::NotFound("message")))?;
        let (tell, progress) = watch::channel(Progress::of(&row));
        if !Progress::of(&row).is_over() {
            tokio::spawn(follow(store, Arc::clone(&self.inner.wakes), session, number, tell));
        }
        Ok(Accepted { number, progress })
    }

    /// The task of a session, which is started if there is none; none when another node has it.
    async fn actor(&self, session: &Session) -> Result<Option<Handle>, Refusal> {
        if !self.options().allow {
            return Err(Refusal::NotAllowed);
        }
        let run = self.inner.store.run(session.key).await?.ok_or(Refusal::NotRun)?;
        let spec = Arc::new(self.agent(&run.agent)?.clone());
        // One at a time: the second finds what the first has made.
        let _gate = self.gate(session.key).lock().await;
        if let Ok(handle) = self.known(session.key) {
            return Ok(Some(handle));
        }
        if self.inner.closed.load(Ordering::Relaxed) {
            return Err(Refusal::Store(Error::Closed));
        }
        if self.count() >= self.options().limits.agents {
            return Err(Refusal::Full("too many agents are running".into()));
        }
        let known = Known { spec, options: Arc::clone(&self.inner.options) };
        if !self.inner.store.is_shared() {
            let waiting = turns::waiting(&self.inner.store, session.key).await?;
            let state = RunState::at_rest(Some(&run), true);
            let had = (state, waiting);
            return Ok(Some(self.begin(session.clone(), run, known, had, None)));
        }
        // Whoever cannot run it leaves it to others.
        known.spec.program(self.options().path()).map_err(Refusal::NoAgent)?;
        if !std::path::Path::new(&run.cwd).is_dir() {
            return Err(Refusal::NoFolder);
        }
        let sent = Instant::now();
        let (store, leases) = (&self.inner.store, &self.inner.leases);
        let taken = store.take_run(session.key, leases.node.clone(), leases.time, false).await?;
        let Some(taken) = taken else { return Ok(None) };
        let made = async {
            let (session, run) = self.take_up(session, &taken).await?;
            let waiting = turns::waiting(store, session.key).await?;
            Ok::<_, Error>((session, run, waiting))
        };
        match made.await {
            Ok((session, run, waiting)) => {
                let rest = RunState::at_rest(Some(&run), true);
                let state = shown::taken_up(rest, taken.shown.as_deref(), taken.lost);
                let lease = leases.keep(store, session.key, taken.fence, sent);
                Ok(Some(self.begin(session, run, known, (state, waiting), Some(lease))))
            }
            Err(error) => {
                leases.give_back(store, session.key, taken.fence, None).await;
                Err(error.into())
            }
        }
    }

    /// Starts the task of a session.
    fn begin(
        &self,
        session: Session,
        run: RunRow,
        known: Known,
        (mut state, waiting): (RunState, Vec<(u64, Prompt)>),
        lease: Option<Lease>,
    ) -> Handle {
        let mut cleaner = self.inner.intake.cleaner(&run.cwd);
        // Whoever asks before the task has shown anything sees it too.
        state.hold(&waiting, &mut cleaner);
        let (orders, mut ordered) = mpsc::channel(MAX_ORDERS);
        let (tell, state) = watch::channel(state);
        let (key, fence) = (session.key, lease.as_ref().map(|l| l.fence));
        let over = CancellationToken::new();
        let handle = Handle { orders, state: state.clone(), fence, over: over.clone() };
        let (store, hub) = (self.inner.store.clone(), self.inner.hub.clone());
        let (intake, wakes) = (self.inner.intake.clone(), Arc::clone(&self.inner.wakes));
        let leases = Arc::clone(&self.inner.leases);
        let writers = Arc::clone(&self.inner.writers);
        let place = Place { store: store.clone(), intake, hub: hub.clone(), wakes, lease, writers };
        let actor = Actor::new(place, session, run, known, tell, waiting);
        tokio::spawn(async move {
            // Whatever happens, whoever waits for the end sees it.
            let _over = over.drop_guard();
            let published = fence.map(|fence| {
                let state = state.clone();
                tokio::spawn(shown::publish(store.clone(), hub.clone(), key, fence, state))
            });
            actor.run(&mut ordered).await;
            ordered.close();
            if let (Some(published), Some(fence)) = (published, fence) {
                published.abort();
                let last = serde_json::to_string(&*state.borrow()).ok();
                leases.give_back(&store, key, fence, last).await;
                hub.bus().tell(Wake::Run { session: key });
            }
        });
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.insert(key, handle.clone());
        handle
    }

    /// Agents that are there.
    pub(crate) fn count(&self) -> usize {
        alive(&self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What another node told; none when nobody has done it.
fn got(told: &str) -> Result<Option<Got>, Refusal> {
    match serde_json::from_str(told) {
        Ok(Told::Message { number, held }) => {
            let waits = Progress { state: MessageState::Queued, after: None, until: None };
            let progress = held.then(|| watch::channel(waits).1);
            Ok(Some(Got::Message { number, progress }))
        }
        Ok(Told::Done(done)) => Ok(Some(Got::Done(done))),
        Ok(Told::Refused(refusal)) => Err(refusal),
        Ok(Told::Nobody) => Ok(None),
        Err(_) => Err(other_version()),
    }
}
