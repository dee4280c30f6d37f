//! Rows of sessions: inserting, finding, tagging and deleting them.
//!
//! `row.rs` has their representation in lists, `list.rs` the filters. `store/sessions.rs` has the
//! transactions.

pub(crate) mod copies;
mod cost;
pub(crate) mod list;
pub(crate) mod row;
pub(crate) mod stats;

use crate::buckets::next_revision;
use crate::buckets::{REVISION_BITS, pg_assignments, time_bucket};
use crate::checksum;
use crate::checksum::session_counters::{self, ColumnChange};
use crate::checksum::side_tables;
use crate::damage::unindexed_lookup::find_session_key;
use crate::damage::{self, Damage, DamageRegistry};
use crate::db::{Db, Value, params};
use crate::durability::log_ends;
use crate::error::{Error, Result};
use crate::ids::{new_epoch, now};
use crate::meta;
use crate::sessions::row::{empty_info, sorted_lines};
use std::path::Path;

/// A session to create.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The caller's label: the same label gives the same session.
    pub label: Option<String>,
    /// Tags to find it by.
    pub tags: Vec<String>,
}

/// A session as the store identifies it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The key of its row.
    pub key: i64,
    /// Its id.
    pub id: String,
    /// The epoch of its log.
    pub epoch: String,
    /// The caller's label.
    pub label: Option<String>,
    /// The last event.
    pub seq: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether the source has ended.
    pub ended: bool,
    /// The token of the last writer, where several nodes write.
    pub pen: i64,
}

/// Tags per session.
const MAX_TAGS: usize = 32;

/// Inserts a session unless its id or label exists; returns its key.
pub(crate) fn insert(
    db: &Db<'_>,
    id: &str,
    label: Option<&str>,
    created: i64,
) -> Result<Option<i64>> {
    let revision = next_revision(db);
    let figures = session_counters::sum_sql(|column| match column {
        "created" | "updated" => "?4".to_owned(),
        "touched" => revision.clone(),
        _ => "0".to_owned(),
    });
    let sql = format!(
        "INSERT INTO session (id, epoch, label, created, updated, touched, info, updated_era, touched_era,
         facts_crc, name_crc, tally, figures)
         VALUES (?1, ?2, ?3, ?4, ?4, {revision}, ?5, ?6, {revision} >> {REVISION_BITS}, ?7, ?8, 0, {figures})
         ON CONFLICT DO NOTHING RETURNING key"
    );
    let (info, bucket, epoch) = (empty_info(), time_bucket(created), new_epoch()?);
    let none = Value::Null;
    let facts = checksum::of_values(&params![info, none, none, none, none]);
    let names = checksum::of_session_names(id, &epoch, label);
    let values = params![id, epoch, label, created, info, bucket, facts, names];
    let inserted = db.query_opt(&sql, &values, |r| r.get(0))?;
    if let Some(key) = inserted
        && !db.is_postgres()
    {
        log_ends::note_log_end(key, Some(0));
    }
    Ok(inserted)
}

pub(crate) fn schedule_delete(db: &Db<'_>, key: i64) -> Result<()> {
    if !db.is_postgres() {
        // The session may have the highest revision, which must not be assigned again.
        let count: i64 =
            db.query_one(&format!("SELECT {}", next_revision(db)), &[], |r| r.get(0))?;
        meta::set(db, "touched", &Value::Int(count))?;
    }
    let at = now();
    for name in file_names(db, key)? {
        db.execute_pipelined(
            "INSERT INTO forgotten (label, at, crc) VALUES (?1, ?2, ?3)
             ON CONFLICT (label) DO UPDATE SET at = excluded.at, crc = excluded.crc",
            &params![name, at, checksum::of_values(&params![name, at])],
        )?;
    }
    if !db.is_postgres() {
        log_ends::note_log_end(key, None);
    }
    db.execute_pipelined("DELETE FROM session WHERE key = ?1", &params![key])?;
    db.execute_pipelined("DELETE FROM tag WHERE session = ?1", &params![key])?;
    let doomed = "INSERT INTO doomed (session, crc) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    db.execute_pipelined(doomed, &params![key, side_tables::of_pending_delete(key)])
}

