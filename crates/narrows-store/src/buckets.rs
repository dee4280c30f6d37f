//! Times and counts by and large.
//!
//! A session's row changes with every append, its place in the lists hardly: so the indexes of lists
//! are of spans of time and of runs of changes, and within one of them rows are put in order when they
//! are read. Most appends then write one page less for each index, and PostgreSQL writes the row in its
//! place. SQLite keeps both columns by itself, whatever is written (`005.sql`); PostgreSQL would make
//! the expression anew for every statement, and is told.

use crate::db::Db;
use crate::error::Result;

/// Bits of a time in milliseconds within one span of about four seconds.
pub(crate) const UPDATED: u32 = 12;
/// Bits of a count of changes within one run.
pub(crate) const TOUCHED: u32 = 7;

/// The span of a time.
pub(crate) fn of_time(updated: i64) -> i64 {
    updated >> UPDATED
}

/// The run of a count of changes.
pub(crate) fn of_count(touched: i64) -> i64 {
    touched >> TOUCHED
}

/// What PostgreSQL is told beside a new time and a new count, which are expressions.
pub(crate) fn told(updated: Option<&str>, touched: &str) -> String {
    let updated = updated.map(|u| format!(", updated_era = ({u}) >> {UPDATED}"));
    format!("{}, touched_era = {touched} >> {TOUCHED}", updated.unwrap_or_default())
}

/// The largest count of changes, as an expression.
pub(crate) const LAST_COUNT: &str = "(SELECT max(touched) FROM session
     WHERE touched_era = (SELECT max(touched_era) FROM session))";

/// The next count of changes, as an expression within a statement. With PostgreSQL, where several
/// nodes write at the same time, it is the number of the transaction.
pub(crate) fn touched(db: &Db<'_>) -> String {
    if db.is_postgres() {
        "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)".to_owned()
    } else {
        format!(
            "(SELECT max(coalesce({LAST_COUNT}, 0),
             coalesce((SELECT value FROM meta WHERE key = 'touched'), 0)) + 1)"
        )
    }
}

/// The count of the last change. It is that of the session which changed last, or of one that was
/// deleted since: so nothing more needs to be written for a change. With PostgreSQL it is one up to
/// which everything is seen; what has a later one may be seen too, and is told again then.
pub(crate) fn last_touched(db: &Db<'_>) -> Result<i64> {
    let last = if db.is_postgres() {
        "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)".to_owned()
    } else {
        touched(db)
    };
    match db.one(&format!("SELECT {last} - 1"), &[], |r| r.get(0)) {
        // As far as the index tells: what changed since is told again.
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            let sql = format!("SELECT coalesce(max(touched_era), 0) << {TOUCHED} FROM session");
            db.one(&sql, &[], |r| r.get(0))
        }
        last => last,
    }
}
