//! Excludes sessions of projects that the user has excluded: they stay in the store and are not listed.

use crate::checksum::side_tables::visibility_sql;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::meta;
use crate::sessions::bump_revision;
use crate::store::Store;
use std::collections::{HashMap, HashSet};

/// A session that may be excluded.
struct ExclusionCandidate {
    id: String,
    copy_of: Option<i64>,
    is_excluded: bool,
}

impl Store {
    /// Excludes all sessions that were read from files and have a root folder that `is_excluded`
    /// accepts, together with their recordings, and includes all others. Returns the ids of the newly
    /// excluded sessions.
    pub async fn leave_out(
        &self,
        is_excluded: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<String>> {
        let changes = self.read(move |db| find_changes(db, &is_excluded)).await?;
        if changes.is_empty() {
            return Ok(Vec::new());
        }
        self.write(64 * changes.len(), move |db| {
            let mut excluded = Vec::new();
            meta::set_if_absent(db, "left_out", &Value::Bytes(b"1"))?;
            for (key, id, is_excluded) in &changes {
                let checksum = visibility_sql("copy_of", "CAST(?2 AS BIGINT)");
                let sql =
                    format!("UPDATE session SET left_out = ?2, hidden = {checksum} WHERE key = ?1");
                db.execute_pipelined(&sql, &params![*key, i64::from(*is_excluded)])?;
                bump_revision(db, *key)?;
                excluded.extend(is_excluded.then(|| id.clone()));
            }
            Ok(excluded)
        })
        .await
    }

    /// Whether any session was ever excluded. Cheap: every command asks it, and there may be many
    /// sessions.
    pub async fn leaves_some_out(&self) -> Result<bool> {
        self.read(|db| db.exists("SELECT 1 FROM meta WHERE key = 'left_out'", &[])).await
    }
}

/// The sessions that have to change: key, id, and whether each is excluded from now on.
fn find_changes(
    db: &Db<'_>,
    is_excluded: &impl Fn(&str) -> bool,
) -> Result<Vec<(i64, String, bool)>> {
    let sql = "SELECT key, id, copy_of, left_out FROM session";
    let rows = db.query_all(sql, &[], |r| {
        let is_excluded = r.get::<i64>(3)? != 0;
        Ok((
            r.get::<i64>(0)?,
            ExclusionCandidate { id: r.get(1)?, copy_of: r.get(2)?, is_excluded },
        ))
    })?;
    let sessions: HashMap<i64, ExclusionCandidate> = rows.into_iter().collect();
    let sql = "SELECT session, roots FROM source WHERE path IS NOT NULL AND parent IS NULL";
    let mut excluded = HashSet::new();
    for (key, roots) in
        db.query_all(sql, &[], |r| Ok((r.get::<i64>(0)?, r.get::<Option<String>>(1)?)))?
    {
        if roots.unwrap_or_default().lines().any(is_excluded) {
            excluded.insert(key);
            excluded.extend(sessions.get(&key).and_then(|session| session.copy_of));
        }
    }
    let should_exclude = |key: &i64, session: &ExclusionCandidate| {
        excluded.contains(key) || session.copy_of.is_some_and(|of| excluded.contains(&of))
    };
    let changed = sessions
        .iter()
        .filter(|(key, session)| should_exclude(key, session) != session.is_excluded);
    Ok(changed.map(|(key, session)| (*key, session.id.clone(), !session.is_excluded)).collect())
}
