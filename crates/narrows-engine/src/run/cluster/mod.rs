//! Runs in a cluster: which node owns a run, commands to remote runs, and failover.
//!
//! A node runs a session's agent only while it holds the session's lease (`lease`). A command to a run of
//! another node is a row that its node takes, executes and answers; the bus only announces it.

mod failover;
mod lease;
mod remote_commands;
mod state_replication;
mod waiters;

pub(super) use lease::{Lease, Leases};
pub(super) use remote_commands::CommandWorkers;
pub(super) use state_replication::{RemoteStates, follow};
pub(super) use waiters::Waiters;

use super::actor::{Actor, ActorContext};
use super::driver::Prompt;
use super::request::{RunRequest, RunResponse};
use super::state::{RunContext, RunState};
use super::turns::{self, TurnProgress};
use super::{AcceptedMessage, ActorHandle, MAX_QUEUED_COMMANDS, RunError, Runs, count_alive};
use crate::live::Wake;
use narrows_store::{Asked, Error, MessageState, RunRow, Session};
use serde::{Deserialize, Serialize};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

/// How long another node may take to execute a command. It does not start one that is older than the second
/// time: the caller may have given up.
const REMOTE_TIMEOUT: Duration = Duration::from_secs(20);
const MAX_COMMAND_AGE: Duration = Duration::from_secs(15);
/// How often a reply is polled without a wakeup.
const POLL_INTERVAL: Duration = Duration::from_millis(300);
/// Delay before a session is tried again whose ownership is changing.
const RETRY_DELAY: Duration = Duration::from_millis(20);

/// The reply of another node.
#[derive(Debug, Serialize, Deserialize)]
enum RemoteReply {
    Message {
        number: u64,
        /// The message is queued and does not start by itself.
        #[serde(default)]
        held: bool,
    },
    Done(bool),
    Refused(RunError),
    /// Not executed: no node runs the session.
    Nobody,
}

impl RemoteReply {
    fn from_result(result: Result<RunResponse, RunError>) -> RemoteReply {
        match result {
            Ok(RunResponse::Message { number, progress }) => {
                let held = progress.is_some_and(|progress| {
                    progress.borrow().state == MessageState::Queued
                        && progress.has_changed().is_err()
                });
                RemoteReply::Message { number, held }
            }
            Ok(RunResponse::Done(done)) => RemoteReply::Done(done),
            Err(refusal) => RemoteReply::Refused(refusal),
        }
    }

    fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

/// The owner of a run.
enum RunOwner {
    Local(ActorHandle),
    Remote,
    Unowned,
}

fn unresponsive() -> RunError {
    RunError::Store(Error::Unavailable("the node that runs this agent does not answer".to_owned()))
}

fn version_mismatch() -> RunError {
    let what = "the node that runs this agent is of another version";
    RunError::Store(Error::Unavailable(what.to_owned()))
}

impl Runs {
    async fn owner(&self, session: i64) -> Result<RunOwner, RunError> {
        if let Ok(handle) = self.local_actor(session) {
            return Ok(RunOwner::Local(handle));
        }
        if !self.inner.store.is_shared() {
            return Ok(RunOwner::Unowned);
        }
        let held = self.inner.store.holding(session).await?;
        let there = held.is_some_and(|held| {
            held.is_held() && held.node.as_ref() != Some(&self.inner.leases.node)
        });
        Ok(if there { RunOwner::Remote } else { RunOwner::Unowned })
    }

    /// Executes a request with a session's agent, on whichever node runs it.
    pub(super) async fn request(
        &self,
        session: &Session,
        request: &RunRequest,
    ) -> Result<RunResponse, RunError> {
        let until = Instant::now() + REMOTE_TIMEOUT;
        loop {
            match self.owner(session.key).await? {
                RunOwner::Local(handle) => {
                    return self.execute(&handle, session.key, request).await;
                }
                RunOwner::Remote => {
                    if let Some(response) = self.request_remote(session.key, request, until).await?
                    {
                        return Ok(response);
                    }
                }
                RunOwner::Unowned if !self.may_start(session.key, request).await? => {
                    return Err(RunError::NotRunning);
                }
                RunOwner::Unowned => {
                    if let Some(handle) = self.get_or_start_actor(session).await? {
                        return self.execute(&handle, session.key, request).await;
                    }
                }
            }
            if Instant::now() > until {
                return Err(unresponsive());
            }
            // Another node was faster or was lost: the owner is known soon.
            tokio::time::sleep(RETRY_DELAY).await;
        }
    }

