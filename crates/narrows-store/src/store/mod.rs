//! The store: opening and closing it, its connections and writers.
//!
//! The other files of this folder add the methods by subject; they run the functions of the modules
//! below in a transaction.

mod append;
mod audit;
mod blobs;
mod changes;
mod copies;
mod exclusion;
mod files;
mod items;
mod list;
mod log;
mod materialize;
mod open;
mod retention;
mod sessions;
mod sources;
mod tokens;

use crate::access::revocations::Revocations;
use crate::damage::check_progress::CheckProgress;
use crate::damage::{self, DamageRegistry};
use crate::data_dir::DataDir;
use crate::db::sqlite::connection::open_reader;
use crate::db::{Db, Pg, PgConfig};
use crate::deadline;
use crate::error::{Error, Result};
use crate::writer::Writer;
use rusqlite::Connection;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, oneshot};

/// Read connections to SQLite.
const SQLITE_READERS: u32 = 4;
const PG_READERS: u32 = 8;
/// Append connections to PostgreSQL. A session always uses the same one, which keeps its order.
const PG_WRITERS: usize = 2;
/// How often a node looks for maintenance left by others.
const MAINTENANCE_INTERVAL: Duration = Duration::from_secs(2);
/// How long a read may take before it is aborted.
const READ_TIMEOUT: Duration = Duration::from_mins(1);

/// Options for opening a store.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The maximum size of the database.
    pub max_bytes: Option<u64>,
    /// Lets a caller commit its append itself when the writer is idle, which saves two thread
    /// switches. Requires the multi-threaded tokio runtime, outside of a `LocalSet`.
    pub write_here: bool,
}

/// The disk usage of a store, in bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct StoreSize {
    /// The database.
    pub database: u64,
    /// The write-ahead log.
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
    /// The address of the PostgreSQL database, if any.
    remote: Option<PgConfig>,
    /// The first one writes what belongs to no session.
    writers: Mutex<Vec<Writer>>,
    readers: Mutex<Vec<Reader>>,
    read_permits: Arc<Semaphore>,
    max_readers: u32,
    stopped: Mutex<Vec<oneshot::Receiver<()>>>,
    mark_key: [u8; 32],
    /// The last known size of a PostgreSQL database, in bytes.
    remote_size: AtomicU64,
    /// Damage found so far.
    damages: Arc<DamageRegistry>,
    /// The progress of the initial integrity check.
    check_progress: CheckProgress,
    /// Revoked tokens, which override the database.
    revoked: Revocations,
}

/// A connection that reads.
#[derive(Debug)]
enum Reader {
    Sqlite(Connection),
    Postgres(Box<Pg>),
}

impl Store {
    /// Whether the store is in PostgreSQL, where other nodes may share it.
    pub fn is_shared(&self) -> bool {
        self.inner.remote.is_some()
    }

    /// The data directory.
    pub fn dir(&self) -> &DataDir {
        &self.inner.dir
    }

    pub(crate) fn revocations(&self) -> &Revocations {
        &self.inner.revoked
    }

    /// The installation's key for redaction placeholders.
    pub fn mark_key(&self) -> [u8; 32] {
        self.inner.mark_key
    }

    /// The disk usage; the last known size for PostgreSQL.
    pub fn size(&self) -> StoreSize {
        if self.is_shared() {
            return StoreSize { database: self.inner.remote_size.load(Ordering::Relaxed), wal: 0 };
        }
        let of = |path| std::fs::metadata(path).map_or(0, |m| m.len());
        StoreSize { database: of(self.inner.dir.database()), wal: of(self.inner.dir.wal()) }
    }

    /// Commits, jobs and failed commits so far, and the slowest commit in microseconds.
    pub fn counts(&self) -> [u64; 4] {
        let writers = self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all = [0; 4];
        for counts in writers.iter().map(|w| &w.counts) {
            let one = [&counts.commits, &counts.jobs, &counts.failed, &counts.slowest_us];
            let [commits, jobs, failed, slowest] = one.map(|n| n.load(Ordering::Relaxed));
            all = [all[0] + commits, all[1] + jobs, all[2] + failed, all[3].max(slowest)];
        }
        all
    }

