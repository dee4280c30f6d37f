//! The store as the rest of narrows sees it.

use crate::connection::{SCHEMA, check_schema, open_mover, open_reader, open_writer};
use crate::dir::DataDir;
use crate::error::{Error, Result};
use crate::housework;
use crate::names::random;
use crate::writer::{AfterCommit, Housework, Writer};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Connections that read at the same time.
const READERS: u32 = 4;
/// A write-ahead log of this size is moved into the database, beside the writing.
const MOVE_FROM: u64 = 4 << 20;
const MOVE_FRAMES: i64 = 1000;
/// A write that takes longer is as bad as none.
const PROBE: Duration = Duration::from_secs(5);
/// With less room than that, hardly anything can be appended.
const MIN_PAGES: i64 = 16;
const MOVE_EVERY: Duration = Duration::from_millis(50);
/// So many commits pass between two looks at it.
const LOOK_EVERY: u32 = 16;
/// One of this size must start anew: the writer waits for that.
const RESTART_FROM: u64 = 128 << 20;

/// How a store is opened.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The database grows no further than this.
    pub max_bytes: Option<u64>,
}

/// What the store takes on disk.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreSize {
    /// The database.
    pub database: u64,
    /// What has not been moved into it.
    pub wal: u64,
}

/// An open store. Clones share it.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    dir: DataDir,
    writer: Mutex<Option<Writer>>,
    readers: Mutex<Vec<Connection>>,
    reading: Arc<Semaphore>,
    ended: Mutex<Option<oneshot::Receiver<()>>>,
    mark_key: [u8; 32],
}

impl Store {
    /// Opens the store of a data directory, to read and write. One process can at a time.
    pub fn open(path: &Path, options: &Options) -> Result<Store> {
        let dir = DataDir::open(path)?;
        let lock = dir.lock()?;
        let db = open_writer(&dir, options.max_bytes)?;
        let mark_key = mark_key(&db)?;
        let (ended, end) = oneshot::channel();
        // Also at first: a store that was killed may have had no time for it.
        let removed = Arc::new(AtomicBool::new(true));
        let mover = Mover::start(&dir, Arc::clone(&removed))?;
        // The right to write ends when nobody does any more.
        let over = move || {
            drop(mover);
            drop(lock);
            let _ = ended.send(());
        };
        let writer = Writer::start(db, housework(removed), restart_wal(&dir), over)?;
        Ok(Store {
            inner: Arc::new(Inner {
                dir,
                writer: Mutex::new(Some(writer)),
                readers: Mutex::new(Vec::new()),
                reading: Arc::new(Semaphore::new(READERS as usize)),
                ended: Mutex::new(Some(end)),
                mark_key,
            }),
        })
    }

    /// Opens the store to read only, beside whoever writes it.
    pub fn open_read_only(path: &Path) -> Result<Store> {
        let dir = DataDir::open(path)?;
        if !dir.database().exists() {
            return Err(Error::NotFound("store"));
        }
        let db = open_reader(&dir)?;
        let found = check_schema(&db)?;
        if found < SCHEMA {
            return Err(Error::Older { found, known: SCHEMA });
        }
        Ok(Store {
            inner: Arc::new(Inner {
                dir,
                writer: Mutex::new(None),
                readers: Mutex::new(vec![db]),
                reading: Arc::new(Semaphore::new(READERS as usize)),
                ended: Mutex::new(None),
                mark_key: [0; 32],
            }),
        })
    }

    /// Its data directory.
    pub fn dir(&self) -> &DataDir {
        &self.inner.dir
    }

    /// The installation's key for the marks of secrets.
    pub fn mark_key(&self) -> [u8; 32] {
        self.inner.mark_key
    }

    /// What it takes on disk.
    pub fn size(&self) -> StoreSize {
        let of = |path| std::fs::metadata(path).map_or(0, |m| m.len());
        StoreSize { database: of(self.inner.dir.database()), wal: of(self.inner.dir.wal()) }
    }

    /// Commits, jobs and failed commits so far, and the slowest commit in microseconds.
    pub fn counts(&self) -> [u64; 4] {
        let Ok(writer) = self.writer() else { return [0; 4] };
        let counts = &writer.counts;
        [&counts.commits, &counts.jobs, &counts.failed, &counts.slowest_us]
            .map(|n| n.load(Ordering::Relaxed))
    }

