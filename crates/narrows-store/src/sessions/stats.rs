//! Statistics over sessions: tokens, costs, tool calls and activity.

use super::cost;
use crate::checksum;
use crate::checksum::side_tables;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::sessions::copies::{ONE_LOG_PER_ANSWER, ONE_LOG_PER_SESSION};
use serde::Serialize;
use std::collections::{BTreeMap, HashSet};
use std::ops::ControlFlow;

/// The usage of one model answer, or a reported cost.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct UsageRow {
    /// The same in every session that contains it.
    pub id: String,
    /// Whether a subagent caused it.
    pub sub: bool,
    /// Whether it is final, as in the agent's file; printed output may contain estimates.
    pub kept: bool,
    /// The time, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The model.
    pub model: Option<String>,
    /// Input tokens, without those read from a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// The cost in dollars, as reported by the agent.
    pub cost: Option<f64>,
}

/// What a row of statistics is grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names say it")]
pub enum StatsBy {
    #[default]
    Day,
    Project,
    Model,
    Agent,
    Tool,
    Session,
}

/// A filter for statistics.
#[derive(Debug, Clone, Default)]
pub struct StatsFilter {
    /// The grouping.
    pub by: StatsBy,
    /// Only from this time on, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Only before this time.
    pub until: Option<i64>,
    /// Only this agent.
    pub agent: Option<String>,
    /// Only projects whose names contain this.
    pub project: Option<String>,
}

/// The totals of one group.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StatsRow {
    /// The name of the group. Days are in the time zone of this machine; on PostgreSQL, of the
    /// database.
    pub name: String,
    /// Sessions in the group.
    pub sessions: u64,
    /// Model answers.
    pub answers: u64,
    /// Input tokens, without those read from a cache.
    pub input: u64,
    /// Output tokens.
    pub output: u64,
    /// Tokens read from a cache.
    pub cache_read: u64,
    /// Tokens written to a cache.
    pub cache_write: u64,
    /// The cost in dollars, where agents report it. What a fork shares with its trunk is counted
    /// once.
    pub cost_usd: Option<f64>,
    /// The number of sessions with a known cost.
    pub cost_sessions: u64,
    /// Tool calls.
    pub calls: u64,
    /// Failed tool calls.
    pub failed: u64,
    /// Milliseconds spent in tools, where agents report it.
    pub tool_ms: u64,
    /// Milliseconds of activity.
    pub active_ms: u64,
}

pub(crate) fn put_usage(db: &Db<'_>, session: i64, row: &UsageRow) -> Result<()> {
    // A final row replaces an estimate; of estimates, which only grow, the highest counts. The row
    // stays with the session that had it first, unless that one was deleted.
    const BETTER: &str = "(excluded.kept > usage.kept OR excluded.kept = usage.kept
         AND (excluded.kept = 1 OR excluded.output >= usage.output))";
    const STAYS: &str = "EXISTS (SELECT 1 FROM session WHERE key = usage.session)";
    let better = |column: &str| {
        format!("{column} = CASE WHEN {BETTER} THEN excluded.{column} ELSE usage.{column} END")
    };
    let columns = ["input", "output", "cache_read", "cache_write", "cost", "crc", "kept"];
    let better = columns.map(better).join(", ");
    db.execute_before_commit(
        &format!("usage {}", row.id),
        &format!(
            "INSERT INTO usage (id, session, sub, at, model, input, output, cache_read, cache_write, cost,
             crc, at_crc, model_crc, who, kept)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)
             ON CONFLICT (id) DO UPDATE SET
             session = CASE WHEN {STAYS} THEN usage.session ELSE excluded.session END,
             who = usage.who
             + CASE WHEN {STAYS} THEN 0 ELSE (excluded.session - usage.session) * 8191 END
             + CASE WHEN {BETTER} THEN (excluded.kept - usage.kept) * 31 ELSE 0 END,
             {better}, model = coalesce(excluded.model, usage.model),
             at = coalesce(usage.at, excluded.at),
             at_crc = CASE WHEN usage.at IS NULL THEN excluded.at_crc ELSE usage.at_crc END,
             model_crc = CASE WHEN excluded.model IS NULL THEN usage.model_crc
             ELSE excluded.model_crc END"
        ),
        &params![
            row.id,
            session,
            row.sub,
            row.at,
            row.model,
            row.input,
            row.output,
            row.cache_read,
            row.cache_write,
            row.cost,
            checksum::of_values(&params![
                row.id,
                row.input,
                row.output,
                row.cache_read,
                row.cache_write,
                row.cost
            ]),
            checksum::of_values(&params![row.id, row.at]),
            checksum::of_values(&params![row.id, row.model]),
            side_tables::of_usage_owner(session, row.sub, row.kept),
            row.kept
        ],
    )
}

/// Stores the id of a session's first answer.
pub(crate) fn put_first_answer(db: &Db<'_>, session: i64, message: &str) -> Result<()> {
    let sql = "INSERT INTO first_answer (session, answer, crc) VALUES (?1, ?2, ?3)
         ON CONFLICT (session) DO NOTHING";
    db.execute_pipelined(
        sql,
        &params![session, message, checksum::of_values(&params![session, message])],
    )
}

const DAY_SQLITE: &str = "coalesce(date({at} / 1000, 'unixepoch', 'localtime'), '')";
/// Years of four digits have days, as on SQLite.
const DAY_PG: &str = "CASE WHEN {at} BETWEEN -62135596800000 AND 253402300799999
     THEN to_char(to_timestamp(({at}) / 1000.0), 'YYYY-MM-DD') ELSE '' END";

