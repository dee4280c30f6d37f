//! Notices that the database file was truncated. A checkpoint into a truncated database does not make it
//! whole, and the write-ahead log may be all that is left.

use crate::damage::DamageRegistry;
use crate::data_dir::DataDir;
use crate::error::{Error, FILE_REPLACED, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The largest size that the database file had; it grows and is never shrunk by narrows.
#[derive(Debug)]
pub(crate) struct FileGuard {
    database: PathBuf,
    max_bytes: AtomicU64,
    was_truncated: AtomicBool,
    damage: Arc<DamageRegistry>,
}

impl FileGuard {
    pub(crate) fn new(dir: &DataDir, damage: &Arc<DamageRegistry>) -> Arc<FileGuard> {
        let guard = FileGuard {
            database: dir.database(),
            max_bytes: AtomicU64::new(0),
            was_truncated: AtomicBool::new(false),
            damage: Arc::clone(damage),
        };
        guard.max_bytes.store(guard.file_bytes().unwrap_or(0), Ordering::Relaxed);
        Arc::new(guard)
    }

    /// The size of the file; none while it is missing. A missing file is not truncated: it may come back.
    fn file_bytes(&self) -> Option<u64> {
        std::fs::metadata(&self.database).ok().map(|about| about.len())
    }

    /// Fails once the file has become shorter, also if it grows again: growing does not restore its
    /// content.
    pub(crate) fn check(&self) -> Result<()> {
        // The maximum is read before the size: other threads may see the file grow in between.
        let max_bytes = self.max_bytes.load(Ordering::SeqCst);
        let bytes = self.file_bytes();
        if bytes.is_some_and(|bytes| max_bytes > bytes) {
            self.was_truncated.store(true, Ordering::Relaxed);
        }
        self.max_bytes.fetch_max(bytes.unwrap_or(0), Ordering::SeqCst);
        if bytes.is_none() {
            return Err(Error::Io(format!("the database {FILE_REPLACED}")));
        }
        if self.was_truncated.load(Ordering::Relaxed) {
            return Err(Error::Damaged("the database was truncated while in use".to_owned()));
        }
        Ok(())
    }

    /// Makes the closing of a connection leave the write-ahead log alone if the database is damaged.
    pub(crate) fn before_close(&self, db: &Connection) {
        if self.check().is_err() || self.damage.has_database_damage() {
            let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_guard_accepts_growth_and_rejects_truncation() {
        let dir = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&dir.path().join("data")).unwrap();
        let file = std::fs::File::create(dir.database()).unwrap();
        let guard = FileGuard::new(&dir, &Arc::default());
        std::thread::scope(|threads| {
            let checks = || (0..4000).all(|_| guard.check().is_ok());
            let checkers = [threads.spawn(checks), threads.spawn(checks), threads.spawn(checks)];
            for size in 0.. {
                file.set_len(size).unwrap();
                if checkers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                    break;
                }
            }
            assert!(checkers.into_iter().all(|checker| checker.join().unwrap()));
        });
        // A missing file is not truncated.
        let away = dir.path().join("away");
        std::fs::rename(dir.database(), &away).unwrap();
        assert!(matches!(guard.check(), Err(Error::Io(_))));
        std::fs::rename(&away, dir.database()).unwrap();
        assert!(guard.check().is_ok());
        file.set_len(0).unwrap();
        assert!(matches!(guard.check(), Err(Error::Damaged(_))));
    }
}
