//! Write connections and their transactions.

use crate::db::sqlite::connection::AfterCommits;
use crate::db::{Db, Pg, PgAddress};
use crate::durable::Durable;
use crate::error::{Error, Result};
use crate::intact::Intact;
use rusqlite::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The pause before a failed connection is tried again.
const REST: Duration = Duration::from_millis(250);

/// Writes always access rows by key, with few plans: planning each time costs more than executing,
/// and tables that are small now will grow.
const SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/// A write connection.
pub(crate) enum Link {
    Sqlite { db: Connection, after: AfterCommits, durable: Box<Durable>, intact: Arc<Intact> },
    Postgres(Box<Far>),
}

/// A connection to PostgreSQL that is reopened after a failure.
pub(crate) struct Far {
    address: PgAddress,
    open: Option<Pg>,
    failed: Option<(Instant, Error)>,
}

impl Link {
    pub(crate) fn far(address: PgAddress) -> Link {
        Link::Postgres(Box::new(Far { address, open: None, failed: None }))
    }

    /// Begins a transaction.
    pub(crate) fn begin(&mut self) -> Result<()> {
        match self {
            Link::Sqlite { db, .. } => Ok(run(db, "BEGIN IMMEDIATE")?),
            Link::Postgres(far) => far.begin(),
        }
    }

    /// The open connection.
    pub(crate) fn db(&self) -> Result<Db<'_>> {
        match self {
            Link::Sqlite { db, .. } => Ok(Db::Sqlite(db)),
            Link::Postgres(far) => far.open.as_ref().map(Db::Postgres).ok_or(Error::Closed),
        }
    }

    /// Runs `work` within the transaction. On SQLite, a failure rolls back to a savepoint and the
    /// transaction continues.
    pub(crate) fn step(&mut self, work: impl FnOnce(&Db<'_>) -> Result<()>) -> Result<()> {
        let Link::Sqlite { db, .. } = self else { return work(&self.db()?) };
        run(db, "SAVEPOINT job")?;
        let done = work(&Db::Sqlite(db));
        match &done {
            Ok(()) => run(db, "RELEASE job")?,
            Err(_) if !db.is_autocommit() => {
                // The end of a log is recorded last, so a rollback needs no correction there.
                db.execute_batch("ROLLBACK TO job; RELEASE job")?;
            }
            Err(_) => {}
        }
        done
    }

    /// Whether the transaction was aborted with everything in it.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Link::Sqlite { db, .. } => db.is_autocommit(),
            Link::Postgres(_) => true,
        }
    }

    /// Commits. On failure nothing was written, except if PostgreSQL is unreachable: then it is
    /// unknown.
    pub(crate) fn commit(&mut self) -> Result<()> {
        match self {
            Link::Sqlite { db, durable, .. } => {
                durable.check_files()?;
                run(db, "COMMIT")?;
                durable.committed(db);
                Ok(())
            }
            Link::Postgres(far) => far.commit(),
        }
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&mut self) {
        Durable::roll_back();
        match self {
            Link::Sqlite { db, .. } if db.is_autocommit() => {}
            Link::Sqlite { db, .. } => {
                let _ = db.execute_batch("ROLLBACK");
            }
            Link::Postgres(far) => far.roll_back(),
        }
    }

    /// Runs the commit hook after `commits` commits, while the writer is idle.
    pub(crate) fn after_commits(&mut self, commits: u32) {
        if let Link::Sqlite { db, after, .. } = self {
            after(db, commits);
        }
    }

    /// Whether other writers lock rows too, so that jobs must be ordered.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Link::Postgres(_))
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Link::Sqlite { db, intact, .. } = self {
            intact.before_close(db);
        }
    }
}

/// Executes a cached statement.
fn run(db: &Connection, sql: &str) -> rusqlite::Result<()> {
    db.prepare_cached(sql)?.execute([]).map(|_| ())
}

impl Far {
    fn begin(&mut self) -> Result<()> {
        if let Some(pg) = &self.open {
            pg.forget_ends();
        }
        if self.open.as_ref().is_some_and(|pg| !pg.is_broken() && pg.begin_writing().is_ok()) {
            return Ok(());
        }
        self.open = None;
        if let Some((at, error)) = &self.failed
            && at.elapsed() < REST
        {
            return Err(error.clone());
        }
        let opened = Pg::open(&self.address).and_then(|pg| {
            pg.say_and_wait(SETTINGS)?;
            pg.begin_writing()?;
            Ok(pg)
        });
        match opened {
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
