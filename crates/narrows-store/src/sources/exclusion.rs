//! Sessions of projects that are left out since they were read: kept, and shown nowhere.

use crate::beside;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::meta;
use crate::sessions::mark_touched;
use crate::store::Store;
use std::collections::{HashMap, HashSet};

/// A session that may be left out.
struct Known {
    id: String,
    copy_of: Option<i64>,
    left_out: bool,
}

impl Store {
    /// Hides the sessions that were read from files and worked in a folder of which `is_left_out` says
    /// so, with their recordings, and shows all others. Returns the ids of those that were shown before.
    pub async fn leave_out(
        &self,
        is_left_out: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Result<Vec<String>> {
        let wanted = self.read(move |db| wanted(db, &is_left_out)).await?;
        if wanted.is_empty() {
            return Ok(Vec::new());
        }
        self.write(64 * wanted.len(), move |db| {
            let mut hidden = Vec::new();
            meta::put_first(db, "left_out", &Value::Bytes(b"1"))?;
            for (key, id, out) in &wanted {
                let sum = beside::hidden("copy_of", "CAST(?2 AS BIGINT)");
                let sql =
                    format!("UPDATE session SET left_out = ?2, hidden = {sum} WHERE key = ?1");
                db.later(&sql, &params![*key, i64::from(*out)])?;
                mark_touched(db, *key)?;
                hidden.extend(out.then(|| id.clone()));
            }
            Ok(hidden)
        })
        .await
    }

    /// Whether some session may be left out: there may be many, and this is asked by every command.
    pub async fn leaves_some_out(&self) -> Result<bool> {
        self.read(|db| db.exists("SELECT 1 FROM meta WHERE key = 'left_out'", &[])).await
    }
}

/// The sessions that have to change: whether each is left out.
fn wanted(db: &Db<'_>, is_left_out: &impl Fn(&str) -> bool) -> Result<Vec<(i64, String, bool)>> {
    let sql = "SELECT key, id, copy_of, left_out FROM session";
    let rows = db.all(sql, &[], |r| {
        let left_out = r.get::<i64>(3)? != 0;
        Ok((r.get::<i64>(0)?, Known { id: r.get(1)?, copy_of: r.get(2)?, left_out }))
    })?;
    let known: HashMap<i64, Known> = rows.into_iter().collect();
    let sql = "SELECT session, roots FROM source WHERE path IS NOT NULL AND parent IS NULL";
    let mut out = HashSet::new();
    for (key, roots) in db.all(sql, &[], |r| Ok((r.get::<i64>(0)?, r.get::<Option<String>>(1)?)))? {
        if roots.unwrap_or_default().lines().any(is_left_out) {
            out.insert(key);
            out.extend(known.get(&key).and_then(|session| session.copy_of));
        }
    }
    let is_out = |key: &i64, session: &Known| {
        out.contains(key) || session.copy_of.is_some_and(|of| out.contains(&of))
    };
    let changed = known.iter().filter(|(key, session)| is_out(key, session) != session.left_out);
    Ok(changed.map(|(key, session)| (*key, session.id.clone(), !session.left_out)).collect())
}
