//! Tokens: who may do what. Only their hashes are kept.

use crate::cluster::changes::{Gone, gone};
use crate::damage::{self, Damage};
use crate::db::{Row, Value, params};
use crate::error::{Error, Result};
use crate::ids::now;
use crate::sessions::row::Sight;
use crate::store::Store;
use crate::sum;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What a token allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// See sessions.
    Read,
    /// Make, fill, tag and delete sessions.
    Write,
    /// Start agents.
    Run,
    /// Answer their questions for leave.
    Approve,
    /// Make and revoke tokens, back up.
    Admin,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 5] =
        [Scope::Read, Scope::Write, Scope::Run, Scope::Approve, Scope::Admin];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Scope::Read => "read",
            Scope::Write => "write",
            Scope::Run => "run",
            Scope::Approve => "approve",
            Scope::Admin => "admin",
        }
    }
}

impl FromStr for Scope {
    type Err = Error;

    fn from_str(text: &str) -> Result<Scope> {
        let found = Scope::ALL.into_iter().find(|s| s.name() == text);
        found.ok_or_else(|| {
            Error::Invalid(format!("`{text}` is no scope: read, write, run, approve, admin"))
        })
    }
}

/// A set of scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Scopes(u8);

impl Scopes {
    /// Every scope.
    pub fn all() -> Self {
        Scope::ALL.into_iter().collect()
    }

    /// Whether a scope is in it.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Whether everything of `other` is in it.
    pub fn covers(self, other: Scopes) -> bool {
        self.0 & other.0 == other.0
    }

    /// The scopes in it.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |s| self.has(*s))
    }

    /// Reads names with commas between.
    pub fn parse(text: &str) -> Result<Self> {
        text.split(',').map(str::trim).filter(|t| !t.is_empty()).map(Scope::from_str).collect()
    }
}

impl FromIterator<Scope> for Scopes {
    fn from_iter<I: IntoIterator<Item = Scope>>(scopes: I) -> Self {
        Scopes(scopes.into_iter().fold(0, |set, s| set | 1 << s as u8))
    }
}

impl fmt::Display for Scopes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.iter().map(Scope::name).collect();
        f.write_str(&names.join(","))
    }
}

/// What a token is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The owner's, in a file of the data directory.
    Owner,
    /// Made by hand.
    Made,
    /// A browser's login.
    Browser,
    /// A way into a browser that works once; it opens nothing else.
    Ticket,
}

impl TokenKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TokenKind::Owner => "owner",
            TokenKind::Made => "made",
            TokenKind::Browser => "browser",
            TokenKind::Ticket => "ticket",
        }
    }
}

/// A token, without its secret.
#[derive(Debug, Clone)]
pub struct Token {
    /// Its id, which may be shown.
    pub id: String,
    /// The SHA-256 of its secret.
    pub hash: [u8; 32],
    /// What it is for.
    pub kind: TokenKind,
    /// What somebody called it.
    pub name: String,
    /// What it allows.
    pub scopes: Scopes,
    /// Which sessions it sees.
    pub sight: Sight,
    /// Milliseconds since 1970.
    pub created: i64,
    /// When it ends.
    pub expires: Option<i64>,
}

impl Token {
    /// Whether it is valid at this time.
    pub fn is_valid(&self, at: i64) -> bool {
        self.expires.is_none_or(|end| at < end)
    }
}

const COLUMNS: &str = "id, hash, kind, name, scopes, sessions, tags, created, expires, crc";

/// What is said of a token's row that is not as it was written.
const DAMAGED: &str = "the row of a token is not as it was written: it opens nothing";

/// A token and what was made by it, however far.
const MADE: &str = "WITH RECURSIVE these (id) AS (
     SELECT CAST(?1 AS TEXT) UNION
     SELECT made.token FROM made JOIN these ON made.maker = these.id)";

/// A token is void with the one that made it.
const HAS_MAKER: &str = "NOT EXISTS (SELECT 1 FROM made WHERE made.token = token.id
     AND NOT EXISTS (SELECT 1 FROM token AS maker WHERE maker.id = made.maker))";

fn words(list: Option<&Vec<String>>) -> Option<String> {
    list.map(|l| l.join("\n"))
}

fn list(text: Option<String>) -> Option<Vec<String>> {
    text.map(|t| t.split('\n').filter(|w| !w.is_empty()).map(str::to_owned).collect())
}

impl Store {
    /// Keeps a token. One of the same id is replaced.
    pub async fn keep_token(&self, token: Token) -> Result<()> {
        self.revoked().forget(self.dir(), &token.hash)?;
        self.write(256, move |db| {
            // One secret is one token.
            let other = "DELETE FROM token WHERE hash = ?1 AND id <> ?2";
            db.later(other, &params![token.hash[..], token.id])?;
            let scopes = token.scopes.to_string();
            let [sessions, tags] =
                [&token.sight.sessions, &token.sight.tags].map(|list| words(list.as_ref()));
            let (kind, hash) = (token.kind.name(), &token.hash[..]);
            let columns = params![
                token.id, hash, kind, token.name, scopes, sessions, tags, token.created, token.expires
            ];
            let sum = sum::of(&columns);
            let values: Vec<Value<'_>> = columns.into_iter().chain(params![sum]).collect();
            db.later(
                "INSERT INTO token (id, hash, kind, name, scopes, sessions, tags, created, expires, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
                 ON CONFLICT (id) DO UPDATE SET hash = excluded.hash, kind = excluded.kind,
                 name = excluded.name, scopes = excluded.scopes, sessions = excluded.sessions,
                 tags = excluded.tags, created = excluded.created, expires = excluded.expires,
                 used = NULL, crc = excluded.crc",
                &values,
            )
        })
        .await
    }

