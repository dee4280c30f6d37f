//! Packets to a session's log: one pipeline for each session that is being written.

mod came_before;
mod live;
mod open;
mod places;
mod printed;
mod room;
mod same_body;
mod settle;
mod sums;
mod take;
mod wrapped;

pub(crate) use open::withdrawn;
pub(crate) use places::OWN;
pub(crate) use room::{MAX_FILES, MAX_LIVE};
pub use take::{Answer, Arrival, Take};
pub(crate) use take::{MAX_LINE, cancelled_call};
pub use wrapped::Wrapped;

use crate::hub::Hub;
use live::Live;
use narrows::{Format, Paths, Secrets, TextCleaner};
use narrows_store::{Error, Result, Session, Store};
use open::Rows;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Mutex as Gate, OwnedMutexGuard};
use tokio::time::error::Elapsed;

/// How long a request waits for another one that writes the same session.
const PATIENCE: Duration = Duration::from_secs(30);
/// A session that nobody writes for so long is put to rest.
const IDLE: Duration = Duration::from_mins(5);
/// One of which something is held back stays in memory, so that whoever goes on need not send it again:
/// so many of them, of so many bytes. Beyond that, those that waited longest are let go.
pub(crate) const MAX_QUIET: usize = 512;
pub(crate) const MAX_QUIET_BYTES: usize = 64 << 20;
/// Its open items are written to their rows sooner.
const SETTLE: Duration = Duration::from_secs(1);
/// So long after the answer to a turn nothing more of its text comes.
pub(crate) const ANSWER_SETTLES: Duration = Duration::from_secs(3);

/// What is hidden in every session.
#[derive(Debug, Clone, Default)]
pub struct Hidden {
    /// Paths.
    pub paths: Paths,
    /// Secrets.
    pub secrets: Arc<Secrets>,
}

/// How the packets of a request are to be read.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Their dialect.
    pub format: Format,
    /// The place of the first packet; else they come after those that were read.
    pub first: Option<u64>,
    /// The same request again has the same effect once.
    pub key: Option<String>,
    /// Whether packets without a time get the time of their arrival.
    pub arrival: Arrival,
    /// Whether lines say where they come from.
    pub wrapped: bool,
    /// Whether packets say which place they have, as those of files do.
    pub placed: bool,
    /// When packets arrived that do not arrive just now, as those of a file that was written before:
    /// milliseconds since 1970.
    pub heard: Option<i64>,
    /// Whether the source is over with the last packet.
    pub end: bool,
    /// Whether the agent itself is gone at that end: nothing can go on that was begun.
    pub gone: bool,
    /// Whether the agent's process has exited at that end, though the session may go on in another.
    pub exited: bool,
    /// More roots to hide.
    pub roots: Vec<String>,
    /// The number by which a node runs the session's agent: with an older one nothing is written.
    pub fence: Option<u64>,
    /// What is in memory is taken for what the store has. If another node has written meanwhile,
    /// nothing is kept: whoever can give all of it again may trust.
    pub trust: bool,
    /// What was held back of packets before these, by somebody who is gone, cannot be given again: it
    /// is left out.
    pub lost: bool,
}

/// The sessions that are being written.
#[derive(Debug, Clone)]
pub struct Intake {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    store: Store,
    hub: Hub,
    hidden: Hidden,
    live: Mutex<HashMap<i64, Slot>>,
    /// Sessions of which rows wait.
    waiting: Mutex<BTreeSet<i64>>,
    /// Sessions whose agents run here, however silent they are.
    attended: Mutex<HashMap<i64, usize>>,
    /// Held by whoever makes room.
    room: Gate<()>,
}

/// A session that somebody has.
type Held = OwnedMutexGuard<Option<Live>>;

#[derive(Debug, Clone)]
struct Slot {
    gate: Arc<Gate<Option<Live>>>,
    used: Instant,
    /// It is read from files, which can be read again.
    placed: bool,
}

impl Intake {
    /// An intake into a store; what is durable is told to the hub.
    pub fn new(store: Store, hub: Hub, hidden: Hidden) -> Self {
        Intake {
            inner: Arc::new(Inner {
                store,
                hub,
                hidden,
                live: Mutex::default(),
                waiting: Mutex::default(),
                attended: Mutex::default(),
                room: Gate::default(),
            }),
        }
    }

    /// Begins to write a session. One at a time does; others wait for a while.
    pub async fn open(&self, session: &Session, reading: Reading) -> Result<Take> {
        if self.is_full(session.key, reading.placed) {
            // Seldom: what it needs is no part of every request.
            Box::pin(self.make_room(reading.placed)).await;
        }
        let held = self.hold(session.key, PATIENCE).await;
        self.place(session.key, reading.placed);
        Take::begin(self, held.map_err(|_| Error::Invalid(BUSY.to_owned()))?, session, reading)
            .await
    }

    /// Waits until nobody else has a session, though not for ever.
    async fn hold(&self, session: i64, patience: Duration) -> std::result::Result<Held, Elapsed> {
        tokio::time::timeout(patience, async {
            loop {
                let held = self.gate(session).lock_owned().await;
                // Whoever had it may have let go of it altogether: then others wait at another gate.
                let here = self.slot(session);
                if here.is_some_and(|slot| Arc::ptr_eq(&slot.gate, Held::mutex(&held))) {
                    return held;
                }
            }
        })
        .await
    }

