//! Beginning and ending transactions. A write transaction of one statement needs no `BEGIN`.

use super::{FRESH, LATE, Pg};
use crate::error::Result;
use std::time::Instant;

/// Whether PostgreSQL knows of the current transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Told,
    Untold,
    /// The transaction was a single statement, which has been executed or has failed.
    Over,
}

impl Pg {
    /// Begins a read-only transaction with a consistent snapshot.
    pub(crate) fn begin_reading(&self) -> Result<()> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.begin(BEGIN)
    }

    /// Begins a transaction; an idle connection waits for the response, because it may have been
    /// cut.
    fn begin(&self, sql: &str) -> Result<()> {
        self.forget_plans();
        if self.is_fresh() { self.say(sql.to_owned()) } else { self.say_and_wait(sql) }
    }

    fn is_fresh(&self) -> bool {
        self.used.get().elapsed() < FRESH
    }

    fn forget_plans(&self) {
        let (at, age) = self.stale.get();
        if Instant::now() > at {
            self.statements.borrow_mut().clear();
            let age = (age * 4).min(LATE);
            self.stale.set((Instant::now() + age, age));
        }
    }

    /// Begins a write transaction; on a recently used connection the `BEGIN` is deferred.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        if self.is_fresh() {
            self.forget_plans();
            self.writing.set(Writing::Untold);
            return Ok(());
        }
        self.writing.set(Writing::Told);
        self.begin("BEGIN")
    }

    /// Sends a deferred `BEGIN`.
    pub(super) fn tell_begin(&self) -> Result<()> {
        if self.writing.get() == Writing::Untold {
            self.writing.set(Writing::Told);
            self.say("BEGIN".to_owned())?;
        }
        Ok(())
    }

    /// Commits the transaction.
    pub(crate) fn commit(&self) -> Result<()> {
        if self.writing.get() == Writing::Untold && self.ends.borrow().is_empty() {
            self.writing.set(Writing::Over);
            return self.do_gathered();
        }
        self.tell_begin()?;
        self.send_ends().and_then(|()| self.say_and_wait("COMMIT"))
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&self) {
        self.forget_ends();
        let told = self.writing.replace(Writing::Told) == Writing::Told;
        if told && self.say_and_wait("ROLLBACK").is_err() {
            self.broken.set(true);
        }
    }
}
