//! The leases of this node: who may run a session's agent, and for how long.

use narrows_store::{Error, Store};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// How soon a database that was away is asked again.
const AGAIN: Duration = Duration::from_millis(500);
/// How often a lease is given back, before it is left to run out.
const GIVE_BACK: u32 = 5;

/// What is known of a lease.
#[derive(Debug, Clone, Copy)]
struct Hold {
    /// It is held until then, by the clock of this machine: counted from before it was asked for, so
    /// that the database counts longer.
    until: Instant,
    /// Another node has it.
    lost: bool,
}

/// A lease as the task has it that runs the session.
#[derive(Debug, Clone)]
pub(in crate::run) struct Lease {
    pub(in crate::run) fence: u64,
    hold: watch::Receiver<Hold>,
}

impl Lease {
    /// Whether another node has it now.
    pub(in crate::run) fn is_lost(&self) -> bool {
        self.hold.borrow().lost
    }

    /// Whether nobody else can have it now.
    pub(in crate::run) fn is_sure(&self) -> bool {
        let hold = self.hold.borrow();
        !hold.lost && Instant::now() < hold.until
    }

    /// Waits for news of it.
    pub(in crate::run) async fn changed(&mut self) {
        if self.hold.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The leases of this node.
#[derive(Debug)]
pub(in crate::run) struct Leases {
    /// This process: one that was started again is another node.
    pub(super) node: String,
    pub(super) time: Duration,
    /// None before the first.
    held: Mutex<Option<Held>>,
}

/// Sessions, the numbers by which they are held, and who is told of that.
type Held = HashMap<i64, (u64, watch::Sender<Hold>)>;

impl Leases {
    pub(in crate::run) fn new(time: Duration) -> Leases {
        // Without random numbers there are no tokens either, and the server does not get so far.
        let node = narrows_store::new_id().unwrap_or_default();
        Leases { node, time, held: Mutex::default() }
    }

    /// Keeps a lease that was taken, from now on; `sent` is when it was asked for.
    pub(super) fn keep(
        self: &Arc<Self>,
        store: &Store,
        session: i64,
        fence: u64,
        sent: Instant,
    ) -> Lease {
        let (tell, told) = watch::channel(Hold { until: sent + self.time, lost: false });
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let all = held.get_or_insert_with(|| {
            tokio::spawn(renew(Arc::downgrade(self), store.clone()));
            HashMap::new()
        });
        all.insert(session, (fence, tell));
        Lease { fence, hold: told }
    }

    /// Gives a lease back: any node may run the session now.
    pub(super) async fn give_back(
        &self,
        store: &Store,
        session: i64,
        fence: u64,
        shown: Option<String>,
    ) {
        {
            let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(held) = held.as_mut()
                && held.get(&session).is_some_and(|(number, _)| *number == fence)
            {
                held.remove(&session);
            }
        }
        for _ in 0..GIVE_BACK {
            match store.give_back(session, fence, shown.clone()).await {
                Err(Error::Unavailable(_)) => tokio::time::sleep(AGAIN).await,
                Ok(()) => return,
                Err(error) => {
                    tracing::warn!(%error, "a run could not be given back");
                    return;
                }
            }
        }
    }

    fn all(&self) -> Vec<(i64, u64)> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let all = held.iter().flatten().map(|(session, (fence, _))| (*session, *fence));
        let mut all: Vec<(i64, u64)> = all.collect();
        all.sort_unstable();
        all
    }

    /// Takes what came of renewing these.
    fn renewed(&self, asked: Vec<(i64, u64)>, kept: &[i64], sent: Instant) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(held) = held.as_mut() else { return };
        for (session, fence) in asked {
            // It may have been given back meanwhile, and taken anew.
            let Some((number, tell)) = held.get(&session) else { continue };
            if *number != fence {
                continue;
            }
            if kept.contains(&session) {
                tell.send_replace(Hold { until: sent + self.time, lost: false });
            } else {
                tracing::warn!(session, "another node has taken over an agent of this one");
                tell.send_modify(|hold| hold.lost = true);
                held.remove(&session);
            }
        }
    }
}

/// Renews all leases now and then, as long as there is somebody who could have some.
async fn renew(leases: Weak<Leases>, store: Store) {
    loop {
        let Some(leases) = leases.upgrade() else { return };
        let mut pause = leases.time / 3;
        let asked = leases.all();
        if !asked.is_empty() {
            let sent = Instant::now();
            match store.renew_runs(asked.clone(), leases.time).await {
                Ok(kept) => leases.renewed(asked, &kept, sent),
                Err(Error::Closed) => return,
                Err(error) => {
                    tracing::warn!(%error, "whether agents may go on could not be asked");
                    pause = pause.min(AGAIN);
                }
            }
        }
        drop(leases);
        tokio::time::sleep(pause).await;
    }
}
