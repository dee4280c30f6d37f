//! What can be shown of text that is held back while its source pauses. It is no part of the log: it is
//! told beside it, and only as long as nothing follows.

use super::hub::Hub;
use super::log_tail::Tail;
use narrows_store::Session;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// A source that says nothing for so long pauses. Together with the way to the client, less than 300 ms.
pub(crate) const PAUSE: Duration = Duration::from_millis(200);

/// The end of a text as it can be shown.
#[derive(Debug)]
pub(crate) struct Preview {
    /// The event behind which it is.
    pub(crate) seq: u64,
    /// Changes of items, printed.
    pub(crate) changes: String,
    /// Since when it is all there is.
    since: Instant,
}

impl Preview {
    /// When it is shown.
    pub(crate) fn due(&self) -> Instant {
        self.since + PAUSE
    }

    /// Whether it says what another one says, and perhaps more.
    pub(crate) fn goes_on_from(&self, other: &Preview) -> bool {
        self.changes.starts_with(other.changes.trim_end_matches(['"', '}', ']']))
    }
}

impl Hub {
    /// Behind the event `seq` of a session, these changes can be shown; none when nothing is held back.
    /// With `alone`, no rows come along that wake those who follow.
    pub(crate) fn preview(
        &self,
        session: &Session,
        seq: u64,
        changes: Option<String>,
        alone: bool,
    ) {
        let since = Instant::now();
        let preview = changes.map(|changes| Preview { seq, changes, since });
        // Nobody needs a tail for nothing.
        match preview {
            None if !self.has_tail(session.key) => {}
            preview => self.tail(session).set_preview(preview, alone),
        }
    }
}

impl Tail {
    /// What can be shown behind an event, beside the log.
    pub(crate) fn preview_after(&self, seq: u64) -> Option<Arc<Preview>> {
        self.preview().filter(|preview| preview.seq == seq)
    }
}
