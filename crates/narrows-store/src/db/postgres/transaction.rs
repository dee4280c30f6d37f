//! The beginning and the end of transactions.

use super::{FRESH, LATE, Pg};
use crate::error::Result;
use std::time::Instant;

/// What PostgreSQL knows of a transaction: one statement needs none around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Writing {
    Told,
    Untold,
    /// It was one statement, which is done or has failed.
    Over,
}

impl Pg {
    /// Begins to read: everything is seen as it is at one moment.
    pub(crate) fn begin_reading(&self) -> Result<()> {
        const BEGIN: &str = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
        self.begin(BEGIN)
    }

    /// A connection that was not used for a while may have been cut: that is better known before
    /// something is done with it.
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

    /// Begins to write.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        if self.is_fresh() {
            self.forget_plans();
            self.writing.set(Writing::Untold);
            return Ok(());
        }
        self.writing.set(Writing::Told);
        self.begin("BEGIN")
    }

    /// Tells PostgreSQL of the transaction, if it does not know of it.
    pub(super) fn tell_begin(&self) -> Result<()> {
        if self.writing.get() == Writing::Untold {
            self.writing.set(Writing::Told);
            self.say("BEGIN".to_owned())?;
        }
        Ok(())
    }

    /// Ends the transaction: all that was done in it is kept.
    pub(crate) fn commit(&self) -> Result<()> {
        if self.writing.get() == Writing::Untold && self.ends.borrow().is_empty() {
            self.writing.set(Writing::Over);
            return self.do_gathered();
        }
        self.tell_begin()?;
        self.send_ends().and_then(|()| self.say_and_wait("COMMIT"))
    }

    /// Ends what was begun without a trace.
    pub(crate) fn roll_back(&self) {
        self.forget_ends();
        let told = self.writing.replace(Writing::Told) == Writing::Told;
        if told && self.say_and_wait("ROLLBACK").is_err() {
            self.broken.set(true);
        }
    }
}
