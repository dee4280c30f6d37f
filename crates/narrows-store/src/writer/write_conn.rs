//! A connection that writes, and its transactions.

use crate::db::sqlite::connection::AfterCommits;
use crate::db::{Db, Pg, PgAddress};
use crate::durable::Durable;
use crate::error::{Error, Result};
use crate::intact::Intact;
use rusqlite::Connection;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// After a connection could not be made, so long passes before the next one is tried.
const REST: Duration = Duration::from_millis(250);

/// What is written has the same few plans always: by keys. To make them anew each time costs more than
/// to follow them, and tables that are small now are not so for long.
const SETTINGS: &str =
    "SET plan_cache_mode = force_generic_plan; SET enable_seqscan = off; SET jit = off";

/// A connection that writes.
pub(crate) enum Link {
    Sqlite { db: Connection, after: AfterCommits, durable: Box<Durable>, intact: Arc<Intact> },
    Postgres(Box<Far>),
}

/// A connection that may be lost, and is made again then.
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

    /// The connection.
    pub(crate) fn db(&self) -> Result<Db<'_>> {
        match self {
            Link::Sqlite { db, .. } => Ok(Db::Sqlite(db)),
            Link::Postgres(far) => far.open.as_ref().map(Db::Postgres).ok_or(Error::Closed),
        }
    }

    /// Does something within the transaction. With SQLite, what fails leaves no trace of itself, and
    /// the transaction goes on.
    pub(crate) fn step(&mut self, work: impl FnOnce(&Db<'_>) -> Result<()>) -> Result<()> {
        let Link::Sqlite { db, .. } = self else { return work(&self.db()?) };
        run(db, "SAVEPOINT job")?;
        let done = work(&Db::Sqlite(db));
        match &done {
            Ok(()) => run(db, "RELEASE job")?,
            Err(_) if !db.is_autocommit() => {
                // Only the last thing that is done says where a log ends.
                db.execute_batch("ROLLBACK TO job; RELEASE job")?;
            }
            Err(_) => {}
        }
        done
    }

    /// Whether the transaction is lost with everything that was done in it.
    pub(crate) fn is_lost(&self) -> bool {
        match self {
            Link::Sqlite { db, .. } => db.is_autocommit(),
            Link::Postgres(_) => true,
        }
    }

    /// Makes it durable. When that fails, nothing was kept; or, if PostgreSQL cannot be asked any
    /// more, all of it may have been.
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

    /// Ends the transaction without a trace.
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

    /// What is to be done after so many commits, when nobody waits.
    pub(crate) fn after_commits(&mut self, commits: u32) {
        if let Link::Sqlite { db, after, .. } = self {
            after(db, commits);
        }
    }

    /// Whether writers beside this one lock rows too: then what is done together is done in an order.
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

/// Runs what is run so often that it is not to be understood anew each time.
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
