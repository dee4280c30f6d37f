//! Opening a store: on SQLite for writing or reading, or on PostgreSQL.

use super::{Inner, MAINTENANCE_INTERVAL, Options, PG_WRITERS, Reader, Store};
use crate::access::revocations::Revocations;
use crate::damage::DamageRegistry;
use crate::data_dir::DataDir;
use crate::db::sqlite::connection::{open_checkpointer, open_reader};
use crate::db::{Db, PgConfig};
use crate::durability::checkpointer::{Checkpointer, restart_wal};
use crate::durability::file_guard::FileGuard;
use crate::durability::log_ends::{self, LogEnds};
use crate::durability::{swap, wal_frames};
use crate::error::{Error, Result};
use crate::maintenance::maintenance_fn;
use crate::meta;
use crate::migrations::{SCHEMA, check_schema, open_writer, postgres};
use crate::writer::write_conn::WriteConn;
use crate::writer::{CommitBaton, Writer, WriterConfig};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::oneshot;

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
}
