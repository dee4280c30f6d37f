//! Rows that are told together, made into frames once for all who follow.

use super::filter::{Filter, View};
use super::frame::{TextFrames, encode_sse, encode_ws};
use bytes::Bytes;
use narrows_store::{EventRow, Place};
use std::sync::{Arc, OnceLock};

/// The name of the first subscription of a socket, which most have only.
pub(super) const FIRST: &str = "1";

/// Some rows without a gap.
#[derive(Debug)]
pub struct Batch {
    epoch: String,
    rows: Vec<EventRow>,
    size: usize,
    sse: [OnceLock<Bytes>; 4],
    ws: [OnceLock<Arc<TextFrames>>; 4],
}

impl Batch {
    pub(super) fn new(epoch: &str, rows: Vec<EventRow>) -> Option<Batch> {
        if rows.is_empty() {
            return None;
        }
        // The frames take about as much again.
        let size = 2 * rows.iter().map(EventRow::size).sum::<usize>();
        Some(Batch {
            epoch: epoch.to_owned(),
            rows,
            size,
            sse: [const { OnceLock::new() }; 4],
            ws: [const { OnceLock::new() }; 4],
        })
    }

    /// The rows.
    pub fn rows(&self) -> &[EventRow] {
        &self.rows
    }

    /// The number of its first row.
    pub fn first(&self) -> u64 {
        self.rows.first().map_or(0, |r| r.seq)
    }

    /// The number of its last row.
    pub fn last(&self) -> u64 {
        self.rows.last().map_or(0, |r| r.seq)
    }

    pub(super) fn size(&self) -> usize {
        self.size
    }

    /// The place before its first row.
    fn before(&self) -> Place {
        Place::after(self.first() - 1)
    }

    /// All of it for server-sent events, unfiltered.
    pub fn sse(&self, view: View) -> Bytes {
        let make = || encode_sse(&self.epoch, view, &Filter::default(), self.before(), &self.rows);
        self.sse[view as usize].get_or_init(make).clone()
    }

    /// All of it for the first subscription of a socket, unfiltered.
    pub fn ws(&self, view: View) -> Arc<TextFrames> {
        let make = || {
            let all = Filter::default();
            encode_ws(&self.epoch, view, &all, FIRST, self.before(), &self.rows).into()
        };
        Arc::clone(self.ws[view as usize].get_or_init(make))
    }
}
