//! Tokens, their scopes and the sessions they can see. Only hashes of secrets are stored.

use crate::checksum;
use crate::damage::{self, Damage};
use crate::db::Row;
use crate::error::{Error, Result};
use crate::sessions::row::Sight;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A permission of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Read sessions.
    Read,
    /// Create, append to, tag and delete sessions.
    Write,
    /// Start agents.
    Run,
    /// Answer permission requests.
    Approve,
    /// Create and revoke tokens, take backups.
    Admin,
}

impl Scope {
    /// Every scope.
    pub const ALL: [Scope; 5] =
        [Scope::Read, Scope::Write, Scope::Run, Scope::Approve, Scope::Admin];

    /// The name of the scope.
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
            Error::Invalid(format!(
                "invalid scope `{text}`: expected read, write, run, approve or admin"
            ))
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

    /// Whether the set contains `scope`.
    pub fn has(self, scope: Scope) -> bool {
        self.0 & (1 << scope as u8) != 0
    }

    /// Whether the set contains every scope of `other`.
    pub fn covers(self, other: Scopes) -> bool {
        self.0 & other.0 == other.0
    }

    /// The scopes of the set.
    pub fn iter(self) -> impl Iterator<Item = Scope> {
        Scope::ALL.into_iter().filter(move |s| self.has(*s))
    }

    /// Parses comma-separated names.
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

/// The purpose of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenKind {
    /// The owner's token, in a file of the data directory.
    Owner,
    /// Created explicitly.
    Made,
    /// A browser login.
    Browser,
    /// A one-time login for a browser; it authorizes nothing else.
    Ticket,
}

impl TokenKind {
    /// The name of the kind.
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
    /// The public id.
    pub id: String,
    /// The SHA-256 of its secret.
    pub hash: [u8; 32],
    /// The purpose.
    pub kind: TokenKind,
    /// The name given by its creator.
    pub name: String,
    /// The permissions.
    pub scopes: Scopes,
    /// The sessions it can see.
    pub sight: Sight,
    /// Milliseconds since 1970.
    pub created: i64,
    /// When it expires, in milliseconds since 1970.
    pub expires: Option<i64>,
}

impl Token {
    /// Whether it has not expired at the time `at`, in milliseconds since 1970.
    pub fn is_valid(&self, at: i64) -> bool {
        self.expires.is_none_or(|end| at < end)
    }
}

pub(crate) const COLUMNS: &str =
    "id, hash, kind, name, scopes, sessions, tags, created, expires, crc";

/// The damage reported for a token row that does not match its checksum.
pub(crate) const TOKEN_DAMAGED: &str =
    "a token row does not match its checksum: the token is ignored";

/// The token `?1` and every token it created, directly or indirectly.
pub(crate) const WITH_DESCENDANTS: &str = "WITH RECURSIVE these (id) AS (
     SELECT CAST(?1 AS TEXT) UNION
     SELECT made.token FROM made JOIN these ON made.maker = these.id)";

/// Excludes tokens whose creator was revoked: they are void with it.
pub(crate) const CREATOR_EXISTS: &str = "NOT EXISTS (SELECT 1 FROM made WHERE made.token = token.id
     AND NOT EXISTS (SELECT 1 FROM token AS maker WHERE maker.id = made.maker))";

pub(crate) fn join_lines(split_lines: Option<&Vec<String>>) -> Option<String> {
    split_lines.map(|l| l.join("\n"))
}

fn split_lines(text: Option<String>) -> Option<Vec<String>> {
    text.map(|t| t.split('\n').filter(|w| !w.is_empty()).map(str::to_owned).collect())
}

/// Reads a token, or nothing if its row does not match its checksum: a damaged token authorizes
/// nothing.
pub(crate) fn read_verified(r: &Row<'_>) -> Result<Option<Token>> {
    if !checksum::row_matches(r, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 9)? {
        damage::report(Damage::other(TOKEN_DAMAGED));
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
        // Scopes unknown to this version grant nothing.
        scopes: scopes.split(',').filter_map(|s| s.parse::<Scope>().ok()).collect(),
        sight: Sight { sessions: split_lines(r.get(5)?), tags: split_lines(r.get(6)?) },
        created: r.get(7)?,
        expires: r.get(8)?,
    })
}
