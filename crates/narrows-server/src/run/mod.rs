//! Running agents: one task a session, which has its agent's process, its queue and its state.

mod acp;
mod actor;
mod agents;
mod child;
mod claude;
mod driver;
mod feed;
mod files;
mod machine;
mod state;
mod terminal;
mod turns;

pub use agents::{AgentSpec, Protocol, presets};
use claude::new_uuid;
pub(crate) use driver::{Prompt, Reply};
pub use driver::{PromptImage, RunChoice};
pub use state::{QueuedMessage, RunPhase, RunState, TurnPlace};
pub(crate) use turns::{Progress, TurnFrames};

use crate::hub::Hub;
use crate::intake::Intake;
use actor::{Actor, Order};
use narrows_store::{Error, MessageState, Result, RunRow, Session, Store};
use state::Known;
use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{mpsc, oneshot, watch};

/// Orders to one session's task that may wait.
const MAX_ORDERS: usize = 64;
/// How long the agents get to end when the server does.
const CLOSING: Duration = Duration::from_secs(20);

/// How agents are run.
#[derive(Debug, Clone, Default)]
pub struct RunOptions {
    /// Whether they are: it means running code.
    pub allow: bool,
    /// Those that can be asked for.
    pub agents: Vec<AgentSpec>,
    /// The program that keeps their processes: narrows itself. Without it, they end with their group.
    pub keeper: Option<PathBuf>,
    /// Where sessions without a folder of their own get one.
    pub roots: PathBuf,
    /// The environment from which agents get what they are allowed.
    pub env: Vec<(OsString, OsString)>,
    /// What is allowed at most.
    pub limits: RunLimits,
}

/// What is allowed at most.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// Agents at once.
    pub agents: usize,
    /// Messages of one session that wait.
    pub queue: usize,
    /// How long an agent may take to begin.
    pub start: Duration,
    /// How long an agent may take to cancel a turn; then it is ended.
    pub cancel: Duration,
    /// An agent that nobody speaks to for so long is ended.
    pub idle: Duration,
    /// Bytes of memory of an agent with everything that it starts.
    pub memory: Option<u64>,
    /// Processes of an agent.
    pub processes: Option<u64>,
}

impl Default for RunLimits {
    fn default() -> Self {
        RunLimits {
            agents: 64,
            queue: 32,
            start: Duration::from_mins(1),
            cancel: Duration::from_secs(10),
            idle: Duration::from_mins(30),
            memory: None,
            processes: None,
        }
    }
}

/// Why something was not done.
#[derive(Debug)]
pub(crate) enum Refusal {
    /// The server does not run agents.
    NotAllowed,
    /// narrows does not run this session.
    NotRun,
    /// There is no such agent, or it is not installed.
    NoAgent(String),
    /// The agent's process is not there.
    NotRunning,
    /// Nobody asks that.
    NotAsked,
    /// Somebody answered before.
    AlreadyAnswered,
    /// The answer is none of those on offer.
    NoSuchOption,
    /// Too much waits.
    Full(&'static str),
    Store(Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Store(error)
    }
}

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
}

#[derive(Debug, Clone)]
struct Handle {
    orders: mpsc::Sender<Order>,
    state: watch::Receiver<RunState>,
}

/// What was made of a message.
#[derive(Debug)]
pub(crate) struct Accepted {
    pub(crate) number: u64,
    pub(crate) progress: watch::Receiver<Progress>,
}

impl Runs {
    pub(crate) fn new(store: Store, intake: Intake, hub: Hub, options: RunOptions) -> Self {
        let options = Arc::new(options);
        Runs { inner: Arc::new(Inner { store, intake, hub, options, actors: Mutex::default() }) }
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
    pub(crate) fn check(&self, agent: &str, cwd: Option<&str>) -> std::result::Result<(), Refusal> {
        let path = self.options().env.iter().find(|(name, _)| name == "PATH");
        let spec = self.agent(agent)?;
        spec.program(path.map(|(_, p)| p.as_os_str())).map_err(Refusal::NoAgent)?;
        cwd.map_or(Ok(()), |cwd| named_root(cwd).map(drop))
    }

    /// The id that a new session has for its agent, where narrows chooses it.
    pub(crate) fn native(&self, agent: &str) -> Option<String> {
        let spec = self.agent(agent).ok()?;
        (spec.protocol == Protocol::Claude).then(new_uuid).flatten()
    }

    /// Makes a session one that is run. Without a folder it gets one.
    pub(crate) async fn adopt(
        &self,
        session: &Session,
        agent: &str,
        cwd: Option<&str>,
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
        };
        Ok(self.inner.store.keep_run(run).await?)
    }

