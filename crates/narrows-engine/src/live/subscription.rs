//! One subscriber's position in one log. `next` is the only loop: read what comes after the cursor,
//! encode it, or wait to be woken. Resume, history and live streaming are the same.

use super::batch::{Batch, DEFAULT_SUBSCRIPTION_ID};
use super::filter::{Filter, View};
use super::frame::{TextFrames, encode_sse, encode_ws};
use super::hub::Hub;
use super::log_tail::{LogTail, TailRead, TailWatcher};
use super::preview::{Preview, PreviewStep};
use bytes::Bytes;
use narrows_store::{Cursor, Error, EventRow, Place, Result, Session};
use std::sync::Arc;

/// The page that is read from the store at once.
const PAGE_ROWS: usize = 1000;
const PAGE_BYTES: usize = 256 << 10;

/// Where a subscription starts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum StartAt {
    /// At the first event.
    #[default]
    Start,
    /// At the next event.
    End,
    /// After a cursor, as the client sent it.
    Given(String),
}

/// The transport that frames are encoded for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Transport {
    /// Server-sent events.
    Sse,
    /// Messages of a socket's subscription of this name.
    Ws(String),
}

/// Encoded frames to send.
#[derive(Debug, Clone)]
pub enum Output {
    /// Server-sent events.
    Bytes(Bytes),
    /// Messages of a socket.
    Messages(Arc<TextFrames>),
}

impl Output {
    /// A single message of a socket.
    pub(super) fn message(text: String) -> Output {
        Output::Messages(Arc::new(std::iter::once(text).collect()))
    }
}

/// A subscriber of one session.
#[derive(Debug)]
pub struct Subscription {
    hub: Hub,
    pub(super) tail: Arc<LogTail>,
    watcher: TailWatcher,
    pub(super) view: View,
    pub(super) filter: Filter,
    pub(super) transport: Transport,
    pub(super) place: Place,
    /// `ready` was sent.
    ready: bool,
    /// The source has ended, and the client knows it.
    source_ended: bool,
    /// The last `reset` was sent: nothing follows.
    finished: bool,
    /// Why the cursor is not valid, until that is sent.
    reset: Option<&'static str>,
    /// The last event to send.
    pub(super) end_seq: Option<u64>,
    /// Sends no control frames and no previews.
    pub(super) suppress_control: bool,
    /// The preview that the client shows.
    pub(super) preview: Option<Arc<Preview>>,
}

impl Subscription {
    /// Subscribes to a session.
    pub fn new(
        hub: &Hub,
        session: &Session,
        view: View,
        filter: Filter,
        transport: Transport,
        start: &StartAt,
    ) -> Self {
        let tail = hub.tail(session);
        tail.advance_to(session.seq);
        let watcher = tail.waker();
        let head = tail.head();
        let (place, reset) = match start {
            StartAt::Start => (Place::default(), None),
            StartAt::End => (Place::after(head), None),
            StartAt::Given(cursor) => match Cursor::parse(cursor) {
                None => (Place::after(head), Some("garbage")),
                Some(c) if c.epoch != tail.session().epoch => (Place::after(head), Some("epoch")),
                Some(c) if c.place > Place::after(head) => (Place::after(head), Some("future")),
                Some(c) => (c.place, None),
            },
        };
        Subscription {
            hub: hub.clone(),
            tail,
            watcher,
            view,
            filter,
            transport,
            place,
            ready: false,
            source_ended: false,
            finished: false,
            reset,
            end_seq: None,
            suppress_control: false,
            preview: None,
        }
    }

    /// Sends frames of the log only: no control frames and no previews.
    pub(crate) fn only_packets(&mut self) {
        (self.ready, self.suppress_control) = (true, true);
    }

    /// Sends nothing after the event `seq`.
    pub(crate) fn until(&mut self, seq: u64) {
        self.end_seq = Some(seq);
    }

    /// Whether everything up to the event `seq` was sent.
    pub(crate) fn has_told(&self, seq: u64) -> bool {
        self.place.seq >= seq
    }

    /// The cursor of the last frame.
    pub fn cursor(&self) -> String {
        self.place.within(&self.tail.session().epoch).to_string()
    }

