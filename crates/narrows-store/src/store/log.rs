//! Reading the log of a session.

use super::Store;
use crate::error::Result;
use crate::event_row::EventRow;
use crate::log::{self, Page};

impl Store {
    /// Reads events after `seq`: at most `rows`, about `bytes` bytes, at least one.
    pub async fn events_after(
        &self,
        session: i64,
        seq: u64,
        rows: usize,
        bytes: usize,
    ) -> Result<Page> {
        self.read(move |db| log::page(db, session, seq, rows, bytes)).await
    }

    /// Reads the events from the last prompt on, oldest first; at most `rows`.
    pub async fn last_turn(&self, session: i64, rows: usize) -> Result<Vec<EventRow>> {
        self.read(move |db| log::last_turn(db, session, rows)).await
    }
}
