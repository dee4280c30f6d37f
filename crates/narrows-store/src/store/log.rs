//! Reading the log of a session.

use super::Store;
use crate::error::Result;
use crate::event_row::EventRow;
use crate::log::{self, Page};

impl Store {
    /// Rows after `seq`, at most `rows` and about `bytes` (one row in any case).
    pub async fn events_after(
        &self,
        session: i64,
        seq: u64,
        rows: usize,
        bytes: usize,
    ) -> Result<Page> {
        self.read(move |db| log::page(db, session, seq, rows, bytes)).await
    }

    /// The last rows of a log from its last prompt on, oldest first; at most `rows`.
    pub async fn last_turn(&self, session: i64, rows: usize) -> Result<Vec<EventRow>> {
        self.read(move |db| log::last_turn(db, session, rows)).await
    }
}