    /// Sends a message to a session's agent, which is started if need be.
    pub(crate) async fn send(
        &self,
        session: &Session,
        prompt: &Prompt,
        key: Option<String>,
    ) -> std::result::Result<Accepted, Refusal> {
        let handle = self.actor(session).await?;
        let body = serde_json::to_string(prompt)
            .map_err(|e| Refusal::Store(Error::Invalid(e.to_string())))?;
        if handle.state.borrow().queue.len() >= self.options().limits.queue {
            return Err(Refusal::Full("too many messages wait for this agent"));
        }
        let (row, new) = self.inner.store.add_message(session.key, key, body).await?;
        if !new && matches!(row.state, MessageState::Done | MessageState::Dropped) {
            let (_, progress) = watch::channel(Progress::of(&row));
            return Ok(Accepted { number: row.number, progress });
        }
        let (tell, told) = oneshot::channel();
        let number = row.number;
        self.order(&handle, Order::Message { row, prompt: prompt.clone(), tell }).await?;
        let progress = told.await.map_err(|_| Refusal::Store(Error::Closed))?;
        Ok(Accepted { number, progress })
    }

    /// Asks the agent to end its turn; whether there was one.
    pub(crate) async fn cancel(&self, session: &Session) -> std::result::Result<bool, Refusal> {
        let handle = self.known(session)?;
        self.ask(&handle, Order::Cancel).await
    }

    /// Ends the agent's process; whether there was one.
    pub(crate) async fn stop(&self, session: &Session) -> std::result::Result<bool, Refusal> {
        let handle = self.known(session)?;
        self.ask(&handle, Order::Stop).await
    }

    /// Takes a message back that waits.
    pub(crate) async fn take_back(
        &self,
        session: &Session,
        number: u64,
    ) -> std::result::Result<bool, Refusal> {
        let handle = self.known(session)?;
        self.ask(&handle, |tell| Order::TakeBack { number, tell }).await
    }

    /// Chooses a mode or a model.
    pub(crate) async fn choose(
        &self,
        session: &Session,
        mode: Option<String>,
        model: Option<String>,
    ) -> std::result::Result<bool, Refusal> {
        let handle = self.actor(session).await?;
        self.ask(&handle, |tell| Order::Choose { mode, model, tell }).await
    }

    /// Answers a question of the agent. The first answer counts.
    pub(crate) async fn answer(
        &self,
        session: &Session,
        request: &str,
        reply: Reply,
    ) -> std::result::Result<(), Refusal> {
        let handle = self.known(session)?;
        let request = request.to_owned();
        self.ask(&handle, |tell| Order::Answer { request, reply, tell }).await?
    }

    /// How a session's run stands, and from now on.
    pub(crate) async fn state(&self, session: &Session) -> Result<watch::Receiver<RunState>> {
        if let Ok(handle) = self.known(session) {
            return Ok(handle.state);
        }
        let run = self.inner.store.run(session.key).await?;
        let state = RunState::at_rest(run.as_ref(), self.options().allow);
        Ok(watch::channel(state).1)
    }

