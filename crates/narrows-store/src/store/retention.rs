//! Deleting sessions by age and size, and what maintenance has still to do.

use super::Store;
use crate::checksum::side_tables;
use crate::cluster::changes::{self, Deleted, record_deletion};
use crate::db::params;
use crate::error::Result;
use crate::ids::now;
use crate::keys::keys;
use crate::maintenance::{Cleared, REQUEST_TTL_MS, Retention, has_any_tag, lock_unchanged};
use crate::sessions::copies::schedule_delete_all;

impl Store {
    /// Deletes the sessions that exceed `keep`; with `dry`, only reports them.
    pub async fn clear(&self, retention: Retention, dry: bool) -> Result<Cleared> {
        self.write(256, move |db| {
            let before = now() - REQUEST_TTL_MS;
            db.execute_pipelined("DELETE FROM request WHERE created < ?1", &params![before])?;
            changes::prune(db)?;
            let rows = db.query_all(
                "SELECT key, id, bytes, updated FROM session s WHERE (CAST(?1 AS TEXT) IS NULL
                 OR key IN (SELECT session FROM tag WHERE tag = ?1)) ORDER BY updated, key",
                &params![retention.tag],
                |r| Ok((r.get(0)?, r.get::<String>(1)?, r.get::<u64>(2)?, r.get(3)?)),
            )?;
            let mut total: u64 = rows.iter().map(|(_, _, bytes, _)| bytes).sum();
            let oldest = retention.max_age.map(|age| now().saturating_sub(age));
            let mut report = Cleared::default();
            for (key, id, bytes, updated) in rows {
                let old = oldest.is_some_and(|oldest| updated < oldest);
                let too_much = retention.max_bytes.is_some_and(|max| total > max);
                if !(old || too_much) || has_any_tag(db, key, &retention.keep_tags)? {
                    continue;
                }
                if !dry {
                    if !lock_unchanged(db, key, updated)? {
                        continue;
                    }
                    record_deletion(db, Deleted::Session, &id)?;
                    schedule_delete_all(db, key)?;
                }
                total -= bytes;
                report.bytes += bytes;
                report.sessions.push(id);
            }
            Ok(report)
        })
        .await
    }

    /// Whether no items wait to be indexed and no rows to be deleted.
    pub async fn is_settled(&self) -> Result<bool> {
        self.read(|db| {
            let query = format!(
                "SELECT EXISTS (SELECT 1 FROM fresh) OR EXISTS (SELECT 1 FROM doomed WHERE {})",
                side_tables::PENDING_DELETE_MATCHES
            );
            let query: bool = db.query_one(&query, &[], |r| r.get(0))?;
            Ok(!query)
        })
        .await
    }

    /// The number of items to index and rows to delete.
    pub async fn waiting(&self) -> Result<u64> {
        self.read(|db| {
            let sql = "SELECT count(*) FROM fresh";
            let mut count: u64 = db.query_one(sql, &[], |r| r.get(0))?;
            let pending =
                format!("SELECT session FROM doomed WHERE {}", side_tables::PENDING_DELETE_MATCHES);
            for session in db.query_all(&pending, &[], |r| r.get::<i64>(0))? {
                let (first, last) = keys(session);
                let rows = "SELECT count(*) FROM event WHERE key BETWEEN ?1 AND ?2";
                count += 1 + db.query_one(rows, &params![first, last], |r| r.get::<u64>(0))?;
            }
            Ok(count)
        })
        .await
    }
}
