//! Looks up sessions without an index, when a damaged index no longer leads to them.

use super::{Damage, DamageRegistry};
use crate::db::{Db, Value};
use crate::error::Result;
use std::time::{Duration, Instant};

/// A scan is followed by a pause of this many times its duration: at most about 5 % of the time goes
/// into scans for names that may not exist.
const BACKOFF_FACTOR: u32 = 20;
/// How SQLite names the indexes of ids and labels; a damage report with it means that they are damaged.
const NAME_INDEX: &str = "index sqlite_autoindex_session";

/// When the next scan may start.
#[derive(Debug, Default)]
pub(crate) struct ScanBackoff(Option<Instant>);

impl ScanBackoff {
    fn is_over(&self) -> bool {
        self.0.is_none_or(|at| Instant::now() >= at)
    }

    fn start(&mut self, scan: Duration) {
        self.0 = Some(Instant::now() + scan * BACKOFF_FACTOR);
    }
}

/// Finds the key of a session that no index leads to. While no damage of the indexes is known, scans
/// are rare: most requests for a missing session are right that it does not exist.
pub(crate) fn find_session_key(
    db: &Db<'_>,
    damage: &DamageRegistry,
    column: &str,
    name: &str,
) -> Result<Option<i64>> {
    if db.is_postgres() {
        return Ok(None);
    }
    let is_reported = damage.mentions(NAME_INDEX);
    if !is_reported && !damage.scan_backoff().is_over() {
        return Ok(None);
    }
    let start = Instant::now();
    let sql = format!("SELECT key FROM session NOT INDEXED WHERE {column} = ?1");
    let found = db.query_opt(&sql, &[Value::Text(name)], |r| r.get(0));
    damage.scan_backoff().start(start.elapsed());
    let found = match found {
        // Other rows are damaged; they are reported where they are read.
        Err(error) if error.is_unreadable() => None,
        found => found?,
    };
    if found.is_some() && !is_reported {
        let number = if column == "id" { 1 } else { 2 };
        let detail = format!("a session is missing from {NAME_INDEX}_{number}");
        damage.add(vec![Damage::database(detail)]);
    }
    Ok(found)
}