    /// Returns whether the request starts a session that no node runs.
    async fn may_start(&self, session: i64, request: &RunRequest) -> Result<bool, RunError> {
        Ok(match request {
            RunRequest::Send { .. } | RunRequest::Configure { .. } | RunRequest::Open => true,
            RunRequest::CancelQueued { number } => {
                let row = self.inner.store.message(session, *number).await?;
                row.is_some_and(|row| row.state == MessageState::Queued)
            }
            RunRequest::Cancel | RunRequest::Stop | RunRequest::Answer { .. } => false,
        })
    }

    /// Sends a request to the node that runs a session; `None` if no node runs it any more.
    async fn request_remote(
        &self,
        session: i64,
        request: &RunRequest,
        until: Instant,
    ) -> Result<Option<RunResponse>, RunError> {
        let store = &self.inner.store;
        let body = serde_json::to_string(request)
            .map_err(|e| RunError::Store(Error::Invalid(e.to_string())))?;
        let mut wakeups = self.inner.waiters.subscribe(session);
        let mut closing = self.inner.hub.closing();
        let id = store.ask(session, body).await?;
        self.inner.hub.bus().tell(Wake::Run { session });
        loop {
            match store.asked(id.clone()).await {
                Ok(Asked::Answered(reply)) => {
                    let _ = store.withdraw(id).await;
                    return parse_reply(&reply);
                }
                Ok(Asked::Gone) => return Err(unresponsive()),
                Ok(Asked::Open)
                    if matches!(
                        self.owner(session).await,
                        Ok(RunOwner::Unowned | RunOwner::Local(_))
                    ) =>
                {
                    match store.withdraw(id.clone()).await? {
                        Asked::Answered(reply) => return parse_reply(&reply),
                        Asked::Open | Asked::Gone => return Ok(None),
                        Asked::Taken => {}
                    }
                }
                // An unavailable database says nothing about the command.
                Ok(_) | Err(_) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            let closed = tokio::select! {
                _ = tokio::time::timeout(left.min(POLL_INTERVAL), wakeups.changed()) => false,
                () = crate::live::closed(&mut closing) => true,
            };
            if closed || left.is_zero() {
                return match store.withdraw(id).await? {
                    Asked::Answered(reply) => parse_reply(&reply),
                    _ => Err(unresponsive()),
                };
            }
        }
    }

    /// Follows the turn of a message that another node runs.
    pub(super) async fn follow_message(
        &self,
        session: i64,
        number: u64,
    ) -> Result<AcceptedMessage, RunError> {
        let store = self.inner.store.clone();
        let row = store.message(session, number).await?;
        let row = row.ok_or(RunError::Store(Error::NotFound("message")))?;
        let (sender, progress) = watch::channel(TurnProgress::of(&row));
        if !TurnProgress::of(&row).is_over() {
            tokio::spawn(follow(store, Arc::clone(&self.inner.waiters), session, number, sender));
        }
        Ok(AcceptedMessage { number, progress })
    }

    /// Returns the session's actor, started if need be; `None` if another node owns the run.
    async fn get_or_start_actor(&self, session: &Session) -> Result<Option<ActorHandle>, RunError> {
        if !self.options().allow {
            return Err(RunError::NotAllowed);
        }
        let run = self.inner.store.run(session.key).await?.ok_or(RunError::NotRun)?;
        let spec = Arc::new(self.agent(&run.agent)?.clone());
        // One caller at a time: the second finds the actor of the first.
        let _start_lock = self.start_lock(session.key).lock().await;
        if let Ok(handle) = self.local_actor(session.key) {
            return Ok(Some(handle));
        }
        if self.inner.closed.load(Ordering::Relaxed) {
            return Err(RunError::Store(Error::Closed));
        }
        if self.count() >= self.options().limits.agents {
            return Err(RunError::Full("too many agents are running".into()));
        }
        let context = RunContext { spec, options: Arc::clone(&self.inner.options) };
        if !self.inner.store.is_shared() {
            let waiting = turns::waiting(&self.inner.store, session.key).await?;
            let state = RunState::at_rest(Some(&run), true);
            let initial = (state, waiting);
            return Ok(Some(self.spawn_actor(session.clone(), run, context, initial, None)));
        }
        // A node that cannot run the agent must not take the lease from others.
        context.spec.program(self.options().path()).map_err(RunError::NoAgent)?;
        if !std::path::Path::new(&run.cwd).is_dir() {
            return Err(RunError::NoFolder);
        }
        let sent = Instant::now();
        let (store, leases) = (&self.inner.store, &self.inner.leases);
        let taken =
            store.take_run(session.key, leases.node.clone(), leases.duration, false).await?;
        let Some(taken) = taken else { return Ok(None) };
        let prepared = async {
            let (session, run) = self.recover(session, &taken).await?;
            let waiting = turns::waiting(store, session.key).await?;
            Ok::<_, Error>((session, run, waiting))
        };
        match prepared.await {
            Ok((session, run, waiting)) => {
                let rest = RunState::at_rest(Some(&run), true);
                let state =
                    state_replication::resumed_state(rest, taken.shown.as_deref(), taken.lost);
                let lease = leases.track(store, session.key, taken.fence, sent);
                Ok(Some(self.spawn_actor(session, run, context, (state, waiting), Some(lease))))
            }
            Err(error) => {
                leases.release(store, session.key, taken.fence, None).await;
                Err(error.into())
            }
        }
    }

    /// Spawns the actor of a session.
    fn spawn_actor(
        &self,
        session: Session,
        run: RunRow,
        context: RunContext,
        (mut state, waiting): (RunState, Vec<(u64, Prompt)>),
        lease: Option<Lease>,
    ) -> ActorHandle {
        let mut cleaner = self.inner.ingest.cleaner(&run.cwd);
        // A client that reads the state before the actor publishes it must see the held messages.
        state.set_held(&waiting, &mut cleaner);
        let (commands, mut receiver) = mpsc::channel(MAX_QUEUED_COMMANDS);
        let (sender, state) = watch::channel(state);
        let (key, fence) = (session.key, lease.as_ref().map(|l| l.fence));
        let ended = CancellationToken::new();
        let handle = ActorHandle { commands, state: state.clone(), fence, ended: ended.clone() };
        let (store, hub) = (self.inner.store.clone(), self.inner.hub.clone());
        let (ingest, waiters) = (self.inner.ingest.clone(), Arc::clone(&self.inner.waiters));
        let leases = Arc::clone(&self.inner.leases);
        let attribution = Arc::clone(&self.inner.attribution);
        let actor_context = ActorContext {
            store: store.clone(),
            ingest,
            hub: hub.clone(),
            waiters,
            lease,
            attribution,
        };
        let actor = Actor::new(actor_context, session, run, context, sender, waiting);
        tokio::spawn(async move {
            // However the actor ends, waiters for its end are released.
            let _over = ended.drop_guard();
            let published = fence.map(|fence| {
                let state = state.clone();
                tokio::spawn(state_replication::publish(
                    store.clone(),
                    hub.clone(),
                    key,
                    fence,
                    state,
                ))
            });
            actor.run(&mut receiver).await;
            receiver.close();
            if let (Some(published), Some(fence)) = (published, fence) {
                published.abort();
                let last = serde_json::to_string(&*state.borrow()).ok();
                leases.release(&store, key, fence, last).await;
                hub.bus().tell(Wake::Run { session: key });
            }
        });
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.insert(key, handle.clone());
        handle
    }

    /// The number of live agents.
    pub fn count(&self) -> usize {
        count_alive(&self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Parses the reply of another node; `None` if no node executed the command.
fn parse_reply(reply: &str) -> Result<Option<RunResponse>, RunError> {
    match serde_json::from_str(reply) {
        Ok(RemoteReply::Message { number, held }) => {
            let queued = TurnProgress { state: MessageState::Queued, after: None, until: None };
            let progress = held.then(|| watch::channel(queued).1);
            Ok(Some(RunResponse::Message { number, progress }))
        }
        Ok(RemoteReply::Done(done)) => Ok(Some(RunResponse::Done(done))),
        Ok(RemoteReply::Refused(refusal)) => Err(refusal),
        Ok(RemoteReply::Nobody) => Ok(None),
        Err(_) => Err(version_mismatch()),
    }
}
