//! What every request can reach.

use crate::auth::{Throttle, Tickets, Tokens};
use crate::config::ServeConfig;
use crate::hub::Hub;
use crate::intake::Intake;
use crate::metrics::Metrics;
use crate::run::Runs;
use crate::source::Progress;
use narrows_store::{Session, Store};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use tokio::sync::Semaphore;

/// The parts of a running server. Clones share them.
#[derive(Debug, Clone)]
pub struct App {
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
    pub(crate) written: Written,
    /// Leave to export a session.
    pub(crate) exports: Arc<Semaphore>,
    /// How far reading the sessions of this machine is; nothing while they are not followed.
    pub(crate) reading: OnceLock<Arc<Progress>>,
}

/// Sessions that are written to, so that not every request has to look them up. Every change of a
/// session's tags, and its end, passes here.
#[derive(Debug, Default)]
pub(crate) struct Written {
    known: Mutex<HashMap<String, Session>>,
}

/// Sessions that are remembered.
const MAX_WRITTEN: usize = 4096;

impl Written {
    pub(crate) fn find(&self, id: &str) -> Option<Session> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).get(id).cloned()
    }

    pub(crate) fn remember(&self, session: &Session) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MAX_WRITTEN {
            known.clear();
        }
        known.insert(session.id.clone(), session.clone());
    }

    pub(crate) fn forget(&self, id: &str) {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }
}

impl App {
    pub(crate) fn new(parts: Parts) -> Self {
        App { inner: Arc::new(parts) }
    }
}

impl Deref for App {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.inner
    }
}
