//! Times and counts by and large.
//!
//! A session's row changes with every append, its place in the lists hardly: so the indexes of lists
//! are of spans of time and of runs of changes, and within one of them rows are put in order when they
//! are read. Most appends then write one page less for each index, and PostgreSQL writes the row in its
//! place. SQLite keeps both columns by itself, whatever is written (`005.sql`); PostgreSQL would make
//! the expression anew for every statement, and is told.

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
