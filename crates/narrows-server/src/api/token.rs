//! Tokens, tickets and logins.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// A token to be made.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub struct NewTokenBody {
    /// What it is called, up to 100 characters.
    pub name: String,
    /// `read`, `write`, `run`, `approve`, `admin`.
    pub scopes: Vec<String>,
    /// Only these sessions.
    #[serde(default)]
    pub sessions: Option<Vec<String>>,
    /// Only sessions with one of these tags.
    #[serde(default)]
    pub tags: Option<Vec<String>>,
    /// Seconds that it lasts.
    #[serde(default)]
    #[schema(minimum = 1)]
    pub ttl_seconds: Option<u64>,
}

/// A token and its secret, which is told this once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct MadeToken {
    /// Its id, to revoke it.
    pub id: String,
    /// The secret.
    pub token: String,
}

/// A token, without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenInfo {
    /// Its id.
    pub id: String,
    /// What it is called.
    pub name: String,
    /// `owner`, `made` or `browser`.
    pub kind: String,
    /// What it allows.
    pub scopes: Vec<String>,
    /// Only these sessions.
    pub sessions: Option<Vec<String>>,
    /// Only sessions with one of these tags.
    pub tags: Option<Vec<String>>,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// When it ends.
    pub expires_at: Option<i64>,
}

impl From<narrows_store::Token> for TokenInfo {
    fn from(token: narrows_store::Token) -> Self {
        TokenInfo {
            id: token.id,
            name: token.name,
            kind: token.kind.name().to_owned(),
            scopes: token.scopes.iter().map(|s| s.name().to_owned()).collect(),
            sessions: token.sight.sessions,
            tags: token.sight.tags,
            created_at: token.created,
            expires_at: token.expires,
        }
    }
}

/// All tokens.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct TokenList {
    /// Oldest first.
    pub tokens: Vec<TokenInfo>,
}

/// A ticket from the printed address.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Login {
    /// The ticket; it works once.
    pub ticket: String,
}

/// A way into the browser that works once.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Ticket {
    /// The part of the address after its host.
    pub path: String,
}

/// What the caller may do.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Me {
    /// The token's id.
    pub token: String,
    /// What it allows.
    pub scopes: Vec<String>,
}

/// A browser that was let in.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct LoggedIn {
    /// Its token, told this once.
    pub token: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
}

/// A ticket for one request.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct RequestTicket {
    /// Goes into the address, as `ticket=…`.
    pub ticket: String,
    /// When it ends, in milliseconds since 1970.
    pub expires_at: i64,
}
