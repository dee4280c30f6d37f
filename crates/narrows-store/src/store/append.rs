//! Appending to the logs of sessions.

use super::Store;
use crate::append::{Append, Ready};
use crate::error::Result;
use tokio::sync::oneshot;

impl Store {
    /// Appends; the receiver tells when it is durable, and where the log ends then.
    /// Returns when there is room: callers that are too fast wait here.
    pub async fn append(&self, append: Append) -> Result<oneshot::Receiver<Result<u64>>> {
        // Printing and packing is done here: there is one writer, and many who wait for it.
        let ready = Ready::new(append)?;
        self.writer(ready.append.session)?.append(ready).await
    }
}