/// The names of a session read from files: its label, and the stems of its files.
pub(crate) fn file_names(db: &Db<'_>, key: i64) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let sql = "SELECT s.label, f.path FROM session s JOIN source f ON f.session = s.key
         WHERE s.key = ?1 AND f.path IS NOT NULL AND f.parent IS NULL";
    for (label, path) in
        db.query_all(sql, &params![key], |r| Ok((r.get(0)?, r.get::<String>(1)?)))?
    {
        let file = Path::new(&path).file_stem().map(|n| n.to_string_lossy().into_owned());
        names.extend::<[Option<String>; 2]>([label, file]);
    }
    let mut names: Vec<String> = names.into_iter().flatten().collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Increments a session's revision, so that followers of the list see the change.
pub(crate) fn bump_revision(db: &Db<'_>, key: i64) -> Result<()> {
    let revision = next_revision(db);
    let bucket = if db.is_postgres() { pg_assignments(None, &revision) } else { String::new() };
    let figures = session_counters::changed_sum_sql(&[("touched", ColumnChange::To(&revision))]);
    let sql = format!(
        "UPDATE session SET figures = {figures}, touched = {revision}{bucket} WHERE key = ?1"
    );
    db.execute_pipelined(&sql, &params![key])
}

/// Adds tags; returns how many are new.
pub(crate) fn add_tags(db: &Db<'_>, key: i64, tags: &[String]) -> Result<usize> {
    let mut added = 0;
    for tag in tags {
        let sql = "INSERT INTO tag (session, tag, crc) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        added += db.execute(sql, &params![key, tag, checksum::of_values(&params![key, tag])])?;
    }
    if added > 0 {
        let sql = "SELECT count(*) FROM tag WHERE session = ?1";
        if db.query_one(sql, &params![key], |r| r.get::<usize>(0))? > MAX_TAGS {
            return Err(Error::Invalid(format!("a session has at most {MAX_TAGS} tags")));
        }
    }
    Ok(added)
}

/// Locks a session against changes by other nodes until the end of the transaction; false if it
/// does not exist.
pub(crate) fn lock(db: &Db<'_>, column: &str, value: Value<'_>) -> Result<bool> {
    let sql = format!("SELECT 1 FROM session WHERE {column} = ?1 FOR UPDATE");
    Ok(!db.is_postgres() || db.exists(&sql, &[value])?)
}

/// Finds and locks a session.
pub(crate) fn find_locked(db: &Db<'_>, id: &str) -> Result<Session> {
    // A session whose log was restarted while this waited has a new row.
    let locked = lock(db, "id", Value::Text(id))? || lock(db, "id", Value::Text(id))?;
    // A new statement sees what the other node committed.
    let found = if locked { find(db, "id", Value::Text(id))? } else { None };
    found.ok_or(Error::NotFound("session"))
}

/// Finds a session by id, even if the index is damaged.
pub(crate) fn find_by_id(
    db: &Db<'_>,
    damages: &DamageRegistry,
    id: &str,
) -> Result<Option<Session>> {
    let found = find(db, "id", Value::Text(id))?.filter(|session| session.id == id);
    if found.is_some() {
        return Ok(found);
    }
    match find_session_key(db, damages, "id", id)? {
        Some(key) => find_by_key(db, key),
        None => Ok(None),
    }
}

/// Finds a session by label, even if the index is damaged or leads to another session.
pub(crate) fn find_by_label(
    db: &Db<'_>,
    damages: &DamageRegistry,
    label: &str,
) -> Result<Option<Session>> {
    let found = match find(db, "label", Value::Text(label)) {
        Ok(Some(session)) if session.label.as_deref() == Some(label) => return Ok(Some(session)),
        Err(error) if !matches!(error, Error::Damaged(_)) => return Err(error),
        found => found,
    };
    match find_session_key(db, damages, "label", label)? {
        Some(key) => find_by_key(db, key),
        // The index entry does not match the row.
        None => found.map(|_| None),
    }
}

pub(crate) fn find_by_key(db: &Db<'_>, key: i64) -> Result<Option<Session>> {
    find(db, "key", Value::Int(key))
}

fn find(db: &Db<'_>, column: &str, value: Value<'_>) -> Result<Option<Session>> {
    let sql = format!(
        "SELECT s.key, s.id, s.epoch, s.label, s.seq,
         (SELECT string_agg(tag, '\n') FROM tag WHERE session = s.key), s.ended, s.pen, s.name_crc
         FROM session s WHERE s.{column} = ?1"
    );
    db.query_opt(&sql, &[value], |r| {
        if !checksum::row_matches(r, &[1, 2, 3], 8)? {
            damage::report(Damage::new(r.get(0)?, damage::DamageKind::Session, 0, 0));
            return Err(Error::Damaged("a session row does not match its checksum".to_owned()));
        }
        Ok(Session {
            key: r.get(0)?,
            id: r.get(1)?,
            epoch: r.get(2)?,
            label: r.get(3)?,
            seq: r.get(4)?,
            tags: sorted_lines(r.get::<Option<String>>(5)?.as_deref()),
            ended: r.get(6)?,
            pen: r.get(7)?,
        })
    })
}
