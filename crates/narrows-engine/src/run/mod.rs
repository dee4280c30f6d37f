//! Running agents: one task a session, which has its agent's process, its queue and its state.

mod acp;
mod actor;
mod agent_sessions;
mod agents;
mod child;
mod claude;
mod driver;
mod far;
mod feed;
mod files;
mod folders;
mod form;
mod machine;
mod options;
mod orphans;
mod patience;
mod refusal;
mod state;
mod terminal;
mod turns;
mod wanted;
mod writers;

pub use agent_sessions::AgentSession;
pub use agent_sessions::Unlisted;
pub use agents::{AgentSpec, Protocol, presets};
use claude::new_uuid;
pub use driver::{Chosen, Prompt, Reply};
pub use driver::{OptionValue, PromptImage, RunChoice, RunOption};
pub use options::{RunLimits, RunOptions};
pub use refusal::Refusal;
pub use state::{QueuedMessage, RunPhase, RunState, TurnPlace};
pub use turns::{Progress, TurnFrames};

use crate::ingest::Intake;
use crate::live::Hub;
use actor::Order;
use far::{Leases, Serving, Shown, Wakes};
use folders::{made_root, named_directories, named_root};
use narrows_store::{Error, Result, RunRow, Session, Store};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;
use wanted::{Got, Wanted};
use writers::Writers;

/// Orders to one session's task that may wait.
const MAX_ORDERS: usize = 64;
/// How long the agents get to end when the server does.
const CLOSING: Duration = Duration::from_secs(20);
/// Sessions that share a gate wait for each other.
const GATES: usize = 64;

/// The sessions that are run.
#[derive(Debug, Clone)]
pub struct Runs {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    intake: Intake,
    hub: Hub,
    options: Arc<RunOptions>,
    actors: Mutex<HashMap<i64, Handle>>,
    gates: [tokio::sync::Mutex<()>; GATES],
    /// No agent is started any more.
    closed: AtomicBool,
    /// What other nodes have to do with it.
    leases: Arc<Leases>,
    wakes: Arc<Wakes>,
    serving: Serving,
    shown: Shown,
    looking: AtomicBool,
    looks: AtomicU64,
    writers: Arc<Writers>,
}

#[derive(Debug, Clone)]
struct Handle {
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<RunState>,
    /// The number by which this node has the session, where others could.
    fence: Option<u64>,
    /// Its task is over, and the session given back.
    over: CancellationToken,
}

/// What was made of a message.
#[derive(Debug)]
pub struct Accepted {
    pub number: u64,
    pub progress: watch::Receiver<Progress>,
}

impl Runs {
    pub fn new(store: Store, intake: Intake, hub: Hub, options: RunOptions) -> Self {
        let options = Arc::new(options);
        let inner = Inner {
            leases: Arc::new(Leases::new(options.limits.lease)),
            store,
            intake,
            hub,
            options,
            actors: Mutex::default(),
            gates: [const { tokio::sync::Mutex::const_new(()) }; GATES],
            closed: AtomicBool::new(false),
            wakes: Arc::default(),
            serving: Serving::default(),
            shown: Shown::default(),
            looking: AtomicBool::new(false),
            looks: AtomicU64::new(0),
            writers: Arc::default(),
        };
        Runs { inner: Arc::new(inner) }
    }

    /// How agents are run.
    pub fn options(&self) -> &RunOptions {
        &self.inner.options
    }

    fn agent(&self, name: &str) -> std::result::Result<&AgentSpec, Refusal> {
        let options = self.options();
        if !options.allow {
            return Err(Refusal::NotAllowed);
        }
        let found = options.agents.iter().find(|a| a.name == name);
        found.ok_or_else(|| {
            let names: Vec<&str> = options.agents.iter().map(|a| a.name.as_str()).collect();
            Refusal::NoAgent(format!("there is no agent `{name}`: {}", names.join(", ")))
        })
    }

    /// Whether a session could be run so.
    pub fn check(
        &self,
        agent: &str,
        cwd: Option<&str>,
        directories: &[String],
    ) -> std::result::Result<(), Refusal> {
        let spec = self.agent(agent)?;
        spec.program(self.options().path()).map_err(Refusal::NoAgent)?;
        named_directories(directories)?;
        cwd.map_or(Ok(()), |cwd| named_root(cwd).map(drop))
    }

    /// The id that a new session has for its agent, where narrows chooses it.
    pub fn native(&self, agent: &str) -> Option<String> {
        let spec = self.agent(agent).ok()?;
        (spec.protocol == Protocol::Claude).then(new_uuid).flatten()
    }

