//! Tickets: what works once. One lets a browser in; another opens a single request that can have no header.

use super::tokens::{Grant, Tokens, hash_of, new_secret};
use narrows_store::{Error, Result, Scopes, Sight, Store, Token, TokenKind, new_id, now};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A ticket that nobody uses is void after this time.
const LIFE_MS: i64 = 10 * 60 * 1000;
const MAX_TICKETS: usize = 256;
/// A ticket for one request is used at once, or never.
const REQUEST_MS: i64 = 30 * 1000;
const MAX_REQUESTS: usize = 4096;
/// Stands before the name of who asked for a ticket for one request, where tickets are in the store.
const FOR_REQUEST: &str = "request ";

/// What a ticket is worth.
#[derive(Debug, Clone)]
pub(crate) struct Worth {
    pub(crate) scopes: Scopes,
    pub(crate) sight: Sight,
    /// Who asked for it, but for the server itself.
    pub(crate) maker: Option<Grant>,
    until: i64,
}

impl Worth {
    /// The ticket as it lies in the store.
    fn kept(self, secret: &str, purpose: &str) -> Result<Token> {
        Ok(Token {
            id: new_id()?,
            hash: hash_of(secret),
            kind: TokenKind::Ticket,
            name: self.maker.map(|m| format!("{purpose}{}", m.token)).unwrap_or_default(),
            scopes: self.scopes,
            sight: self.sight,
            created: now(),
            expires: Some(self.until),
        })
    }
}

/// Tickets that were not used yet. They live in memory only, unless a browser may come to another
/// node with them.
#[derive(Debug)]
pub(crate) struct Tickets {
    open: Mutex<HashMap<[u8; 32], Worth>>,
    requests: Mutex<HashMap<[u8; 32], Worth>>,
    shared: Option<Store>,
}

impl Tickets {
    pub(crate) fn new(store: &Store) -> Tickets {
        Tickets {
            open: Mutex::default(),
            requests: Mutex::default(),
            shared: store.is_shared().then(|| store.clone()),
        }
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

    /// A new ticket for one request with the rights of whoever asks for it, and when it ends.
    pub(crate) async fn make_for_request(&self, maker: Grant) -> Result<(String, i64)> {
        let (scopes, sight, until) = (maker.scopes, maker.sight.clone(), now() + REQUEST_MS);
        let secret = new_secret()?;
        let worth = Worth { scopes, sight, maker: Some(maker), until };
        if let Some(store) = &self.shared {
            store.keep_token(worth.kept(&secret, FOR_REQUEST)?).await?;
            return Ok((secret, until));
        }
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_REQUESTS {
            open.retain(|_, worth| worth.until > now());
        }
        if open.len() >= MAX_REQUESTS {
            return Err(Error::Unavailable("too many tickets wait to be used".to_owned()));
        }
        open.insert(hash_of(&secret), worth);
        Ok((secret, until))
    }

    /// Takes a ticket for one request: what the token may do that asked for it, if it still may.
    pub(crate) async fn take_for_request(
        &self,
        secret: &str,
        tokens: &Tokens,
    ) -> Result<Option<Grant>> {
        let hash = hash_of(secret);
        if let Some(store) = &self.shared {
            let Some(ticket) = store.take_ticket(hash).await? else { return Ok(None) };
            let lasts = ticket.expires.is_some_and(|end| end > now());
            return match ticket.name.strip_prefix(FOR_REQUEST).filter(|_| lasts) {
                Some(id) => tokens.named(id).await,
                None => Ok(None),
            };
        }
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let worth = open.remove(&hash).filter(|worth| worth.until > now());
        Ok(worth.and_then(|worth| worth.maker).filter(Grant::lasts))
    }

    async fn keep(&self, worth: Worth) -> Result<String> {
        let secret = new_secret()?;
        if let Some(store) = &self.shared {
            store.keep_token(worth.kept(&secret, "")?).await?;
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
            if ticket.name.starts_with(FOR_REQUEST) {
                return Ok(None);
            }
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
