//! The one loop: read what comes after the cursor, tell it, wait to be woken.

use super::batch::{Batch, FIRST};
use super::filter::{Filter, View};
use super::frame::{TextFrames, encode_sse, encode_ws};
use super::hub::Hub;
use super::log_tail::{Ahead, Tail, Waker};
use super::pause::Paused;
use super::preview::Preview;
use bytes::Bytes;
use narrows_store::{Cursor, EventRow, Place, Result, Session};
use std::sync::Arc;

/// What is read from the store at once.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 256 << 10;

/// Where a subscription begins.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum After {
    /// With the first event.
    #[default]
    Start,
    /// With what is new from now on.
    End,
    /// After a cursor, as it was given.
    Given(String),
}

/// How frames are written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wire {
    /// As server-sent events.
    Sse,
    /// As messages of a socket's subscription.
    Ws(String),
}

/// What is to be sent.
#[derive(Debug, Clone)]
pub enum Output {
    /// Server-sent events.
    Bytes(Bytes),
    /// Messages of a socket.
    Messages(Arc<TextFrames>),
}

/// One follower of one session.
#[derive(Debug)]
pub struct Subscription {
    hub: Hub,
    pub(super) tail: Arc<Tail>,
    waker: Waker,
    pub(super) view: View,
    pub(super) filter: Filter,
    pub(super) wire: Wire,
    pub(super) place: Place,
    ready: bool,
    /// The source said that nothing more comes, and the client was told.
    over: bool,
    ended: bool,
    reset: Option<&'static str>,
    /// The last event that is of interest.
    pub(super) last: Option<u64>,
    /// What happened is told, and nothing about the stream itself.
    pub(super) silent: bool,
    /// What the client shows beside the log.
    pub(super) shown: Option<Arc<Preview>>,
}

impl Subscription {
    /// Follows a session from a place on.
    pub fn new(
        hub: &Hub,
        session: &Session,
        view: View,
        filter: Filter,
        wire: Wire,
        after: &After,
    ) -> Self {
        let tail = hub.tail(session);
        tail.seen(session.seq);
        let waker = tail.waker();
        let head = tail.head();
        let (place, reset) = match after {
            After::Start => (Place::default(), None),
            After::End => (Place::after(head), None),
            After::Given(given) => match Cursor::parse(given) {
                None => (Place::after(head), Some("garbage")),
                Some(c) if c.epoch != tail.session().epoch => (Place::after(head), Some("epoch")),
                Some(c) if c.place > Place::after(head) => (Place::after(head), Some("future")),
                Some(c) => (c.place, None),
            },
        };
        Subscription {
            hub: hub.clone(),
            tail,
            waker,
            view,
            filter,
            wire,
            place,
            ready: false,
            over: false,
            ended: false,
            reset,
            last: None,
            silent: false,
            shown: None,
        }
    }

    /// Tells nothing but what happened: no word of its own when it has caught up.
    pub(crate) fn only_packets(&mut self) {
        (self.ready, self.silent) = (true, true);
    }

    /// Tells nothing that comes after an event.
    pub(crate) fn until(&mut self, seq: u64) {
        self.last = Some(seq);
    }

    /// Whether everything up to an event was told.
    pub(crate) fn has_told(&self, seq: u64) -> bool {
        self.place.seq >= seq
    }

    /// The cursor that it has reached.
    pub fn cursor(&self) -> String {
        self.place.within(&self.tail.session().epoch).to_string()
    }

