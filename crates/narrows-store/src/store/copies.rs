//! Choosing the listed session among several recordings of the same one.

use super::Store;
use crate::error::Result;
use crate::sessions::copies::{members, set_copy, wanted};

impl Store {
    /// Updates which sessions are listed, among those with an agent's session id or among all.
    /// Returns the ids of those that were hidden. `attended` are sessions whose agent runs here.
    pub async fn list_once(
        &self,
        native: Option<&str>,
        attended: impl Fn(i64) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<String>> {
        let native = native.map(str::to_owned);
        let one = native.clone();
        let members = self.read(move |db| members(db, one.as_deref())).await?;
        let wanted = wanted(members, &attended);
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        self.write(64 * wanted.len(), move |db| {
            let mut hidden = Vec::new();
            for (key, id, copy_of) in &wanted {
                set_copy(db, *key, *copy_of)?;
                hidden.extend(copy_of.map(|_| id.clone()));
            }
            Ok(hidden)
        })
        .await
    }
}
