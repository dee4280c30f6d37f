//! Leases: which node runs a session's agent.
//!
//! Each acquisition increments the run's fencing token. The acquiring node locks the session's row,
//! as appends do: nothing with an older token can be written afterwards.

use super::RunRow;
use crate::checksum;
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::store::Store;
use std::time::Duration;

/// Expired runs returned at once.
const MAX_EXPIRED: usize = 100;

/// The clock of the database in milliseconds since 1970: those of the nodes may differ.
pub(super) fn clock(db: &Db<'_>) -> &'static str {
    if db.is_postgres() {
        "CAST(EXTRACT(EPOCH FROM clock_timestamp()) * 1000 AS BIGINT)"
    } else {
        "CAST(unixepoch('subsec') * 1000 AS INTEGER)"
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX / 2)
}

/// A run and its lease.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// The configuration of the run.
    pub run: RunRow,
    /// The last holder.
    pub node: Option<String>,
    /// The fencing token.
    pub fence: u64,
    /// Milliseconds until the lease expires, negative after; none if it was released.
    pub left: Option<i64>,
    /// The run state last published by the holder.
    pub shown: Option<String>,
}

impl Holding {
    /// Whether the lease has not expired.
    pub fn is_held(&self) -> bool {
        self.left.is_some_and(|left| left >= 0)
    }
}

/// An acquired lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// The fencing token.
    pub fence: u64,
    /// The previous lease had expired without being released.
    pub lost: bool,
    /// The run state last published by the previous holder.
    pub shown: Option<String>,
}

/// Fails if a newer fencing token exists. Locks the session's row, so that no node can acquire the
/// lease before this transaction commits.
pub(crate) fn guard(db: &Db<'_>, session: i64, fence: Option<u64>) -> Result<()> {
    if fence.is_none() {
        return Ok(());
    }
    lock(db, session)?;
    check(db, session, fence)
}

/// Like [`guard`], for a locked row. The check needs a statement of its own: the snapshot of one
/// that waited for the lock may be older than the lock.
pub(super) fn check(db: &Db<'_>, session: i64, fence: Option<u64>) -> Result<()> {
    let Some(fence) = fence else { return Ok(()) };
    let sql = "SELECT fence FROM run WHERE session = ?1";
    let now = db.query_opt(sql, &params![session], |r| r.get::<u64>(0))?;
    if now == Some(fence) { Ok(()) } else { Err(Error::Fenced) }
}

/// Locks a session's row.
pub(super) fn lock(db: &Db<'_>, session: i64) -> Result<()> {
    let there = "SELECT key FROM session WHERE key = ?1 /*pg FOR UPDATE*/";
    if db.exists(there, &params![session])? { Ok(()) } else { Err(Error::NotFound("session")) }
}

fn holding(row: &Row<'_>) -> Result<Holding> {
    Ok(Holding {
        run: super::run_row(row)?,
        node: row.get(8)?,
        fence: row.get(9)?,
        left: row.get(10)?,
        shown: row.get(11)?,
    })
}

impl Store {
    /// The run of a session and its lease, if any.
    pub async fn holding(&self, session: i64) -> Result<Option<Holding>> {
        self.read(move |db| {
            let sql = format!(
                "SELECT {}, node, fence, lease - {}, shown FROM run WHERE session = ?1",
                super::RUN_COLUMNS,
                clock(db)
            );
            db.query_opt(&sql, &params![session], holding)
        })
        .await
    }

    /// Acquires the lease of a run for `node`, if it is free, expired or held by the node itself;
    /// with `lost`, only if it is expired. Returns none if another node holds it.
    pub async fn take_run(
        &self,
        session: i64,
        node: String,
        time: Duration,
        lost: bool,
    ) -> Result<Option<Taken>> {
        self.write(256, move |db| {
            lock(db, session)?;
            let sql = format!(
                "SELECT node, fence, lease - {}, shown FROM run WHERE session = ?1 /*pg FOR UPDATE*/",
                clock(db)
            );
            let found = db.query_opt(&sql, &params![session], |r| {
                let (node, left) = (r.get::<Option<String>>(0)?, r.get::<Option<i64>>(2)?);
                Ok((node, r.get::<u64>(1)?, left, r.get(3)?))
            })?;
            let Some((holder, fence, left, shown)) = found else {
                return Err(Error::NotFound("run"));
            };
            let (expired, is_holder) = (left.is_some_and(|left| left < 0), holder.as_ref() == Some(&node));
            if !expired && (lost || left.is_some() && !is_holder) {
                return Ok(None);
            }
            let fence = fence + 1;
            let sql = format!(
                "UPDATE run SET node = ?2, fence = ?3, lease = {} + ?4, lease_crc = ?5
                 WHERE session = ?1",
                clock(db)
            );
            let sum = checksum::of_values(&params![session, node, fence]);
            db.execute(&sql, &params![session, node, fence, millis(time), sum])?;
            Ok(Some(Taken { fence, lost: expired || (left.is_some() && !is_holder), shown }))
        })
        .await
    }

    /// Renews leases; returns the sessions whose leases are still held.
    pub async fn renew_runs(&self, runs: Vec<(i64, u64)>, time: Duration) -> Result<Vec<i64>> {
        self.write(64 + runs.len() * 16, move |db| {
            let sql = format!(
                "UPDATE run SET lease = {} + ?3
                 WHERE session = ?1 AND fence = ?2 AND lease IS NOT NULL",
                clock(db)
            );
            let mut held = Vec::with_capacity(runs.len());
            for (session, fence) in runs {
                if db.execute(&sql, &params![session, fence, millis(time)])? > 0 {
                    held.push(session);
                }
            }
            Ok(held)
        })
        .await
    }

    /// Publishes the state of a run to other nodes.
    pub async fn show_run(&self, session: i64, fence: u64, shown: String) -> Result<()> {
        self.write(shown.len() + 64, move |db| {
            let sql = "UPDATE run SET shown = ?3, shown_crc = ?4 WHERE session = ?1 AND fence = ?2";
            let sum = checksum::of_values(&params![session, shown]);
            match db.execute(sql, &params![session, fence, shown, sum])? {
                0 => Err(Error::Fenced),
                _ => Ok(()),
            }
        })
        .await
    }

    /// Releases a lease: any node may acquire it.
    pub async fn give_back(&self, session: i64, fence: u64, shown: Option<String>) -> Result<()> {
        self.write(64, move |db| {
            let sum = shown.as_ref().map(|shown| checksum::of_values(&params![session, shown]));
            db.execute_pipelined(
                "UPDATE run SET lease = NULL, shown = coalesce(?3, shown),
                 shown_crc = coalesce(?4, shown_crc) WHERE session = ?1 AND fence = ?2",
                &params![session, fence, shown, sum],
            )
        })
        .await
    }

    /// Ids of sessions whose leases have expired without being released.
    pub async fn lost_runs(&self) -> Result<Vec<String>> {
        self.read(|db| {
            let sql = format!(
                "SELECT s.id FROM run r JOIN session s ON s.key = r.session
                 WHERE r.lease < {} ORDER BY r.lease LIMIT ?1",
                clock(db)
            );
            db.query_all(&sql, &params![MAX_EXPIRED], |r| r.get(0))
        })
        .await
    }
}
