//! The registry of log tails on this node. A subscription reads what comes after its cursor; the hub
//! wakes it and holds the newest rows of each session in memory, encoded once for all subscribers.
//! Appends arrive here while the store commits them and are published in order once durable.

use super::bus::{Bus, Wake};
use super::log_tail::{self, LogTail};
use narrows_store::{Error, EventRow, Result, Session, Store};
use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{oneshot, watch};

/// Deleted sessions that followers of the session list can still learn of.
const MAX_DELETED_SESSIONS: usize = 1024;
/// Memory of the log tails of all sessions, in bytes.
pub const MAX_TOTAL_TAIL_BYTES: usize = 64 << 20;
/// Memory of the log tail of one session, in bytes.
pub const MAX_TAIL_BYTES: usize = log_tail::MAX_BYTES;

/// An append that the store is committing.
#[derive(Debug)]
pub struct PendingAppend {
    /// Its rows.
    pub rows: Vec<EventRow>,
    /// Resolves when the store has committed the rows, or has failed to.
    pub durable: oneshot::Receiver<Result<u64>>,
    /// Receives the same result after the rows are published.
    pub ack: oneshot::Sender<Result<u64>>,
    /// Set when the rows could not be committed.
    pub poisoned: Arc<AtomicBool>,
    /// Whether the source has ended with these rows.
    pub source_ended: bool,
}

/// The log tails of this node. Clones share them.
#[derive(Debug, Clone)]
pub struct Hub {
    pub(super) inner: Arc<HubInner>,
}

#[derive(Debug)]
pub(super) struct HubInner {
    store: Store,
    bus: Bus,
    pub(super) tails: Mutex<HashMap<i64, Arc<LogTail>>>,
    /// Grows with each change of any session.
    list_version: watch::Sender<u64>,
    deleted: Mutex<DeletedSessions>,
    closing: watch::Sender<bool>,
}

/// The sessions that were deleted last, each with the list version of its deletion.
#[derive(Debug, Default)]
struct DeletedSessions {
    ids: VecDeque<(u64, String)>,
    /// Deletions up to this list version were dropped.
    dropped_up_to: u64,
}

impl Hub {
    /// A hub over a store that no other node writes.
    pub fn new(store: Store) -> Self {
        Hub::with_bus(store, Bus::Local)
    }

    /// A hub over a store whose other nodes are woken through `bus`.
    pub fn with_bus(store: Store, bus: Bus) -> Self {
        Hub {
            inner: Arc::new(HubInner {
                store,
                bus,
                tails: Mutex::default(),
                list_version: watch::Sender::new(0),
                deleted: Mutex::default(),
                closing: watch::Sender::new(false),
            }),
        }
    }

    /// The bus that wakes other nodes.
    pub fn bus(&self) -> &Bus {
        &self.inner.bus
    }

    /// The store, which has the rows that are not in memory.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    fn tails(&self) -> MutexGuard<'_, HashMap<i64, Arc<LogTail>>> {
        self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log tail of a session, created on first use.
    pub fn tail(&self, session: &Session) -> Arc<LogTail> {
        let mut tails = self.tails();
        if let Some(tail) = tails.get(&session.key) {
            return Arc::clone(tail);
        }
        let tail = Arc::new(LogTail::new(session));
        tails.insert(session.key, Arc::clone(&tail));
        drop(tails);
        // Another node may have appended since the session was loaded.
        if self.inner.store.is_shared() {
            self.fetch_remote(&tail);
        }
        tail
    }

    pub(super) fn has_tail(&self, session: i64) -> bool {
        self.tails().contains_key(&session)
    }

    /// Drops the tail of a session that has no subscribers.
    pub fn release(&self, session: i64) {
        let mut tails = self.tails();
        if tails.get(&session).is_some_and(|tail| Arc::strong_count(tail) == 1) {
            tails.remove(&session);
        }
    }

    /// Drops all tails without subscribers when there are more than `max` tails.
    pub fn make_room(&self, max: usize) {
        let mut tails = self.tails();
        if tails.len() > max {
            tails.retain(|_, tail| Arc::strong_count(tail) > 1);
        }
    }

