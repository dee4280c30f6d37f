//! Tickets: a way into the browser that works once.

use super::tokens::{hash_of, new_secret};
use narrows_store::{Result, Scopes, Sight, now};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A ticket that nobody uses is void after this time.
const LIFE_MS: i64 = 10 * 60 * 1000;
const MAX_TICKETS: usize = 256;

/// What a ticket is worth.
#[derive(Debug, Clone)]
pub(crate) struct Worth {
    pub(crate) scopes: Scopes,
    pub(crate) sight: Sight,
    until: i64,
}

/// Tickets that were not used yet. They live in memory only.
#[derive(Debug, Default)]
pub(crate) struct Tickets {
    open: Mutex<HashMap<[u8; 32], Worth>>,
}

impl Tickets {
    /// A new ticket.
    pub(crate) fn make(&self, scopes: Scopes, sight: Sight) -> Result<String> {
        let secret = new_secret()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, worth| worth.until > now());
        if open.len() >= MAX_TICKETS {
            open.clear();
        }
        open.insert(hash_of(&secret), Worth { scopes, sight, until: now() + LIFE_MS });
        Ok(secret)
    }

    /// Takes a ticket: it works once.
    pub(crate) fn take(&self, secret: &str) -> Option<Worth> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.remove(&hash_of(secret)).filter(|worth| worth.until > now())
    }
}
