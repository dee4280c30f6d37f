//! Whether a store can be written.

use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::names::now;
use crate::store::Store;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A write that takes longer is as bad as none.
const PROBE: Duration = Duration::from_secs(5);
/// With less room than that, hardly anything can be appended.
const MIN_PAGES: i64 = 16;
/// Bytes that are written at most to see whether there is room.
const MAX_PROBE: usize = 8 << 20;

impl Store {
    /// Whether something can be written now.
    pub async fn is_writable(&self) -> bool {
        self.check_writable().await.is_ok()
    }

    /// Why nothing can be written now, if so.
    pub async fn check_writable(&self) -> Result<()> {
        let writer = self.writer(0)?;
        let refused =
            if self.is_shared() { 0 } else { writer.counts.refused.load(Ordering::Relaxed) };
        if refused > 0 {
            self.takes(refused.min(MAX_PROBE)).await?;
        }
        match tokio::time::timeout(PROBE, self.write(64, probe)).await {
            Ok(size) => self.remember_size(size?),
            Err(_) => return Err(slow()),
        }
        // Unless more was refused meanwhile.
        let (of, now) = (Ordering::Relaxed, Ordering::Relaxed);
        let _ = writer.counts.refused.compare_exchange(refused, 0, of, now);
        Ok(())
    }

    /// Whether so many bytes can be written: a little may go in where an append did not.
    async fn takes(&self, bytes: usize) -> Result<()> {
        let tried = self.write(bytes, move |db| {
            if let Db::Sqlite(db) = db {
                let keep =
                    "INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', zeroblob(?1))";
                db.execute(keep, [i64::try_from(bytes).unwrap_or(i64::MAX)])?;
            }
            Ok(())
        });
        tokio::time::timeout(PROBE, tried).await.unwrap_or_else(|_| Err(slow()))
    }
}

fn slow() -> Error {
    Error::Io(format!("a write takes longer than {PROBE:?}"))
}

/// Writes something; returns the bytes of a database that is not in the data directory.
fn probe(db: &Db<'_>) -> Result<u64> {
    if let Db::Sqlite(db) = db {
        let pages = |what| db.query_row(&format!("PRAGMA {what}"), [], |r| r.get::<_, i64>(0));
        let unused = (pages("max_page_count")? - pages("page_count")?).max(0);
        if unused + pages("freelist_count")? < MIN_PAGES {
            return Err(Error::Full);
        }
        db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES ('probe', ?1)", [now()])?;
        return Ok(0);
    }
    let now = now().to_string();
    let keep = "INSERT INTO meta (key, value) VALUES ('probe', ?1)
         ON CONFLICT (key) DO UPDATE SET value = excluded.value";
    db.execute(keep, &params![now.as_bytes()])?;
    db.one("SELECT pg_database_size(current_database())", &[], |r| r.get(0))
}
