//! What other nodes did: for those who were not woken, or not in time.

use crate::buckets::touched;
use crate::db::{Db, params};
use crate::error::Result;
use crate::ids::now;

/// A node that was away for longer begins anew.
const KEPT_MS: i64 = 3600 * 1000;

/// What is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Gone {
    Session,
    Token,
    /// A tag, of some session.
    Tag,
}

impl Gone {
    fn name(self) -> &'static str {
        match self {
            Gone::Session => "session",
            Gone::Token => "token",
            Gone::Tag => "tag",
        }
    }
}

/// Remembers that something is gone, where other nodes must hear of it.
pub(crate) fn gone(db: &Db<'_>, what: Gone, id: &str) -> Result<()> {
    if !db.is_postgres() {
        return Ok(());
    }
    let touched = touched(db);
    db.later(
        &format!("INSERT INTO gone VALUES (?1, ?2, {touched}, ?3)"),
        &params![what.name(), id, now()],
    )
}

/// Forgets what every node has heard of long ago.
pub(crate) fn forget(db: &Db<'_>) -> Result<()> {
    if db.is_postgres() {
        db.later("DELETE FROM gone WHERE at < ?1", &params![now() - KEPT_MS])?;
        db.later("DELETE FROM command WHERE created < ?1", &params![now() - KEPT_MS])?;
    }
    Ok(())
}

/// What happened in a store that several nodes use.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The count of changes up to which all of it is told.
    pub touched: i64,
    /// The newest change of any session.
    pub newest: i64,
    /// Sessions that were deleted, by id. Some may have been told before.
    pub sessions: Vec<String>,
    /// Tokens that were revoked, by id.
    pub tokens: Vec<String>,
    /// Tags that some session has no more.
    pub tags: Vec<String>,
}
