//! The audit log: administrative and irreversible actions, by token. `store/audit.rs` writes and
//! reads it.

use serde::Serialize;

/// The action of an entry whose row does not match its checksum.
pub(crate) const DAMAGED_ACTION: &str = "damaged";

/// An entry to append.
#[derive(Debug, Clone, Default)]
pub struct NewAudit {
    /// The id of the token that acted.
    pub token: String,
    /// The action.
    pub action: &'static str,
    /// The id of the session it was applied to.
    pub session: Option<String>,
    /// Further details; never content of a session.
    pub detail: Option<String>,
}

/// An entry of the audit log.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Audited {
    /// The number of the entry.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The id of the token that acted.
    pub token: String,
    /// The action.
    pub action: String,
    /// The id of the session it was applied to.
    pub session: Option<String>,
    /// Further details.
    pub detail: Option<String>,
}
