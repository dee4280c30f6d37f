//! The change feed of a cluster: tombstones of deleted sessions, tokens and tags, for nodes that
//! missed a wake-up.

use crate::buckets::next_revision;
use crate::db::{Db, params};
use crate::error::Result;
use crate::ids::now;

/// How long tombstones are kept, in milliseconds; a node that was away for longer reloads
/// everything.
const TOMBSTONE_TTL_MS: i64 = 3600 * 1000;

/// The kind of a deleted object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deleted {
    Session,
    Token,
    /// A tag, removed from some session.
    Tag,
}

impl Deleted {
    fn name(self) -> &'static str {
        match self {
            Deleted::Session => "session",
            Deleted::Token => "token",
            Deleted::Tag => "tag",
        }
    }
}

/// Writes a tombstone, if other nodes share the store.
pub(crate) fn record_deletion(db: &Db<'_>, kind: Deleted, id: &str) -> Result<()> {
    if !db.is_postgres() {
        return Ok(());
    }
    let touched = next_revision(db);
    db.execute_pipelined(
        &format!("INSERT INTO gone VALUES (?1, ?2, {touched}, ?3)"),
        &params![kind.name(), id, now()],
    )
}

/// Deletes tombstones and commands that every node has seen.
pub(crate) fn prune(db: &Db<'_>) -> Result<()> {
    if db.is_postgres() {
        db.execute_pipelined("DELETE FROM gone WHERE at < ?1", &params![now() - TOMBSTONE_TTL_MS])?;
        db.execute_pipelined(
            "DELETE FROM command WHERE created < ?1",
            &params![now() - TOMBSTONE_TTL_MS],
        )?;
    }
    Ok(())
}

/// Changes in a store that several nodes share.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct News {
    /// The revision up to which the changes are complete.
    pub touched: i64,
    /// The newest revision of any session.
    pub newest: i64,
    /// Ids of deleted sessions; may repeat ones reported before.
    pub sessions: Vec<String>,
    /// Ids of revoked tokens.
    pub tokens: Vec<String>,
    /// Tags that were removed from some session.
    pub tags: Vec<String>,
}
