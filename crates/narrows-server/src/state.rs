//! What every request can reach.

use crate::auth::{Throttle, Tickets, Tokens};
use crate::config::ServeConfig;
use crate::metrics::{GAUGES, Metrics};
use narrows_engine::discovery::Progress;
use narrows_engine::ingest::Intake;
use narrows_engine::live::{ClusterObserver, Hub};
use narrows_engine::run::Runs;
use narrows_store::{News, Session, Store};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// The parts of a running server. Clones share them.
#[derive(Debug, Clone)]
pub struct AppState {
    inner: Arc<Parts>,
}

/// The parts.
#[derive(Debug)]
pub struct Parts {
    /// The store.
    pub store: Store,
    /// Whoever follows sessions.
    pub hub: Hub,
    /// Whoever writes them.
    pub intake: Intake,
    /// Who may do what.
    pub tokens: Tokens,
    pub(crate) tickets: Tickets,
    pub(crate) throttle: Throttle,
    /// How the server was started.
    pub config: ServeConfig,
    /// Whoever runs agents.
    pub runs: Runs,
    pub(crate) metrics: Metrics,
    pub(crate) session_cache: SessionCache,
    /// Leave to export a session.
    pub(crate) exports: Arc<Semaphore>,
    /// How far reading the sessions of this machine is; nothing while they are not followed.
    pub(crate) reading: OnceLock<Arc<Progress>>,
}

/// Sessions that are session_cache to, so that not every request has to look them up. Every change of a
/// session's tags, and its end, passes here. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SessionCache {
    sessions: Arc<Mutex<HashMap<String, (Session, Instant)>>>,
}

/// Sessions that are remembered.
const MAX_CACHED_SESSIONS: usize = 4096;
/// What other nodes change is told by them; and is looked up so often in case it was not heard.
const CACHE_TTL: Duration = Duration::from_secs(2);

impl SessionCache {
    /// A session; where other nodes can change it, one that was looked up lately.
    pub(crate) fn get(&self, id: &str, shared: bool) -> Option<Session> {
        let sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        let (session, at) = sessions.get(id)?;
        (!shared || at.elapsed() < CACHE_TTL).then(|| session.clone())
    }

    pub(crate) fn insert(&self, session: &Session) {
        let mut sessions = self.sessions.lock().unwrap_or_else(PoisonError::into_inner);
        if sessions.len() >= MAX_CACHED_SESSIONS {
            sessions.clear();
        }
        sessions.insert(session.id.clone(), (session.clone(), Instant::now()));
    }

    pub(crate) fn forget(&self, id: &str) {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

/// What this node remembers of what other nodes may change.
#[derive(Debug)]
pub(crate) struct NodeCaches {
    pub(crate) tokens: Tokens,
    pub(crate) runs: Runs,
    pub(crate) session_cache: SessionCache,
}

impl ClusterObserver for NodeCaches {
    fn on_changes(&self, changes: &News) {
        for id in changes.sessions.iter().chain(&changes.tags) {
            self.session_cache.forget(id);
        }
        for id in &changes.tokens {
            self.tokens.forget(id);
        }
        if !changes.tags.is_empty() {
            self.tokens.revalidate(&changes.tags);
        }
    }

    fn on_run_changed(&self, session: i64) {
        self.runs.woken(session);
    }

    fn poll_runs(&self) {
        self.runs.look();
    }
}

impl AppState {
    pub(crate) fn new(parts: Parts) -> Self {
        AppState { inner: Arc::new(parts) }
    }

    /// Reads the current values of the gauges, in the order of [`GAUGES`].
    pub(crate) fn gauges(&self) -> [u64; GAUGES.len()] {
        let (sessions, rows) = self.hub.size();
        let size = self.store.size();
        let [commits, _, failed, slowest] = self.store.counts();
        [
            self.tokens.streams() as u64,
            self.runs.count() as u64,
            self.intake.count() as u64,
            sessions as u64,
            rows as u64,
            size.database,
            size.wal,
            commits,
            failed,
            slowest,
        ]
    }
}

impl Deref for AppState {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.inner
    }
}
