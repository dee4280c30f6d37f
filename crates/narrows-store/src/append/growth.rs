//! What becomes of a session's row by appends.

use super::SessionFacts;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::rows::More;
use crate::sessions;
use std::collections::BTreeMap;

/// By how much a session has grown.
#[derive(Debug, Default)]
pub(super) struct Growth<'a> {
    pub(super) seq: u64,
    pub(super) settled: u64,
    pub(super) next_order: u64,
    pub(super) bytes: u64,
    pub(super) ended: Option<bool>,
    pub(super) more: More,
    /// When its first and its last event were.
    pub(super) first: Option<i64>,
    pub(super) newest: Option<i64>,
    /// Whoever wrote.
    pub(super) pen: Option<i64>,
    pub(super) facts: Vec<&'a SessionFacts>,
}

impl<'a> Growth<'a> {
    /// What comes after it.
    pub(super) fn add(&mut self, next: Growth<'a>) {
        (self.seq, self.settled, self.next_order) = (next.seq, next.settled, next.next_order);
        self.bytes += next.bytes;
        self.ended = next.ended.or(self.ended);
        self.more += next.more;
        // None is less than any.
        self.first = self.first.into_iter().chain(next.first).min();
        self.newest = self.newest.max(next.newest);
        self.pen = next.pen.or(self.pen);
        self.facts.extend(next.facts);
    }
}

/// The columns of what is changed.
const COLUMNS: [(&str, &str); 12] = [
    ("key", "bigint"),
    ("seq", "bigint"),
    ("settled", "bigint"),
    ("next_order", "bigint"),
    ("bytes", "bigint"),
    ("ended", "bigint"),
    ("items", "bigint"),
    ("first", "bigint"),
    ("newest", "bigint"),
    ("calls", "bigint"),
    ("failed", "bigint"),
    ("pen", "bigint"),
];

/// Writes the rows of sessions.
pub(super) fn keep(db: &Db<'_>, sessions: &BTreeMap<i64, Growth<'_>>) -> Result<()> {
    let touched = sessions::touched(db);
    let rows = sessions.iter().map(|(session, g)| {
        params![
            *session,
            g.seq,
            g.settled,
            g.next_order,
            g.bytes,
            g.ended,
            g.more.items,
            g.first,
            g.newest,
            g.more.calls,
            g.more.failed,
            g.pen
        ]
    });
    let rows: Vec<[Value<'_>; 12]> = rows.collect();
    db.update(
        &format!(
            "UPDATE session SET seq = v.seq, settled = v.settled, next_order = v.next_order,
             touched = {touched}, bytes = session.bytes + v.bytes,
             ended = coalesce(v.ended, session.ended), items = session.items + v.items,
             created = CASE WHEN v.first < created THEN v.first ELSE created END,
             updated = CASE WHEN v.newest IS NULL THEN updated
             WHEN session.seq = 0 OR v.newest > updated THEN v.newest ELSE updated END,
             calls = session.calls + v.calls, failed = session.failed + v.failed,
             pen = coalesce(v.pen, session.pen) FROM {{v}} WHERE session.key = v.key"
        ),
        COLUMNS,
        rows,
    )?;
    for (session, facts) in sessions.iter().flat_map(|(s, g)| g.facts.iter().map(move |f| (s, f))) {
        let SessionFacts { info, state, title, agent, model, status, native, project } = facts;
        db.later(
            "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6,
             status = ?7, native = coalesce(?8, native), project = coalesce(?9, project)
             WHERE key = ?1",
            &params![session, info, state, title, agent, model, status, native, project],
        )?;
    }
    Ok(())
}
