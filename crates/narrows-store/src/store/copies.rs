//! Choosing the listed session among several recordings of the same one.

use super::Store;
use crate::error::Result;
use crate::sessions::copies::{copy_changes, members, set_copy};

impl Store {
    /// Updates which sessions are listed, among those with an agent's session id or among all.
    /// Returns the ids of those that were hidden. `is_attended` is true for sessions whose agent runs here.
    pub async fn list_once(
        &self,
        native: Option<&str>,
        is_attended: impl Fn(i64) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<String>> {
        let native = native.map(str::to_owned);
        let filter = native.clone();
        let members = self.read(move |db| members(db, filter.as_deref())).await?;
        let changes = copy_changes(members, &is_attended);
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.write(64 * changes.len(), move |db| {
            let mut hidden = Vec::new();
            for (key, id, copy_of) in &changes {
                set_copy(db, *key, *copy_of)?;
                hidden.extend(copy_of.map(|_| id.clone()));
            }
            Ok(hidden)
        })
        .await
    }
}
