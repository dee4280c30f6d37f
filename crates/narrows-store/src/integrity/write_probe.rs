//! Probes whether the store can be written.

use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::ids::now;
use crate::store::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A write that takes longer counts as failed.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// With fewer free pages hardly anything can be appended.
const MIN_FREE_PAGES: i64 = 16;
/// The most bytes that are written to find out whether there is room.
const MAX_PROBE_BYTES: usize = 8 << 20;

impl Store {
    /// Whether the store can be written now.
    pub async fn is_writable(&self) -> bool {
        self.check_writable().await.is_ok()
    }

    /// Returns the error of a write, if the store cannot be written now.
    pub async fn check_writable(&self) -> Result<()> {
        let writer = self.writer(0)?;
        let refused =
            if self.is_shared() { 0 } else { writer.counts.refused.load(Ordering::Relaxed) };
        if refused > 0 {
            self.probe_space(refused.min(MAX_PROBE_BYTES)).await?;
        }
        match tokio::time::timeout(PROBE_TIMEOUT, self.write(64, probe)).await {
            Ok(size) => self.remember_size(size?),
            Err(_) => return Err(timeout()),
        }
        // Unless more was refused meanwhile.
        let order = Ordering::Relaxed;
        let _ = writer.counts.refused.compare_exchange(refused, 0, order, order);
        Ok(())
    }

    /// Writes as many bytes as an append that was refused: a small write may succeed where an append
    /// did not.
    async fn probe_space(&self, bytes: usize) -> Result<()> {
        let write = self.write(bytes, move |db| {
            if let Db::Sqlite(db) = db {
                let sql = "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob(?1))";
                db.execute(sql, [i64::try_from(bytes).unwrap_or(i64::MAX)])?;
            }
            Ok(())
        });
        tokio::time::timeout(PROBE_TIMEOUT, write).await.unwrap_or_else(|_| Err(timeout()))
    }
}

fn timeout() -> Error {
    Error::Io(format!("a write takes longer than {PROBE_TIMEOUT:?}"))
}

/// Writes a row; returns the bytes of a PostgreSQL database, and 0 for SQLite.
fn probe(db: &Db<'_>) -> Result<u64> {
    if let Db::Sqlite(db) = db {
        let pages = |name| db.query_row(&format!("PRAGMA {name}"), [], |r| r.get::<_, i64>(0));
        let unused = (pages("max_page_count")? - pages("page_count")?).max(0);
        if unused + pages("freelist_count")? < MIN_FREE_PAGES {
            return Err(Error::Full);
        }
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', ?1)", [now()])?;
        return Ok(0);
    }
    let now = now().to_string();
    let sql = "INSERT INTO meta (key, value) VALUES ('probe', ?1)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.execute(sql, &params![now.as_bytes()])?;
    db.query_one("SELECT pg_database_size(current_database())", &[], |r| r.get(0))
}
