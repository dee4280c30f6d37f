//! Putting a repaired database in the place of the damaged one: whenever the process is killed, either
//! the old store or the new one is there.
//!
//! The new database is made in a folder of its own. When it is whole and on the disk, the folder gets
//! another name: from then on it counts, and whoever opens the store next finishes what is left to do.

use crate::dir::DataDir;
use crate::durable::Durable;
use crate::error::{Error, Result};
use crate::frames;
use crate::names::now;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

/// Where a new database is being made, and where one is that counts.
const MAKING: &str = "narrows.repairing";
const MADE: &str = "narrows.repaired";
/// In the latter: what the old database is to be called.
const ASIDE: &str = "aside";

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let shown = path.display().to_string();
    move |e| match e.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Io(format!("{shown}: {e}")),
    }
}

fn sync(path: &Path) -> Result<()> {
    File::open(path).and_then(|file| file.sync_all()).map_err(failed(path))
}

/// An empty folder for a new database.
pub(super) fn begin(dir: &DataDir) -> Result<DataDir> {
    give_up(dir);
    DataDir::open(&dir.path().join(MAKING))
}

/// Removes what was made so far.
pub(super) fn give_up(dir: &DataDir) {
    let _ = fs::remove_dir_all(dir.path().join(MAKING));
}

/// The new database counts from now on; returns what the old one is called.
pub(super) fn count(dir: &DataDir) -> Result<PathBuf> {
    let (making, made) = (dir.path().join(MAKING), dir.path().join(MADE));
    let name = format!("narrows.db.before-{}", now());
    let aside = making.join(ASIDE);
    fs::write(&aside, &name).map_err(failed(&aside))?;
    for path in [&making.join("narrows.db"), &aside, &making] {
        sync(path)?;
    }
    fs::rename(&making, &made).map_err(failed(&made))?;
    sync(dir.path())?;
    finish(dir)?;
    Ok(dir.path().join(name))
}

/// Does what [`finish`] does for whoever only reads, if nobody writes.
pub(crate) fn finish_if_free(dir: &DataDir) -> Result<()> {
    match dir.path().join(MADE).exists().then(|| dir.lock()) {
        Some(Ok(_lock)) => finish(dir),
        _ => Ok(()),
    }
}

/// Puts a new database that counts in its place, for whoever has the right to write.
pub(crate) fn finish(dir: &DataDir) -> Result<()> {
    let made = dir.path().join(MADE);
    if !made.exists() {
        return Ok(());
    }
    let fresh = made.join("narrows.db");
    if fresh.exists() {
        let name = fs::read_to_string(made.join(ASIDE)).map_err(failed(&made))?;
        let aside = dir.path().join(&name);
        let database = dir.database();
        // Its write-ahead log must never come to the new one: both go before that comes.
        if !aside.exists() && database.exists() {
            fs::rename(&database, &aside).map_err(failed(&database))?;
        }
        let wal = dir.wal();
        if wal.exists() {
            fs::rename(&wal, dir.path().join(format!("{name}-wal"))).map_err(failed(&wal))?;
        }
        let _ = fs::remove_file(dir.path().join("narrows.db-shm"));
        frames::set_aside(dir, &name);
        // What was durable before is not missed again.
        Durable::forget(dir);
        sync(dir.path())?;
        fs::rename(&fresh, &database).map_err(failed(&database))?;
        sync(dir.path())?;
    }
    fs::remove_dir_all(&made).map_err(failed(&made))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The steps, in their order, of which any number may be done when the process is killed.
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
    fn a_swap_that_is_cut_off_anywhere_is_finished() {
        for done in 0..=4 {
            let dir = tempfile::tempdir().expect("a folder");
            let dir = DataDir::open(&dir.path().join("data")).expect("a data directory");
            let write = |name: &str, text: &str| {
                fs::write(dir.path().join(name), text).expect("written");
            };
            let read = |name: &str| fs::read_to_string(dir.path().join(name)).ok();
            fs::create_dir(dir.path().join(MADE)).expect("a folder");
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
            // Whoever only reads finishes it too, unless somebody writes.
            let lock = dir.lock().expect("free");
            finish_if_free(&dir).expect("finished");
            assert!(dir.path().join(MADE).exists());
            drop(lock);
            if done % 2 == 0 { finish(&dir) } else { finish_if_free(&dir) }.expect("finished");
            assert_eq!(read("narrows.db").as_deref(), Some("new"), "{done}");
            assert_eq!(read("old").as_deref(), Some("old"), "{done}");
            assert_eq!(read("old-wal").as_deref(), Some("old wal"), "{done}");
            assert_eq!(read("narrows.db-wal"), None, "{done}: it must not come to the new one");
            assert_eq!(read("narrows.durable"), None, "{done}");
            assert!(!dir.path().join(MADE).exists(), "{done}");
            finish(&dir).expect("nothing to do");
        }
    }
}
