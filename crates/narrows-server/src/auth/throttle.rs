//! Slows down whoever guesses.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Wrong tokens from one address within one window.
const MAX_WRONG: u32 = 60;
const WINDOW: Duration = Duration::from_mins(1);
const MAX_ADDRESSES: usize = 4096;

/// Counts wrong tokens by address. A right one always passes.
#[derive(Debug, Default)]
pub(crate) struct Throttle {
    wrong: Mutex<HashMap<IpAddr, (Instant, u32)>>,
}

impl Throttle {
    /// Whether there were too many wrong ones.
    pub(crate) fn is_shut(&self, from: IpAddr) -> bool {
        let wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        let of = wrong.get(&from);
        of.is_some_and(|(since, count)| since.elapsed() < WINDOW && *count > MAX_WRONG)
    }

    /// Counts a wrong token; true when there were too many.
    pub(crate) fn wrong(&self, from: IpAddr) -> bool {
        let mut wrong = self.wrong.lock().unwrap_or_else(PoisonError::into_inner);
        if wrong.len() >= MAX_ADDRESSES {
            wrong.retain(|_, (since, _)| since.elapsed() < WINDOW);
        }
        if wrong.len() >= MAX_ADDRESSES {
            return true;
        }
        let (since, count) = wrong.entry(from).or_insert((Instant::now(), 0));
        if since.elapsed() >= WINDOW {
            (*since, *count) = (Instant::now(), 0);
        }
        *count += 1;
        *count > MAX_WRONG
    }
}
