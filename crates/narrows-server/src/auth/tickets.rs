//! Tickets: a way into the browser that works once.

use super::tokens::{Grant, hash_of, new_secret};
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
    /// Who asked for it, but for the server itself.
    pub(crate) maker: Option<Grant>,
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
        self.keep(Worth { scopes, sight, maker: None, until: now() + LIFE_MS })
    }

    /// A new ticket with the rights of whoever asks for it.
    pub(crate) fn make_for(&self, maker: Grant) -> Result<String> {
        let (scopes, sight) = (maker.scopes, maker.sight.clone());
        self.keep(Worth { scopes, sight, maker: Some(maker), until: now() + LIFE_MS })
    }

    fn keep(&self, worth: Worth) -> Result<String> {
        let secret = new_secret()?;
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, worth| worth.until > now());
        if open.len() >= MAX_TICKETS {
            open.clear();
        }
        open.insert(hash_of(&secret), worth);
        Ok(secret)
    }

    /// Takes a ticket: it works once, and only as long as the token does that asked for it.
    pub(crate) fn take(&self, secret: &str) -> Option<Worth> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let worth = open.remove(&hash_of(secret))?;
        let lasts = worth.until > now() && worth.maker.as_ref().is_none_or(Grant::lasts);
        lasts.then_some(worth)
    }
}
