//! Lists of sessions with filters, and their facets.

use crate::buckets::{self, last_revision};
use crate::damage::key_scan::session_keys;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value};
use crate::error::{Error, Result};
use crate::fold_case::fold_case;
use crate::ids::MAX_CLOCK_SKEW_MS;
use crate::ids::now;
use crate::sessions::row::{COLUMNS, SessionRow, Sight, columns_without_subqueries, read};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Facets returned per kind.
const MAX_FACETS: usize = 200;
/// A running session that received nothing for this many milliseconds counts as idle, unless its
/// agent waits for an answer.
pub const STALE_MS: i64 = 10 * 60 * 1000;

/// Whether a session is live. Only this and [`LIVE`] decide it.
pub(crate) fn is_live(ended: bool, waiting: u64, status: &str, heard: i64, now: i64) -> bool {
    !ended
        && (waiting > 0
            || status == "running" && (now - STALE_MS < heard && heard <= now + MAX_CLOCK_SKEW_MS))
}

/// The same as SQL; takes the earliest and the latest plausible time of the last arrival.
const LIVE: &str =
    "s.ended = 0 AND (s.waiting > 0 OR s.status = 'running' AND s.heard > ? AND s.heard <= ?)";

/// A filter for sessions.
#[derive(Debug, Clone, Default)]
pub struct ListFilter {
    /// Having all of these tags.
    pub tags: Vec<String>,
    /// Whose agent's name contains this.
    pub agent: Option<String>,
    /// Having this label.
    pub label: Option<String>,
    /// `idle`, `running` or `failed`.
    pub status: Option<String>,
    /// Whose project contains this, in any case.
    pub project: Option<String>,
    /// Whose title, first prompt or label contains this, in any case.
    pub text: Option<String>,
    /// Updated at or after this time, in milliseconds since 1970.
    pub since: Option<i64>,
    /// Updated before this time.
    pub until: Option<i64>,
    /// Having a higher revision: for followers of the list.
    pub touched_after: Option<i64>,
    /// The sessions the caller can see.
    pub sight: Sight,
    /// The end of the previous page.
    pub after: Option<String>,
    /// The maximum number of sessions.
    pub limit: usize,
}

/// A page of sessions, the most recently updated first.
#[derive(Debug, Clone, Default)]
pub struct ListPage {
    /// The sessions.
    pub sessions: Vec<SessionRow>,
    /// The start of the next page, if there is one.
    pub next: Option<String>,
    /// The revision that the page reflects.
    pub touched: i64,
}

/// Counts of visible sessions by agent and project.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Facets {
    /// Agents, most frequent first.
    pub agents: Vec<Facet>,
    /// Projects: last components of working directories.
    pub projects: Vec<Facet>,
    /// Live sessions.
    pub live: u64,
    /// All sessions.
    pub total: u64,
}

/// A name and the number of sessions that have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Facet {
    /// The name.
    pub name: String,
    /// The sessions.
    pub count: u64,
}

/// The SQL condition of a visibility; none if it allows everything.
fn visibility_condition(sight: &Sight) -> Option<(String, Vec<Value<'_>>)> {
    if sight.is_all() {
        return None;
    }
    let ids = sight.sessions.as_deref().unwrap_or_default();
    let tags = sight.tags.as_deref().unwrap_or_default();
    let marks = |n: usize| if n == 0 { "NULL".to_owned() } else { vec!["?"; n].join(",") };
    let clause = format!(
        "(s.id IN ({}) OR s.key IN (SELECT session FROM tag WHERE tag IN ({})))",
        marks(ids.len()),
        marks(tags.len())
    );
    Some((clause, ids.iter().chain(tags).map(|name| Value::Text(name)).collect()))
}

