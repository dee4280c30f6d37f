//! What is durable, on its way to whoever follows it.
//!
//! A subscription always reads what comes after its cursor; the hub only wakes it, and keeps the
//! newest rows of each session in memory, made into frames once for all who follow.

use super::bus::{Bus, Wake};
use super::log_tail::{self, Tail};
use narrows_store::{EventRow, Result, Session, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{oneshot, watch};

/// Deleted sessions that are remembered for those who follow the list.
const MAX_REMOVED: usize = 1024;
/// Bytes of newest rows, of all sessions together.
pub const MAX_BYTES: usize = 64 << 20;
/// Of one session.
pub const MAX_SESSION_BYTES: usize = log_tail::MAX_BYTES;

/// Rows that the store is about to make durable.
#[derive(Debug)]
pub struct Delivery {
    /// The rows.
    pub rows: Vec<EventRow>,
    /// Tells when they are durable.
    pub durable: oneshot::Receiver<Result<u64>>,
    /// Who waits for that too.
    pub told: oneshot::Sender<Result<u64>>,
    /// Set when they could not be kept.
    pub broken: Arc<AtomicBool>,
    /// Whether the source is over with them.
    pub ended: bool,
}

/// The sessions that are followed or written.
#[derive(Debug, Clone)]
pub struct Hub {
    pub(super) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub(super) store: Store,
    pub(super) bus: Bus,
    pub(super) tails: Mutex<HashMap<i64, Arc<Tail>>>,
    /// Grows when some session changes.
    list: watch::Sender<u64>,
    removed: Mutex<Removed>,
    closing: watch::Sender<bool>,
}

/// Sessions that were deleted, and the count of changes then.
#[derive(Debug, Default)]
struct Removed {
    ids: VecDeque<(u64, String)>,
    /// What came up to this count is forgotten.
    forgotten: u64,
}

impl Hub {
    /// A hub over a store that nobody else writes.
    pub fn new(store: Store) -> Self {
        Hub::with_bus(store, Bus::Local)
    }

    /// A hub over a store; other nodes are told by the bus.
    pub fn with_bus(store: Store, bus: Bus) -> Self {
        let (list, closing) = (watch::Sender::new(0), watch::Sender::new(false));
        let (tails, removed) = (Mutex::default(), Mutex::default());
        Hub { inner: Arc::new(Inner { store, bus, tails, list, removed, closing }) }
    }

    /// How other nodes are told.
    pub fn bus(&self) -> &Bus {
        &self.inner.bus
    }

    /// The newest rows of a session, to be followed.
    pub fn tail(&self, session: &Session) -> Arc<Tail> {
        let mut tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tail) = tails.get(&session.key) {
            return Arc::clone(tail);
        }
        let tail = Arc::new(Tail::new(session));
        tails.insert(session.key, Arc::clone(&tail));
        drop(tails);
        // Another node may have written since the session was looked up.
        if self.inner.store.is_shared() {
            self.pull(&tail);
        }
        tail
    }

    pub(super) fn has_tail(&self, session: i64) -> bool {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        tails.contains_key(&session)
    }

    /// Lets go of a session's newest rows, if nobody follows it.
    pub fn release(&self, session: i64) {
        let mut tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if tails.get(&session).is_some_and(|tail| Arc::strong_count(tail) == 1) {
            tails.remove(&session);
        }
    }

    /// Lets go of the newest rows of all sessions that nobody follows, if there are more than so many.
    pub fn make_room(&self, most: usize) {
        let mut tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        if tails.len() > most {
            tails.retain(|_, tail| Arc::strong_count(tail) > 1);
        }
    }

    /// The store, for what is not in memory.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// Waits for the store, in order, then wakes whoever follows.
    pub fn deliver(&self, session: &Session, mut delivery: Delivery) {
        let tail = self.tail(session);
        // Often the store has it by now, and nothing else is on its way.
        if tail.is_clear()
            && let Ok(done) = delivery.durable.try_recv()
        {
            return self.landed(&tail, delivery, done);
        }
        if tail.queue(delivery) {
            let hub = self.clone();
            tokio::spawn(async move {
                while let Some(mut delivery) = tail.next_delivery() {
                    let done = (&mut delivery.durable).await;
                    let done = done.unwrap_or(Err(narrows_store::Error::Closed));
                    hub.landed(&tail, delivery, done);
                }
            });
        }
    }

    /// The store has rows, or could not keep them.
    fn landed(&self, tail: &Arc<Tail>, delivery: Delivery, done: Result<u64>) {
        let Delivery { rows, told, broken, ended, .. } = delivery;
        match &done {
            Ok(seq) => {
                tail.publish(rows, ended);
                let session = tail.session().key;
                self.inner.bus.tell(Wake::Grew { session, seq: *seq });
                self.changed();
            }
            Err(_) => broken.store(true, Ordering::Relaxed),
        }
        let _ = told.send(done);
    }

    /// Some session changed.
    pub fn changed(&self) {
        self.inner.list.send_modify(|n| *n += 1);
    }

    /// The log of a session began anew: whoever follows the old one is told.
    pub fn begun_anew(&self, old: &Session) {
        self.end(old.key);
        self.inner.bus.tell(Wake::Look);
        self.changed();
    }

    pub(super) fn end(&self, session: i64) {
        let tail = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner).remove(&session);
        if let Some(tail) = tail {
            tail.end();
        }
    }

    /// A session was deleted: whoever follows it is told.
    pub fn removed(&self, session: &Session) {
        self.end(session.key);
        self.inner.bus.tell(Wake::Look);
        self.forget(session.id.clone());
    }

    /// Whoever follows the list is told that a session is not in it any more.
    pub(crate) fn forget(&self, id: String) {
        {
            let count = *self.inner.list.borrow() + 1;
            let mut removed = self.inner.removed.lock().unwrap_or_else(PoisonError::into_inner);
            removed.ids.push_back((count, id));
            if removed.ids.len() > MAX_REMOVED
                && let Some((count, _)) = removed.ids.pop_front()
            {
                removed.forgotten = count;
            }
        }
        self.changed();
    }

    /// The sessions that were deleted after this count; none when too many were.
    pub fn removed_after(&self, count: u64) -> Option<Vec<String>> {
        let removed = self.inner.removed.lock().unwrap_or_else(PoisonError::into_inner);
        if removed.forgotten > count {
            return None;
        }
        Some(removed.ids.iter().filter(|(at, _)| *at > count).map(|(_, id)| id.clone()).collect())
    }

    /// Tells when some session changes.
    pub fn list(&self) -> watch::Receiver<u64> {
        self.inner.list.subscribe()
    }

    /// Tells when the server is about to end.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.inner.closing.subscribe()
    }

    /// The server is about to end: streams are closed.
    pub fn close(&self) {
        self.inner.closing.send_replace(true);
    }

    /// Lets go of sessions that nobody follows or writes, and of rows when there are too many.
    pub fn tidy(&self) {
        let mut tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        tails.retain(|_, tail| Arc::strong_count(tail) > 1 || !tail.is_idle());
        let mut bytes: usize = tails.values().map(|t| t.bytes()).sum();
        for tail in tails.values() {
            if bytes <= MAX_BYTES {
                break;
            }
            bytes -= tail.clear();
        }
    }

    /// Sessions in memory, and the bytes of their rows.
    pub fn size(&self) -> (usize, usize) {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        (tails.len(), tails.values().map(|t| t.bytes()).sum())
    }
}

/// Waits until the server is about to end.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    // The hub is gone: so is the server.
    let _ = closing.wait_for(|closing| *closing).await;
}