    /// Publishes an append to the session's subscribers once it is durable, in the order of calls.
    pub fn publish_when_durable(&self, session: &Session, mut append: PendingAppend) {
        let tail = self.tail(session);
        // Often the commit is done by now and no earlier append is pending: no task is needed.
        if tail.has_no_pending()
            && let Ok(result) = append.durable.try_recv()
        {
            return self.on_durable(&tail, append, result);
        }
        if tail.enqueue(append) {
            let hub = self.clone();
            tokio::spawn(async move {
                while let Some(mut append) = tail.next_pending() {
                    let result = (&mut append.durable).await;
                    hub.on_durable(&tail, append, result.unwrap_or(Err(Error::Closed)));
                }
            });
        }
    }

    /// Publishes rows that the store has committed, or poisons their writer.
    fn on_durable(&self, tail: &Arc<LogTail>, append: PendingAppend, result: Result<u64>) {
        let PendingAppend { rows, ack, poisoned, source_ended, .. } = append;
        match &result {
            Ok(seq) => {
                tail.publish(rows, source_ended);
                let session = tail.session().key;
                self.inner.bus.tell(Wake::LogGrew { session, seq: *seq });
                self.changed();
            }
            Err(_) => poisoned.store(true, Ordering::Relaxed),
        }
        let _ = ack.send(result);
    }

    /// Wakes followers of the session list: some session changed.
    pub fn changed(&self) {
        self.inner.list_version.send_modify(|n| *n += 1);
    }

    /// A session has a new epoch: subscribers of the old log are reset.
    pub fn begun_anew(&self, old: &Session) {
        self.close_tail(old.key);
        self.inner.bus.tell(Wake::Poll);
        self.changed();
    }

    /// Ends the subscriptions of a log that is gone.
    pub(super) fn close_tail(&self, session: i64) {
        let tail = self.tails().remove(&session);
        if let Some(tail) = tail {
            tail.close();
        }
    }

    /// A session was deleted on this node: its subscribers and other nodes are notified.
    pub fn on_deleted(&self, session: &Session) {
        self.close_tail(session.key);
        self.inner.bus.tell(Wake::Poll);
        self.forget(session.id.clone());
    }

    /// Notifies followers of the session list that a session was deleted.
    pub(crate) fn forget(&self, id: String) {
        {
            let version = *self.inner.list_version.borrow() + 1;
            let mut deleted = self.deleted();
            deleted.ids.push_back((version, id));
            if deleted.ids.len() > MAX_DELETED_SESSIONS
                && let Some((version, _)) = deleted.ids.pop_front()
            {
                deleted.dropped_up_to = version;
            }
        }
        self.changed();
    }

    /// The sessions that were deleted after a list version; `None` when too many were to know.
    pub fn deleted_after(&self, version: u64) -> Option<Vec<String>> {
        let deleted = self.deleted();
        if deleted.dropped_up_to > version {
            return None;
        }
        let newer = deleted.ids.iter().filter(|(at, _)| *at > version);
        Some(newer.map(|(_, id)| id.clone()).collect())
    }

    fn deleted(&self) -> MutexGuard<'_, DeletedSessions> {
        self.inner.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The version of the session list, which grows with each change of any session.
    pub fn list_version(&self) -> watch::Receiver<u64> {
        self.inner.list_version.subscribe()
    }

    /// Becomes true when the server shuts down.
    pub fn closing(&self) -> watch::Receiver<bool> {
        self.inner.closing.subscribe()
    }

    /// Starts the shutdown: streams are closed.
    pub fn close(&self) {
        self.inner.closing.send_replace(true);
    }

    /// Drops idle tails, and rows of the others while all tails exceed their memory.
    pub fn evict_idle(&self) {
        let mut tails = self.tails();
        tails.retain(|_, tail| Arc::strong_count(tail) > 1 || !tail.is_idle());
        let mut bytes: usize = tails.values().map(|tail| tail.bytes()).sum();
        for tail in tails.values() {
            if bytes <= MAX_TOTAL_TAIL_BYTES {
                break;
            }
            bytes -= tail.drop_rows();
        }
    }

    /// The number of tails and the memory of their rows in bytes.
    pub fn size(&self) -> (usize, usize) {
        let tails = self.tails();
        (tails.len(), tails.values().map(|tail| tail.bytes()).sum())
    }
}

/// Waits until the server shuts down.
pub async fn closed(closing: &mut watch::Receiver<bool>) {
    // An error means that the hub is gone, and with it the server.
    let _ = closing.wait_for(|closing| *closing).await;
}
