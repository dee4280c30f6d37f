//! The leases of this node: which runs it owns, and until when.

use narrows_store::{Error, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Delay before a request to an unavailable database is repeated.
const RETRY_DELAY: Duration = Duration::from_millis(500);
/// Attempts to release a lease before it is left to expire.
const MAX_RELEASE_ATTEMPTS: u32 = 5;

/// The status of a lease.
#[derive(Debug, Clone, Copy)]
struct LeaseStatus {
    /// The lease is valid until then by the clock of this machine. The time is counted from before the
    /// request, so the database's lease lasts longer.
    until: Instant,
    /// Another node owns it.
    lost: bool,
}

/// A lease as the session's actor sees it.
#[derive(Debug, Clone)]
pub(in crate::run) struct Lease {
    pub(in crate::run) fence: u64,
    status: watch::Receiver<LeaseStatus>,
}

impl Lease {
    /// Whether another node owns it now.
    pub(in crate::run) fn is_lost(&self) -> bool {
        self.status.borrow().lost
    }

    /// Whether it is certain that no other node owns it.
    pub(in crate::run) fn is_sure(&self) -> bool {
        let status = self.status.borrow();
        !status.lost && Instant::now() < status.until
    }

    /// Waits for a change of its status.
    pub(in crate::run) async fn changed(&mut self) {
        if self.status.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The leases of this node.
#[derive(Debug)]
pub(in crate::run) struct Leases {
    /// The id of this process: after a restart it is another node.
    pub(super) node: String,
    pub(super) duration: Duration,
    /// `None` until the first lease.
    leases: Mutex<Option<HeldLeases>>,
}

/// Sessions with their fencing tokens and the senders of their status.
type HeldLeases = HashMap<i64, (u64, watch::Sender<LeaseStatus>)>;

impl Leases {
    pub(in crate::run) fn new(duration: Duration) -> Leases {
        // Without random numbers there are no tokens either, and the server does not start.
        let node = narrows_store::new_id().unwrap_or_default();
        Leases { node, duration, leases: Mutex::default() }
    }

    /// Tracks an acquired lease and renews it from now on; `requested_at` is when it was requested.
    pub(super) fn track(
        self: &Arc<Self>,
        store: &Store,
        session: i64,
        fence: u64,
        requested_at: Instant,
    ) -> Lease {
        let (sender, receiver) =
            watch::channel(LeaseStatus { until: requested_at + self.duration, lost: false });
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let all = leases.get_or_insert_with(|| {
            tokio::spawn(renew(Arc::downgrade(self), store.clone()));
            HashMap::new()
        });
        all.insert(session, (fence, sender));
        Lease { fence, status: receiver }
    }

    /// Releases a lease: any node may run the session now.
    pub(super) async fn release(
        &self,
        store: &Store,
        session: i64,
        fence: u64,
        shown: Option<String>,
    ) {
        {
            let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(leases) = leases.as_mut()
                && leases.get(&session).is_some_and(|(number, _)| *number == fence)
            {
                leases.remove(&session);
            }
        }
        for _ in 0..MAX_RELEASE_ATTEMPTS {
            match store.give_back(session, fence, shown.clone()).await {
                Err(Error::Unavailable(_)) => tokio::time::sleep(RETRY_DELAY).await,
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot release the lease of a run");
                    return;
                }
            }
        }
    }

    fn list(&self) -> Vec<(i64, u64)> {
        let leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let all = leases.iter().flatten().map(|(session, (fence, _))| (*session, *fence));
        let mut all: Vec<(i64, u64)> = all.collect();
        all.sort_unstable();
        all
    }

    /// Applies the result of a renewal.
    fn renewed(&self, renewing: Vec<(i64, u64)>, renewed: &[i64], requested_at: Instant) {
        let mut leases = self.leases.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(leases) = leases.as_mut() else { return };
        for (session, fence) in renewing {
            // It may have been released and acquired again meanwhile.
            let Some((number, sender)) = leases.get(&session) else { continue };
            if *number != fence {
                continue;
            }
            if renewed.contains(&session) {
                sender
                    .send_replace(LeaseStatus { until: requested_at + self.duration, lost: false });
            } else {
                tracing::warn!(session, "lost the lease of a run to another node");
                sender.send_modify(|status| status.lost = true);
                leases.remove(&session);
            }
        }
    }
}

/// Renews all leases periodically, until `Leases` is dropped.
async fn renew(leases: Weak<Leases>, store: Store) {
    loop {
        let Some(leases) = leases.upgrade() else { return };
        let mut pause = leases.duration / 3;
        let renewing = leases.list();
        if !renewing.is_empty() {
            let requested_at = Instant::now();
            match store.renew_runs(renewing.clone(), leases.duration).await {
                Ok(renewed) => leases.renewed(renewing, &renewed, requested_at),
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "cannot renew run leases");
                    pause = pause.min(RETRY_DELAY);
                }
            }
        }
        drop(leases);
        tokio::time::sleep(pause).await;
    }
}
