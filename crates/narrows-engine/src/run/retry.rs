//! Retries of writes to a store that is unavailable.

use narrows_store::{Error, Result};
use std::time::Duration;

/// Delays between retries, in milliseconds.
const BACKOFF_MS: [u64; 6] = [50, 200, 1000, 2000, 5000, 10_000];
/// A shared store may be away for longer: the number of further retries.
const SHARED_STORE_RETRIES: usize = 300;

/// The delays between retries.
pub(super) fn backoff(shared: bool) -> impl Iterator<Item = Duration> {
    let (few, more) = if shared { (3, SHARED_STORE_RETRIES) } else { (BACKOFF_MS.len(), 0) };
    let backoff = BACKOFF_MS.into_iter().take(few).chain(std::iter::repeat_n(2000, more));
    backoff.map(Duration::from_millis)
}

/// Runs an idempotent operation, with retries while a shared store is unavailable.
pub(super) async fn retry_unavailable<T, F: Future<Output = Result<T>>>(
    shared: bool,
    mut operation: impl FnMut() -> F,
) -> Result<T> {
    let mut pauses = backoff(true).filter(|_| shared);
    loop {
        match (operation().await, pauses.next()) {
            (Err(Error::Unavailable(_)), Some(wait)) => tokio::time::sleep(wait).await,
            (done, _) => return done,
        }
    }
}