    /// Writes a token again whose own row is not as it was written; false when it is, or is not there.
    /// What it made stays valid.
    pub async fn mend_token(&self, token: &Token) -> Result<bool> {
        let (id, hash) = (token.id.clone(), token.hash);
        let is_damaged = self
            .read(move |db| {
                let sql = format!("SELECT {COLUMNS} FROM token WHERE id = ?1 OR hash = ?2");
                let sound = db.all(&sql, &params![id, hash[..]], |r| {
                    Ok(sum::row_holds(r, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 9).unwrap_or(false))
                })?;
                Ok(sound.contains(&false))
            })
            .await?;
        if !is_damaged {
            return Ok(false);
        }
        self.keep_token(token.clone()).await?;
        tracing::warn!(token = %token.id, "a damaged token was written again");
        // Others may be damaged too: those are found again.
        self.damages().forget(DAMAGED);
        self.tokens().await?;
        Ok(true)
    }

    /// Keeps a token that another one made. Refused when that one is revoked.
    pub async fn keep_made_token(&self, token: Token, maker: &str) -> Result<()> {
        let (id, of) = (token.id.clone(), maker.to_owned());
        self.write(64, move |db| {
            let there = "SELECT id FROM token WHERE id = ?1 /*pg FOR SHARE*/";
            if db.optional(there, &params![of], |r| r.get::<String>(0))?.is_none() {
                return Err(Error::NotFound("token"));
            }
            let keep = "INSERT INTO made (token, maker, crc) VALUES (?1, ?2, ?3)
                 ON CONFLICT (token) DO UPDATE SET maker = excluded.maker, crc = excluded.crc";
            db.later(keep, &params![id, of, sum::of(&params![id, of])])
        })
        .await?;
        self.keep_token(token).await
    }

    /// A token's id and those of all that it made, and that these made.
    pub async fn made_by(&self, id: &str) -> Result<Vec<String>> {
        let id = id.to_owned();
        self.read(move |db| {
            let sql = format!("{MADE} SELECT id FROM these");
            db.all(&sql, &params![id], |r| r.get(0))
        })
        .await
    }

    /// Revokes a token for good, and all that it made. Returns the ids of those that were valid.
    pub async fn revoke_token(&self, id: &str) -> Result<Vec<String>> {
        let of = id.to_owned();
        let found = self
            .read(move |db| {
                let sql = format!(
                    "{MADE} SELECT hash, expires FROM token WHERE id IN (SELECT id FROM these)"
                );
                db.all(&sql, &params![of], |r| Ok((r.get(0)?, r.get(1)?)))
            })
            .await?;
        // Beside the database first: it holds also when a copy of the database takes its place.
        self.revoked().add(self.dir(), &found)?;
        let of = id.to_owned();
        self.write(64, move |db| {
            let sql =
                format!("{MADE} DELETE FROM token WHERE id IN (SELECT id FROM these) RETURNING id");
            let ids: Vec<String> = db.all(&sql, &params![of], |r| r.get(0))?;
            if ids.is_empty() {
                return Err(Error::NotFound("token"));
            }
            for id in &ids {
                db.later("DELETE FROM made WHERE token = ?1", &params![id])?;
                gone(db, Gone::Token, id)?;
            }
            Ok(ids)
        })
        .await
    }

    /// Every token that has not ended, oldest first.
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        let mut tokens = self
            .read(|db| {
                let tokens = db.all(
                    &format!(
                        "SELECT {COLUMNS} FROM token WHERE coalesce(expires, ?1) >= ?1
                         AND kind <> 'ticket' AND {HAS_MAKER} ORDER BY created, id"
                    ),
                    &params![now()],
                    sound,
                )?;
                Ok(tokens.into_iter().flatten().collect::<Vec<Token>>())
            })
            .await?;
        tokens.retain(|token| !self.revoked().has(&token.hash));
        Ok(tokens)
    }

    /// The token with this hash.
    pub async fn token(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        if self.revoked().has(&hash) {
            return Ok(None);
        }
        self.read(move |db| {
            let sql = format!(
                "SELECT {COLUMNS} FROM token WHERE hash = ?1 AND kind <> 'ticket' AND {HAS_MAKER}"
            );
            Ok(db.optional(&sql, &params![hash[..]], sound)?.flatten())
        })
        .await
    }

    /// Takes a ticket: whoever comes second gets nothing.
    pub async fn take_ticket(&self, hash: [u8; 32]) -> Result<Option<Token>> {
        self.write(64, move |db| {
            let sql = format!(
                "DELETE FROM token WHERE hash = ?1 AND kind = 'ticket' RETURNING {COLUMNS}"
            );
            Ok(db.optional(&sql, &params![hash[..]], sound)?.flatten())
        })
        .await
    }
}

/// A token that is not as it was written opens nothing.
fn sound(r: &Row<'_>) -> Result<Option<Token>> {
    if !sum::row_holds(r, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 9)? {
        damage::found(Damage::other(DAMAGED));
        return Ok(None);
    }
    read(r).map(Some)
}

fn read(r: &Row<'_>) -> Result<Token> {
    let kind: String = r.get(2)?;
    let scopes: String = r.get(4)?;
    Ok(Token {
        id: r.get(0)?,
        hash: r.get(1)?,
        kind: match kind.as_str() {
            "owner" => TokenKind::Owner,
            "browser" => TokenKind::Browser,
            "ticket" => TokenKind::Ticket,
            _ => TokenKind::Made,
        },
        name: r.get(3)?,
        // A scope that this version does not know allows nothing.
        scopes: scopes.split(',').filter_map(|s| s.parse::<Scope>().ok()).collect(),
        sight: Sight { sessions: list(r.get(5)?), tags: list(r.get(6)?) },
        created: r.get(7)?,
        expires: r.get(8)?,
    })
}
