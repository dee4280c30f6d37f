//! Revisions of sessions, and the coarse buckets by which times and revisions are indexed.
//!
//! A session's row changes with every append, its position in the lists hardly ever. So the indexes
//! are on buckets (4 s, 128 revisions), and rows are sorted within a bucket when they are read:
//! most appends then write one page less per index, and PostgreSQL can update the row in place.
//! SQLite maintains both columns by a trigger (`005_writer_and_lease.sql`); on PostgreSQL the
//! statements set them.

use crate::db::Db;
use crate::error::Result;

/// Bits of a time in milliseconds within a bucket of about four seconds.
pub(crate) const TIME_BITS: u32 = 12;
/// Bits of a revision within a bucket.
pub(crate) const REVISION_BITS: u32 = 7;

/// The bucket of a time in milliseconds.
pub(crate) fn time_bucket(updated: i64) -> i64 {
    updated >> TIME_BITS
}

/// The bucket of a revision.
pub(crate) fn revision_bucket(revision: i64) -> i64 {
    revision >> REVISION_BITS
}

/// The assignments of the bucket columns on PostgreSQL, for the SQL expressions of a new time and
/// revision.
pub(crate) fn pg_assignments(updated: Option<&str>, revision: &str) -> String {
    let updated = updated.map(|u| format!(", updated_era = ({u}) >> {TIME_BITS}"));
    format!("{}, touched_era = {revision} >> {REVISION_BITS}", updated.unwrap_or_default())
}

/// The SQL expression of the highest revision.
pub(crate) const MAX_REVISION: &str = "(SELECT max(touched) FROM session
     WHERE touched_era = (SELECT max(touched_era) FROM session))";

/// The SQL expression of the next revision. On PostgreSQL, where several nodes write, it is the
/// number of the transaction.
pub(crate) fn next_revision(db: &Db<'_>) -> String {
    if db.is_postgres() {
        "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)".to_owned()
    } else {
        format!(
            "(SELECT max(coalesce({MAX_REVISION}, 0),
             coalesce((SELECT value FROM meta WHERE key = 'touched'), 0)) + 1)"
        )
    }
}

/// The last revision: that of the session that changed last, or of one deleted since, so that a
/// change needs no write of its own. On PostgreSQL it is a revision up to which all changes are
/// visible; later changes may be visible too and are reported again.
pub(crate) fn last_revision(db: &Db<'_>) -> Result<i64> {
    let last = if db.is_postgres() {
        "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)".to_owned()
    } else {
        next_revision(db)
    };
    match db.query_one(&format!("SELECT {last} - 1"), &[], |r| r.get(0)) {
        // The index gives a lower bound: later changes are reported again.
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            let sql =
                format!("SELECT coalesce(max(touched_era), 0) << {REVISION_BITS} FROM session");
            db.query_one(&sql, &[], |r| r.get(0))
        }
        last => last,
    }
}