pub(crate) fn group_expr(db: &Db<'_>, by: StatsBy, at: &str, model: &str, tool: &str) -> String {
    match by {
        StatsBy::Day if db.is_postgres() => DAY_PG.replace("{at}", at),
        StatsBy::Day => DAY_SQLITE.replace("{at}", at),
        StatsBy::Project => "coalesce(s.project, '')".to_owned(),
        StatsBy::Model => format!("coalesce({model}, s.model, '')"),
        StatsBy::Agent => "coalesce(s.agent, '')".to_owned(),
        StatsBy::Tool => tool.to_owned(),
        StatsBy::Session => "s.id".to_owned(),
    }
}

/// Adds the columns of a result to a row.
type AddColumns = fn(&mut StatsRow, &[i64]);

/// The condition of a filter, on the session and, if `at` is given, the time.
pub(crate) fn filter_condition<'f>(
    db: &Db<'_>,
    filter: &'f StatsFilter,
    at: Option<&str>,
) -> (String, Vec<Value<'f>>) {
    let find = if db.is_postgres() { "strpos" } else { "instr" };
    let (mut clause, mut values) = (String::new(), Vec::new());
    for (test, value) in [(">=", filter.since), ("<", filter.until)] {
        if let (Some(at), Some(value)) = (at, value) {
            clause.extend([" AND ", at, " ", test, " ?"]);
            values.push(Value::Int(value));
        }
    }
    for (column, part) in [("agent", &filter.agent), ("project", &filter.project)] {
        if let Some(part) = part {
            let lower_column = format!("lower(coalesce(s.{column}, ''))");
            clause.extend([" AND ", find, "(", &lower_column, ", lower(?)) > 0"]);
            values.push(Value::Text(part));
        }
    }
    (clause, values)
}

pub(crate) fn stats(db: &Db<'_>, filter: &StatsFilter) -> Result<Vec<StatsRow>> {
    let condition = |at: &str| filter_condition(db, filter, Some(at));
    let mut rows: BTreeMap<String, StatsRow> = BTreeMap::new();
    let mut sessions: BTreeMap<String, HashSet<i64>> = BTreeMap::new();
    if filter.by != StatsBy::Tool {
        cost::add(db, filter, &mut rows, &mut sessions)?;
    }
    let mut add = |sql: String, values: Vec<Value<'_>>, add_columns: AddColumns| -> Result<()> {
        db.query_each(&sql, &values, |r| {
            let name: String = r.get(0)?;
            sessions.entry(name.clone()).or_default().insert(r.get(1)?);
            let numbers: Vec<i64> = (2..7).map(|at| r.get(at)).collect::<Result<_>>()?;
            let row = rows
                .entry(name.clone())
                .or_insert_with(|| StatsRow { name, ..StatsRow::default() });
            add_columns(row, &numbers);
            Ok(ControlFlow::Continue(()))
        })
    };
    if filter.by != StatsBy::Tool {
        let (clause, values) = condition("u.at");
        let name = group_expr(db, filter.by, "u.at", "u.model", "''");
        let binary = if db.is_postgres() { "COLLATE \"C\"" } else { "COLLATE BINARY" };
        // Printed output does not name the request: it is the same answer as one of the same
        // message whose id does.
        add(
            format!(
                "SELECT {name}, s.key, count(*),
                 CAST(sum(u.input) AS BIGINT), CAST(sum(u.output) AS BIGINT),
                 CAST(sum(u.cache_read) AS BIGINT), CAST(sum(u.cache_write) AS BIGINT)
                 FROM usage u JOIN session own ON own.key = u.session
                 {ONE_LOG_PER_ANSWER} AND u.cost IS NULL
                 AND NOT (u.id LIKE '%/' AND EXISTS (SELECT 1 FROM usage v
                 WHERE v.id {binary} > u.id {binary}
                 AND v.id {binary} < (substr(u.id, 1, length(u.id) - 1) || '0') {binary}))
                 {clause} GROUP BY 1, 2"
            ),
            values,
            |row, n| {
                row.answers += n[0].unsigned_abs();
                row.input += n[1].unsigned_abs();
                row.output += n[2].unsigned_abs();
                row.cache_read += n[3].unsigned_abs();
                row.cache_write += n[4].unsigned_abs();
            },
        )?;
    }
    let (clause, values) = condition("c.at");
    let by = group_expr(db, filter.by, "c.at", "NULL", "c.name");
    add(
        format!(
            "SELECT {by}, s.key, count(*), CAST(sum(c.failed) AS BIGINT),
             CAST(sum(coalesce(c.ms, 0)) AS BIGINT), 0, 0
             FROM call c JOIN session own ON own.key = c.key >> 32 {ONE_LOG_PER_SESSION}{clause} GROUP BY 1, 2"
        ),
        values,
        |row, n| {
            row.calls += n[0].unsigned_abs();
            row.failed += n[1].unsigned_abs();
            row.tool_ms += n[2].unsigned_abs();
        },
    )?;
    if filter.by != StatsBy::Tool {
        let at = "a.hour * 3600000";
        let (clause, values) = condition(at);
        let by = group_expr(db, filter.by, at, "NULL", "''");
        add(
            format!(
                "SELECT {by}, s.key, CAST(sum(a.ms) AS BIGINT), 0, 0, 0, 0
                 FROM active a JOIN session own ON own.key = a.session
                 {ONE_LOG_PER_SESSION}{clause} GROUP BY 1, 2"
            ),
            values,
            |row, n| row.active_ms += n[0].unsigned_abs(),
        )?;
    }
    for (name, row) in &mut rows {
        row.sessions = sessions.get(name).map_or(0, |s| s.len() as u64);
    }
    Ok(rows.into_values().collect())
}
