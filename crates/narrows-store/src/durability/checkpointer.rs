//! WAL checkpoints: a thread copies committed pages from the write-ahead log into the database, so that
//! commits do not wait for it.

use super::file_guard::FileGuard;
use crate::data_dir::DataDir;
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// The size of the WAL file from which on it is checkpointed.
const CHECKPOINT_MIN_BYTES: u64 = 4 << 20;
/// The number of frames from which on they are checkpointed.
const CHECKPOINT_MIN_FRAMES: i64 = 1000;
const CHECKPOINT_INTERVAL: Duration = Duration::from_millis(50);
/// Commits between two looks of the writer at the WAL.
const COMMITS_PER_RESTART_CHECK: u32 = 16;
/// From this size on the writer waits until the WAL can restart.
const FORCED_RESTART_BYTES: u64 = 128 << 20;

/// Runs on the writer's connection after some commits.
pub(crate) type CommitHook = Box<dyn FnMut(&Connection, u32) + Send>;

/// Restarts the WAL whenever possible: overwriting it costs about half as much as growing it. The
/// checkpointer has copied nearly all of it by then, and readers are not waited for. Only when the WAL
/// has grown large nevertheless, everything waits until it can restart.
pub(crate) fn restart_wal(dir: &DataDir, guard: Arc<FileGuard>) -> CommitHook {
    let wal = dir.wal();
    let mut commits = 0_u32;
    Box::new(move |db, new_commits| {
        commits += new_commits;
        if commits < COMMITS_PER_RESTART_CHECK {
            return;
        }
        commits = 0;
        if guard.check().is_err() {
            return;
        }
        let status = match checkpoint(db, "NOOP") {
            Ok(WalStatus { frames, pending, .. })
                if frames > CHECKPOINT_MIN_FRAMES && pending <= CHECKPOINT_MIN_FRAMES =>
            {
                checkpoint(db, "PASSIVE")
            }
            Ok(_) if std::fs::metadata(&wal).is_ok_and(|m| m.len() > FORCED_RESTART_BYTES) => {
                checkpoint(db, "RESTART")
            }
            other => other,
        };
        if let Err(error) = status {
            tracing::warn!(%error, "cannot restart the write-ahead log");
        }
        // A checkpoint makes the database longer.
        let _ = guard.check();
    })
}

/// The thread that checkpoints. After a deletion it truncates the WAL, which would otherwise hold the
/// deleted content for long.
pub(crate) struct Checkpointer {
    is_running: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Checkpointer {
    /// Starts the thread with a connection of its own. `has_deleted` is set by deletions.
    pub(crate) fn spawn(
        db: Connection,
        dir: &DataDir,
        has_deleted: Arc<AtomicBool>,
        guard: Arc<FileGuard>,
    ) -> Result<Checkpointer> {
        let is_running = Arc::new(AtomicBool::new(true));
        let (wal, runs) = (dir.wal(), Arc::clone(&is_running));
        let run = move || {
            while runs.load(Ordering::Relaxed) {
                std::thread::park_timeout(CHECKPOINT_INTERVAL);
                if guard.check().is_err() {
                    continue;
                }
                if has_deleted.swap(false, Ordering::Relaxed)
                    && try_checkpoint(&db, "TRUNCATE").is_none()
                {
                    has_deleted.store(true, Ordering::Relaxed);
                }
                if std::fs::metadata(&wal).map_or(0, |m| m.len()) >= CHECKPOINT_MIN_BYTES
                    && try_checkpoint(&db, "NOOP")
                        .is_some_and(|pending| pending > CHECKPOINT_MIN_FRAMES)
                {
                    try_checkpoint(&db, "PASSIVE");
                }
                let _ = guard.check();
            }
            guard.before_close(&db);
        };
        let thread = std::thread::Builder::new().name("narrows-wal".to_owned()).spawn(run);
        let thread = thread.map_err(|e| Error::Io(e.to_string()))?;
        Ok(Checkpointer { is_running, thread: Some(thread) })
    }
}

impl Drop for Checkpointer {
    fn drop(&mut self) {
        self.is_running.store(false, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

/// The WAL after a checkpoint.
struct WalStatus {
    is_busy: bool,
    /// Frames in the WAL. The file keeps its size when the WAL restarts.
    frames: i64,
    /// Frames that are not in the database yet.
    pending: i64,
}

fn checkpoint(db: &Connection, mode: &str) -> rusqlite::Result<WalStatus> {
    db.prepare_cached(&format!("PRAGMA wal_checkpoint({mode})"))?.query_row([], |r| {
        let (is_busy, frames, copied): (bool, i64, i64) = (r.get(0)?, r.get(1)?, r.get(2)?);
        Ok(WalStatus { is_busy, frames, pending: frames - copied })
    })
}

/// The frames that are still pending; none if another connection was in the way.
fn try_checkpoint(db: &Connection, mode: &str) -> Option<i64> {
    checkpoint(db, mode).ok().filter(|status| !status.is_busy).map(|status| status.pending)
}
