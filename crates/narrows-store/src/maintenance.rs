//! Maintenance between commits: search indexing, deletion of rows, checksums of old rows, clock
//! corrections.
//!
//! Runs in the writer's thread in short slices; `store/retention.rs` decides which sessions to
//! delete.

use crate::beside;
use crate::buckets;
use crate::cluster::changes;
use crate::damage::{self, Damage, Damages};
use crate::db::{Db, params};
use crate::error::Result;
use crate::figures::{self, Change};
use crate::ids::AHEAD_MS;
use crate::ids::now;
use crate::keys::keys;
use crate::migrations::backfill;
use crate::search::index;
use crate::writer::Housework;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows deleted in one slice.
const SLICE_ROWS: usize = 500;
/// How long a request may be repeated, in milliseconds.
pub(crate) const REQUESTS_MS: i64 = 24 * 3600 * 1000;
/// The advisory lock of the node that does the maintenance of a cluster. The number is arbitrary.
const TRY_LOCK: &str = "SELECT pg_try_advisory_xact_lock(7234117)";

/// Which sessions to retain. Whole sessions are deleted, the least recently updated first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// The maximum age since the last update, in milliseconds.
    pub max_age: Option<i64>,
    /// The maximum total size of logs, in bytes.
    pub max_bytes: Option<u64>,
    /// Delete only sessions with this tag.
    pub tag: Option<String>,
    /// Never delete sessions with one of these tags.
    pub keep_tags: Vec<String>,
}

/// The result of a retention run.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The ids of the deleted sessions.
    pub sessions: Vec<String>,
    /// Bytes of their logs.
    pub bytes: u64,
}

/// The maintenance function of a writer.
pub(crate) fn housework(removed: Arc<AtomicBool>, damages: &Arc<Damages>) -> Housework {
    let damages = Arc::clone(damages);
    Box::new(move |db, idle| {
        let more = some(db, &removed, idle);
        damages.keep(damage::take());
        more
    })
}

/// Runs a slice; returns whether work is left. Sets `removed` when the last row of a session was
/// deleted.
fn some(db: &Db<'_>, removed: &AtomicBool, idle: bool) -> Result<bool> {
    if db.is_postgres() && !db.one(TRY_LOCK, &[], |r| r.get(0))? {
        return Ok(false);
    }
    // Deletion first: it frees the space that indexing needs.
    let more = done(db, remove_some(db, removed))?
        || done(db, index::some(db, idle))?
        || done(db, backfill::some_sums(db))?;
    if !more {
        changes::forget(db)?;
        set_clocks_right(db)?;
    }
    Ok(more)
}

/// Resets times that a wrong clock had put into the future: such sessions would stay on top of the
/// list until then.
fn set_clocks_right(db: &Db<'_>) -> Result<()> {
    let (now, future) = (now(), now() + AHEAD_MS);
    let ahead = "SELECT key FROM session WHERE updated_era >= ?1 AND updated > ?2 LIMIT ?3";
    let ahead =
        db.all(ahead, &params![buckets::of_time(future), future, SLICE_ROWS], |r| r.get::<i64>(0))?;
    for key in ahead {
        let touched = buckets::touched(db);
        // The arrival time is used, if its clock was right.
        let updated = "CASE WHEN heard BETWEEN 1 AND CAST(?2 AS BIGINT) THEN heard
             ELSE CAST(?2 AS BIGINT) END";
        let created =
            format!("CASE WHEN created > CAST(?2 AS BIGINT) THEN {updated} ELSE created END");
        let era = buckets::told(Some(updated), &touched);
        let figures = figures::changed(&[
            ("updated", Change::To(updated)),
            ("heard", Change::To(updated)),
            ("touched", Change::To(&touched)),
            ("created", Change::To(&created)),
        ]);
        db.later(
            &format!(
                "UPDATE session SET figures = {figures}, updated = {updated}, heard = {updated},
                 touched = {touched}, created = {created}{era} WHERE key = ?1"
            ),
            &params![key, now],
        )?;
    }
    Ok(())
}

/// Damage met by one kind of work must not block the others.
fn done(db: &Db<'_>, more: Result<bool>) -> Result<bool> {
    match more {
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            damage::found(Damage::database(error.to_string()));
            Ok(false)
        }
        more => more,
    }
}

fn remove_some(db: &Db<'_>, removed: &AtomicBool) -> Result<bool> {
    // A damaged row may name another session: it is reported, and nothing is deleted.
    let next = format!("SELECT session FROM doomed WHERE {} LIMIT 1", beside::DOOMED);
    let next = db.optional(&next, &[], |r| r.get::<i64>(0))?;
    let Some(session) = next else { return Ok(false) };
    let (first, last) = keys(session);
    let slice = |table: &str| {
        let sql = format!(
            "DELETE FROM {table} WHERE key IN
             (SELECT DISTINCT key FROM {table} WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3)"
        );
        db.execute(&sql, &params![first, last, SLICE_ROWS])
    };
    // The log first, and in a slice of its own: that works on a full disk.
    if slice("event")? > 0 {
        return Ok(true);
    }
    // Index entries are found by their items; these are the items deleted below.
    let indexed = "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";
    for key in db.all(indexed, &params![first, last, SLICE_ROWS], |r| r.get(0))? {
        index::remove(db, key)?;
    }
    slice("fresh")?;
    slice("call")?;
    slice("edit")?;
    if slice("item")? > 0 {
        return Ok(true);
    }
    if db.is_postgres() {
        // Another node may be about to reference a blob: lock the rows, so that its reference is
        // visible afterwards.
        db.later(
            "SELECT 1 FROM blob WHERE hash IN (SELECT hash FROM blob_use WHERE session = ?1)
             ORDER BY hash FOR UPDATE",
            &params![session],
        )?;
    }
    db.later(
        "DELETE FROM blob WHERE hash IN (SELECT hash FROM blob_use WHERE session = ?1)
         AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.hash = blob.hash AND u.session <> ?1)",
        &params![session],
    )?;
    for table in [
        "blob_use",
        "source",
        "request",
        "seen",
        "usage",
        "first_answer",
        "active",
        "run",
        "message",
        "command",
        "doomed",
    ] {
        db.later(&format!("DELETE FROM {table} WHERE session = ?1"), &params![session])?;
    }
    removed.store(true, Ordering::Relaxed);
    Ok(true)
}

/// Whether no other node has changed the session or is changing it.
pub(crate) fn is_as_it_was(db: &Db<'_>, key: i64, updated: i64) -> Result<bool> {
    let lock = "SELECT 1 FROM session WHERE key = ?1 AND updated = ?2 FOR UPDATE SKIP LOCKED";
    Ok(!db.is_postgres() || db.exists(lock, &params![key, updated])?)
}

pub(crate) fn is_kept(db: &Db<'_>, key: i64, tags: &[String]) -> Result<bool> {
    for tag in tags {
        if db.exists("SELECT 1 FROM tag WHERE session = ?1 AND tag = ?2", &params![key, tag])? {
            return Ok(true);
        }
    }
    Ok(false)
}
