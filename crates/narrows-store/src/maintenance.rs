//! Maintenance between commits: search indexing, deletion of rows, checksums of old rows, clock
//! corrections.
//!
//! Runs in the writer's thread in short slices; `store/retention.rs` decides which sessions to
//! delete.

use crate::buckets;
use crate::checksum::session_counters::{self, ColumnChange};
use crate::checksum::side_tables;
use crate::cluster::changes;
use crate::damage::{self, Damage, DamageRegistry};
use crate::db::{Db, params};
use crate::error::Result;
use crate::ids::MAX_CLOCK_SKEW_MS;
use crate::ids::now;
use crate::keys::keys;
use crate::migrations::backfill;
use crate::search::index;
use crate::writer::MaintenanceFn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows deleted in one slice.
const MAX_SLICE_ROWS: usize = 500;
/// How long a request may be repeated, in milliseconds.
pub(crate) const REQUEST_TTL_MS: i64 = 24 * 3600 * 1000;
/// The advisory lock of the node that does the maintenance of a cluster. The number is arbitrary.
const TRY_MAINTENANCE_LOCK: &str = "SELECT pg_try_advisory_xact_lock(7234117)";

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
pub(crate) fn maintenance_fn(
    session_removed: Arc<AtomicBool>,
    damages: &Arc<DamageRegistry>,
) -> MaintenanceFn {
    let damages = Arc::clone(damages);
    Box::new(move |db, idle| {
        let is_left = run_slice(db, &session_removed, idle);
        damages.add(damage::drain_reports());
        is_left
    })
}

/// Runs a slice; returns whether work is left. Sets `removed` when the last row of a session was
/// deleted.
fn run_slice(db: &Db<'_>, session_removed: &AtomicBool, idle: bool) -> Result<bool> {
    if db.is_postgres() && !db.query_one(TRY_MAINTENANCE_LOCK, &[], |r| r.get(0))? {
        return Ok(false);
    }
    // Deletion first: it frees the space that indexing needs.
    let is_left = skip_damaged(db, delete_slice(db, session_removed))?
        || skip_damaged(db, index::index_slice(db, idle))?
        || skip_damaged(db, backfill::checksum_slice(db))?;
    if !is_left {
        changes::prune(db)?;
        fix_future_times(db)?;
    }
    Ok(is_left)
}

/// Resets times that a wrong clock had put into the future: such sessions would stay on top of the
/// list until then.
fn fix_future_times(db: &Db<'_>) -> Result<()> {
    let (now, latest_plausible) = (now(), now() + MAX_CLOCK_SKEW_MS);
    let ahead = "SELECT key FROM session WHERE updated_era >= ?1 AND updated > ?2 LIMIT ?3";
    let ahead = db.query_all(
        ahead,
        &params![buckets::time_bucket(latest_plausible), latest_plausible, MAX_SLICE_ROWS],
        |r| r.get::<i64>(0),
    )?;
    for key in ahead {
        let revision = buckets::next_revision(db);
        // The arrival time is used, if its clock was right.
        let updated = "CASE WHEN heard BETWEEN 1 AND CAST(?2 AS BIGINT) THEN heard
             ELSE CAST(?2 AS BIGINT) END";
        let created =
            format!("CASE WHEN created > CAST(?2 AS BIGINT) THEN {updated} ELSE created END");
        let bucket_assignments = buckets::pg_assignments(Some(updated), &revision);
        let figures = session_counters::changed_sum_sql(&[
            ("updated", ColumnChange::To(updated)),
            ("heard", ColumnChange::To(updated)),
            ("touched", ColumnChange::To(&revision)),
            ("created", ColumnChange::To(&created)),
        ]);
        db.execute_pipelined(
            &format!(
                "UPDATE session SET figures = {figures}, updated = {updated}, heard = {updated},
                 touched = {revision}, created = {created}{bucket_assignments} WHERE key = ?1"
            ),
            &params![key, now],
        )?;
    }
    Ok(())
}

/// Damage met by one kind of work must not block the others.
fn skip_damaged(db: &Db<'_>, is_left: Result<bool>) -> Result<bool> {
    match is_left {
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            damage::report(Damage::database(error.to_string()));
            Ok(false)
        }
        is_left => is_left,
    }
}

fn delete_slice(db: &Db<'_>, session_removed: &AtomicBool) -> Result<bool> {
    // A damaged row may name another session: it is reported, and nothing is deleted.
    let next =
        format!("SELECT session FROM doomed WHERE {} LIMIT 1", side_tables::PENDING_DELETE_MATCHES);
    let next = db.query_opt(&next, &[], |r| r.get::<i64>(0))?;
    let Some(session) = next else { return Ok(false) };
    let (first, last) = keys(session);
    let delete_rows = |table: &str| {
        let sql = format!(
            "DELETE FROM {table} WHERE key IN
             (SELECT DISTINCT key FROM {table} WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3)"
        );
        db.execute(&sql, &params![first, last, MAX_SLICE_ROWS])
    };
    // The log first, and in a slice of its own: that works on a full disk.
    if delete_rows("event")? > 0 {
        return Ok(true);
    }
    // Index entries are found by their items; these are the items deleted below.
    let indexed = "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 ORDER BY key LIMIT ?3";
    for key in db.query_all(indexed, &params![first, last, MAX_SLICE_ROWS], |r| r.get(0))? {
        index::remove(db, key)?;
    }
    delete_rows("fresh")?;
    delete_rows("call")?;
    delete_rows("edit")?;
    if delete_rows("item")? > 0 {
        return Ok(true);
    }
    if db.is_postgres() {
        // Another node may be about to reference a blob: lock the rows, so that its reference is
        // visible afterwards.
        db.execute_pipelined(
            "SELECT 1 FROM blob WHERE hash IN (SELECT hash FROM blob_use WHERE session = ?1)
             ORDER BY hash FOR UPDATE",
            &params![session],
        )?;
    }
    db.execute_pipelined(
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
        db.execute_pipelined(
            &format!("DELETE FROM {table} WHERE session = ?1"),
            &params![session],
        )?;
    }
    session_removed.store(true, Ordering::Relaxed);
    Ok(true)
}

/// Whether no other node has changed the session or is changing it.
pub(crate) fn lock_unchanged(db: &Db<'_>, key: i64, updated: i64) -> Result<bool> {
    let lock = "SELECT 1 FROM session WHERE key = ?1 AND updated = ?2 FOR UPDATE SKIP LOCKED";
    Ok(!db.is_postgres() || db.exists(lock, &params![key, updated])?)
}

pub(crate) fn has_any_tag(db: &Db<'_>, key: i64, tags: &[String]) -> Result<bool> {
    for tag in tags {
        if db.exists("SELECT 1 FROM tag WHERE session = ?1 AND tag = ?2", &params![key, tag])? {
            return Ok(true);
        }
    }
    Ok(false)
}
