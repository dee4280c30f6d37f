//! What every request can reach.

use crate::auth::{Throttle, Tickets, Tokens};
use crate::config::ServeConfig;
use crate::hub::Hub;
use crate::intake::Intake;
use crate::metrics::Metrics;
use narrows_store::Store;
use std::ops::Deref;
use std::sync::Arc;

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
    pub(crate) metrics: Metrics,
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
