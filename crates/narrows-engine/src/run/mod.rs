//! Runs: one actor per session owns its agent's process, queue and state. `Runs` is the façade; `request`
//! defines the commands, `actor` executes them, `driver` speaks the agents' protocols and `cluster` shares
//! runs among nodes.

mod actor;
mod agent_sessions;
mod agents;
mod child;
mod client_services;
mod cluster;
mod driver;
mod error;
mod file_attribution;
mod file_watcher;
mod log_writer;
mod options;
mod orphans;
mod request;
mod retry;
mod state;
mod terminal;
mod turns;
mod workspace;

pub use agent_sessions::AgentSession;
pub use agent_sessions::AgentSessionError;
pub use agents::{AgentSpec, Protocol, presets};
use driver::new_uuid;
pub use driver::{OptionValue, PromptImage, RunChoice, RunOption};
pub use driver::{PermissionReply, Prompt, RunSettings};
pub use error::RunError;
pub use options::{RunLimits, RunOptions};
pub use state::{ActiveTurn, QueuedMessage, RunPhase, RunState};
pub use turns::{TurnProgress, TurnStream};

// Former names, until their last users are renamed.
pub use AcceptedMessage as Accepted;
pub use agent_sessions::AgentSessionError as Unlisted;
pub use driver::{PermissionReply as Reply, RunSettings as Chosen};
pub use error::RunError as Refusal;
pub use state::ActiveTurn as TurnPlace;
pub use turns::{TurnProgress as Progress, TurnStream as TurnFrames};

use crate::ingest::Ingest;
use crate::live::Hub;
use actor::RunCommand;
use cluster::{CommandWorkers, Leases, RemoteStates, Waiters};
use file_attribution::FileAttribution;
use narrows_store::{Error, Result, RunRow, Session, Store};
use request::{RunRequest, RunResponse};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use workspace::{create_root, validate_directories, validate_root};

/// Commands that may queue for one actor.
const MAX_QUEUED_COMMANDS: usize = 64;
/// How long agents may take to stop at shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(20);
/// Sessions that share a lock wait for each other.
const START_LOCK_COUNT: usize = 64;

/// The runs of this server. Clones share them.
#[derive(Debug, Clone)]
pub struct Runs {
    inner: Arc<RunsInner>,
}

#[derive(Debug)]
struct RunsInner {
    store: Store,
    ingest: Ingest,
    hub: Hub,
    options: Arc<RunOptions>,
    actors: Mutex<HashMap<i64, ActorHandle>>,
    start_locks: [tokio::sync::Mutex<()>; START_LOCK_COUNT],
    /// No agent is started any more.
    closed: AtomicBool,
    /// State that is shared with other nodes.
    leases: Arc<Leases>,
    waiters: Arc<Waiters>,
    command_workers: CommandWorkers,
    remote_states: RemoteStates,
    scanning: AtomicBool,
    scans: AtomicU64,
    attribution: Arc<FileAttribution>,
}

#[derive(Debug, Clone)]
struct ActorHandle {
    commands: mpsc::Sender<RunCommand>,
    state: watch::Receiver<RunState>,
    /// The fencing token of the run, if the store is shared.
    fence: Option<u64>,
    /// Cancelled when the actor has ended and its lease is released.
    ended: CancellationToken,
}

/// A queued message.
#[derive(Debug)]
pub struct AcceptedMessage {
    pub number: u64,
    pub progress: watch::Receiver<TurnProgress>,
}

impl Runs {
    pub fn new(store: Store, ingest: Ingest, hub: Hub, options: RunOptions) -> Self {
        let options = Arc::new(options);
        let inner = RunsInner {
            leases: Arc::new(Leases::new(options.limits.lease)),
            store,
            ingest,
            hub,
            options,
            actors: Mutex::default(),
            start_locks: [const { tokio::sync::Mutex::const_new(()) }; START_LOCK_COUNT],
            closed: AtomicBool::new(false),
            waiters: Arc::default(),
            command_workers: CommandWorkers::default(),
            remote_states: RemoteStates::default(),
            scanning: AtomicBool::new(false),
            scans: AtomicU64::new(0),
            attribution: Arc::default(),
        };
        Runs { inner: Arc::new(inner) }
    }

    /// The options.
    pub fn options(&self) -> &RunOptions {
        &self.inner.options
    }

    fn agent(&self, name: &str) -> std::result::Result<&AgentSpec, RunError> {
        let options = self.options();
        if !options.allow {
            return Err(RunError::NotAllowed);
        }
        let spec = options.agents.iter().find(|a| a.name == name);
        spec.ok_or_else(|| {
            let names: Vec<&str> = options.agents.iter().map(|a| a.name.as_str()).collect();
            RunError::NoAgent(format!("there is no agent `{name}`: {}", names.join(", ")))
        })
    }

    /// Checks whether a session could be run with these parameters.
    pub fn check(
        &self,
        agent: &str,
        cwd: Option<&str>,
        directories: &[String],
    ) -> std::result::Result<(), RunError> {
        let spec = self.agent(agent)?;
        spec.program(self.options().path()).map_err(RunError::NoAgent)?;
        validate_directories(directories)?;
        cwd.map_or(Ok(()), |cwd| validate_root(cwd).map(drop))
    }