    /// Records the size of a PostgreSQL database.
    pub(crate) fn remember_size(&self, bytes: u64) {
        self.inner.remote_size.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn check_progress(&self) -> &CheckProgress {
        &self.inner.check_progress
    }

    pub(crate) fn damage_registry(&self) -> &Arc<DamageRegistry> {
        &self.inner.damages
    }

    /// Completes all queued work and releases the data directory.
    pub async fn close(&self) {
        // Readers finish first. The writer is closed last, so that it leaves a single file.
        let all = self.inner.read_permits.acquire_many(self.inner.max_readers).await;
        self.inner.read_permits.close();
        drop(all);
        let readers =
            std::mem::take(&mut *self.inner.readers.lock().unwrap_or_else(PoisonError::into_inner));
        // Closing a connection blocks.
        let _ = tokio::task::spawn_blocking(move || drop(readers)).await;
        let writers =
            std::mem::take(&mut *self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner));
        writers.into_iter().for_each(Writer::close);
        let stopped =
            std::mem::take(&mut *self.inner.stopped.lock().unwrap_or_else(PoisonError::into_inner));
        for end in stopped {
            let _ = end.await;
        }
    }

    /// The writer of a session; 0 stands for no session.
    pub(crate) fn writer(&self, session: i64) -> Result<Writer> {
        let writers = self.inner.writers.lock().unwrap_or_else(PoisonError::into_inner);
        let at = match session {
            0 => 0,
            _ if writers.len() == 1 => 0,
            key => 1 + usize::try_from(key.unsigned_abs()).unwrap_or(0) % PG_WRITERS,
        };
        writers.get(at).cloned().ok_or(Error::Closed)
    }

    /// Runs `work` in a write transaction; returns when it is durable. `bytes` is its size in
    /// memory.
    pub(crate) async fn write<T, F>(&self, bytes: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T> + Send + 'static,
    {
        let done = self.writer(0)?.send(0, bytes, work).await?;
        let result = done.await.map_err(|_| Error::Closed)?;
        self.inner.damages.add_error(&result);
        result
    }

    /// Runs `work` on a read connection, with a consistent snapshot.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T> + Send + 'static,
    {
        let permit = Arc::clone(&self.inner.read_permits).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Closed)?;
        let inner = Arc::clone(&self.inner);
        let done = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            let result = inner.read(work);
            inner.damages.add(damage::drain_reports());
            inner.damages.add_error(&result);
            result
        });
        done.await.map_err(|_| Error::Io("a read was aborted".to_owned()))?
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // Threads with a maintenance interval would notice only later that all handles are gone.
        let writers =
            std::mem::take(self.writers.get_mut().unwrap_or_else(PoisonError::into_inner));
        writers.into_iter().for_each(Writer::close);
    }
}

impl Inner {
    fn new(
        dir: DataDir,
        remote: Option<PgConfig>,
        writers: Vec<Writer>,
        stopped: Vec<oneshot::Receiver<()>>,
        mark_key: [u8; 32],
        damages: Arc<DamageRegistry>,
        revoked: Revocations,
    ) -> Inner {
        let max_readers = if remote.is_some() { PG_READERS } else { SQLITE_READERS };
        Inner {
            dir,
            remote,
            writers: Mutex::new(writers),
            readers: Mutex::default(),
            read_permits: Arc::new(Semaphore::new(max_readers as usize)),
            max_readers,
            stopped: Mutex::new(stopped),
            mark_key,
            remote_size: AtomicU64::new(0),
            damages,
            check_progress: CheckProgress::default(),
            revoked,
        }
    }

    fn checkout(&self) -> Option<Reader> {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    fn checkin(&self, reader: Reader) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    fn read<T>(&self, work: impl FnOnce(&Db<'_>) -> Result<T>) -> Result<T> {
        match &self.remote {
            None => {
                let db = match self.checkout() {
                    Some(Reader::Sqlite(db)) => db,
                    _ => open_reader(&self.dir)?,
                };
                let _limited = deadline::limit(READ_TIMEOUT);
                let tx = db.unchecked_transaction()?;
                let result = work(&Db::Sqlite(&tx));
                drop(tx);
                self.checkin(Reader::Sqlite(db));
                result
            }
            Some(address) => {
                let pg = self.begin_reading(address)?;
                let result = work(&Db::Postgres(&pg));
                // The next reader checks the result of the commit.
                let ended = if result.is_ok() {
                    pg.send_batch("COMMIT".to_owned())
                } else {
                    Err(Error::Closed)
                };
                if ended.is_err() && !pg.is_broken() {
                    pg.roll_back();
                }
                pg.flush();
                if !pg.is_broken() {
                    self.checkin(Reader::Postgres(pg));
                }
                result
            }
        }
    }

    /// Takes a working connection from the pool; dead ones are dropped.
    fn begin_reading(&self, address: &PgConfig) -> Result<Box<Pg>> {
        while let Some(Reader::Postgres(pg)) = self.checkout() {
            if pg.check_pipelined().is_ok() && pg.begin_reading().is_ok() {
                return Ok(pg);
            }
        }
        let pg = Box::new(Pg::open(address)?);
        pg.begin_reading()?;
        Ok(pg)
    }
}
