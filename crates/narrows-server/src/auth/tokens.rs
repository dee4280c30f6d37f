//! Tokens in memory: found by hash, revoked at once.

use base64::Engine;
use narrows_store::{Error, Result, Scopes, Sight, Store, Token, TokenKind, new_id, now, random};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// So often a stream looks whether the time of its token is over.
const EXPIRY_CHECK_INTERVAL: Duration = Duration::from_secs(15);

/// A new secret: 256 random bits that the sanitizer knows by their beginning.
pub fn new_secret() -> Result<String> {
    let bytes: [u8; 32] = random()?;
    Ok(format!("nrw_{}", base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(bytes)))
}

/// What is kept of a secret.
pub fn hash_of(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}

/// A token to be made.
#[derive(Debug, Clone, Default)]
pub struct NewToken {
    /// What it is called.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Which sessions it sees.
    pub sight: Sight,
    /// How long it lasts, in milliseconds.
    pub ttl: Option<i64>,
}

/// What a request may do.
#[derive(Debug, Clone)]
pub struct Grant {
    /// The token's id.
    pub token: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Which sessions it sees.
    pub sight: Sight,
    entry: Arc<Entry>,
}

#[derive(Debug)]
struct Entry {
    token: Token,
    revoked: CancellationToken,
    streams: AtomicUsize,
    /// Grows when what the token sees may be less than before.
    visibility_reduced: watch::Sender<u64>,
}

impl Entry {
    /// Waits until the token is revoked or ends.
    async fn ended(&self) {
        let Some(end) = self.token.expires else { return self.revoked.cancelled().await };
        loop {
            let left = u64::try_from(end - now()).unwrap_or(0);
            if left == 0 {
                return;
            }
            // A timer stands still while the machine sleeps; the time at which a token ends does not.
            let delay = Duration::from_millis(left).min(EXPIRY_CHECK_INTERVAL);
            tokio::select! {
                () = self.revoked.cancelled() => return,
                () = tokio::time::sleep(delay) => {}
            }
        }
    }
}

impl Grant {
    /// Whether the token still lasts.
    pub fn is_valid(&self) -> bool {
        !self.entry.revoked.is_cancelled() && self.entry.token.is_valid(now())
    }

    /// How long something may last that this token makes, in milliseconds: not longer than itself.
    pub fn clamp_ttl(&self, ttl: Option<i64>) -> Option<i64> {
        let left = self.entry.token.expires.map(|end| end - now());
        [ttl, left].into_iter().flatten().min()
    }

    /// Waits until the token is revoked or ends.
    pub async fn ended(&self) {
        self.entry.ended().await;
    }

    /// Whether the token was revoked.
    pub fn is_revoked(&self) -> bool {
        self.entry.revoked.is_cancelled()
    }

    /// Whether this token may know of another: one that sees only some sessions knows of those that
    /// see the same.
    pub fn may_list(&self, other: &Token) -> bool {
        self.sight.is_all() || self.sight == other.sight
    }
}

/// All tokens that are valid.
#[derive(Debug, Clone)]
pub struct Tokens {
    store: Store,
    known: Arc<RwLock<HashMap<[u8; 32], Arc<Entry>>>>,
    max_streams: usize,
    total_streams: Arc<AtomicUsize>,
    max_total_streams: usize,
}

/// The right to keep a stream open, until it is dropped or the token is revoked.
#[derive(Debug)]
pub struct StreamPermit {
    entry: Arc<Entry>,
    all: Arc<AtomicUsize>,
    visibility_reduced: watch::Receiver<u64>,
}

impl Drop for StreamPermit {
    fn drop(&mut self) {
        self.entry.streams.fetch_sub(1, Ordering::Relaxed);
        self.all.fetch_sub(1, Ordering::Relaxed);
    }
}

