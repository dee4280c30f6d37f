//! Which node runs a session's agent: the one that holds its lease, by a number that grows with every
//! change of hands. Whoever takes over locks the session's row, as everybody does who appends to it:
//! nothing that comes with an older number is kept afterwards.

use super::RunRow;
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::store::Store;
use crate::sum;
use std::time::Duration;

/// Runs that are told at once as lost.
const MAX_LOST: usize = 100;

/// Milliseconds since 1970, by the clock of the database: those of the nodes may differ.
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

/// A run, and who holds it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holding {
    /// How the session is run.
    pub run: RunRow,
    /// The node that had it last.
    pub node: Option<String>,
    /// The number of its lease.
    pub fence: u64,
    /// For how many milliseconds that node may run it still; none when it gave it back.
    pub left: Option<i64>,
    /// How the run stood, as that node told last.
    pub shown: Option<String>,
}

impl Holding {
    /// Whether a node may run it now.
    pub fn is_held(&self) -> bool {
        self.left.is_some_and(|left| left >= 0)
    }
}

/// A lease that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taken {
    /// Its number.
    pub fence: u64,
    /// Whoever had it before has not given it back.
    pub lost: bool,
    /// How the run stood, as was told last.
    pub shown: Option<String>,
}

/// Refuses whoever was followed by another. Locks the session's row, so that nobody takes over before
/// this is committed.
pub(crate) fn guard(db: &Db<'_>, session: i64, fence: Option<u64>) -> Result<()> {
    if fence.is_none() {
        return Ok(());
    }
    lock(db, session)?;
    check(db, session, fence)
}

/// The same where the row is locked. A statement of its own: what one that waits for the row tells of
/// other rows is older than the lock.
pub(super) fn check(db: &Db<'_>, session: i64, fence: Option<u64>) -> Result<()> {
    let Some(fence) = fence else { return Ok(()) };
    let sql = "SELECT fence FROM run WHERE session = ?1";
    let now = db.optional(sql, &params![session], |r| r.get::<u64>(0))?;
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
    /// How a session is run and by whom, if it is.
    pub async fn holding(&self, session: i64) -> Result<Option<Holding>> {
        self.read(move |db| {
            let sql = format!(
                "SELECT {}, node, fence, lease - {}, shown FROM run WHERE session = ?1",
                super::RUN,
                clock(db)
            );
            db.optional(&sql, &params![session], holding)
        })
        .await
    }

    /// Takes the lease of a run for a node: one that nobody holds, that has run out, or that the node
    /// holds itself. With `lost`, only one that has run out. None when another node has it.
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
            let found = db.optional(&sql, &params![session], |r| {
                let (node, left) = (r.get::<Option<String>>(0)?, r.get::<Option<i64>>(2)?);
                Ok((node, r.get::<u64>(1)?, left, r.get(3)?))
            })?;
            let Some((before, fence, left, shown)) = found else {
                return Err(Error::NotFound("run"));
            };
            let (over, own) = (left.is_some_and(|left| left < 0), before.as_ref() == Some(&node));
            if !over && (lost || left.is_some() && !own) {
                return Ok(None);
            }
            let fence = fence + 1;
            let sql = format!(
                "UPDATE run SET node = ?2, fence = ?3, lease = {} + ?4, lease_crc = ?5
                 WHERE session = ?1",
                clock(db)
            );
            let sum = sum::of(&params![session, node, fence]);
            db.execute(&sql, &params![session, node, fence, millis(time), sum])?;
            Ok(Some(Taken { fence, lost: over || (left.is_some() && !own), shown }))
        })
        .await
    }

    /// Holds runs for longer; returns those that are held still.
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

    /// Keeps how a run stands, for other nodes.
    pub async fn show_run(&self, session: i64, fence: u64, shown: String) -> Result<()> {
        self.write(shown.len() + 64, move |db| {
            let sql = "UPDATE run SET shown = ?3, shown_crc = ?4 WHERE session = ?1 AND fence = ?2";
            let sum = sum::of(&params![session, shown]);
            match db.execute(sql, &params![session, fence, shown, sum])? {
                0 => Err(Error::Fenced),
                _ => Ok(()),
            }
        })
        .await
    }

    /// Gives a run back: any node may take it now.
    pub async fn give_back(&self, session: i64, fence: u64, shown: Option<String>) -> Result<()> {
        self.write(64, move |db| {
            let sum = shown.as_ref().map(|shown| sum::of(&params![session, shown]));
            db.later(
                "UPDATE run SET lease = NULL, shown = coalesce(?3, shown),
                 shown_crc = coalesce(?4, shown_crc) WHERE session = ?1 AND fence = ?2",
                &params![session, fence, shown, sum],
            )
        })
        .await
    }

    /// Runs whose node has not given them back and did not renew them: the ids of their sessions.
    pub async fn lost_runs(&self) -> Result<Vec<String>> {
        self.read(|db| {
            let sql = format!(
                "SELECT s.id FROM run r JOIN session s ON s.key = r.session
                 WHERE r.lease < {} ORDER BY r.lease LIMIT ?1",
                clock(db)
            );
            db.all(&sql, &params![MAX_LOST], |r| r.get(0))
        })
        .await
    }
}
