//! How long a store is tried that cannot be written now.

use narrows_store::{Error, Result};
use std::time::Duration;

/// How long it is tried, in milliseconds.
const WAITS: [u64; 6] = [50, 200, 1000, 2000, 5000, 10_000];
/// One on another machine may be away for longer: so often it is tried beyond the first times.
const FAR_WAITS: usize = 300;

/// The pauses between tries.
pub(super) fn waits(shared: bool) -> impl Iterator<Item = Duration> {
    let (few, more) = if shared { (3, FAR_WAITS) } else { (WAITS.len(), 0) };
    let waits = WAITS.into_iter().take(few).chain(std::iter::repeat_n(2000, more));
    waits.map(Duration::from_millis)
}

/// Does something that does no harm when it is done twice, until a shared store is there to do it.
pub(super) async fn insist<T, F: Future<Output = Result<T>>>(
    shared: bool,
    mut work: impl FnMut() -> F,
) -> Result<T> {
    let mut waits = waits(true).filter(|_| shared);
    loop {
        match (work().await, waits.next()) {
            (Err(Error::Unavailable(_)), Some(wait)) => tokio::time::sleep(wait).await,
            (done, _) => return done,
        }
    }
}
