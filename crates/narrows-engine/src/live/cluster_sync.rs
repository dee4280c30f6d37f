//! What other nodes do. They tell by the bus that there is something to look at; what it is stands in
//! the store. Now and then everything is looked at without being told: nothing depends on the bus.

use super::bus::Wake;
use super::hub::Hub;
use super::log_tail::Tail;
use narrows_store::{Error, News};
use std::collections::HashMap;
use std::sync::{Arc, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// How often is looked without being told; and while the bus is away.
const EVERY: Duration = Duration::from_secs(2);
const EVERY_ALONE: Duration = Duration::from_millis(300);
/// Sessions that are looked up at once.
const AT_ONCE: usize = 5000;
/// What is read of a session's log at once.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 1 << 20;

/// Caches of this node that changes of other nodes make stale.
pub trait ClusterObserver: Send + 'static {
    /// Other nodes have changed sessions, tags or tokens.
    fn on_changes(&self, changes: &News);
    /// Another node has asked a session's run for something, or has answered.
    fn on_run_changed(&self, session: i64);
    /// Runs are to be looked at, whether or not another node said so.
    fn poll_runs(&self);
}

/// Applies the changes of other nodes to this one.
#[derive(Debug)]
pub struct ClusterSync<O> {
    hub: Hub,
    observer: O,
    /// The news up to here are known.
    touched: i64,
    newest: i64,
}

impl<O: ClusterObserver> ClusterSync<O> {
    /// What happened before it begins is not news.
    pub async fn new(hub: &Hub, observer: O) -> Result<Self, Error> {
        let News { touched, newest, .. } = hub.inner.store.news(i64::MAX).await?;
        Ok(ClusterSync { hub: hub.clone(), observer, touched, newest })
    }

    /// Looks until the server ends.
    pub async fn run(mut self, mut heard: mpsc::Receiver<Wake>, stop: CancellationToken) {
        let mut open = true;
        loop {
            let bus = &self.hub.inner.bus;
            let every = if bus.is_shared() && bus.is_up() { EVERY } else { EVERY_ALONE };
            let wake = tokio::select! {
                () = stop.cancelled() => return,
                wake = heard.recv(), if open => wake,
                () = tokio::time::sleep(every) => Some(Wake::Look),
            };
            match wake {
                Some(Wake::Grew { session, seq }) => self.hub.grown(session, seq),
                Some(Wake::Run { session }) => self.observer.on_run_changed(session),
                Some(Wake::Look) => self.look().await,
                None => open = false,
            }
        }
    }

    async fn look(&mut self) {
        // What cannot be read now is read next time.
        if let Ok(news) = self.hub.inner.store.news(self.touched).await {
            self.take(news);
        }
        let followed = self.hub.followed();
        let keys: Vec<i64> = followed.keys().copied().collect();
        for keys in keys.chunks(AT_ONCE) {
            let Ok(heads) = self.hub.inner.store.heads(keys.to_vec()).await else { return };
            let heads: HashMap<i64, (u64, bool)> =
                heads.into_iter().map(|(key, seq, over)| (key, (seq, over))).collect();
            for key in keys {
                let Some(tail) = followed.get(key) else { continue };
                match heads.get(key) {
                    Some((seq, over)) if *seq > tail.known() || *over != tail.is_over() => {
                        self.hub.pull(tail);
                    }
                    Some(_) => {}
                    None => self.hub.end(*key),
                }
            }
        }
        self.observer.poll_runs();
    }

    fn take(&mut self, news: News) {
        self.observer.on_changes(&news);
        for id in news.sessions {
            self.hub.forget(id);
        }
        if news.newest != self.newest {
            self.hub.changed();
        }
        (self.touched, self.newest) = (news.touched, news.newest);
    }
}

impl Hub {
    /// Another node says that a log has grown.
    fn grown(&self, session: i64, seq: u64) {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = tails.get(&session).cloned();
        drop(tails);
        if let Some(tail) = tail.filter(|tail| tail.is_followed() && tail.known() < seq) {
            self.pull(&tail);
        }
        self.changed();
    }

    fn followed(&self) -> HashMap<i64, Arc<Tail>> {
        let tails = self.inner.tails.lock().unwrap_or_else(PoisonError::into_inner);
        let followed = tails.iter().filter(|(_, tail)| tail.is_followed());
        followed.map(|(key, tail)| (*key, Arc::clone(tail))).collect()
    }

    /// Reads what other nodes wrote, once for all who follow.
    pub(super) fn pull(&self, tail: &Arc<Tail>) {
        if !tail.begin_pull() {
            return;
        }
        let (hub, tail) = (self.clone(), Arc::clone(tail));
        tokio::spawn(async move {
            loop {
                while hub.pull_page(&tail).await {}
                if !tail.end_pull() {
                    return;
                }
            }
        });
    }

    /// True when there is more.
    async fn pull_page(&self, tail: &Arc<Tail>) -> bool {
        let (key, after) = (tail.session().key, tail.known());
        match self.inner.store.events_after(key, after, PAGE_ROWS, PAGE_BYTES).await {
            Ok(page) => {
                let told = page.rows.last().map_or(page.last, |row| row.seq);
                let (more, over) = (told < page.last, page.ended);
                tail.publish(page.rows, over && !more);
                more
            }
            Err(Error::NotFound(_)) => {
                self.end(key);
                false
            }
            // Looked at again soon.
            Err(_) => false,
        }
    }
}
