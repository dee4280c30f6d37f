//! Until when a statement of this thread may take: on pages that are damaged one may go in circles.

use crate::error::Result;
use rusqlite::Connection;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Steps of a statement between two looks at the clock.
const STEPS: i32 = 20_000;

thread_local! {
    static UNTIL: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// The time is limited while it lives.
pub(crate) struct Limited(Option<Instant>);

/// Limits the statements of this thread.
pub(crate) fn limit(time: Duration) -> Limited {
    let before = UNTIL.get();
    let until = Instant::now() + time;
    UNTIL.set(Some(before.map_or(until, |before| before.min(until))));
    Limited(before)
}

impl Drop for Limited {
    fn drop(&mut self) {
        UNTIL.set(self.0);
    }
}

/// Lets a connection look at the clock.
pub(crate) fn watch(db: &mut Connection) -> Result<()> {
    let is_over = || UNTIL.get().is_some_and(|until| Instant::now() >= until);
    Ok(db.progress_handler(STEPS, Some(is_over))?)
}
