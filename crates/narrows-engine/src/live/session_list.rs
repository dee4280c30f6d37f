//! A follower of the session list: the first page, then each session that changes.

use super::hub::Hub;
use narrows_store::{ListFilter, Result};
use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;
use tokio::sync::watch;

/// How long changes are gathered before they are sent.
const BATCH_DELAY: Duration = Duration::from_millis(250);

/// The position of one follower of the session list.
#[derive(Debug)]
pub struct SessionListFollower {
    hub: Hub,
    filter: ListFilter,
    versions: watch::Receiver<u64>,
    /// The list version up to which changes were sent.
    version: u64,
    /// The store's revision of the last page; `None` before the first one.
    revision: Option<i64>,
    /// The sent sessions with a hash of what was sent: only these can be reported as removed, and a
    /// session is not sent again without a change.
    sent: HashMap<String, u64>,
}

impl SessionListFollower {
    /// A follower that starts with the first page.
    pub fn new(hub: &Hub, filter: ListFilter) -> Self {
        SessionListFollower {
            hub: hub.clone(),
            filter,
            versions: hub.list_version(),
            version: 0,
            revision: None,
            sent: HashMap::new(),
        }
    }

    /// Waits for the next changes and returns them as JSON messages.
    pub async fn next(&mut self) -> Result<Vec<String>> {
        loop {
            let is_first = self.revision.is_none();
            if !is_first {
                if self.versions.wait_for(|n| *n > self.version).await.is_err() {
                    return Ok(Vec::new());
                }
                tokio::time::sleep(BATCH_DELAY).await;
            }
            let version = *self.versions.borrow_and_update();
            let deleted = self.hub.deleted_after(self.version).unwrap_or_default();
            let mut filter = self.filter.clone();
            filter.touched_after = self.revision;
            let mut page = self.hub.store().list(filter).await?;
            self.version = version;
            self.revision = Some(page.touched);
            // The oldest change first: the last message is the newest.
            page.sessions.reverse();
            let mut messages = Vec::new();
            for session in &page.sessions {
                let message =
                    serde_json::json!({"type": "session", "session": session}).to_string();
                let mut hasher = DefaultHasher::new();
                message.hash(&mut hasher);
                let hash = hasher.finish();
                if self.sent.insert(session.id.clone(), hash) != Some(hash) {
                    messages.push(message);
                }
            }
            for id in deleted {
                if self.sent.remove(&id).is_some() {
                    let message = serde_json::json!({"type": "removed", "sessionId": id});
                    messages.push(message.to_string());
                }
            }
            if is_first {
                messages.push(r#"{"type":"ready"}"#.to_owned());
            }
            if !messages.is_empty() {
                return Ok(messages);
            }
        }
    }
}
