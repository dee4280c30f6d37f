//! Rows that are published together, encoded once for all subscribers.

use super::filter::{Filter, View};
use super::frame::{TextFrames, encode_sse, encode_ws};
use bytes::Bytes;
use narrows_store::{EventRow, Place};
use std::sync::{Arc, OnceLock};

/// The name of the first subscription of a socket. Most sockets have only this one, so its encoded
/// messages are shared.
pub(super) const DEFAULT_SUBSCRIPTION_ID: &str = "1";

/// Consecutive rows of one log, with their encoded frames per view.
#[derive(Debug)]
pub struct Batch {
    epoch: String,
    rows: Vec<EventRow>,
    bytes: usize,
    sse: [OnceLock<Bytes>; View::COUNT],
    ws: [OnceLock<Arc<TextFrames>>; View::COUNT],
}

impl Batch {
    /// A batch of rows without gaps; `None` without rows.
    pub(super) fn new(epoch: &str, rows: Vec<EventRow>) -> Option<Batch> {
        if rows.is_empty() {
            return None;
        }
        // The encoded frames take about as much again.
        let bytes = 2 * rows.iter().map(EventRow::size).sum::<usize>();
        Some(Batch {
            epoch: epoch.to_owned(),
            rows,
            bytes,
            sse: [const { OnceLock::new() }; View::COUNT],
            ws: [const { OnceLock::new() }; View::COUNT],
        })
    }

    /// The rows.
    pub fn rows(&self) -> &[EventRow] {
        &self.rows
    }

    /// The seq of the first row.
    pub fn first(&self) -> u64 {
        self.rows.first().map_or(0, |row| row.seq)
    }

    /// The seq of the last row.
    pub fn last(&self) -> u64 {
        self.rows.last().map_or(0, |row| row.seq)
    }

    /// Estimated memory of the rows and their encoded frames, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The position before the first row.
    fn start(&self) -> Place {
        Place::after(self.first() - 1)
    }

    /// All rows as server-sent events, unfiltered.
    pub(super) fn sse(&self, view: View) -> Bytes {
        let encode = || encode_sse(&self.epoch, view, &Filter::default(), self.start(), &self.rows);
        self.sse[view as usize].get_or_init(encode).clone()
    }

    /// All rows as messages of a socket's default subscription, unfiltered.
    pub(super) fn ws(&self, view: View) -> Arc<TextFrames> {
        let encode = || {
            let (filter, id) = (Filter::default(), DEFAULT_SUBSCRIPTION_ID);
            Arc::new(encode_ws(&self.epoch, view, &filter, id, self.start(), &self.rows))
        };
        Arc::clone(self.ws[view as usize].get_or_init(encode))
    }
}
