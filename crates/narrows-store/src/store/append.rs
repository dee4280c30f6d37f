//! Appending to the logs of sessions.

use super::Store;
use crate::append::{Append, EncodedAppend};
use crate::error::Result;
use tokio::sync::oneshot;

impl Store {
    /// Appends to a log. Waits for room in the queue; the receiver gets the new end of the log when
    /// the append is durable.
    pub async fn append(&self, append: Append) -> Result<oneshot::Receiver<Result<u64>>> {
        // Encoding happens on the caller's thread: there is one writer for many callers.
        let encoded = EncodedAppend::new(append)?;
        self.writer(encoded.append.session)?.append(encoded).await
    }
}
