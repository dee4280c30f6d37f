//! The preview of a session: held-back text that subscribers see while the source pauses. It is not
//! part of the log, has no cursor, and disappears with the next row.

use super::filter::View;
use super::hub::Hub;
use super::log_tail::LogTail;
use super::subscription::{Output, Subscription, Transport};
use narrows_store::Session;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A preview is sent after this time without packets. With the way to the client it stays below 300 ms.
const PREVIEW_DELAY: Duration = Duration::from_millis(200);

/// The held-back end of a session's text.
#[derive(Debug)]
pub(super) struct Preview {
    /// The seq of the event that it follows.
    pub(super) seq: u64,
    /// Changes of items, as JSON.
    pub(super) changes: String,
    since: Instant,
}

impl Preview {
    fn due(&self) -> Instant {
        self.since + PREVIEW_DELAY
    }

    /// Whether this preview contains another one, and perhaps more text.
    fn extends(&self, other: &Preview) -> bool {
        self.changes.starts_with(other.changes.trim_end_matches(['"', '}', ']']))
    }
}

impl Hub {
    /// Sets the preview that follows the event `seq` of a session; `None` when no text is held back.
    /// With `wake` subscribers are woken: no rows of the same append do.
    pub(crate) fn set_preview(
        &self,
        session: &Session,
        seq: u64,
        changes: Option<String>,
        wake: bool,
    ) {
        let since = Instant::now();
        let preview = changes.map(|changes| Preview { seq, changes, since });
        match preview {
            // Without a tail there is no preview to remove.
            None if !self.has_tail(session.key) => {}
            preview => self.tail(session).set_preview(preview, wake),
        }
    }
}

impl LogTail {
    /// The preview that follows the event `seq`.
    fn preview_after(&self, seq: u64) -> Option<Arc<Preview>> {
        self.preview().filter(|preview| preview.seq == seq)
    }
}

/// The next step of a subscription that has caught up with the log.
pub(super) enum PreviewStep {
    /// Send this preview, or remove the last one.
    Send(Option<Arc<Preview>>),
    /// Send a preview at this time.
    WaitUntil(Instant),
    /// Nothing has changed.
    Unchanged,
}

impl Subscription {
    /// The preview to send now that the subscription has caught up.
    pub(super) fn next_preview(&self) -> PreviewStep {
        let has_previews = self.view != View::Activity && self.filter.is_open();
        if !has_previews || self.suppress_control || self.end_seq.is_some() {
            return PreviewStep::Unchanged;
        }
        match (self.tail.preview_after(self.place.seq), &self.preview) {
            (None, None) => PreviewStep::Unchanged,
            (None, Some(_)) => PreviewStep::Send(None),
            (Some(now), Some(sent)) if now.changes == sent.changes => PreviewStep::Unchanged,
            // The client shows text that is wrong by now.
            (Some(now), Some(sent)) if !now.extends(sent) => PreviewStep::Send(Some(now)),
            (Some(now), _) if Instant::now() < now.due() => PreviewStep::WaitUntil(now.due()),
            (Some(now), _) => PreviewStep::Send(Some(now)),
        }
    }

    /// The frame of a preview; it has no id.
    pub(super) fn preview_frame(&self, preview: Option<&Preview>) -> Output {
        let changes = preview.map_or("[]", |preview| preview.changes.as_str());
        let data =
            format!(r#"{{"type":"preview","changes":{changes},"cursor":"{}""#, self.cursor());
        match &self.transport {
            Transport::Sse => Output::Bytes(format!("event: preview\ndata: {data}}}\n\n").into()),
            Transport::Ws(id) => {
                let id = serde_json::Value::from(id.as_str());
                Output::message(format!(r#"{data},"subscription":{id}}}"#))
            }
        }
    }
}
