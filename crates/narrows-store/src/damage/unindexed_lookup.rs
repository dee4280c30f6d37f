//! Sessions that an index does not lead to any more though they are there: they are looked for without
//! it, and the damage is said.

use crate::damage::{Damage, Damages};
use crate::db::{Db, Value};
use crate::error::Result;
use std::time::{Duration, Instant};

/// Of the time, at most one part in so many goes into looking for what may not be there at all.
const SHARE: u32 = 20;
/// Whether the indexes of names are damaged is seen by what the database calls them.
const INDEXES: &str = "index sqlite_autoindex_session";

/// When it may be looked without an index next.
#[derive(Debug, Default)]
pub(crate) struct Pause(Option<Instant>);

impl Pause {
    fn is_over(&self) -> bool {
        self.0.is_none_or(|at| Instant::now() >= at)
    }

    fn begin(&mut self, took: Duration) {
        self.0 = Some(Instant::now() + took * SHARE);
    }
}

/// The key of a session that no index led to. While nothing is known of damage, this looks only now
/// and then: most of those who ask for what is not there are right that it is not.
pub(crate) fn key_of(
    db: &Db<'_>,
    damages: &Damages,
    column: &str,
    name: &str,
) -> Result<Option<i64>> {
    if db.is_postgres() {
        return Ok(None);
    }
    let known = damages.says(INDEXES);
    if !known && !damages.pause().is_over() {
        return Ok(None);
    }
    let began = Instant::now();
    let sql = format!("SELECT key FROM session NOT INDEXED WHERE {column} = ?1");
    let found = db.optional(&sql, &[Value::Text(name)], |r| r.get(0));
    damages.pause().begin(began.elapsed());
    let found = match found {
        // Other rows are damaged: that is said elsewhere.
        Err(error) if error.is_unreadable() => None,
        found => found?,
    };
    if found.is_some() && !known {
        let number = if column == "id" { 1 } else { 2 };
        let what = format!("a session is missing from {INDEXES}_{number}");
        damages.keep(vec![Damage::database(what)]);
    }
    Ok(found)
}