impl StreamPermit {
    /// Waits until the token is revoked or ends, or may see less than before.
    pub(crate) async fn revoked(&mut self) {
        tokio::select! {
            () = self.entry.ended() => {}
            _ = self.visibility_reduced.changed() => {}
        }
    }
}

impl Tokens {
    /// Reads the tokens of a store.
    pub async fn load(
        store: Store,
        max_streams: usize,
        max_total_streams: usize,
    ) -> Result<Tokens> {
        let known =
            store.tokens().await?.into_iter().map(|token| (token.hash, entry(token))).collect();
        Ok(Tokens {
            store,
            known: Arc::new(RwLock::new(known)),
            max_streams,
            total_streams: Arc::default(),
            max_total_streams,
        })
    }

    /// Makes the owner's secret known. There is one at a time.
    pub async fn ensure_owner(&self, secret: &str) -> Result<()> {
        let hash = hash_of(secret);
        if self.known.read().unwrap_or_else(PoisonError::into_inner).contains_key(&hash) {
            return Ok(());
        }
        let name = "owner".to_owned();
        let mut id = name.clone();
        if self.store.is_shared() {
            // Each node has one of its own.
            id.extend(["-", &hex(&hash[..4])]);
        }
        let new = NewToken { name, scopes: Scopes::all(), ..NewToken::default() };
        let owner = token(id.clone(), hash, TokenKind::Owner, new);
        if self.store.mend_token(&owner).await? {
            self.insert(owner, None);
            // What it made is known again.
            self.store.tokens().await?.into_iter().for_each(|token| self.add_known(token));
            return Ok(());
        }
        if !self.store.is_shared() {
            let _ = self.revoke(&id).await;
        }
        self.persist(owner, None).await
    }