    /// Waits for the next frames. `None` after the session is gone. Cancelling the future loses nothing.
    pub async fn next(&mut self) -> Result<Option<Output>> {
        if let Some(reason) = self.reset.take() {
            return Ok(Some(self.control_frame("reset", Some(reason))));
        }
        if self.finished {
            return Ok(None);
        }
        loop {
            self.watcher.mark_seen();
            match self.tail.after(self.place.seq) {
                TailRead::Ended => {
                    // The session may have a new epoch under the same id.
                    let id = &self.tail.session().id;
                    let exists = self.hub.store().session(id).await.is_ok();
                    // After the await: a caller that cancels this future still gets the reset.
                    self.finished = true;
                    let reason = if exists { "epoch" } else { "deleted" };
                    return Ok(Some(self.control_frame("reset", Some(reason))));
                }
                TailRead::Batch(batch) => return Ok(Some(self.encode_batch(&batch))),
                TailRead::Stored => {
                    let key = self.tail.session().key;
                    let page = self
                        .hub
                        .store()
                        .events_after(key, self.place.seq, PAGE_ROWS, PAGE_BYTES)
                        .await;
                    let page = match page {
                        Err(Error::NotFound(_)) => {
                            self.finished = true;
                            return Ok(Some(self.control_frame("reset", Some("deleted"))));
                        }
                        page => page?,
                    };
                    if page.rows.is_empty() {
                        // Rows that were announced are missing: the log was truncated.
                        self.place = Place::after(page.last);
                        return Ok(Some(self.control_frame("reset", Some("epoch"))));
                    }
                    return Ok(Some(self.encode_rows(&page.rows)));
                }
                TailRead::Nothing { .. } if !self.ready => {
                    self.ready = true;
                    return Ok(Some(self.control_frame("ready", None)));
                }
                TailRead::Nothing { over: source_ended } if source_ended != self.source_ended => {
                    self.source_ended = source_ended;
                    // A source that resumes after its end announces itself by its frames.
                    if source_ended && !self.suppress_control {
                        return Ok(Some(self.control_frame("ended", None)));
                    }
                }
                TailRead::Nothing { .. } => match self.next_preview() {
                    PreviewStep::Send(preview) => {
                        let frame = self.preview_frame(preview.as_deref());
                        self.preview = preview;
                        return Ok(Some(frame));
                    }
                    PreviewStep::WaitUntil(at) => tokio::select! {
                        () = self.watcher.woken() => {}
                        () = tokio::time::sleep_until(at) => {}
                    },
                    PreviewStep::Unchanged => self.watcher.woken().await,
                },
            }
        }
    }

    /// Waits for the next server-sent events. `None` after the session is gone.
    pub async fn next_bytes(&mut self) -> Result<Option<Bytes>> {
        match self.next().await? {
            Some(Output::Bytes(bytes)) => Ok(Some(bytes)),
            // Only a subscription over a socket has messages.
            Some(Output::Messages(_)) | None => Ok(None),
        }
    }

    /// Encodes a batch. Subscribers of all of it share the same bytes.
    fn encode_batch(&mut self, batch: &Batch) -> Output {
        let sends_all = self.place == Place::after(batch.first() - 1)
            && self.filter.is_open()
            && self.end_seq.is_none_or(|end| batch.last() <= end);
        if !sends_all {
            return self.encode_rows(batch.rows());
        }
        let output = match &self.transport {
            Transport::Sse => Output::Bytes(batch.sse(self.view)),
            Transport::Ws(id) if id == DEFAULT_SUBSCRIPTION_ID => {
                Output::Messages(batch.ws(self.view))
            }
            Transport::Ws(_) => return self.encode_rows(batch.rows()),
        };
        self.place = Place::after(batch.last());
        self.preview = None;
        output
    }

    fn encode_rows(&mut self, rows: &[EventRow]) -> Output {
        let count = rows.iter().take_while(|r| self.end_seq.is_none_or(|end| r.seq <= end)).count();
        let rows = &rows[..count];
        let (epoch, view, filter) = (&self.tail.session().epoch, self.view, &self.filter);
        let output = match &self.transport {
            Transport::Sse => Output::Bytes(encode_sse(epoch, view, filter, self.place, rows)),
            Transport::Ws(id) => {
                Output::Messages(Arc::new(encode_ws(epoch, view, filter, id, self.place, rows)))
            }
        };
        self.place = Place::after(rows.last().map_or(self.place.seq, |r| r.seq));
        self.preview = None;
        output
    }

    /// A frame about the stream itself; it has no id.
    fn control_frame(&self, kind: &str, reason: Option<&str>) -> Output {
        let mut data = serde_json::json!({"type": kind, "cursor": self.cursor()});
        if let Some(reason) = reason {
            data["reason"] = reason.into();
        }
        match &self.transport {
            Transport::Sse => Output::Bytes(format!("event: {kind}\ndata: {data}\n\n").into()),
            Transport::Ws(id) => {
                data["subscription"] = id.as_str().into();
                Output::message(data.to_string())
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
    async fn deleted_session_is_reported_after_cancelled_next() {
        let dir = tempfile::tempdir().expect("a folder");
        let store = Store::open(&dir.path().join("data"), &Options::default()).expect("a store");
        let (session, _) = store.create(NewSession::default()).await.expect("a session");
        let hub = Hub::new(store.clone());
        let start = StartAt::Start;
        let mut subscription = Subscription::new(
            &hub,
            &session,
            View::Items,
            Filter::default(),
            Transport::Sse,
            &start,
        );
        store.delete(&session.id).await.expect("deleted");
        hub.on_deleted(&session);
        // A keep-alive may cancel the call while it queries the store.
        assert!(subscription.next().now_or_never().is_none());
        let output = subscription.next().await.expect("an output");
        let Some(Output::Bytes(frame)) = output else { panic!("{output:?}") };
        assert!(frame.starts_with(b"event: reset\n"), "{frame:?}");
        assert!(subscription.next().await.expect("an output").is_none());
    }
}
