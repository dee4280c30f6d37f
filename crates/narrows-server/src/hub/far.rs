//! What other nodes do. They tell by the bus that there is something to look at; what it is stands in
//! the store. Now and then everything is looked at without being told: nothing depends on the bus.

use super::{Hub, Tail};
use crate::app::Written;
use crate::auth::Tokens;
use crate::run::Runs;
use narrows_store::{Error, News, Wake};
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

/// Looks at what other nodes do.
pub(crate) struct Far {
    hub: Hub,
    tokens: Tokens,
    runs: Runs,
    written: Written,
    /// The news up to here are known.
    touched: i64,
    newest: i64,
}

impl Far {
    /// What happened before it begins is not news.
    pub(crate) async fn new(
        hub: &Hub,
        tokens: &Tokens,
        runs: &Runs,
        written: &Written,
    ) -> Result<Far, Error> {
        let News { touched, newest, .. } = hub.inner.store.news(i64::MAX).await?;
        let (hub, tokens, runs) = (hub.clone(), tokens.clone(), runs.clone());
        Ok(Far { hub, tokens, runs, written: written.clone(), touched, newest })
    }

    /// Looks until the server ends.
    pub(crate) async fn run(mut self, mut heard: mpsc::Receiver<Wake>, stop: CancellationToken) {
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
                Some(Wake::Run { session }) => self.runs.woken(session),
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
        self.runs.look();
    }

    fn take(&mut self, news: News) {
        for id in news.sessions.iter().chain(&news.tags) {
            self.written.forget(id);
        }
        for id in news.sessions {
            self.hub.forget(id);
        }
        for id in &news.tokens {
            self.tokens.forget(id);
        }
        if !news.tags.is_empty() {
            self.tokens.ask_again(&news.tags);
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
