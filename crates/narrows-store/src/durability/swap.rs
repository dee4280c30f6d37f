//! Replaces a damaged database by a repaired one atomically: whenever the process is killed, either the
//! old store or the new one is there.
//!
//! The new database is written into a folder of its own. When it is complete and synced, the folder is
//! renamed; this commits the swap, and the next process that opens the store finishes it.

use super::file_error;
use super::log_ends::LogEnds;
use super::wal_frames;
use crate::data_dir::DataDir;
use crate::error::Result;
use crate::ids::now;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

/// The folder of an unfinished new database, and its name after the swap is committed.
const UNCOMMITTED_DIR: &str = "narrows.repairing";
const COMMITTED_DIR: &str = "narrows.repaired";
/// A file in the committed folder: the new name of the old database.
const OLD_NAME_FILE: &str = "aside";

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(file_error(path))
}

/// Creates an empty folder for the new database.
pub(crate) fn begin(dir: &DataDir) -> Result<DataDir> {
    abort(dir);
    DataDir::open(&dir.path().join(UNCOMMITTED_DIR))
}

/// Removes an uncommitted new database.
pub(crate) fn abort(dir: &DataDir) {
    let _ = fs::remove_dir_all(dir.path().join(UNCOMMITTED_DIR));
}

/// Commits and finishes the swap; returns the path of the old database.
pub(crate) fn commit(dir: &DataDir) -> Result<PathBuf> {
    let (uncommitted, committed) =
        (dir.path().join(UNCOMMITTED_DIR), dir.path().join(COMMITTED_DIR));
    let name = format!("narrows.db.before-{}", now());
    let old_name = uncommitted.join(OLD_NAME_FILE);
    fs::write(&old_name, &name).map_err(file_error(&old_name))?;
    for path in [&uncommitted.join("narrows.db"), &old_name, &uncommitted] {
        sync(path)?;
    }
    fs::rename(&uncommitted, &committed).map_err(file_error(&committed))?;
    sync(dir.path())?;
    finish(dir)?;
    Ok(dir.path().join(name))
}

/// Finishes a committed swap before a read-only open, unless another process has the lock.
pub(crate) fn finish_if_unlocked(dir: &DataDir) -> Result<()> {
    match dir.path().join(COMMITTED_DIR).exists().then(|| dir.lock()) {
        Some(Ok(_lock)) => finish(dir),
        _ => Ok(()),
    }
}

/// Finishes a committed swap. Needs the lock of the data directory.
pub(crate) fn finish(dir: &DataDir) -> Result<()> {
    let committed = dir.path().join(COMMITTED_DIR);
    if !committed.exists() {
        return Ok(());
    }
    let new = committed.join("narrows.db");
    if new.exists() {
        let name =
            fs::read_to_string(committed.join(OLD_NAME_FILE)).map_err(file_error(&committed))?;
        let aside = dir.path().join(&name);
        let database = dir.database();
        // The old write-ahead log must never be applied to the new database: both old files are moved
        // before the new one arrives.
        if !aside.exists() && database.exists() {
            fs::rename(&database, &aside).map_err(file_error(&database))?;
        }
        let wal = dir.wal();
        if wal.exists() {
            fs::rename(&wal, dir.path().join(format!("{name}-wal"))).map_err(file_error(&wal))?;
        }
        let _ = fs::remove_file(dir.path().join("narrows.db-shm"));
        wal_frames::move_copies_aside(dir, &name);
        // The log ends of the old database would report its losses again.
        LogEnds::remove(dir);
        sync(dir.path())?;
        fs::rename(&new, &database).map_err(file_error(&database))?;
        sync(dir.path())?;
    }
    fs::remove_dir_all(&committed).map_err(file_error(&committed))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps of a swap; the process may be killed after any of them.
    fn steps(dir: &Path) -> Vec<Box<dyn Fn() + '_>> {
        let at = move |name: &str| dir.join(name);
        let rename = move |from: &str, to: &str| {
            let (from, to) = (at(from), at(to));
            Box::new(move || fs::rename(&from, &to).expect("renamed")) as Box<dyn Fn()>
        };
        let durable = at("narrows.durable");
        vec![
            rename("narrows.db", "old"),
            rename("narrows.db-wal", "old-wal"),
            Box::new(move || fs::remove_file(&durable).expect("removed")),
            rename("narrows.repaired/narrows.db", "narrows.db"),
        ]
    }

    #[test]
    fn interrupted_swap_is_finished_after_any_step() {
        for done in 0..=4 {
            let dir = tempfile::tempdir().expect("a folder");
            let dir = DataDir::open(&dir.path().join("data")).expect("a data directory");
            let write = |name: &str, text: &str| {
                fs::write(dir.path().join(name), text).expect("written");
            };
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
            fs::create_dir(dir.path().join(COMMITTED_DIR)).expect("a folder");
            for (name, text) in [
                ("narrows.db", "old"),
                ("narrows.db-wal", "old wal"),
                ("narrows.durable", "old ends"),
                ("narrows.repaired/narrows.db", "new"),
                ("narrows.repaired/aside", "old"),
            ] {
                write(name, text);
            }
            steps(dir.path()).iter().take(done).for_each(|step| step());
            // A reader finishes it too, unless another process has the lock.
            let lock = dir.lock().expect("free");
            finish_if_unlocked(&dir).expect("finished");
            assert!(dir.path().join(COMMITTED_DIR).exists());
            drop(lock);
            if done % 2 == 0 { finish(&dir) } else { finish_if_unlocked(&dir) }.expect("finished");
            assert_eq!(read("narrows.db").as_deref(), Some("new"), "{done}");
            assert_eq!(read("old").as_deref(), Some("old"), "{done}");
            assert_eq!(read("old-wal").as_deref(), Some("old wal"), "{done}");
            assert_eq!(
                read("narrows.db-wal"),
                None,
                "{done}: the old WAL must not be applied to the new database"
            );
            assert_eq!(read("narrows.durable"), None, "{done}");
            assert!(!dir.path().join(COMMITTED_DIR).exists(), "{done}");
            finish(&dir).expect("nothing to do");
        }
    }
}
