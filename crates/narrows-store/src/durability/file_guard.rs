//! Whether the file of a database is still as long as it was. What is moved from the write-ahead log
//! into one that was cut does not make it whole, and the log may be all that is left.

use crate::damage::{Damages, Part};
use crate::dir::DataDir;
use crate::error::{Error, Result};
use rusqlite::Connection;
use rusqlite::config::DbConfig;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What is known of the file; a database grows, and is never made smaller.
#[derive(Debug)]
pub(crate) struct Intact {
    database: PathBuf,
    size: AtomicU64,
    cut: AtomicBool,
    damages: Arc<Damages>,
}

impl Intact {
    pub(crate) fn new(dir: &DataDir, damages: &Arc<Damages>) -> Arc<Intact> {
        let intact = Intact {
            database: dir.database(),
            size: AtomicU64::new(0),
            cut: AtomicBool::new(false),
            damages: Arc::clone(damages),
        };
        intact.size.store(intact.now(), Ordering::Relaxed);
        Arc::new(intact)
    }

    fn now(&self) -> u64 {
        std::fs::metadata(&self.database).map_or(0, |about| about.len())
    }

    /// Refuses once it has become shorter: whatever makes it grow again does not bring back what it held.
    pub(crate) fn look(&self) -> Result<()> {
        // What was known before: others may see it grow meanwhile.
        let known = self.size.load(Ordering::SeqCst);
        let size = self.now();
        if known > size {
            self.cut.store(true, Ordering::Relaxed);
        }
        self.size.fetch_max(size, Ordering::SeqCst);
        if self.cut.load(Ordering::Relaxed) {
            return Err(Error::Damaged("the database was cut short while it is used".to_owned()));
        }
        Ok(())
    }

    /// A connection that is closed leaves the write-ahead log as it is, if the database is damaged.
    pub(crate) fn before_close(&self, db: &Connection) {
        let is_damaged = || self.damages.all().iter().any(|found| found.part == Part::Database);
        if self.look().is_err() || is_damaged() {
            let _ = db.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_looks_while_it_grows_finds_it_whole() {
        let dir = tempfile::tempdir().unwrap();
        let dir = DataDir::open(&dir.path().join("data")).unwrap();
        let file = std::fs::File::create(dir.database()).unwrap();
        let intact = Intact::new(&dir, &Arc::default());
        std::thread::scope(|threads| {
            let looks = || (0..4000).all(|_| intact.look().is_ok());
            let others = [threads.spawn(looks), threads.spawn(looks), threads.spawn(looks)];
            for size in 0.. {
                file.set_len(size).unwrap();
                if others.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                    break;
                }
            }
            assert!(others.into_iter().all(|other| other.join().unwrap()));
        });
        file.set_len(0).unwrap();
        assert!(intact.look().is_err());
    }
}
