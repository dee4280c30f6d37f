//! Who did what that cannot be undone.

use serde::Serialize;

/// The action of an entry that is not as it was written.
pub(crate) const DAMAGED: &str = "damaged";

/// Something to be remembered.
#[derive(Debug, Clone, Default)]
pub struct NewAudit {
    /// The id of the token.
    pub token: String,
    /// What was done.
    pub action: &'static str,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known; never what a session says.
    pub detail: Option<String>,
}

/// Something that was done.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Audited {
    /// Its number.
    pub number: i64,
    /// Milliseconds since 1970.
    pub at: i64,
    /// The id of the token.
    pub token: String,
    /// What was done.
    pub action: String,
    /// To which session.
    pub session: Option<String>,
    /// What else is to be known.
    pub detail: Option<String>,
}