    /// Cleans words that are shown beside a session's log.
    pub(crate) fn cleaner(&self, root: &str) -> TextCleaner {
        let mut paths = self.inner.hidden.paths.clone();
        paths.add_root(root);
        TextCleaner::shared(paths, Arc::clone(&self.inner.hidden.secrets))
    }

    /// Whether nobody is writing a session now.
    pub fn is_free(&self, session: i64) -> bool {
        let live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.get(&session).is_none_or(|slot| slot.gate.try_lock().is_ok())
    }

    /// The agent of a session runs here as long as this is kept.
    pub(crate) fn attend(&self, session: i64) -> Attended {
        let mut attended = self.inner.attended.lock().unwrap_or_else(PoisonError::into_inner);
        *attended.entry(session).or_default() += 1;
        Attended { inner: Arc::clone(&self.inner), session }
    }

    /// Whether the agent of a session runs here.
    pub(crate) fn is_attended(&self, session: i64) -> bool {
        let attended = self.inner.attended.lock().unwrap_or_else(PoisonError::into_inner);
        attended.contains_key(&session)
    }

    fn gate(&self, session: i64) -> Arc<Gate<Option<Live>>> {
        let mut live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        let slot = live.entry(session).or_insert_with(|| Slot {
            gate: Arc::default(),
            used: Instant::now(),
            placed: false,
        });
        slot.used = Instant::now();
        Arc::clone(&slot.gate)
    }

    /// Lets go of a session, when everything that was made of it is kept.
    pub async fn release(&self, session: i64) {
        if let Ok(mut held) = self.hold(session, PATIENCE).await {
            self.rest(&mut held, session).await;
        }
    }

    /// Forgets a session that was deleted.
    pub async fn forget(&self, session: i64) {
        let gate = self.gate(session);
        if let Ok(mut guard) = tokio::time::timeout(PATIENCE, gate.lock()).await {
            *guard = None;
        }
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }

    /// Writes what has waited long enough; lets go of sessions that nobody writes.
    pub async fn tidy(&self) {
        self.sweep(IDLE, (MAX_QUIET, MAX_QUIET_BYTES)).await;
    }

    /// Lets go of sessions that nobody has written for so long, but for those of which something is held
    /// back: of these, so many of so many bytes stay.
    pub async fn sweep(&self, idle: Duration, (most, mut bytes): (usize, usize)) {
        let mut quiet = Vec::new();
        for (session, slot) in self.slots() {
            let since = slot.used.elapsed();
            let Ok(mut guard) = Arc::clone(&slot.gate).try_lock_owned() else { continue };
            if since > ANSWER_SETTLES.min(idle)
                && let Some(live) = guard.as_mut()
            {
                live.settle_answered(&self.inner.store, &self.inner.hub).await;
            }
            let held = guard.as_ref().is_some_and(|live| {
                !live.placed && !live.broken.load(Ordering::Relaxed) && !live.is_at_rest()
            });
            if since > idle && !held {
                self.rest(&mut guard, session).await;
            } else if since > SETTLE.min(idle)
                && let Some(live) = guard.as_mut()
            {
                live.settle(&self.inner.store, &self.inner.hub, Rows::All).await;
                if since > idle {
                    quiet.push((slot.used, session, live.weight()));
                }
            }
        }
        quiet.sort_unstable_by_key(|(used, ..)| std::cmp::Reverse(*used));
        for (at, (used, session, weight)) in quiet.into_iter().enumerate() {
            if at < most && weight <= bytes {
                bytes -= weight;
                continue;
            }
            bytes = 0;
            let Some(slot) = self.slot(session).filter(|slot| slot.used == used) else { continue };
            if let Ok(mut guard) = slot.gate.try_lock_owned() {
                self.rest(&mut guard, session).await;
            }
        }
    }

    /// The end: everything that was made is kept. What is held back is not: it is not clean, and whoever
    /// goes on sends it again.
    pub async fn close(&self) {
        for (session, slot) in self.slots() {
            let waited = tokio::time::timeout(Duration::from_secs(5), slot.gate.lock_owned()).await;
            if let Ok(mut guard) = waited {
                self.rest(&mut guard, session).await;
            }
        }
    }

    /// How many sessions are being written.
    pub fn count(&self) -> usize {
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn slot(&self, session: i64) -> Option<Slot> {
        let live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.get(&session).cloned()
    }

    fn slots(&self) -> Vec<(i64, Slot)> {
        let live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.iter().map(|(key, slot)| (*key, slot.clone())).collect()
    }

    async fn rest(&self, held: &mut Held, session: i64) {
        if let Some(mut live) = held.take() {
            live.rest(&self.inner.store, &self.inner.hub).await;
        }
        self.inner.live.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
    }
}

/// Somebody sees to a session: it is not over, however silent it is.
#[derive(Debug)]
pub(crate) struct Attended {
    inner: Arc<Inner>,
    session: i64,
}

impl Drop for Attended {
    fn drop(&mut self) {
        let mut attended = self.inner.attended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = attended.get_mut(&self.session) {
            *count -= 1;
            if *count == 0 {
                attended.remove(&self.session);
            }
        }
    }
}

/// Somebody else writes the session.
pub const BUSY: &str = "another request is writing this session";