    /// What is to be sent next; waits for it. Nothing when the session is gone.
    pub async fn next(&mut self) -> Result<Option<Output>> {
        if let Some(reason) = self.reset.take() {
            return Ok(Some(self.control("reset", Some(reason))));
        }
        if self.ended {
            return Ok(None);
        }
        loop {
            self.waker.settle();
            match self.tail.after(self.place.seq) {
                Ahead::Ended => {
                    // It may have begun a new life under the same id.
                    let id = &self.tail.session().id;
                    let lives = self.hub.store().session(id).await.is_ok();
                    // Only now: whoever waits for this may have enough of it before.
                    self.ended = true;
                    let reason = if lives { "epoch" } else { "deleted" };
                    return Ok(Some(self.control("reset", Some(reason))));
                }
                Ahead::Batch(batch) => return Ok(Some(self.tell(&batch))),
                Ahead::Stored => {
                    let key = self.tail.session().key;
                    let page = self
                        .hub
                        .store()
                        .events_after(key, self.place.seq, PAGE_ROWS, PAGE_BYTES)
                        .await;
                    let page = match page {
                        Err(narrows_store::Error::NotFound(_)) => {
                            self.ended = true;
                            return Ok(Some(self.control("reset", Some("deleted"))));
                        }
                        page => page?,
                    };
                    if page.rows.is_empty() {
                        // Told but not there: it can only be that the log was cut.
                        self.place = Place::after(page.last);
                        return Ok(Some(self.control("reset", Some("epoch"))));
                    }
                    return Ok(Some(self.encode(&page.rows)));
                }
                Ahead::Nothing { .. } if !self.ready => {
                    self.ready = true;
                    return Ok(Some(self.control("ready", None)));
                }
                Ahead::Nothing { over } if over != self.over => {
                    self.over = over;
                    // A source that goes on after its end is told by what comes.
                    if over && !self.silent {
                        return Ok(Some(self.control("ended", None)));
                    }
                }
                Ahead::Nothing { .. } => match self.paused() {
                    Paused::Show(preview) => {
                        let told = self.preview(preview.as_deref());
                        self.shown = preview;
                        return Ok(Some(told));
                    }
                    Paused::Due(at) => tokio::select! {
                        () = self.waker.woken() => {}
                        () = tokio::time::sleep_until(at) => {}
                    },
                    Paused::No => self.waker.woken().await,
                },
            }
        }
    }

    /// The next server-sent events, as bytes. Nothing when the session is gone.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        match self.next().await? {
            Some(Output::Bytes(bytes)) => Ok(Some(bytes)),
            // It was asked for bytes.
            Some(Output::Messages(_)) | None => Ok(None),
        }
    }

    /// A batch: the same bytes for everybody who wants all of it.
    fn tell(&mut self, batch: &Batch) -> Output {
        let whole = self.place == Place::after(batch.first() - 1)
            && self.filter.is_open()
            && self.last.is_none_or(|last| batch.last() <= last);
        if !whole {
            return self.encode(batch.rows());
        }
        let output = match &self.wire {
            Wire::Sse => Output::Bytes(batch.sse(self.view)),
            Wire::Ws(name) if name == FIRST => Output::Messages(batch.ws(self.view)),
            Wire::Ws(_) => return self.encode(batch.rows()),
        };
        self.place = Place::after(batch.last());
        self.shown = None;
        output
    }

    fn encode(&mut self, rows: &[EventRow]) -> Output {
        let wanted = rows.iter().take_while(|r| self.last.is_none_or(|last| r.seq <= last)).count();
        let rows = &rows[..wanted];
        let (epoch, view, filter) = (&self.tail.session().epoch, self.view, &self.filter);
        let output = match &self.wire {
            Wire::Sse => Output::Bytes(encode_sse(epoch, view, filter, self.place, rows)),
            Wire::Ws(name) => {
                Output::Messages(Arc::new(encode_ws(epoch, view, filter, name, self.place, rows)))
            }
        };
        self.place = Place::after(rows.last().map_or(self.place.seq, |r| r.seq));
        self.shown = None;
        output
    }

    /// A frame of its own kind; it has no id.
    fn control(&self, kind: &str, reason: Option<&str>) -> Output {
        let mut data = serde_json::json!({"type": kind, "cursor": self.cursor()});
        if let Some(reason) = reason {
            data["reason"] = reason.into();
        }
        match &self.wire {
            Wire::Sse => Output::Bytes(format!("event: {kind}\ndata: {data}\n\n").into()),
            Wire::Ws(name) => {
                data["subscription"] = name.as_str().into();
                Output::Messages(Arc::new(std::iter::once(data.to_string()).collect()))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use futures_util::FutureExt;
    use narrows_store::{NewSession, Options, Store};

    #[tokio::test]
    async fn that_a_session_is_gone_is_told_though_somebody_stopped_waiting_for_it() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Store::open(&dir.path().join("data"), &Options::default()).expect("a store");
        let (session, _) = store.create(NewSession::default()).await.expect("a session");
        let hub = Hub::new(store.clone());
        let after = After::Start;
        let mut subscription =
            Subscription::new(&hub, &session, View::Items, Filter::default(), Wire::Sse, &after);
        store.delete(&session.id).await.expect("deleted");
        hub.removed(&session);
        // A sign of life may be due while the store is asked.
        assert!(subscription.next().now_or_never().is_none());
        let told = subscription.next().await.expect("told");
        let Some(Output::Bytes(told)) = told else { panic!("{told:?}") };
        assert!(told.starts_with(b"event: reset\n"), "{told:?}");
        assert!(subscription.next().await.expect("told").is_none());
    }
}
