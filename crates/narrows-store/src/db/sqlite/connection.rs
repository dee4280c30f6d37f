//! Opening connections to the database of a data directory. The schema is the business of
//! `migrations`.

use crate::data_dir::{DataDir, make_private};
use crate::deadline;
use crate::error::{Error, Result};
use rusqlite::{Connection, OpenFlags};
use std::time::Duration;

/// Older versions can lose committed transactions when the WAL is restarted.
const MIN_SQLITE: (i32, &str) = (3_051_003, "3.51.3");

/// The error for an empty or missing database whose write-ahead log exists.
const ORPHANED_WAL: &str = "the database is empty or gone, and its write-ahead log is still there: \
     `narrows repair` keeps what that holds";

pub(crate) fn check_version(version: i32) -> Result<()> {
    if version < MIN_SQLITE.0 {
        let (major, minor, patch) = (version / 1_000_000, version / 1000 % 1000, version % 1000);
        return Err(Error::Refused(format!(
            "SQLite {major}.{minor}.{patch} can lose committed data: narrows needs {} or newer",
            MIN_SQLITE.1
        )));
    }
    Ok(())
}

/// Opens the only connection that writes, and runs `migrate` on it.
pub(crate) fn open_writer(
    dir: &DataDir,
    max_bytes: Option<u64>,
    migrate: impl FnOnce(&mut Connection) -> Result<()>,
) -> Result<Connection> {
    check_version(rusqlite::version_number())?;
    check_wal(dir)?;
    let path = dir.database();
    make_private(&path).map_err(|e| match e.kind() {
        std::io::ErrorKind::StorageFull => Error::Full,
        std::io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Refused(format!("{}: {e}", path.display())),
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(&path, flags)?;
    db.busy_timeout(Duration::from_secs(5))?;
    db.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA cache_size = -16384; PRAGMA temp_store = MEMORY; PRAGMA secure_delete = ON;
         PRAGMA journal_size_limit = 67108864;",
    )?;
    migrate(&mut db)?;
    if let Some(bytes) = max_bytes {
        let page: u64 = db.query_row("PRAGMA page_size", [], |r| r.get(0))?;
        db.execute_batch(&format!("PRAGMA max_page_count = {}", (bytes / page).max(64)))?;
    }
    db.set_prepared_statement_cache_capacity(64);
    deadline::install(&mut db)?;
    Ok(db)
}

/// Rejects an empty database with a non-empty WAL: SQLite would delete the WAL, which may be all
/// that is left.
fn check_wal(dir: &DataDir) -> Result<()> {
    let bytes = |path| std::fs::metadata(path).map_or(0, |about| about.len());
    if bytes(dir.database()) == 0 && bytes(dir.wal()) > 0 {
        return Err(Error::Damaged(ORPHANED_WAL.to_owned()));
    }
    Ok(())
}

/// Opens a read-only connection.
pub(crate) fn open_reader(dir: &DataDir) -> Result<Connection> {
    check_wal(dir)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut db = Connection::open_with_flags(dir.database(), flags)?;
    db.busy_timeout(Duration::from_secs(5))?;
    deadline::install(&mut db)?;
    db.execute_batch(
        "PRAGMA cache_size = -2048; PRAGMA temp_store = MEMORY; PRAGMA query_only = 1;",
    )?;
    db.set_prepared_statement_cache_capacity(32);
    Ok(db)
}

/// Opens a connection for WAL checkpoints.
pub(crate) fn open_checkpointer(dir: &DataDir) -> Result<Connection> {
    check_wal(dir)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags)?;
    // It never waits for a lock: the writer would wait for it meanwhile.
    db.busy_timeout(Duration::ZERO)?;
    db.execute_batch("PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 0;")?;
    Ok(db)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_sqlite_is_rejected() {
        assert!(check_version(3_051_003).is_ok());
        assert!(check_version(rusqlite::version_number()).is_ok());
        let message = check_version(3_046_001).expect_err("too old").to_string();
        assert!(message.contains("3.46.1") && message.contains("3.51.3"), "{message}");
    }
}