    /// The owner's token of this data directory, if it is known.
    pub fn owner(&self) -> Option<String> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut owners = known.values().filter(|e| e.token.kind == TokenKind::Owner);
        owners.next().map(|e| e.token.id.clone())
    }

    /// Makes a token; returns its id and its secret, which is not kept. It is void with its creator.
    pub async fn make(
        &self,
        kind: TokenKind,
        new: NewToken,
        creator: Option<&str>,
    ) -> Result<(String, String)> {
        let (id, secret) = (new_id()?, new_secret()?);
        self.persist(token(id.clone(), hash_of(&secret), kind, new), creator).await?;
        Ok((id, secret))
    }

    async fn persist(&self, token: Token, creator: Option<&str>) -> Result<()> {
        match creator {
            Some(creator) => self.store.keep_made_token(token.clone(), creator).await?,
            None => self.store.keep_token(token.clone()).await?,
        }
        let id = token.id.clone();
        if self.insert(token, creator) {
            return Ok(());
        }
        // Its creator was revoked meanwhile.
        let _ = self.store.revoke_token(&id).await;
        Err(Error::NotFound("token"))
    }

    /// Makes a token known; not when its creator is not known any more.
    fn insert(&self, token: Token, creator: Option<&str>) -> bool {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let valid = creator.is_none_or(|id| known.values().any(|e| e.token.id == id));
        if valid {
            known.insert(token.hash, entry(token));
        }
        valid
    }

    /// What a secret allows, also when another node has made the token.
    pub(crate) async fn find(&self, secret: &str) -> Result<Option<Grant>> {
        if let Some(grant) = self.grant(secret) {
            return Ok(Some(grant));
        }
        if !self.store.is_shared() {
            return Ok(None);
        }
        let found = self.store.token(hash_of(secret)).await?;
        Ok(found.and_then(|token| {
            self.add_known(token);
            self.grant(secret)
        }))
    }

    fn add_known(&self, token: Token) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.entry(token.hash).or_insert_with(|| entry(token));
    }

    /// Learns of tokens that other nodes have made.
    async fn refresh(&self) -> Result<()> {
        if self.store.is_shared() {
            self.store.tokens().await?.into_iter().for_each(|token| self.add_known(token));
        }
        Ok(())
    }

    /// The grant of a token that is known by its id.
    pub(crate) async fn grant_by_id(&self, id: &str) -> Result<Option<Grant>> {
        self.refresh().await?;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        Ok(known.values().find(|e| e.token.id == id).and_then(grant))
    }

    /// A token is not valid any more: its streams are closed.
    pub(crate) fn forget(&self, id: &str) {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, entry| {
            let matches = entry.token.id == id;
            if matches {
                entry.revoked.cancel();
            }
            !matches
        });
    }

    /// What a secret allows; nothing when it is not known or has ended.
    pub fn grant(&self, secret: &str) -> Option<Grant> {
        // Looking up a hash tells nothing about the secret, however long it takes.
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        known.get(&hash_of(secret)).and_then(grant)
    }

    /// Lets a stream stay open; not when there are too many.
    pub fn open_stream(&self, grant: &Grant) -> Option<StreamPermit> {
        let acquire = |count: &AtomicUsize, max: usize| {
            let acquired = count
                .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |n| (n < max).then_some(n + 1));
            acquired.is_ok()
        };
        if !acquire(&self.total_streams, self.max_total_streams) {
            return None;
        }
        if !acquire(&grant.entry.streams, self.max_streams) {
            self.total_streams.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let (entry, all) = (Arc::clone(&grant.entry), Arc::clone(&self.total_streams));
        let visibility_reduced = entry.visibility_reduced.subscribe();
        Some(StreamPermit { entry, all, visibility_reduced })
    }

    /// Some session has lost these tags: streams of tokens that see by one of them are closed, and
    /// are asked again when they come back.
    pub(crate) fn revalidate(&self, tags: &[String]) {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        for entry in known.values() {
            let by = entry.token.sight.tags.iter().flatten();
            if by.into_iter().any(|tag| tags.contains(tag)) {
                entry.visibility_reduced.send_modify(|n| *n += 1);
            }
        }
    }

    /// Streams that are open.
    pub fn streams(&self) -> usize {
        self.total_streams.load(Ordering::Relaxed)
    }

    /// Revokes a token and all that it made: their streams are closed.
    pub async fn revoke(&self, id: &str) -> Result<()> {
        let known = {
            let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
            known.values().any(|e| e.token.id == id)
        };
        // First in memory: a store that cannot be written must not keep a door open.
        self.forget(id);
        for made in self.store.made_by(id).await? {
            self.forget(&made);
        }
        match self.store.revoke_token(id).await {
            Ok(ids) => ids.iter().for_each(|id| self.forget(id)),
            Err(Error::NotFound(_)) if known => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Every valid token, oldest first.
    pub async fn list(&self) -> Result<Vec<Token>> {
        self.refresh().await?;
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let mut tokens: Vec<Token> =
            known.values().map(|e| e.token.clone()).filter(|t| t.is_valid(now())).collect();
        tokens.sort_by(|a, b| (a.created, &a.id).cmp(&(b.created, &b.id)));
        Ok(tokens)
    }
}

fn grant(entry: &Arc<Entry>) -> Option<Grant> {
    let token = &entry.token;
    token.is_valid(now()).then(|| Grant {
        token: token.id.clone(),
        scopes: token.scopes,
        sight: token.sight.clone(),
        entry: Arc::clone(entry),
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

fn entry(token: Token) -> Arc<Entry> {
    Arc::new(Entry {
        token,
        revoked: CancellationToken::new(),
        streams: AtomicUsize::new(0),
        visibility_reduced: watch::Sender::new(0),
    })
}

fn token(id: String, hash: [u8; 32], kind: TokenKind, new: NewToken) -> Token {
    let created = now();
    Token {
        id,
        hash,
        kind,
        name: new.name,
        scopes: new.scopes,
        sight: new.sight,
        created,
        expires: new.ttl.map(|ttl| created.saturating_add(ttl)),
    }
}
