//! A deadline for the SQLite statements of a thread: on damaged pages a statement may loop forever.

use crate::error::Result;
use rusqlite::Connection;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Virtual machine steps between two looks at the clock.
const STEPS_PER_CHECK: i32 = 20_000;

thread_local! {
    static DEADLINE: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Restores the previous deadline of the thread when dropped.
pub(crate) struct DeadlineGuard(Option<Instant>);

/// Sets a deadline for the statements of this thread. An earlier deadline stays in force.
pub(crate) fn limit(timeout: Duration) -> DeadlineGuard {
    let previous = DEADLINE.get();
    let deadline = Instant::now() + timeout;
    DEADLINE.set(Some(previous.map_or(deadline, |previous| previous.min(deadline))));
    DeadlineGuard(previous)
}

impl Drop for DeadlineGuard {
    fn drop(&mut self) {
        DEADLINE.set(self.0);
    }
}

/// Makes a connection interrupt statements that exceed the deadline of their thread.
pub(crate) fn install(db: &mut Connection) -> Result<()> {
    let is_exceeded = || DEADLINE.get().is_some_and(|deadline| Instant::now() >= deadline);
    Ok(db.progress_handler(STEPS_PER_CHECK, Some(is_exceeded))?)
}
