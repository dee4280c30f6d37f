//! Beginning and ending transactions. A write transaction of one statement needs no `BEGIN`.

use super::{IDLE_RECHECK, MAX_STATEMENT_TTL, Pg};
use crate::error::Result;
use std::time::Instant;

/// Whether PostgreSQL knows of the current transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TxState {
    Begun,
    Deferred,
    /// The transaction was a single statement, which has been executed or has failed.
    Finished,
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
        self.expire_statements();
        if self.recently_used() { self.send_batch(sql.to_owned()) } else { self.batch_execute(sql) }
    }

    fn recently_used(&self) -> bool {
        self.last_used.get().elapsed() < IDLE_RECHECK
    }

    fn expire_statements(&self) {
        let (at, age) = self.expiry.get();
        if Instant::now() > at {
            self.statements.borrow_mut().clear();
            let age = (age * 4).min(MAX_STATEMENT_TTL);
            self.expiry.set((Instant::now() + age, age));
        }
    }

    /// Begins a write transaction; on a recently used connection the `BEGIN` is deferred.
    pub(crate) fn begin_writing(&self) -> Result<()> {
        if self.recently_used() {
            self.expire_statements();
            self.tx_state.set(TxState::Deferred);
            return Ok(());
        }
        self.tx_state.set(TxState::Begun);
        self.begin("BEGIN")
    }

    /// Sends a deferred `BEGIN`.
    pub(super) fn send_begin(&self) -> Result<()> {
        if self.tx_state.get() == TxState::Deferred {
            self.tx_state.set(TxState::Begun);
            self.send_batch("BEGIN".to_owned())?;
        }
        Ok(())
    }

    /// Commits the transaction.
    pub(crate) fn commit(&self) -> Result<()> {
        if self.tx_state.get() == TxState::Deferred && self.deferred.borrow().is_empty() {
            self.tx_state.set(TxState::Finished);
            return self.execute_combined();
        }
        self.send_begin()?;
        self.send_deferred().and_then(|()| self.batch_execute("COMMIT"))
    }

    /// Rolls the transaction back.
    pub(crate) fn roll_back(&self) {
        self.drop_deferred();
        let begun = self.tx_state.replace(TxState::Begun) == TxState::Begun;
        if begun && self.batch_execute("ROLLBACK").is_err() {
            self.broken.set(true);
        }
    }
}