pub(crate) fn list<'f>(db: &Db<'_>, filter: &'f ListFilter) -> Result<ListPage> {
    let touched = last_revision(db)?;
    // A label names what was sent under it, even if another session is listed in its place.
    let listed = if filter.label.is_some() { "" } else { "s.copy_of IS NULL AND " };
    let (mut sql, mut values) = (format!("{listed}s.left_out = 0"), Vec::new());
    let mut add_condition = |clause: &str, params: &[Value<'f>]| {
        sql.push_str(" AND ");
        sql.push_str(clause);
        values.extend_from_slice(params);
    };
    for tag in &filter.tags {
        add_condition("s.key IN (SELECT session FROM tag WHERE tag = ?)", &[Value::Text(tag)]);
    }
    for (column, value) in [("label", &filter.label), ("status", &filter.status)] {
        if let Some(value) = value {
            add_condition(&format!("s.{column} = ?"), &[Value::Text(value)]);
        }
    }
    let (time_bucket, revision_bucket) =
        (buckets::time_bucket as fn(i64) -> i64, buckets::revision_bucket as fn(i64) -> i64);
    for (clause, value, era) in [
        ("s.updated >= ? AND s.updated_era >= ?", filter.since, time_bucket),
        ("s.updated < ? AND s.updated_era <= ?", filter.until, time_bucket),
        ("s.touched > ? AND s.touched_era >= ?", filter.touched_after, revision_bucket),
    ] {
        if let Some(value) = value {
            add_condition(clause, &[Value::Int(value), Value::Int(era(value))]);
        }
    }
    if let Some((clause, params)) = visibility_condition(&filter.sight) {
        add_condition(&clause, &params);
    }
    if let Some(after) = &filter.after {
        let place = after.split_once('.').and_then(|(updated, key)| {
            Some((updated.parse::<i64>().ok()?, key.parse::<i64>().ok()?))
        });
        let (updated, key) = place.ok_or_else(|| {
            Error::Invalid("invalid `after`: not a cursor of the session list".to_owned())
        })?;
        let place = [updated, key, buckets::time_bucket(updated)].map(Value::Int);
        add_condition("(s.updated, s.key) < (?, ?) AND s.updated_era <= ?", &place);
    }
    // SQLite folds only ASCII letters: texts are compared here.
    let folded = |part: &Option<String>| part.as_deref().map(fold_case);
    let text_filters = [
        (folded(&filter.text), &[2, 12, 17][..]),
        (folded(&filter.project), &[13]),
        (folded(&filter.agent), &[20]),
    ];
    let is_sql_only = text_filters.iter().all(|(part, _)| part.is_none());
    let sql_limit =
        i64::try_from(filter.limit + 1).ok().filter(|_| is_sql_only).unwrap_or(i64::MAX);
    let matches = |row: &Row<'_>| {
        text_filters.iter().all(|(part, columns)| contains_text(row, columns, part.as_deref()))
    };
    let mut sessions = Vec::new();
    let all = format!(
        "SELECT {COLUMNS} FROM session s WHERE {sql}
         ORDER BY s.updated_era DESC, s.updated DESC, s.key DESC LIMIT {sql_limit}"
    );
    let scanned = db.query_each(&all, &values, |row| {
        if matches(row) {
            sessions.push(read(row)?);
        }
        let enough = sessions.len() > filter.limit;
        Ok(if enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    if skip_damaged_rows(db, scanned)? {
        sessions.clear();
        for key in session_keys(db)? {
            sessions.extend(read_by_key(db, key, &sql, &values, &matches)?);
        }
        sessions.sort_by_key(|s| Reverse((s.updated_at, s.key)));
    }
    let more = sessions.len() > filter.limit;
    sessions.truncate(filter.limit);
    let next = sessions.last().filter(|_| more).map(|s| format!("{}.{}", s.updated_at, s.key));
    Ok(ListPage { sessions, next, touched })
}

/// Whether the rows are damaged, so that sessions must be read one by one.
pub(crate) fn skip_damaged_rows(db: &Db<'_>, scanned: Result<()>) -> Result<bool> {
    match scanned {
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            damage::report(Damage::database(error.to_string()));
            Ok(true)
        }
        scanned => scanned.map(|()| false),
    }
}

/// Reads a matching session by its key; without tags and files if those are damaged.
fn read_by_key(
    db: &Db<'_>,
    key: i64,
    clause: &str,
    values: &[Value<'_>],
    matches: &impl Fn(&Row<'_>) -> bool,
) -> Result<Option<SessionRow>> {
    for columns in [COLUMNS.to_owned(), columns_without_subqueries()] {
        let sql = format!("SELECT {columns} FROM session s WHERE s.key = {key} AND {clause}");
        let found = db.query_opt(&sql, values, |row| matches(row).then(|| read(row)).transpose());
        match found {
            Err(error) if error.is_unreadable() => {}
            found => return Ok(found?.flatten()),
        }
    }
    damage::report(Damage::new(key, damage::DamageKind::Session, 0, 0));
    Ok(None)
}

/// Whether one of `columns` contains `part`.
fn contains_text(row: &Row<'_>, columns: &[usize], part: Option<&str>) -> bool {
    let column_text = |at: usize| row.get::<Option<String>>(at).ok().flatten().unwrap_or_default();
    part.is_none_or(|part| columns.iter().any(|at| fold_case(&column_text(*at)).contains(part)))
}

pub(crate) fn facets(db: &Db<'_>, sight: &Sight) -> Result<Facets> {
    let (clause, visibility) =
        visibility_condition(sight).unwrap_or_else(|| ("true".to_owned(), Vec::new()));
    let sql = format!(
        "SELECT s.agent, s.project, {LIVE} FROM session s 
         WHERE s.copy_of IS NULL AND s.left_out = 0 AND {clause}"
    );
    let one = |row: &Row<'_>| -> Result<(Option<String>, Option<String>, Option<bool>)> {
        Ok((row.get(0)?, row.get(1)?, row.get(2)?))
    };
    let mut values = vec![Value::Int(now() - STALE_MS), Value::Int(now() + MAX_CLOCK_SKEW_MS)];
    values.extend(visibility);
    let mut all = Facets::default();
    let (mut agents, mut projects) = (HashMap::new(), HashMap::new());
    let count = |names: &mut HashMap<String, u64>, name: Option<String>| {
        if let Some(name) = name.filter(|n| !n.is_empty()) {
            *names.entry(name).or_default() += 1;
        }
    };
    let mut found = Vec::new();
    let scanned = db.query_each(&sql, &values, |row| {
        found.push(one(row)?);
        Ok(ControlFlow::Continue(()))
    });
    if skip_damaged_rows(db, scanned)? {
        found.clear();
        for key in session_keys(db)? {
            // The list of sessions reports those that cannot be read.
            let sql = format!("{sql} AND s.key = {key}");
            found.extend(db.query_opt(&sql, &values, one).ok().flatten());
        }
    }
    for (agent, project, live) in found {
        count(&mut agents, agent);
        count(&mut projects, project);
        all.live += u64::from(live.unwrap_or(false));
        all.total += 1;
    }
    (all.agents, all.projects) = (by_frequency(agents), by_frequency(projects));
    Ok(all)
}

fn by_frequency(names: HashMap<String, u64>) -> Vec<Facet> {
    let mut facets: Vec<Facet> =
        names.into_iter().map(|(name, count)| Facet { name, count }).collect();
    facets.sort_unstable_by(|a, b| b.count.cmp(&a.count).then_with(|| a.name.cmp(&b.name)));
    facets.truncate(MAX_FACETS);
    facets
}
