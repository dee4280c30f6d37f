//! Slows down whoever guesses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens from one address within one window.
const MAX_FAILURES: u32 = 60;
const FAILURE_WINDOW: Duration = Duration::from_mins(1);
const MAX_ADDRESSES: usize = 4096;

/// Counts wrong tokens by address. A right one always passes.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    failures: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl Throttle {
    /// Whether there were too many wrong ones.
    pub(crate) fn is_blocked(&self, from: IpAddr) -> bool {
        let failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = failures.get(&from);
        entry
            .is_some_and(|(since, count)| since.elapsed() < FAILURE_WINDOW && *count > MAX_FAILURES)
    }

    /// Counts a wrong token; true when there were too many.
    pub(crate) fn record_failure(&self, from: IpAddr) -> bool {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if failures.len() >= MAX_ADDRESSES {
            failures.retain(|_, (since, _)| since.elapsed() < FAILURE_WINDOW);
        }
        if failures.len() >= MAX_ADDRESSES {
            return true;
        }
        let (since, count) = failures.entry(from).or_insert((Instant::now(), 0));
        if since.elapsed() >= FAILURE_WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        *count > MAX_FAILURES
    }
}