    /// The agent's session id for a new session, where narrows chooses it.
    pub fn native(&self, agent: &str) -> Option<String> {
        let spec = self.agent(agent).ok()?;
        (spec.protocol == Protocol::Claude).then(new_uuid).flatten()
    }

    /// Makes a session a run. Without a working directory it gets a new one.
    pub async fn adopt(
        &self,
        session: &Session,
        agent: &str,
        (cwd, directories): (Option<&str>, &[String]),
        native: Option<String>,
        (mode, model): (Option<String>, Option<String>),
    ) -> std::result::Result<(), RunError> {
        self.agent(agent)?;
        if self.inner.store.run(session.key).await?.is_some() {
            return Ok(());
        }
        let cwd = match cwd {
            Some(cwd) => validate_root(cwd)?,
            None => create_root(&self.options().roots, &session.id)?,
        };
        let run = RunRow {
            session: session.key,
            agent: agent.to_owned(),
            cwd,
            native,
            mode,
            model,
            runs: 0,
            directories: validate_directories(directories)?,
        };
        Ok(self.inner.store.keep_run(run, None).await?)
    }

    /// Sends a message to a session's agent, which is started if need be.
    pub async fn send(
        &self,
        session: &Session,
        prompt: Prompt,
        key: Option<String>,
    ) -> std::result::Result<AcceptedMessage, RunError> {
        match self.request(session, &RunRequest::Send { prompt, key }).await? {
            RunResponse::Message { number, progress: Some(progress) } => {
                Ok(AcceptedMessage { number, progress })
            }
            RunResponse::Message { number, progress: None } => {
                self.follow_message(session.key, number).await
            }
            RunResponse::Done(_) => Err(RunError::Store(Error::Closed)),
        }
    }

    /// Cancels the current turn; returns whether there was one.
    pub async fn cancel(&self, session: &Session) -> std::result::Result<bool, RunError> {
        Ok(self.request(session, &RunRequest::Cancel).await?.is_done())
    }

    /// Stops the agent's process; returns whether there was one.
    pub async fn stop(&self, session: &Session) -> std::result::Result<bool, RunError> {
        Ok(self.request(session, &RunRequest::Stop).await?.is_done())
    }

    /// Removes a queued message.
    pub async fn take_back(
        &self,
        session: &Session,
        number: u64,
    ) -> std::result::Result<bool, RunError> {
        Ok(self.request(session, &RunRequest::CancelQueued { number }).await?.is_done())
    }

    /// Changes mode, model or other options; holds or releases queued messages.
    pub async fn choose(
        &self,
        session: &Session,
        chosen: RunSettings,
        hold: Option<bool>,
    ) -> std::result::Result<bool, RunError> {
        Ok(self
            .request(session, &RunRequest::Configure { settings: chosen, hold })
            .await?
            .is_done())
    }

    /// Answers a request of the agent. The first answer counts.
    pub async fn answer(
        &self,
        session: &Session,
        request: &str,
        reply: PermissionReply,
    ) -> std::result::Result<(), RunError> {
        let request = request.to_owned();
        self.request(session, &RunRequest::Answer { request, reply }).await.map(drop)
    }

    /// Watches the state of a session's run.
    pub async fn state(&self, session: &Session) -> Result<watch::Receiver<RunState>> {
        if let Ok(handle) = self.local_actor(session.key) {
            return Ok(handle.state);
        }
        if self.inner.store.is_shared() {
            return self.watched(session.key).await;
        }
        let run = self.inner.store.run(session.key).await?;
        let mut state = RunState::at_rest(run.as_ref(), self.options().allow);
        if let Some(run) = &run {
            self.inner.add_held(run, &mut state).await?;
        }
        Ok(watch::channel(state).1)
    }

    fn local_actor(&self, session: i64) -> std::result::Result<ActorHandle, RunError> {
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.retain(|_, handle| !handle.commands.is_closed());
        actors.get(&session).cloned().ok_or(RunError::NotRunning)
    }

    /// The lock that serializes starting and closing a session.
    fn start_lock(&self, session: i64) -> &tokio::sync::Mutex<()> {
        let at = usize::try_from(session.unsigned_abs()).unwrap_or(0) % START_LOCK_COUNT;
        &self.inner.start_locks[at]
    }

    /// Stops all agents.
    pub async fn close(&self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        let handles: Vec<ActorHandle> = {
            let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
            actors.drain().map(|(_, handle)| handle).collect()
        };
        let ends = handles.into_iter().map(|handle| async move {
            let _ = handle.commands.send(RunCommand::Close).await;
            handle.ended.cancelled().await;
        });
        let all = futures_util::future::join_all(ends);
        if tokio::time::timeout(CLOSE_TIMEOUT, all).await.is_err() {
            tracing::warn!("not all agents stopped in time");
        }
    }
}

impl RunsInner {
    /// Adds the queued messages of a session without an actor.
    async fn add_held(&self, run: &RunRow, state: &mut RunState) -> Result<()> {
        let waiting = turns::waiting(&self.store, run.session).await?;
        if !waiting.is_empty() {
            state.set_held(&waiting, &mut self.ingest.cleaner(&run.cwd));
        }
        Ok(())
    }
}

fn count_alive(actors: &HashMap<i64, ActorHandle>) -> usize {
    actors.values().filter(|handle| handle.state.borrow().state.is_alive()).count()
}
