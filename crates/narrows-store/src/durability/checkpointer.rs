//! The write-ahead log of SQLite: what was committed is moved into the database beside the writing.

use crate::connection::open_mover;
use crate::dir::DataDir;
use crate::error::{Error, Result};
use crate::intact::Intact;
use crate::link::AfterCommits;
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A write-ahead log of this size is moved into the database.
const MOVE_FROM: u64 = 4 << 20;
const MOVE_FRAMES: i64 = 1000;
const MOVE_EVERY: Duration = Duration::from_millis(50);
/// So many commits pass between two looks at it.
const LOOK_EVERY: u32 = 16;
/// One of this size must start anew: the writer waits for that.
const RESTART_FROM: u64 = 128 << 20;

/// Lets the log start anew when it can: to write over a file costs half of what it costs to make it
/// grow. The mover has moved nearly all of it by then, and whoever reads is not waited for. When
/// the log has grown large nevertheless, everybody waits until it can.
pub(crate) fn restart_wal(dir: &DataDir, intact: Arc<Intact>) -> AfterCommits {
    let wal = dir.wal();
    let mut commits = 0_u32;
    Box::new(move |db, more| {
        commits += more;
        if commits < LOOK_EVERY {
            return;
        }
        commits = 0;
        if intact.look().is_err() {
            return;
        }
        let moved = match wal_state(db, "NOOP") {
            Ok(Moved { frames, waiting, .. }) if frames > MOVE_FRAMES && waiting <= MOVE_FRAMES => {
                wal_state(db, "PASSIVE")
            }
            Ok(_) if std::fs::metadata(&wal).is_ok_and(|m| m.len() > RESTART_FROM) => {
                wal_state(db, "RESTART")
            }
            other => other,
        };
        if let Err(error) = moved {
            tracing::warn!(%error, "the write-ahead log could not start anew");
        }
        // What was moved made it longer.
        let _ = intact.look();
    })
}

/// Moves what was committed from the log into the database, without holding anybody up. When
/// something was removed, the log is emptied: it would hold that for long.
pub(crate) struct Mover {
    on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    pub(crate) fn start(
        dir: &DataDir,
        removed: Arc<AtomicBool>,
        intact: Arc<Intact>,
    ) -> Result<Mover> {
        let on = Arc::new(AtomicBool::new(true));
        let (db, wal, goes_on) = (open_mover(dir)?, dir.wal(), Arc::clone(&on));
        let run = move || {
            while goes_on.load(Ordering::Relaxed) {
                std::thread::park_timeout(MOVE_EVERY);
                if intact.look().is_err() {
                    continue;
                }
                if removed.swap(false, Ordering::Relaxed) && move_wal(&db, "TRUNCATE").is_none() {
                    removed.store(true, Ordering::Relaxed);
                }
                if std::fs::metadata(&wal).map_or(0, |m| m.len()) >= MOVE_FROM
                    && move_wal(&db, "NOOP").is_some_and(|waiting| waiting > MOVE_FRAMES)
                {
                    move_wal(&db, "PASSIVE");
                }
                let _ = intact.look();
            }
            intact.before_close(&db);
        };
        let thread = std::thread::Builder::new().name("narrows-mover".to_owned()).spawn(run);
        let thread = thread.map_err(|e| Error::Io(e.to_string()))?;
        Ok(Mover { on, thread: Some(thread) })
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.on.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The log after it was moved.
struct Moved {
    busy: bool,
    /// What is in it (the file itself keeps its size when it starts anew), and what still waits.
    frames: i64,
    waiting: i64,
}

fn wal_state(db: &Connection, how: &str) -> rusqlite::Result<Moved> {
    db.prepare_cached(&format!("PRAGMA wal_checkpoint({how})"))?.query_row([], |r| {
        let (busy, frames, moved): (bool, i64, i64) = (r.get(0)?, r.get(1)?, r.get(2)?);
        Ok(Moved { busy, frames, waiting: frames - moved })
    })
}

/// How much of the log waits then; none when somebody was in the way.
fn move_wal(db: &Connection, how: &str) -> Option<i64> {
    wal_state(db, how).ok().filter(|m| !m.busy).map(|m| m.waiting)
}