    /// Agents that are there.
    pub(crate) fn count(&self) -> usize {
        alive(&self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner))
    }

    async fn order(&self, handle: &Handle, order: Order) -> std::result::Result<(), Refusal> {
        let sent = handle.orders.send(order).await;
        sent.map_err(|_| Refusal::Store(Error::Closed))
    }

    async fn ask<T>(
        &self,
        handle: &Handle,
        order: impl FnOnce(oneshot::Sender<T>) -> Order,
    ) -> std::result::Result<T, Refusal> {
        let (tell, told) = oneshot::channel();
        self.order(handle, order(tell)).await?;
        told.await.map_err(|_| Refusal::Store(Error::Closed))
    }

    fn known(&self, session: &Session) -> std::result::Result<Handle, Refusal> {
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        actors.retain(|_, handle| !handle.orders.is_closed());
        actors.get(&session.key).cloned().ok_or(Refusal::NotRunning)
    }

    /// The task of a session, which is started if there is none.
    async fn actor(&self, session: &Session) -> std::result::Result<Handle, Refusal> {
        if !self.options().allow {
            return Err(Refusal::NotAllowed);
        }
        if let Ok(handle) = self.known(session) {
            return Ok(handle);
        }
        let run = self.inner.store.run(session.key).await?.ok_or(Refusal::NotRun)?;
        let spec = Arc::new(self.agent(&run.agent)?.clone());
        let known = Known { spec, options: Arc::clone(&self.inner.options) };
        let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(handle) = actors.get(&session.key).filter(|h| !h.orders.is_closed()) {
            return Ok(handle.clone());
        }
        if alive(&actors) >= self.options().limits.agents {
            return Err(Refusal::Full("too many agents are running"));
        }
        let (orders, waiting) = mpsc::channel(MAX_ORDERS);
        let (tell, state) = watch::channel(RunState::at_rest(Some(&run), true));
        let Inner { store, intake, hub, .. } = &*self.inner;
        let actor = Actor::new(store, intake, hub, session.clone(), run, known, tell);
        tokio::spawn(actor.run(waiting));
        let handle = Handle { orders, state };
        actors.insert(session.key, handle.clone());
        Ok(handle)
    }

    /// What an earlier server left open is over: its agents ended with it.
    pub(crate) async fn settle(&self) {
        if let Err(error) = turns::settle(&self.inner.store, &self.inner.intake).await {
            tracing::warn!(%error, "what was left open could not be closed");
        }
    }

    /// Ends all agents.
    pub(crate) async fn close(&self) {
        let handles: Vec<Handle> = {
            let mut actors = self.inner.actors.lock().unwrap_or_else(PoisonError::into_inner);
            actors.drain().map(|(_, handle)| handle).collect()
        };
        let ends = handles.into_iter().map(|handle| async move {
            let _ = handle.orders.send(Order::Close).await;
            handle.orders.closed().await;
        });
        let all = futures_util::future::join_all(ends);
        if tokio::time::timeout(CLOSING, all).await.is_err() {
            tracing::warn!("not all agents ended in time");
        }
    }
}

fn alive(actors: &HashMap<i64, Handle>) -> usize {
    actors.values().filter(|handle| handle.state.borrow().state.is_alive()).count()
}

/// A folder that somebody named.
fn named_root(cwd: &str) -> std::result::Result<String, Refusal> {
    let told = |what: String| Refusal::Store(Error::Invalid(what));
    let path = std::path::Path::new(cwd);
    if !path.is_absolute() {
        return Err(told("`cwd` is a whole path".to_owned()));
    }
    let real = path.canonicalize().map_err(|e| told(format!("`cwd`: {}", e.kind())))?;
    if !real.is_dir() {
        return Err(told("`cwd` is no folder".to_owned()));
    }
    real.into_os_string().into_string().map_err(|_| told("`cwd` is no text".to_owned()))
}

/// A folder of the session's own, for what it makes and for what it is given.
fn made_root(roots: &std::path::Path, id: &str) -> std::result::Result<String, Refusal> {
    let told = |e: std::io::Error| Refusal::Store(Error::Io(e.to_string()));
    let root = roots.join(id);
    for folder in ["outputs", "files"] {
        std::fs::create_dir_all(root.join(folder)).map_err(told)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&root, private).map_err(told)?;
    }
    let root = root.canonicalize().map_err(told)?;
    root.into_os_string().into_string().map_err(|_| {
        Refusal::Store(Error::Invalid("the data directory's name is no text".to_owned()))
    })
}
