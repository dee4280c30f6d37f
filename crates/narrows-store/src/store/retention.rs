//! Deleting sessions by age and size, and what maintenance has still to do.

use super::Store;
use crate::beside;
use crate::cluster::changes::{self, Gone, gone};
use crate::db::params;
use crate::error::Result;
use crate::ids::now;
use crate::keys::keys;
use crate::maintenance::{Cleared, REQUESTS_MS, Retention, is_as_it_was, is_kept};
use crate::sessions::copies::doom_all;

impl Store {
    /// Deletes the sessions that exceed `keep`; with `dry`, only reports them.
    pub async fn clear(&self, keep: Retention, dry: bool) -> Result<Cleared> {
        self.write(256, move |db| {
            let before = now() - REQUESTS_MS;
            db.later("DELETE FROM request WHERE created < ?1", &params![before])?;
            changes::forget(db)?;
            let rows = db.all(
                "SELECT key, id, bytes, updated FROM session s WHERE (CAST(?1 AS TEXT) IS NULL
                 OR key IN (SELECT session FROM tag WHERE tag = ?1)) ORDER BY updated, key",
                &params![keep.tag],
                |r| Ok((r.get(0)?, r.get::<String>(1)?, r.get::<u64>(2)?, r.get(3)?)),
            )?;
            let mut total: u64 = rows.iter().map(|(_, _, bytes, _)| bytes).sum();
            let oldest = keep.max_age.map(|age| now().saturating_sub(age));
            let mut cleared = Cleared::default();
            for (key, id, bytes, updated) in rows {
                let old = oldest.is_some_and(|oldest| updated < oldest);
                let too_much = keep.max_bytes.is_some_and(|max| total > max);
                if !(old || too_much) || is_kept(db, key, &keep.keep_tags)? {
                    continue;
                }
                if !dry {
                    if !is_as_it_was(db, key, updated)? {
                        continue;
                    }
                    gone(db, Gone::Session, &id)?;
                    doom_all(db, key)?;
                }
                total -= bytes;
                cleared.bytes += bytes;
                cleared.sessions.push(id);
            }
            Ok(cleared)
        })
        .await
    }

    /// Whether no items wait to be indexed and no rows to be deleted.
    pub async fn is_settled(&self) -> Result<bool> {
        self.read(|db| {
            let waits = format!(
                "SELECT EXISTS (SELECT 1 FROM fresh) OR EXISTS (SELECT 1 FROM doomed WHERE {})",
                beside::DOOMED
            );
            let waits: bool = db.one(&waits, &[], |r| r.get(0))?;
            Ok(!waits)
        })
        .await
    }

    /// The number of items to index and rows to delete.
    pub async fn waiting(&self) -> Result<u64> {
        self.read(|db| {
            let sql = "SELECT count(*) FROM fresh";
            let mut waiting: u64 = db.one(sql, &[], |r| r.get(0))?;
            let doomed = format!("SELECT session FROM doomed WHERE {}", beside::DOOMED);
            for session in db.all(&doomed, &[], |r| r.get::<i64>(0))? {
                let (first, last) = keys(session);
                let rows = "SELECT count(*) FROM event WHERE key BETWEEN ?1 AND ?2";
                waiting += 1 + db.one(rows, &params![first, last], |r| r.get::<u64>(0))?;
            }
            Ok(waiting)
        })
        .await
    }
}
