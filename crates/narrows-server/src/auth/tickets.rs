//! Tickets: what works once. One lets a browser in; another opens a single request that can have no header.

use super::tokens::{Grant, Tokens, hash_of, new_secret};
use narrows_store::{Error, Result, Scopes, Sight, Store, Token, TokenKind, new_id, now};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// A ticket that nobody uses is void after this time.
const LOGIN_TTL_MS: i64 = 10 * 60 * 1000;
const MAX_LOGIN_TICKETS: usize = 256;
/// A ticket for one request is used at once, or never.
const REQUEST_TTL_MS: i64 = 30 * 1000;
const MAX_REQUEST_TICKETS: usize = 4096;
/// Stands before the name of who asked for a ticket for one request, where tickets are in the store.
const FOR_REQUEST: &str = "request ";

/// What a ticket is grant.
#[derive(Debug, Clone)]
pub(crate) struct TicketGrant {
    pub(crate) scopes: Scopes,
    pub(crate) sight: Sight,
    /// Who asked for it, but for the server itself.
    pub(crate) creator: Option<Grant>,
    until: i64,
}

impl TicketGrant {
    /// The ticket as it lies in the store.
    fn into_token(self, secret: &str, purpose: &str) -> Result<Token> {
        Ok(Token {
            id: new_id()?,
            hash: hash_of(secret),
            kind: TokenKind::Ticket,
            name: self.creator.map(|m| format!("{purpose}{}", m.token)).unwrap_or_default(),
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
    open: Mutex<HashMap<[u8; 32], TicketGrant>>,
    requests: Mutex<HashMap<[u8; 32], TicketGrant>>,
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
    pub(crate) async fn create(&self, scopes: Scopes, sight: Sight) -> Result<String> {
        self.persist(TicketGrant { scopes, sight, creator: None, until: now() + LOGIN_TTL_MS })
            .await
    }

    /// A new ticket with the rights of whoever asks for it.
    pub(crate) async fn create_for(&self, creator: Grant) -> Result<String> {
        let (scopes, sight) = (creator.scopes, creator.sight.clone());
        self.persist(TicketGrant {
            scopes,
            sight,
            creator: Some(creator),
            until: now() + LOGIN_TTL_MS,
        })
        .await
    }

    /// A new ticket for one request with the rights of whoever asks for it, and when it ends.
    pub(crate) async fn create_for_request(&self, creator: Grant) -> Result<(String, i64)> {
        let (scopes, sight, until) =
            (creator.scopes, creator.sight.clone(), now() + REQUEST_TTL_MS);
        let secret = new_secret()?;
        let grant = TicketGrant { scopes, sight, creator: Some(creator), until };
        if let Some(store) = &self.shared {
            store.keep_token(grant.into_token(&secret, FOR_REQUEST)?).await?;
            return Ok((secret, until));
        }
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= MAX_REQUEST_TICKETS {
            open.retain(|_, grant| grant.until > now());
        }
        if open.len() >= MAX_REQUEST_TICKETS {
            return Err(Error::Unavailable("too many tickets wait to be used".to_owned()));
        }
        open.insert(hash_of(&secret), grant);
        Ok((secret, until))
    }

    /// Takes a ticket for one request: what the token may do that asked for it, if it still may.
    pub(crate) async fn redeem_for_request(
        &self,
        secret: &str,
        tokens: &Tokens,
    ) -> Result<Option<Grant>> {
        let hash = hash_of(secret);
        if let Some(store) = &self.shared {
            let Some(ticket) = store.take_ticket(hash).await? else { return Ok(None) };
            let valid = ticket.expires.is_some_and(|end| end > now());
            return match ticket.name.strip_prefix(FOR_REQUEST).filter(|_| valid) {
                Some(id) => tokens.grant_by_id(id).await,
                None => Ok(None),
            };
        }
        let mut open = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
        let grant = open.remove(&hash).filter(|grant| grant.until > now());
        Ok(grant.and_then(|grant| grant.creator).filter(Grant::is_valid))
    }

    async fn persist(&self, grant: TicketGrant) -> Result<String> {
        let secret = new_secret()?;
        if let Some(store) = &self.shared {
            store.keep_token(grant.into_token(&secret, "")?).await?;
            return Ok(secret);
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(|_, grant| grant.until > now());
        if open.len() >= MAX_LOGIN_TICKETS {
            open.clear();
        }
        open.insert(hash_of(&secret), grant);
        Ok(secret)
    }

    /// Takes a ticket: it works once, and only as long as the token does that asked for it.
    pub(crate) async fn redeem(
        &self,
        secret: &str,
        tokens: &Tokens,
    ) -> Result<Option<TicketGrant>> {
        let hash = hash_of(secret);
        if let Some(store) = &self.shared {
            let Some(ticket) = store.take_ticket(hash).await? else { return Ok(None) };
            if ticket.name.starts_with(FOR_REQUEST) {
                return Ok(None);
            }
            let creator = match ticket.name.as_str() {
                "" => None,
                id => match tokens.grant_by_id(id).await? {
                    Some(creator) => Some(creator),
                    None => return Ok(None),
                },
            };
            let grant = TicketGrant {
                scopes: ticket.scopes,
                sight: ticket.sight,
                creator,
                until: i64::MAX,
            };
            return Ok(ticket.expires.is_some_and(|end| end > now()).then_some(grant));
        }
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(grant) = open.remove(&hash) else { return Ok(None) };
        let valid = grant.until > now() && grant.creator.as_ref().is_none_or(Grant::is_valid);
        Ok(valid.then_some(grant))
    }
}
