//! What a repair found, kept and lost.

use serde::Serialize;
use std::path::PathBuf;

/// The progress of a repair.
#[derive(Debug, Clone, Copy)]
pub struct RepairProgress {
    /// The current step.
    pub what: &'static str,
    /// How much of the step is done.
    pub done: u64,
    /// The size of the step; 0 if unknown.
    pub all: u64,
}

/// A session that was damaged.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRepair {
    /// Its id.
    pub id: String,
    /// Its title, if known.
    pub title: Option<String>,
    /// Recovered events.
    pub events: u64,
    /// Lost events: the first and the last of each range.
    pub lost: Vec<(u64, u64)>,
    /// Recovered items.
    pub items: u64,
    /// Lost items.
    pub lost_items: u64,
    /// Other differences from the original, in words.
    pub notes: Vec<String>,
}

/// The result of a repair.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairReport {
    /// Whether the store was damaged at all.
    pub damaged: bool,
    /// The number of sessions that were intact.
    pub whole: u64,
    /// The sessions that were damaged.
    pub sessions: Vec<SessionRepair>,
    /// The lost sessions, by id or number.
    pub gone: Vec<String>,
    /// Other losses, in words.
    pub lost: Vec<String>,
    /// Problems of the database file itself.
    pub database: Vec<String>,
    /// The path of the old database.
    pub aside: Option<PathBuf>,
}
