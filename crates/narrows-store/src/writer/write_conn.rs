//! Write connections and their transactions.

use crate::db::{Db, Pg, PgConfig};
use crate::durability::checkpointer::CommitHook;
use crate::durability::file_guard::FileGuard;
use crate::durability::log_ends::LogEnds;
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before a failed connection is tried again.
const RECONNECT_DELAY: Duration = Duration::from_millis(250);

/// Writes always access rows by key, with few plans: planning each time costs more than executing,
/// and tables that are small now will grow.
const SESSION_SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/// A write connection.
pub(crate) enum WriteConn {
    Sqlite {
        db: Connection,
        commit_hook: CommitHook,
        durable: Box<LogEnds>,
        intact: Arc<FileGuard>,
    },
    Postgres(Box<PgConn>),
}

/// A connection to PostgreSQL that is reopened after a failure.
pub(crate) struct PgConn {
    address: PgConfig,
    open: Option<Pg>,
    failed: Option<(Instant, Error)>,
}

impl WriteConn {
    pub(crate) fn postgres(address: PgConfig) -> WriteConn {
        WriteConn::Postgres(Box::new(PgConn { address, open: None, failed: None }))
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self) -> Result<()> {
        match self {
            WriteConn::Sqlite { db, .. } => Ok(execute_cached(db, "BEGIN IMMEDIATE")?),
            WriteConn::Postgres(pg_conn) => pg_conn.begin(),
        }
    }

    /// The open connection.
    pub(crate) fn db(&self) -> Result<Db<'_>> {
        match self {
            WriteConn::Sqlite { db, .. } => Ok(Db::Sqlite(db)),
            WriteConn::Postgres(pg_conn) => {
                pg_conn.open.as_ref().map(Db::Postgres).ok_or(Error::Closed)
            }
        }
    }

    /// Runs `work` within the transaction. On SQLite, a failure rolls back to a savepoint and the
    /// transaction continues.
    pub(crate) fn savepoint(&mut self, work: impl FnOnce(&Db<'_>) -> Result<()>) -> Result<()> {
        let WriteConn::Sqlite { db, .. } = self else { return work(&self.db()?) };
        execute_cached(db, "SAVEPOINT job")?;
        let result = work(&Db::Sqlite(db));
        match &result {
            Ok(()) => execute_cached(db, "RELEASE job")?,
            Err(_) if !db.is_autocommit() => {
                // The end of a log is recorded last, so a rollback needs no correction there.
                db.execute_batch("ROLLBACK TO job; RELEASE job")?;
            }
            Err(_) => {}
        }
        result
    }

    /// Whether the transaction was aborted with everything in it.
    pub(crate) fn is_aborted(&self) -> bool {
        match self {
            WriteConn::Sqlite { db, .. } => db.is_autocommit(),
            WriteConn::Postgres(_) => true,
        }
    }

    /// Commits. On failure nothing was written, except if PostgreSQL is unreachable: then it is
    /// unknown.
    pub(crate) fn commit(&mut self) -> Result<()> {
        match self {
            WriteConn::Sqlite { db, durable, .. } => {
                durable.check_files()?;
                execute_cached(db, "COMMIT")?;
                durable.write_committed(db);
                Ok(())
            }
            WriteConn::Postgres(pg_conn) => pg_conn.commit(),
        }
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&mut self) {
        LogEnds::discard_uncommitted();
        match self {
            WriteConn::Sqlite { db, .. } if db.is_autocommit() => {}
            WriteConn::Sqlite { db, .. } => {
                let _ = db.execute_batch("ROLLBACK");
            }
            WriteConn::Postgres(pg_conn) => pg_conn.roll_back(),
        }
    }

    /// Runs the commit hook after `commits` commits, while the writer is idle.
    pub(crate) fn run_commit_hook(&mut self, commits: u32) {
        if let WriteConn::Sqlite { db, commit_hook, .. } = self {
            commit_hook(db, commits);
        }
    }

    /// Whether other writers lock rows too, so that jobs must be ordered.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, WriteConn::Postgres(_))
    }
}

impl Drop for WriteConn {
    fn drop(&mut self) {
        if let WriteConn::Sqlite { db, intact, .. } = self {
            intact.before_close(db);
        }
    }
}

/// Executes a cached statement.
fn execute_cached(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(|_| ())
}

impl PgConn {
    fn begin(&mut self) -> Result<()> {
        if let Some(pg) = &self.open {
            pg.drop_deferred();
        }
        if self.open.as_ref().is_some_and(|pg| !pg.is_broken() && pg.begin_writing().is_ok()) {
            return Ok(());
        }
        self.open = None;
        if let Some((at, error)) = &self.failed
            && at.elapsed() < RECONNECT_DELAY
        {
            return Err(error.clone());
        }
        let connected = Pg::open(&self.address).and_then(|pg| {
            pg.batch_execute(SESSION_SETTINGS)?;
            pg.begin_writing()?;
            Ok(pg)
        });
        match connected {
            Ok(pg) => {
                (self.open, self.failed) = (Some(pg), None);
                Ok(())
            }
            Err(error) => {
                self.failed = Some((Instant::now(), error.clone()));
                Err(error)
            }
        }
    }

    fn commit(&mut self) -> Result<()> {
        let Some(pg) = &self.open else { return Err(Error::Closed) };
        pg.commit()
    }

    fn roll_back(&mut self) {
        if let Some(pg) = &self.open
            && !pg.is_broken()
        {
            pg.roll_back();
        }
        if self.open.as_ref().is_some_and(Pg::is_broken) {
            self.open = None;
        }
    }
}
