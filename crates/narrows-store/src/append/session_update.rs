//! Updates of session rows by appends: one statement for all sessions of a transaction.

use super::SessionFacts;
use crate::append::Pen;
use crate::append::context::ExpectedHead;
use crate::append::item_write::CounterDelta;
use crate::buckets;
use crate::checksum;
use crate::checksum::session_counters::{self, ColumnChange};
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::ids::{MAX_CLOCK_SKEW_MS, now};
use std::collections::{BTreeMap, HashMap};

/// The changes of one session's row.
#[derive(Debug, Default)]
pub(super) struct SessionDelta<'a> {
    pub(super) seq: u64,
    pub(super) settled: u64,
    pub(super) next_order: u64,
    pub(super) bytes: u64,
    pub(super) ended: Option<bool>,
    /// When the last event arrived, and the number of open requests.
    pub(super) received_at: Option<i64>,
    pub(super) open_requests: Option<u64>,
    pub(super) counters: CounterDelta,
    /// Times of the first and the newest event.
    pub(super) first: Option<i64>,
    pub(super) newest: Option<i64>,
    /// The token of the writer.
    pub(super) token: Option<i64>,
    pub(super) headers: Vec<&'a SessionFacts>,
}

impl<'a> SessionDelta<'a> {
    /// Merges a later change of the same session.
    pub(super) fn add(&mut self, next: SessionDelta<'a>) {
        (self.seq, self.settled, self.next_order) = (next.seq, next.settled, next.next_order);
        self.bytes += next.bytes;
        self.ended = next.ended.or(self.ended);
        self.received_at = self.received_at.max(next.received_at);
        self.open_requests = next.open_requests.or(self.open_requests);
        self.counters += next.counters;
        // `Option::min` would prefer `None`.
        self.first = self.first.into_iter().chain(next.first).min();
        self.newest = self.newest.max(next.newest);
        self.token = next.token.or(self.token);
        self.headers.extend(next.headers);
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
const ARRIVED_LATER: &str =
    "v.heard > session.heard OR v.heard IS NOT NULL AND session.heard > v.future";

/// Writes the rows of `sessions`. Sessions in `expected` must still have the expected head, else
/// the transaction fails.
pub(super) fn apply(
    db: &Db<'_>,
    sessions: &BTreeMap<i64, SessionDelta<'_>>,
    expected: Option<&HashMap<i64, ExpectedHead>>,
) -> Result<()> {
    let revision = buckets::next_revision(db);
    let (shared_revision, revision, bucket_assignments) = if db.is_postgres() {
        let bucket_assignments = buckets::pg_assignments(Some(UPDATED), &revision);
        (None, revision, bucket_assignments)
    } else {
        // All sessions get the same revision, as they become visible together.
        let shared_revision =
            db.query_one(&format!("SELECT {revision}"), &[], |r| r.get::<i64>(0))?;
        (Some(shared_revision), "v.touched".to_owned(), String::new())
    };
    let latest_plausible = now() + MAX_CLOCK_SKEW_MS;
    let rows = sessions.iter().map(|(session, g)| {
        let values = params![
            *session,
            g.seq,
            g.settled,
            g.next_order,
            g.bytes,
            g.ended,
            g.counters.items,
            g.first,
            g.newest,
            g.counters.calls,
            g.counters.failed,
            g.token,
            g.received_at,
            g.open_requests,
            shared_revision,
            latest_plausible
        ];
        let mut row = [const { Value::Null }; 19];
        let expected =
            expected.and_then(|expected| expected.get(session)).map(ExpectedHead::values);
        let values = values.into_iter().chain(expected.into_iter().flatten());
        row.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
        row
    });
    let rows: Vec<[Value<'_>; 19]> = rows.collect();
    let writer = Pen::WRITER;
    // The condition of [`Pen::knows`] in SQL.
    let head_condition = expected.map(|_| {
        format!(
            "AND session.seq = v.was AND (v.writer IS NULL OR session.pen = v.before
             OR session.pen & {writer} = v.writer)"
        )
    });
    let head_condition = head_condition.unwrap_or_default();
    let tally =
        checksum::log_counters_sql("v.seq", "v.settled", "v.next_order", "session.items + v.items");
    let figures = session_counters::changed_sum_sql(&[
        ("created", ColumnChange::If("v.first < session.created", "v.first")),
        ("updated", ColumnChange::If(IS_NEWER, "v.newest")),
        ("heard", ColumnChange::If(ARRIVED_LATER, "v.heard")),
        ("touched", ColumnChange::To(&revision)),
        ("bytes", ColumnChange::By("v.bytes")),
        ("ended", ColumnChange::By("coalesce(v.ended - session.ended, 0)")),
        ("waiting", ColumnChange::By("coalesce(v.waiting - session.waiting, 0)")),
        ("calls", ColumnChange::By("v.calls")),
        ("failed", ColumnChange::By("v.failed")),
    ]);
    let update = format!(
        "UPDATE session SET tally = {tally}, figures = {figures}, seq = v.seq, settled = v.settled, next_order = v.next_order,
         touched = {revision}, bytes = session.bytes + v.bytes,
         ended = coalesce(v.ended, session.ended), items = session.items + v.items,
         created = CASE WHEN v.first < created THEN v.first ELSE created END, updated = {UPDATED},
         calls = session.calls + v.calls, failed = session.failed + v.failed,
         pen = coalesce(v.pen, session.pen), waiting = coalesce(v.waiting, session.waiting),
         heard = CASE WHEN {ARRIVED_LATER} THEN v.heard ELSE session.heard END{bucket_assignments} FROM {{v}} WHERE session.key = v.key {head_condition}"
    );
    db.update(&update, COLUMNS, rows, expected.is_some())?;
    for (session, headers) in
        sessions.iter().flat_map(|(s, g)| g.headers.iter().map(move |f| (s, f)))
    {
        let SessionFacts { info, state, title, agent, model, status, native, project } = headers;
        let sum = checksum::of_values(&params![info, title, agent, model, status]);
        let state_sum = checksum::of_values(&params![state]);
        db.execute_pipelined(
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
                checksum::of_values(&params![*session, native]),
                checksum::of_values(&params![*session, project])
            ],
        )?;
    }
    Ok(())
}
