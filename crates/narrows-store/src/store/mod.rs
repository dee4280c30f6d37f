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
mod retention;
mod sessions;
mod sources;
mod tokens;

use crate::access::revocations::Revocations;
use crate::damage::check_progress::CheckProgress;
use crate::damage::{self, DamageRegistry};
use crate::data_dir::DataDir;
use crate::db::sqlite::connection::{open_checkpointer, open_reader};
use crate::db::{Db, Pg, PgConfig};
use crate::deadline;
use crate::durability::checkpointer::{Checkpointer, restart_wal};
use crate::durability::file_guard::FileGuard;
use crate::durability::log_ends::{self, LogEnds};
use crate::durability::swap;
use crate::durability::wal_frames;
use crate::error::{Error, Result};
use crate::maintenance::maintenance_fn;
use crate::meta;
use crate::migrations::postgres;
use crate::migrations::{SCHEMA, check_schema, open_writer};
use crate::writer::write_conn::WriteConn;
use crate::writer::{CommitBaton, Writer, WriterConfig};
use rusqlite::Connection;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
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
    /// Opens the store of a data directory for writing, which one process can do at a time.
    pub fn open(path: &Path, options: &Options) -> Result<Store> {
        let dir = DataDir::open(path)?;
        let lock = dir.lock()?;
        swap::finish(&dir)?;
        let copied = wal_frames::copy_if_damaged(&dir)?;
        let db = open_writer(&dir, options.max_bytes)?;
        let mark_key = meta::redaction_key(&Db::Sqlite(&db))?;
        let damages = Arc::<DamageRegistry>::default();
        let intact = FileGuard::new(&dir, &damages);
        let durable = LogEnds::open(&dir, &db, &intact)?;
        let lost = log_ends::recorded_losses(&Db::Sqlite(&db))?;
        let revoked = Revocations::load(&dir)?;
        let (stopped, end) = oneshot::channel();
        // Initially true: a killed process may not have truncated the WAL.
        let session_removed = Arc::new(AtomicBool::new(true));
        let checkpointer = Checkpointer::spawn(
            open_checkpointer(&dir)?,
            &dir,
            Arc::clone(&session_removed),
            Arc::clone(&intact),
        )?;
        // The lock is released when the writer has stopped.
        let on_stop = move || {
            drop(checkpointer);
            drop(lock);
            let _ = stopped.send(());
        };
        let commit_hook = restart_wal(&dir, Arc::clone(&intact));
        let conn = WriteConn::Sqlite { db, commit_hook, durable: Box::new(durable), intact };
        // Anything missing now was missing in the copied WAL too.
        if let Some(copied) = copied.filter(|_| lost.is_empty()) {
            copied.discard_if_torn();
        }
        damages.add(lost);
        damages.add(wal_frames::damage_of_copies(&dir));
        let maintenance = maintenance_fn(session_removed, &damages);
        let writer =
            Writer::start(WriterConfig::exclusive(conn, maintenance, options.write_here), on_stop)?;
        let inner = Inner::new(dir, None, vec![writer], vec![end], mark_key, damages, revoked);
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Opens a store in PostgreSQL, which other nodes may share. The data directory belongs to this
    /// node. Blocks until the database responds.
    pub fn connect(path: &Path, url: &str) -> Result<Store> {
        let address = PgConfig::parse(url)?;
        let dir = DataDir::open(path)?;
        let lock = Arc::new(dir.lock()?);
        let mark_key = postgres::migrate(&address)?;
        let revoked = Revocations::load(&dir)?;
        let (mut writers, mut ends) = (Vec::new(), Vec::new());
        let mut start = |config: WriterConfig| -> Result<Writer> {
            let (stopped, end) = oneshot::channel();
            let lock = Arc::clone(&lock);
            ends.push(end);
            Writer::start(config, move || {
                drop(lock);
                let _ = stopped.send(());
            })
        };
        let shared = || WriterConfig::shared(WriteConn::postgres(address.clone()));
        let damages = Arc::<DamageRegistry>::default();
        let maintenance = Some(maintenance_fn(Arc::default(), &damages));
        let maintainer = start(WriterConfig {
            maintenance,
            maintenance_interval: Some(MAINTENANCE_INTERVAL),
            ..shared()
        })?;
        let signal = Some(maintainer.maintenance_signal());
        // Jobs without a session lock rows in any order: two of them in a commit could deadlock
        // with other nodes.
        writers.push(start(WriterConfig { max_jobs: 1, signal: signal.clone(), ..shared() })?);
        let baton = Arc::new(CommitBaton::default());
        for _ in 0..PG_WRITERS {
            let baton = Some(Arc::clone(&baton));
            writers.push(start(WriterConfig { signal: signal.clone(), baton, ..shared() })?);
        }
        writers.push(maintainer);
        let inner = Inner::new(dir, Some(address), writers, ends, mark_key, damages, revoked);
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Opens the store read-only, also while another process writes it.
    pub fn open_read_only(path: &Path) -> Result<Store> {
        let dir = DataDir::open(path)?;
        swap::finish_if_unlocked(&dir)?;
        if !dir.database().exists() {
            return Err(Error::NotFound("store"));
        }
        // The writing process checks this itself.
        let in_use = dir.is_in_use();
        let ends = if in_use { Vec::new() } else { LogEnds::read(&dir) };
        let db = open_reader(&dir)?;
        let found = check_schema(&db)?;
        if found < SCHEMA {
            return Err(Error::Older { found, known: SCHEMA });
        }
        let wal_damage = if in_use {
            wal_frames::damage_of_copies(&dir)
        } else {
            wal_frames::damage_of_wal(&dir, Some(&db))
        };
        let revoked = Revocations::load(&dir)?;
        let none = Arc::default();
        let inner = Inner::new(dir, None, Vec::new(), Vec::new(), [0; 32], none, revoked);
        inner.damages.add(log_ends::recorded_losses(&Db::Sqlite(&db))?);
        inner.damages.add(log_ends::find_losses(&db, ends));
        inner.damages.add(wal_damage);
        inner.checkin(Reader::Sqlite(db));
        Ok(Store { inner: Arc::new(inner) })
    }

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
