//! Health and the audit log.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Whether the process answers.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Live {
    /// `ok`.
    pub status: String,
}

/// Whether the server works.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Health {
    /// `ok`, or `degraded` while the store cannot be written, something in it cannot be read, or other
    /// nodes cannot be told.
    pub status: String,
    /// The version.
    pub version: String,
    /// `ok`, or `down` while nodes cannot wake each other; only where there may be several.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bus: Option<String>,
    /// Places of the store that cannot be read, where there are some: the log and `narrows doctor` say
    /// which.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damaged: Option<u64>,
    /// How far the first look at the whole store since the start is, while it is under way: until then,
    /// `ok` says that no damage is known so far.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checking: Option<Checking>,
    /// Why the store cannot be written, in words, while it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// How far a look at the whole store is.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct Checking {
    /// Sessions that were looked at.
    pub done: u64,
    /// Sessions that there are; 0 before they were counted.
    pub all: u64,
}

/// What was done that cannot be undone.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditPage {
    /// The newest first.
    pub actions: Vec<AuditEntry>,
}

/// One such thing.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Its number; give it as `before` for those before it.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The token.
    pub token: String,
    /// What was done.
    pub action: String,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known.
    pub detail: Option<String>,
}

/// Which part of the audit log.
#[derive(Debug, Clone, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AuditQuery {
    /// Those before this number.
    pub before: Option<i64>,
    /// How many.
    #[param(minimum = 1, maximum = 500)]
    pub limit: Option<usize>,
}
