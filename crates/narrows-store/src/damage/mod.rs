//! Damage reports: stored bytes that do not match their checksum or cannot be read.
//!
//! The code that meets damage calls [`report`]; the store drains the reports of a thread after each
//! job and adds them to its [`DamageRegistry`]. Knows no table module.

pub(crate) mod check_progress;
pub(crate) mod key_scan;
pub(crate) mod notice;
mod registry;
pub(crate) mod unindexed_lookup;

pub(crate) use registry::DamageRegistry;

use serde::Serialize;
use std::cell::RefCell;

/// The most reports that a thread or a store keeps.
const MAX_REPORTS: usize = 1000;

/// The kind of damage.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DamageKind {
    /// Events of a session's log.
    Events,
    /// Events that were durable and are missing: the write-ahead log is missing or damaged.
    Lost,
    /// Items of a session.
    Items,
    /// A session's own row.
    Session,
    /// A row of another table.
    Other,
    /// The database itself.
    Database,
}

/// One damaged place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// The session's key in the store; 0 if the place belongs to no session.
    #[serde(skip)]
    pub session: i64,
    /// The kind of damage.
    pub part: DamageKind,
    /// The first event, or the order of the first item; 0 if there is none.
    pub first: u64,
    /// The last event or item.
    pub last: u64,
    /// Details. For lost events, the session's id.
    pub what: String,
}

impl Damage {
    pub(crate) fn new(session: i64, kind: DamageKind, first: u64, last: u64) -> Damage {
        Damage { session, part: kind, first, last, what: String::new() }
    }

    pub(crate) fn other(detail: impl Into<String>) -> Damage {
        Damage { session: 0, part: DamageKind::Other, first: 0, last: 0, what: detail.into() }
    }

    pub(crate) fn database(detail: impl Into<String>) -> Damage {
        Damage { part: DamageKind::Database, ..Damage::other(detail) }
    }

    /// The id of a session that lost its newest events or all of them.
    pub(crate) fn lost_session_id(&self) -> Option<&str> {
        (self.part == DamageKind::Lost && !self.what.is_empty()).then_some(self.what.as_str())
    }

    /// Describes the damage in one line. `session` is the session's id.
    pub fn words(&self, session: &str) -> String {
        let Damage { first, last, what, .. } = self;
        match self.part {
            DamageKind::Events => {
                format!("{} of session {session} cannot be read", range("event", *first, *last))
            }
            DamageKind::Lost if *first == 0 => {
                format!("the write-ahead log is missing or damaged: session {session} is lost")
            }
            DamageKind::Lost => format!(
                "the write-ahead log is missing or damaged: session {session} lacks its newest events \
                 ({first}–{last})"
            ),
            DamageKind::Items => {
                format!("{} of session {session} cannot be read", range("item", *first, *last))
            }
            DamageKind::Session => format!("the row of session {session} cannot be read"),
            DamageKind::Other if self.session > 0 => format!("{what} (session {session})"),
            DamageKind::Other => what.clone(),
            DamageKind::Database => format!("the database is damaged: {what}"),
        }
    }
}

/// `event 7` or `events 3–7`.
fn range(noun: &str, first: u64, last: u64) -> String {
    if first >= last { format!("{noun} {last}") } else { format!("{noun}s {first}–{last}") }
}

thread_local! {
    static REPORTS: RefCell<Vec<Damage>> = const { RefCell::new(Vec::new()) };
}

/// Reports damage that this thread has met.
pub(crate) fn report(damage: Damage) {
    REPORTS.with_borrow_mut(|reports| {
        if reports.len() < MAX_REPORTS && !reports.contains(&damage) {
            reports.push(damage);
        }
    });
}

/// Removes and returns the reports of this thread.
pub(crate) fn drain_reports() -> Vec<Damage> {
    REPORTS.with_borrow_mut(std::mem::take)
}
