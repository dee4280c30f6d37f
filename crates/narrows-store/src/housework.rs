//! Work that can wait: indexing, removing what was deleted, keeping no more than was asked for.

use crate::error::Result;
use crate::index;
use crate::log::keys;
use crate::names::now;
use crate::sessions::doom;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension, params};
use std::sync::atomic::{AtomicBool, Ordering};

/// Rows that are removed in one go.
const SLICE_ROWS: usize = 500;
/// Requests can be sent again for a day.
const REQUESTS_MS: i64 = 24 * 3600 * 1000;

/// What is kept. Whole sessions are deleted, those first that changed the longest ago.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retention {
    /// Nothing that has not changed for so many milliseconds.
    pub max_age: Option<i64>,
    /// No more than so many bytes of logs.
    pub max_bytes: Option<u64>,
    /// Only sessions with this tag.
    pub tag: Option<String>,
    /// Never sessions with one of these tags.
    pub keep_tags: Vec<String>,
}

/// What retention deleted.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cleared {
    /// The ids of the sessions.
    pub sessions: Vec<String>,
    /// Bytes of their logs.
    pub bytes: u64,
}

/// Does some of it; true when there is more. `removed` is told when a session's last row is gone.
pub(crate) fn some(db: &Connection, removed: &AtomicBool, idle: bool) -> Result<bool> {
    // What is removed makes room, which the index needs.
    Ok(remove_some(db, removed)? || index::some(db, idle)?)
}

fn remove_some(db: &Connection, removed: &AtomicBool) -> Result<bool> {
    let mut next = db.prepare_cached("SELECT session FROM doomed LIMIT 1")?;
    let Some(session): Option<i64> = next.query_row([], |r| r.get(0)).optional()? else {
        return Ok(false);
    };
    let (first, last) = keys(session);
    let slice = |table: &str, key: &str| -> Result<usize> {
        let sql = format!(
            "DELETE FROM {table} WHERE {key} IN
             (SELECT DISTINCT {key} FROM {table} WHERE {key} BETWEEN ?1 AND ?2 LIMIT ?3)"
        );
        Ok(db.prepare_cached(&sql)?.execute(params![first, last, SLICE_ROWS])?)
    };
    // The log first, and a slice alone: that takes no room even if there is none.
    if slice("event", "key")? > 0 {
        return Ok(true);
    }
    // Rows of the index are found by those of the items.
    let mut indexed =
        db.prepare_cached("SELECT key FROM item WHERE key BETWEEN ?1 AND ?2 LIMIT ?3")?;
    let items: Vec<i64> = indexed
        .query_map(params![first, last, SLICE_ROWS], |r| r.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    for key in &items {
        db.prepare_cached("DELETE FROM search WHERE rowid = ?1")?.execute([key])?;
    }
    slice("fresh", "key")?;
    slice("call", "key")?;
    slice("edit", "key")?;
    if slice("item", "key")? > 0 {
        return Ok(true);
    }
    db.execute(
        "DELETE FROM blob WHERE hash IN (SELECT hash FROM blob_use WHERE session = ?1)
         AND NOT EXISTS (SELECT 1 FROM blob_use u WHERE u.hash = blob.hash AND u.session <> ?1)",
        [session],
    )?;
    for table in
        ["blob_use", "source", "request", "seen", "usage", "active", "run", "message", "doomed"]
    {
        db.execute(&format!("DELETE FROM {table} WHERE session = ?1"), [session])?;
    }
    removed.store(true, Ordering::Relaxed);
    Ok(true)
}

impl Store {
    /// Deletes what is not to be kept; with `dry` it only tells.
    pub async fn clear(&self, keep: Retention, dry: bool) -> Result<Cleared> {
        self.write(256, move |db| {
            db.execute("DELETE FROM request WHERE created < ?1", [now() - REQUESTS_MS])?;
            let mut query = db.prepare(
                "SELECT key, id, bytes, updated FROM session s
                 WHERE (?1 IS NULL OR key IN (SELECT session FROM tag WHERE tag = ?1))
                 ORDER BY updated, key",
            )?;
            let rows = query.query_map([&keep.tag], |r| {
                Ok((
                    r.get::<_, i64>(0)?,
                    r.get::<_, String>(1)?,
                    r.get::<_, u64>(2)?,
                    r.get::<_, i64>(3)?,
                ))
            })?;
            let rows = rows.collect::<rusqlite::Result<Vec<_>>>()?;
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
                    doom(db, key)?;
                }
                total -= bytes;
                cleared.bytes += bytes;
                cleared.sessions.push(id);
            }
            Ok(cleared)
        })
        .await
    }

    /// Whether nothing waits to be indexed or removed.
    pub async fn is_settled(&self) -> Result<bool> {
        self.read(|db| {
            let waits: bool = db.query_row(
                "SELECT EXISTS (SELECT 1 FROM fresh) OR EXISTS (SELECT 1 FROM doomed)",
                [],
                |r| r.get(0),
            )?;
            Ok(!waits)
        })
        .await
    }
}

fn is_kept(db: &Connection, key: i64, tags: &[String]) -> Result<bool> {
    for tag in tags {
        let mut query = db.prepare_cached("SELECT 1 FROM tag WHERE session = ?1 AND tag = ?2")?;
        if query.exists(params![key, tag])? {
            return Ok(true);
        }
    }
    Ok(false)
}