    /// Whether something can be written now.
    pub async fn is_writable(&self) -> bool {
        let probe = |db: &Connection| {
            let pages = |what| db.query_row(&format!("PRAGMA {what}"), [], |r| r.get::<_, i64>(0));
            let unused = (pages("max_page_count")? - pages("page_count")?).max(0);
            if unused + pages("freelist_count")? < MIN_PAGES {
                return Err(Error::Full);
            }
            db.execute("INSERT OR REPLACE INTO meta VALUES ('probe', ?1)", [crate::names::now()])?;
            Ok(())
        };
        let asked = tokio::time::timeout(PROBE, self.write(64, probe)).await;
        matches!(asked, Ok(Ok(())))
    }

    /// Looks whether the database is whole; tells what is not. Takes as long as reading all of it.
    pub async fn check(&self) -> Result<Vec<String>> {
        self.read(|db| {
            let mut query = db.prepare("PRAGMA quick_check(20)")?;
            let told = query.query_map([], |r| r.get::<_, String>(0))?;
            let told = told.collect::<rusqlite::Result<Vec<_>>>()?;
            Ok(told.into_iter().filter(|line| line != "ok").collect())
        })
        .await
    }

    /// Does everything that waits, then gives the data directory free.
    pub async fn close(&self) {
        // Whoever reads gets to the end of it. The writer is the last: it leaves one file behind.
        let all = self.inner.reading.acquire_many(READERS).await;
        self.inner.reading.close();
        drop(all);
        self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner).clear();
        let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(writer) = writer {
            writer.close();
        }
        let ended = self.inner.ended.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(ended) = ended {
            let _ = ended.await;
        }
    }

    fn writer(&self) -> Result<Writer> {
        let writer = self.inner.writer.lock().unwrap_or_else(PoisonError::into_inner);
        writer.clone().ok_or(Error::Closed)
    }

    /// Does `work` in a transaction; returns when it is durable.
    pub(crate) async fn write<T, F>(&self, bytes: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.writer()?.write(bytes, work).await
    }

    /// The same, but returns when there is room for it.
    pub(crate) async fn send<T, F>(
        &self,
        bytes: usize,
        work: F,
    ) -> Result<oneshot::Receiver<Result<T>>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.writer()?.send(bytes, work).await
    }

    /// Does `work` with a connection that reads; what it sees is of one moment.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.inner.reading).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Closed)?;
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let idle = inner.readers.lock().unwrap_or_else(PoisonError::into_inner).pop();
            let db = match idle {
                Some(db) => db,
                None => open_reader(&inner.dir)?,
            };
            let tx = db.unchecked_transaction()?;
            let made = work(&tx);
            drop(tx);
            inner.readers.lock().unwrap_or_else(PoisonError::into_inner).push(db);
            made
        });
        done.await.map_err(|_| Error::Io("a read was cut off".to_owned()))?
    }
}

fn mark_key(db: &Connection) -> Result<[u8; 32]> {
    let fresh: [u8; 32] = random()?;
    db.execute("INSERT OR IGNORE INTO meta VALUES ('mark_key', ?1)", [&fresh[..]])?;
    Ok(db.query_row("SELECT value FROM meta WHERE key = 'mark_key'", [], |r| r.get(0))?)
}

fn housework(removed: Arc<AtomicBool>) -> Housework {
    Box::new(move |db, idle| housework::some(db, &removed, idle))
}

/// Lets the log start anew when it can: to write over a file costs half of what it costs to make it
/// grow. The mover has moved nearly all of it by then, and whoever reads is not waited for. When
/// the log has grown large nevertheless, everybody waits until it can.
fn restart_wal(dir: &DataDir) -> AfterCommit {
    let wal = dir.wal();
    let mut commits = 0_u32;
    Box::new(move |db| {
        commits = commits.wrapping_add(1);
        if !commits.is_multiple_of(LOOK_EVERY) {
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
    })
}

/// Moves what was committed from the log into the database, without holding anybody up. When
/// something was removed, the log is emptied: it would hold that for long.
struct Mover {
    on: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Mover {
    fn start(dir: &DataDir, removed: Arc<AtomicBool>) -> Result<Mover> {
        let on = Arc::new(AtomicBool::new(true));
        let (db, wal, goes_on) = (open_mover(dir)?, dir.wal(), Arc::clone(&on));
        let run = move || {
            while goes_on.load(Ordering::Relaxed) {
                std::thread::park_timeout(MOVE_EVERY);
                if removed.swap(false, Ordering::Relaxed) && move_wal(&db, "TRUNCATE").is_none() {
                    removed.store(true, Ordering::Relaxed);
                }
                if std::fs::metadata(&wal).map_or(0, |m| m.len()) >= MOVE_FROM
                    && move_wal(&db, "NOOP").is_some_and(|waiting| waiting > MOVE_FRAMES)
                {
                    move_wal(&db, "PASSIVE");
                }
            }
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
