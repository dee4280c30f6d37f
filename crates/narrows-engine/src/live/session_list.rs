//! Following the list of sessions: the first page, then each session that changes.

use super::hub::Hub;
use narrows_store::{ListFilter, Result};
use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use tokio::sync::watch;

/// A session that changes all the time is told so often.
const EVERY: Duration = Duration::from_millis(250);

/// The state of one follower.
#[derive(Debug)]
pub struct SessionListFollower {
    hub: Hub,
    filter: ListFilter,
    changes: watch::Receiver<u64>,
    seen: u64,
    touched: Option<i64>,
    /// Sessions that were told, and what of them: only these can go away, and what is known is not
    /// told again.
    told: HashMap<String, u64>,
}

impl SessionListFollower {
    pub fn new(hub: &Hub, filter: ListFilter) -> Self {
        let (changes, told) = (hub.list(), HashMap::new());
        SessionListFollower { hub: hub.clone(), filter, changes, seen: 0, touched: None, told }
    }

    /// What is to be told next, as JSON.
    pub async fn next(&mut self) -> Result<Vec<String>> {
        loop {
            let first = self.touched.is_none();
            if !first {
                if self.changes.wait_for(|n| *n > self.seen).await.is_err() {
                    return Ok(Vec::new());
                }
                tokio::time::sleep(EVERY).await;
            }
            let count = *self.changes.borrow_and_update();
            let gone = self.hub.removed_after(self.seen).unwrap_or_default();
            let mut filter = self.filter.clone();
            filter.touched_after = self.touched;
            let mut page = self.hub.store().list(filter).await?;
            self.seen = count;
            self.touched = Some(page.touched);
            // The oldest change first, so that the last one told is the newest.
            page.sessions.reverse();
            let mut out = Vec::new();
            for session in &page.sessions {
                let put = serde_json::json!({"type": "session", "session": session}).to_string();
                let mut print = std::hash::DefaultHasher::new();
                put.hash(&mut print);
                let print = print.finish();
                if self.told.insert(session.id.clone(), print) != Some(print) {
                    out.push(put);
                }
            }
            for id in gone {
                if self.told.remove(&id).is_some() {
                    out.push(serde_json::json!({"type": "removed", "sessionId": id}).to_string());
                }
            }
            if first {
                out.push(r#"{"type":"ready"}"#.to_owned());
            }
            if !out.is_empty() {
                return Ok(out);
            }
        }
    }
}
