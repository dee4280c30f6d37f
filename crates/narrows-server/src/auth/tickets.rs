//! Tickets: a way into the browser that works once.

use super::tokens::{Grant, Tokens, hash_of, new_secret};
use narrows_store::{Result, Scopes, Sight, Store, Token, TokenKind, new_id, now};
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

/// Tickets that were not used yet. They live in memory only, unless a browser may come to another
/// node with them.
#[derive(Debug)]
pub(crate) struct Tickets {
    open: Mutex<HashMap<[u8; 32], Worth>>,
    shared: Option<Store>,
}

impl Tickets {
    pub(crate) fn new(store: &Store) -> Tickets {
        Tickets { open: Mutex::default(), shared: store.is_shared().then(|| store.clone()) }
    }

    /// A new ticket.
    pub(crate) async fn make(&self, scopes: Scopes, sight: Sight) -> Result<String> {
        self.keep(Worth { scopes, sight, maker: None, until: now() + LIFE_MS }).await
    }

    /// A new ticket with the rights of whoever asks for it.
    pub(crate) async fn make_for(&self, maker: Grant) -> Result<String> {
        let (scopes, sight) = (maker.scopes, maker.sight.clone());
        self.keep(Worth { scopes, sight, maker: Some(maker), until: now() + LIFE_MS }).await
    }

    async fn keep(&self, worth: Worth) -> Result<String> {
        let secret = new_secret()?;
        if let Some(store) = &self.shared {
            let ticket = Token {
                id: new_id()?,
                hash: hash_of(&secret),
                kind: TokenKind::Ticket,
                name: worth.maker.map(|m| m.token).unwrap_or_default(),
                scopes: worth.scopes,
                sight: worth.sight,
                created: now(),
                expires: Some(worth.until),
            };
            store.keep_token(ticket).await?;
            return Ok(secret);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, worth| worth.until > now());
        if open.len() >= MAX_TICKETS {
            open.clear();
        }
        open.insert(hash_of(&secret), worth);
        Ok(secret)
    }

    /// Takes a ticket: it works once, and only as long as the token does that asked for it.
    pub(crate) async fn take(&self, secret: &str, tokens: &Tokens) -> Result<Option<Worth>> {
        let hash = hash_of(secret);
        if let Some(store) = &self.shared {
            let Some(ticket) = store.take_ticket(hash).await? else { return Ok(None) };
            let maker = match ticket.name.as_str() {
                "" => None,
                id => match tokens.named(id).await? {
                    Some(maker) => Some(maker),
                    None => return Ok(None),
                },
            };
            let worth =
                Worth { scopes: ticket.scopes, sight: ticket.sight, maker, until: i64::MAX };
            return Ok(ticket.expires.is_some_and(|end| end > now()).then_some(worth));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(worth) = open.remove(&hash) else { return Ok(None) };
        let lasts = worth.until > now() && worth.maker.as_ref().is_none_or(Grant::lasts);
        Ok(lasts.then_some(worth))
    }
}
