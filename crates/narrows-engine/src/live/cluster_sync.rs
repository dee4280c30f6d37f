//! Changes of other nodes, applied to this one. The bus only wakes; what changed is read from the
//! store, which is also polled: nothing depends on the bus. Caches above the hub (tokens, runs,
//! sessions) are reached through `ClusterObserver`.

use super::bus::Wake;
use super::hub::Hub;
use super::log_tail::LogTail;
use narrows_store::{Error, News};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How often the store is polled while the bus is connected, and while it is not.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
const POLL_INTERVAL_WITHOUT_BUS: Duration = Duration::from_millis(300);
/// Sessions whose heads one query reads.
const HEADS_PER_QUERY: usize = 5000;
/// The page of a remote log that is read at once.
const FETCH_ROWS: usize = 1000;
const FETCH_BYTES: usize = 1 << 20;

/// Caches of this node that changes of other nodes make stale.
pub trait ClusterObserver: Send + 'static {
    /// Other nodes have changed sessions, tags or tokens. Called before followers of the session list
    /// are notified.
    fn on_changes(&self, changes: &News);
    /// Another node has enqueued or answered a request for a session's run.
    fn on_run_changed(&self, session: i64);
    /// Polls the state of runs, whether or not a message of the bus has arrived.
    fn poll_runs(&self);
}

/// Applies the changes of other nodes to this one.
#[derive(Debug)]
pub struct ClusterSync<O> {
    hub: Hub,
    observer: O,
    /// The revision up to which changes were read.
    revision: i64,
    newest: i64,
}

impl<O: ClusterObserver> ClusterSync<O> {
    /// Starts at the newest change: older ones are in the store already.
    pub async fn new(hub: &Hub, observer: O) -> Result<Self, Error> {
        let News { touched: revision, newest, .. } = hub.store().news(i64::MAX).await?;
        Ok(ClusterSync { hub: hub.clone(), observer, revision, newest })
    }

    /// Applies changes until `stop` is cancelled.
    pub async fn run(mut self, mut wakes: mpsc::Receiver<Wake>, stop: CancellationToken) {
        let mut bus_open = true;
        loop {
            let bus = self.hub.bus();
            let connected = bus.is_shared() && bus.is_connected();
            let interval = if connected { POLL_INTERVAL } else { POLL_INTERVAL_WITHOUT_BUS };
            let wake = tokio::select! {
                () = stop.cancelled() => return,
                wake = wakes.recv(), if bus_open => wake,
                () = tokio::time::sleep(interval) => Some(Wake::Poll),
            };
            match wake {
                Some(Wake::LogGrew { session, seq }) => self.hub.on_remote_append(session, seq),
                Some(Wake::Run { session }) => self.observer.on_run_changed(session),
                Some(Wake::Poll) => self.poll().await,
                None => bus_open = false,
            }
        }
    }

    async fn poll(&mut self) {
        // A failed read is repeated by the next poll.
        if let Ok(changes) = self.hub.store().news(self.revision).await {
            self.apply(changes);
        }
        let followed = self.hub.followed_tails();
        let keys: Vec<i64> = followed.keys().copied().collect();
        for keys in keys.chunks(HEADS_PER_QUERY) {
            let Ok(heads) = self.hub.store().heads(keys.to_vec()).await else { return };
            let heads: HashMap<i64, (u64, bool)> =
                heads.into_iter().map(|(key, seq, ended)| (key, (seq, ended))).collect();
            for key in keys {
                let Some(tail) = followed.get(key) else { continue };
                match heads.get(key) {
                    Some((seq, ended))
                        if *seq > tail.published_seq() || *ended != tail.has_source_ended() =>
                    {
                        self.hub.fetch_remote(tail);
                    }
                    Some(_) => {}
                    None => self.hub.close_tail(*key),
                }
            }
        }
        self.observer.poll_runs();
    }

    fn apply(&mut self, changes: News) {
        self.observer.on_changes(&changes);
        for id in changes.sessions {
            self.hub.forget(id);
        }
        if changes.newest != self.newest {
            self.hub.changed();
        }
        (self.revision, self.newest) = (changes.touched, changes.newest);
    }
}

impl Hub {
    /// Another node has appended to a log.
    fn on_remote_append(&self, session: i64, seq: u64) {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = tails.get(&session).cloned();
        drop(tails);
        if let Some(tail) = tail.filter(|tail| tail.is_followed() && tail.published_seq() < seq) {
            self.fetch_remote(&tail);
        }
        self.changed();
    }

    fn followed_tails(&self) -> HashMap<i64, Arc<LogTail>> {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = tails.iter().filter(|(_, tail)| tail.is_followed());
        followed.map(|(key, tail)| (*key, Arc::clone(tail))).collect()
    }

    /// Reads the rows that other nodes have appended, once for all subscribers.
    pub(super) fn fetch_remote(&self, tail: &Arc<LogTail>) {
        if !tail.begin_fetch() {
            return;
        }
        let (hub, tail) = (self.clone(), Arc::clone(tail));
        tokio::spawn(async move {
            loop {
                while hub.fetch_page(&tail).await {}
                if !tail.end_fetch() {
                    return;
                }
            }
        });
    }

    /// Fetches one page; returns whether there are more.
    async fn fetch_page(&self, tail: &Arc<LogTail>) -> bool {
        let (key, after) = (tail.session().key, tail.published_seq());
        match self.store().events_after(key, after, FETCH_ROWS, FETCH_BYTES).await {
            Ok(page) => {
                let fetched = page.rows.last().map_or(page.last, |row| row.seq);
                let (more, ended) = (fetched < page.last, page.ended);
                tail.publish(page.rows, ended && !more);
                more
            }
            Err(Error::NotFound(_)) => {
                self.close_tail(key);
                false
            }
            // The next poll fetches again.
            Err(_) => false,
        }
    }
}
