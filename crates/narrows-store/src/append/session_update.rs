//! Updates of session rows by appends: one statement for all sessions of a transaction.

use super::SessionFacts;
use crate::append::Pen;
use crate::append::context::Expected;
use crate::append::item_write::More;
use crate::buckets;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::figures::{self, Change};
use crate::ids::{AHEAD_MS, now};
use crate::sum;
use std::collections::{BTreeMap, HashMap};

/// The changes of one session's row.
#[derive(Debug, Default)]
pub(super) struct Growth<'a> {
    pub(super) seq: u64,
    pub(super) settled: u64,
    pub(super) next_order: u64,
    pub(super) bytes: u64,
    pub(super) ended: Option<bool>,
    /// When the last event arrived, and the number of open requests.
    pub(super) heard: Option<i64>,
    pub(super) waiting: Option<u64>,
    pub(super) more: More,
    /// Times of the first and the newest event.
    pub(super) first: Option<i64>,
    pub(super) newest: Option<i64>,
    /// The token of the writer.
    pub(super) pen: Option<i64>,
    pub(super) facts: Vec<&'a SessionFacts>,
}

impl<'a> Growth<'a> {
    /// Merges a later change of the same session.
    pub(super) fn add(&mut self, next: Growth<'a>) {
        (self.seq, self.settled, self.next_order) = (next.seq, next.settled, next.next_order);
        self.bytes += next.bytes;
        self.ended = next.ended.or(self.ended);
        self.heard = self.heard.max(next.heard);
        self.waiting = next.waiting.or(self.waiting);
        self.more += next.more;
        // `Option::min` would prefer `None`.
        self.first = self.first.into_iter().chain(next.first).min();
        self.newest = self.newest.max(next.newest);
        self.pen = next.pen.or(self.pen);
        self.facts.extend(next.facts);
    }
}

/// The columns of the joined values; the last three are the expected head.
const COLUMNS: [(&str, &str); 19] = [
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
    ("heard", "bigint"),
    ("waiting", "bigint"),
    ("touched", "bigint"),
    ("future", "bigint"),
    ("was", "bigint"),
    ("before", "bigint"),
    ("writer", "bigint"),
];

/// Whether the session's newest event is newer than its row says, and the newer time.
const IS_NEWER: &str = "v.newest IS NOT NULL AND (session.seq = 0 OR v.newest > session.updated
     OR session.updated > v.future)";
const UPDATED: &str = "CASE WHEN v.newest IS NULL THEN updated
     WHEN session.seq = 0 OR v.newest > updated OR updated > v.future THEN v.newest ELSE updated END";
/// Whether the session received events after the time in its row.
const IS_HEARD: &str =
    "v.heard > session.heard OR v.heard IS NOT NULL AND session.heard > v.future";

/// Writes the rows of `sessions`. Sessions in `expected` must still have the expected head, else
/// the transaction fails.
pub(super) fn keep(
    db: &Db<'_>,
    sessions: &BTreeMap<i64, Growth<'_>>,
    known: Option<&HashMap<i64, Expected>>,
) -> Result<()> {
    let touched = buckets::touched(db);
    let (count, touched, era) = if db.is_postgres() {
        let era = buckets::told(Some(UPDATED), &touched);
        (None, touched, era)
    } else {
        // All sessions get the same revision, as they become visible together.
        let count = db.one(&format!("SELECT {touched}"), &[], |r| r.get::<i64>(0))?;
        (Some(count), "v.touched".to_owned(), String::new())
    };
    let future = now() + AHEAD_MS;
    let rows = sessions.iter().map(|(session, g)| {
        let written = params![
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
            g.pen,
            g.heard,
            g.waiting,
            count,
            future
        ];
        let mut row = [const { Value::Null }; 19];
        let expected = known.and_then(|known| known.get(session)).map(Expected::values);
        let values = written.into_iter().chain(expected.into_iter().flatten());
        row.iter_mut().zip(values).for_each(|(place, value)| *place = value);
        row
    });
    let rows: Vec<[Value<'_>; 19]> = rows.collect();
    let writer = Pen::WRITER;
    // The condition of [`Pen::knows`] in SQL.
    let as_known = known.map(|_| {
        format!(
            "AND session.seq = v.was AND (v.writer IS NULL OR session.pen = v.before
             OR session.pen & {writer} = v.writer)"
        )
    });
    let as_known = as_known.unwrap_or_default();
    let tally = sum::tally("v.seq", "v.settled", "v.next_order", "session.items + v.items");
    let figures = figures::changed(&[
        ("created", Change::If("v.first < session.created", "v.first")),
        ("updated", Change::If(IS_NEWER, "v.newest")),
        ("heard", Change::If(IS_HEARD, "v.heard")),
        ("touched", Change::To(&touched)),
        ("bytes", Change::By("v.bytes")),
        ("ended", Change::By("coalesce(v.ended - session.ended, 0)")),
        ("waiting", Change::By("coalesce(v.waiting - session.waiting, 0)")),
        ("calls", Change::By("v.calls")),
        ("failed", Change::By("v.failed")),
    ]);
    let update = format!(
        "UPDATE session SET tally = {tally}, figures = {figures}, seq = v.seq, settled = v.settled, next_order = v.next_order,
         touched = {touched}, bytes = session.bytes + v.bytes,
         ended = coalesce(v.ended, session.ended), items = session.items + v.items,
         created = CASE WHEN v.first < created THEN v.first ELSE created END, updated = {UPDATED},
         calls = session.calls + v.calls, failed = session.failed + v.failed,
         pen = coalesce(v.pen, session.pen), waiting = coalesce(v.waiting, session.waiting),
         heard = CASE WHEN {IS_HEARD} THEN v.heard ELSE session.heard END{era} FROM {{v}} WHERE session.key = v.key {as_known}"
    );
    db.update(&update, COLUMNS, rows, known.is_some())?;
    for (session, facts) in sessions.iter().flat_map(|(s, g)| g.facts.iter().map(move |f| (s, f))) {
        let SessionFacts { info, state, title, agent, model, status, native, project } = facts;
        let sum = sum::of(&params![info, title, agent, model, status]);
        let state_sum = sum::of(&params![state]);
        db.later(
            "UPDATE session SET info = ?2, state = ?3, title = ?4, agent = ?5, model = ?6,
             status = ?7, native = coalesce(?8, native), project = coalesce(?9, project),
             native_crc = CASE WHEN CAST(?8 AS TEXT) IS NULL THEN native_crc ELSE ?12 END,
             project_crc = CASE WHEN CAST(?9 AS TEXT) IS NULL THEN project_crc ELSE ?13 END,
             facts_crc = ?10, state_crc = ?11 WHERE key = ?1",
            &params![
                session,
                info,
                state,
                title,
                agent,
                model,
                status,
                native,
                project,
                sum,
                state_sum,
                sum::of(&params![*session, native]),
                sum::of(&params![*session, project])
            ],
        )?;
    }
    Ok(())
}