    /// Makes a session one that is run. Without a folder it gets one.
    pub async fn adopt(
        &self,
        session: &Session,
        agent: &str,
        (cwd, directories): (Option<&str>, &[String]),
        native: Option<String>,
        (mode, model): (Option<String>, Option<String>),
    ) -> std::result::Result<(), Refusal> {
        self.agent(agent)?;
        if self.inner.store.run(session.key).await?.is_some() {
            return Ok(());
        }
        let cwd = match cwd {
            Some(cwd) => named_root(cwd)?,
            None => made_root(&self.options().roots, &session.id)?,
        };
        let run = RunRow {
            session: session.key,
            agent: agent.to_owned(),
            cwd,
            native,
            mode,
            model,
            runs: 0,
            directories: named_directories(directories)?,
        };
        Ok(self.inner.store.keep_run(run, None).await?)
    }

    /// Sends a message to a session's agent, which is started if need be.
    pub async fn send(
        &self,
        session: &Session,
        prompt: Prompt,
        key: Option<String>,
    ) -> std::result::Result<Accepted, Refusal> {
        match self.want(session, &Wanted::Send { prompt, key }).await? {
            Got::Message { number, progress: Some(progress) } => Ok(Accepted { number, progress }),
            Got::Message { number, progress: None } => self.accepted(session.key, number).await,
            Got::Done(_) => Err(Refusal::Store(Error::Closed)),
        }
    }

    /// Asks the agent to end its turn; whether there was one.
    pub async fn cancel(&self, session: &Session) -> std::result::Result<bool, Refusal> {
        Ok(self.want(session, &Wanted::Cancel).await?.is_done())
    }

    /// Ends the agent's process; whether there was one.
    pub async fn stop(&self, session: &Session) -> std::result::Result<bool, Refusal> {
        Ok(self.want(session, &Wanted::Stop).await?.is_done())
    }

    /// Takes a message back that waits.
    pub async fn take_back(
        &self,
        session: &Session,
        number: u64,
    ) -> std::result::Result<bool, Refusal> {
        Ok(self.want(session, &Wanted::TakeBack { number }).await?.is_done())
    }

    /// Chooses a mode, a model or other options; holds the messages that wait, or releases them.
    pub async fn choose(
        &self,
        session: &Session,
        chosen: Chosen,
        hold: Option<bool>,
    ) -> std::result::Result<bool, Refusal> {
        Ok(self.want(session, &Wanted::Choose { chosen, hold }).await?.is_done())
    }

    /// Answers a question of the agent. The first answer counts.
    pub async fn answer(
        &self,
        session: &Session,
        request: &str,
        reply: Reply,
    ) -> std::result::Result<(), Refusal> {
        let request = request.to_owned();
        self.want(session, &Wanted::Answer { request, reply }).await.map(drop)
    }

    /// How a session's run stands, and from now on.
    pub async fn state(&self, session: &Session) -> Result<watch::Receiver<RunState>> {
        if let Ok(handle) = self.known(session.key) {
            return Ok(handle.state);
        }
        if self.inner.store.is_shared() {
            return self.watched(session.key).await;
        }
        let run = self.inner.store.run(session.key).await?;
        let mut state = RunState::at_rest(run.as_ref(), self.options().allow);
        if let Some(run) = &run {
            self.inner.hold(run, &mut state).await?;
        }
        Ok(watch::channel(state).1)
    }

    fn known(&self, session: i64) -> std::result::Result<Handle, Refusal> {
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.retain(|_, handle| !handle.orders.is_closed());
        actors.get(&session).cloned().ok_or(Refusal::NotRunning)
    }

    /// Whoever takes up a session or closes it does so alone.
    fn gate(&self, session: i64) -> &tokio::sync::Mutex<()> {
        let at = usize::try_from(session.unsigned_abs()).unwrap_or(0) % GATES;
        &self.inner.gates[at]
    }

    /// Ends all agents.
    pub async fn close(&self) {
        self.inner.closed.store(true, Ordering::Relaxed);
        let handles: Vec<Handle> = {
            let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
            actors.drain().map(|(_, handle)| handle).collect()
        };
        let ends = handles.into_iter().map(|handle| async move {
            let _ = handle.orders.send(Order::Close).await;
            handle.over.cancelled().await;
        });
        let all = futures_util::future::join_all(ends);
        if tokio::time::timeout(CLOSING, all).await.is_err() {
            tracing::warn!("not all agents ended in time");
        }
    }
}

impl Inner {
    /// Shows what waits of a session that nobody runs.
    async fn hold(&self, run: &RunRow, state: &mut RunState) -> Result<()> {
        let waiting = turns::waiting(&self.store, run.session).await?;
        if !waiting.is_empty() {
            state.hold(&waiting, &mut self.intake.cleaner(&run.cwd));
        }
        Ok(())
    }
}

fn alive(actors: &HashMap<i64, Handle>) -> usize {
    actors.values().filter(|handle| handle.state.borrow().state.is_alive()).count()
}
