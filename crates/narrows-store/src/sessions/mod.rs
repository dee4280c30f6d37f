//! Sessions: making, finding, listing, labelling, deleting.

use crate::beside;
use crate::copies;
use crate::damage::{self, Damage, Damages};
use crate::db::{Db, Value, params};
use crate::durable;
use crate::era::{LAST_COUNT, TOUCHED, of_time, told};
use crate::error::{Error, Result};
use crate::figures::{self, Change};
use crate::meta;
use crate::names::{new_epoch, new_id, now};
use crate::news::{Gone, gone};
use crate::session_row::{COLUMNS, SessionRow, empty_info, lines, read};
use crate::store::Store;
use crate::sum;
use crate::unindexed;
use std::path::Path;
use std::sync::Arc;

/// A session to be made.
#[derive(Debug, Clone, Default)]
pub struct NewSession {
    /// The caller's own name for it: the same label gives the same session.
    pub label: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// How a session is found inside the store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// Its key in the store.
    pub key: i64,
    /// Its id.
    pub id: String,
    /// The life of its log.
    pub epoch: String,
    /// The caller's own name for it.
    pub label: Option<String>,
    /// Its last event.
    pub seq: u64,
    /// Its tags.
    pub tags: Vec<String>,
    /// Whether its source said that nothing more comes.
    pub ended: bool,
    /// Whoever wrote it last, where several can.
    pub pen: i64,
}

/// Tags of one session.
const MAX_TAGS: usize = 32;

/// The next count of changes, as an expression within a statement. With PostgreSQL, where several
/// nodes write at the same time, it is the number of the transaction.
pub(crate) fn touched(db: &Db<'_>) -> String {
    if db.is_postgres() {
        "CAST(CAST(pg_current_xact_id() AS TEXT) AS BIGINT)".to_owned()
    } else {
        format!(
            "(SELECT max(coalesce({LAST_COUNT}, 0),
             coalesce((SELECT value FROM meta WHERE key = 'touched'), 0)) + 1)"
        )
    }
}

/// The count of the last change. It is that of the session which changed last, or of one that was
/// deleted since: so nothing more needs to be written for a change. With PostgreSQL it is one up to
/// which everything is seen; what has a later one may be seen too, and is told again then.
pub(crate) fn last_touched(db: &Db<'_>) -> Result<i64> {
    let last = if db.is_postgres() {
        "CAST(CAST(pg_snapshot_xmin(pg_current_snapshot()) AS TEXT) AS BIGINT)".to_owned()
    } else {
        touched(db)
    };
    match db.one(&format!("SELECT {last} - 1"), &[], |r| r.get(0)) {
        // As far as the index tells: what changed since is told again.
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            let sql = format!("SELECT coalesce(max(touched_era), 0) << {TOUCHED} FROM session");
            db.one(&sql, &[], |r| r.get(0))
        }
        last => last,
    }
}

impl Store {
    /// Makes a session; true when it is new. The same label gives the same session, and its tags grow.
    pub async fn create(&self, new: NewSession) -> Result<(Session, bool)> {
        self.create_beside(new, None).await
    }

    /// Makes a session in whose place another one is listed, if any, from the beginning.
    pub async fn create_beside(&self, new: NewSession, of: Option<i64>) -> Result<(Session, bool)> {
        let damages = Arc::clone(self.damages());
        self.write(256, move |db| {
            let known = || match &new.label {
                Some(label) => find_by_label(db, &damages, label),
                None => Ok(None),
            };
            let (key, made) = if let Some(known) = known()? {
                (known.key, false)
            } else if let Some(key) = insert(db, &new_id()?, new.label.as_deref(), now())? {
                (key, true)
            } else {
                // Another node was faster.
                (known()?.ok_or(Error::NotFound("session"))?.key, false)
            };
            if let Some(of) = of.filter(|_| made) {
                copies::set_copy(db, key, Some(of))?;
            }
            if let Some(label) = &new.label {
                db.later("DELETE FROM forgotten WHERE label = ?1", &params![label])?;
            }
            if !made && !new.tags.is_empty() {
                lock(db, "key", Value::Int(key))?;
            }
            if add_tags(db, key, &new.tags)? > 0 && !made {
                mark_touched(db, key)?;
            }
            let session = find_by_key(db, key)?.ok_or(Error::NotFound("session"))?;
            Ok((session, made))
        })
        .await
    }

    /// A session by its id.
    pub async fn session(&self, id: &str) -> Result<Session> {
        let (id, damages) = (id.to_owned(), Arc::clone(self.damages()));
        self.read(move |db| {
            let found = find_by_id(db, &damages, &id)?.ok_or(Error::NotFound("session"))?;
            let sql = "SELECT 1 FROM session WHERE left_out <> 0 AND key = ?1";
            if db.exists(sql, &params![found.key])? {
                return Err(Error::NotFound("session"));
            }
            Ok(found)
        })
        .await
    }

    /// A session by the caller's own name for it.
    pub async fn session_by_label(&self, label: &str) -> Result<Session> {
        let (label, damages) = (label.to_owned(), Arc::clone(self.damages()));
        self.read(move |db| find_by_label(db, &damages, &label)?.ok_or(Error::NotFound("session")))
            .await
    }

    /// A session as lists show it.
    pub async fn session_row(&self, id: &str) -> Result<SessionRow> {
        let (id, damages) = (id.to_owned(), Arc::clone(self.damages()));
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM session s WHERE s.id = ?1 AND s.left_out = 0");
            let found = db.optional(&sql, &params![id], read)?.filter(|row| row.id == id);
            if let Some(found) = found {
                return Ok(found);
            }
            let key = unindexed::key_of(db, &damages, "id", &id)?;
            let key = key.ok_or(Error::NotFound("session"))?;
            let sql =
                format!("SELECT {COLUMNS} FROM session s WHERE s.key = ?1 AND s.left_out = 0");
            db.optional(&sql, &params![key], read)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// Gives a session more tags, and takes some away.
    pub async fn tag(&self, id: &str, add: Vec<String>, remove: Vec<String>) -> Result<()> {
        let id = id.to_owned();
        self.write(256, move |db| {
            let session = find_to_change(db, &id)?;
            add_tags(db, session.key, &add)?;
            for tag in &remove {
                let sql = "DELETE FROM tag WHERE session = ?1 AND tag = ?2";
                db.later(sql, &params![session.key, tag])?;
                gone(db, Gone::Tag, tag)?;
            }
            mark_touched(db, session.key)
        })
        .await
    }

    /// Begins a session's log anew under the same id: what was in it is removed little by little,
    /// and whoever follows it is told to read it again.
    pub async fn begin_anew(&self, id: &str) -> Result<Session> {
        let id = id.to_owned();
        self.write(256, move |db| {
            let old = find_to_change(db, &id)?;
            let sql = "SELECT created, copy_of FROM session WHERE key = ?1";
            let (created, copy_of) =
                db.one(sql, &params![old.key], |r| Ok((r.get(0)?, r.get(1)?)))?;
            let names = names_on_disk(db, old.key)?;
            doom(db, old.key)?;
            for name in names {
                db.later("DELETE FROM forgotten WHERE label = ?1", &params![name])?;
            }
            let key = insert(db, &old.id, old.label.as_deref(), created)?;
            let key = key.ok_or(Error::NotFound("session"))?;
            add_tags(db, key, &old.tags)?;
            copies::follow(db, copy_of, old.key, key)?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// A session by the agent's own id of it; the one that changed last where several have it.
    pub async fn session_by_native(&self, native: &str) -> Result<Session> {
        let native = native.to_owned();
        self.read(move |db| {
            let sql = "SELECT key FROM session WHERE native = ?1 ORDER BY updated DESC LIMIT 1";
            let key = db.optional(sql, &params![native], |r| r.get(0))?;
            let key = key.ok_or(Error::NotFound("session"))?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// The labels of sessions that were deleted here though the agent's files are there.
    pub async fn forgotten(&self) -> Result<Vec<String>> {
        self.read(|db| db.all("SELECT label FROM forgotten", &[], |r| r.get(0))).await
    }

    /// Deletes a session. It is gone at once; its rows are removed little by little.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(64, move |db| {
            let session = find_to_change(db, &id)?;
            gone(db, Gone::Session, &id)?;
            copies::doom_all(db, session.key)
        })
        .await
    }
}

/// Makes the row of a session, unless there is one of this id or label.
fn insert(db: &Db<'_>, id: &str, label: Option<&str>, created: i64) -> Result<Option<i64>> {
    let touched = touched(db);
    let figures = figures::of(|column| match column {
        "created" | "updated" => "?4".to_owned(),
        "touched" => touched.clone(),
        _ => "0".to_owned(),
    });
    let sql = format!(
        "INSERT INTO session (id, epoch, label, created, updated, touched, info, updated_era, touched_era,
         facts_crc, name_crc, tally, figures)
         VALUES (?1, ?2, ?3, ?4, ?4, {touched}, ?5, ?6, {touched} >> {TOUCHED}, ?7, ?8, 0, {figures})
         ON CONFLICT DO NOTHING RETURNING key"
    );
    let (info, era, epoch) = (empty_info(), of_time(created), new_epoch()?);
    let none = Value::Null;
    let facts = sum::of(&params![info, none, none, none, none]);
    let names = name_sum(id, &epoch, label);
    let values = params![id, epoch, label, created, info, era, facts, names];
    let made = db.optional(&sql, &values, |r| r.get(0))?;
    if let Some(key) = made
        && !db.is_postgres()
    {
        durable::wrote(key, Some(0));
    }
    Ok(made)
}

/// The checksum of what a session is called.
pub(crate) fn name_sum(id: &str, epoch: &str, label: Option<&str>) -> i64 {
    sum::of(&params![id, epoch, label])
}

pub(crate) fn doom(db: &Db<'_>, key: i64) -> Result<()> {
    if !db.is_postgres() {
        // The session may be the one that was touched last: its count is not given again.
        let count: i64 = db.one(&format!("SELECT {}", touched(db)), &[], |r| r.get(0))?;
        meta::put(db, "touched", &Value::Int(count))?;
    }
    let at = now();
    for name in names_on_disk(db, key)? {
        db.later(
            "INSERT INTO forgotten (label, at, crc) VALUES (?1, ?2, ?3)
             ON CONFLICT (label) DO UPDATE SET at = excluded.at, crc = excluded.crc",
            &params![name, at, sum::of(&params![name, at])],
        )?;
    }
    if !db.is_postgres() {
        durable::wrote(key, None);
    }
    db.later("DELETE FROM session WHERE key = ?1", &params![key])?;
    db.later("DELETE FROM tag WHERE session = ?1", &params![key])?;
    let doomed = "INSERT INTO doomed (session, crc) VALUES (?1, ?2) ON CONFLICT DO NOTHING";
    db.later(doomed, &params![key, beside::doomed_sum(key)])
}

/// What a session is called that is read from files: its label, and the names of its own files.
fn names_on_disk(db: &Db<'_>, key: i64) -> Result<Vec<String>> {
    let mut names = Vec::new();
    let sql = "SELECT s.label, f.path FROM session s JOIN source f ON f.session = s.key
         WHERE s.key = ?1 AND f.path IS NOT NULL AND f.parent IS NULL";
    for (label, path) in db.all(sql, &params![key], |r| Ok((r.get(0)?, r.get::<String>(1)?)))? {
        let file = Path::new(&path).file_stem().map(|n| n.to_string_lossy().into_owned());
        names.extend::<[Option<String>; 2]>([label, file]);
    }
    let mut names: Vec<String> = names.into_iter().flatten().collect();
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Tells whoever follows the list that a session has changed.
pub(crate) fn mark_touched(db: &Db<'_>, key: i64) -> Result<()> {
    let touched = touched(db);
    let era = if db.is_postgres() { told(None, &touched) } else { String::new() };
    let figures = figures::changed(&[("touched", Change::To(&touched))]);
    let sql =
        format!("UPDATE session SET figures = {figures}, touched = {touched}{era} WHERE key = ?1");
    db.later(&sql, &params![key])
}

/// Returns how many of them are new.
fn add_tags(db: &Db<'_>, key: i64, tags: &[String]) -> Result<usize> {
    let mut added = 0;
    for tag in tags {
        let sql = "INSERT INTO tag (session, tag, crc) VALUES (?1, ?2, ?3) ON CONFLICT DO NOTHING";
        added += db.execute(sql, &params![key, tag, sum::of(&params![key, tag])])?;
    }
    if added > 0 {
        let sql = "SELECT count(*) FROM tag WHERE session = ?1";
        if db.one(sql, &params![key], |r| r.get::<usize>(0))? > MAX_TAGS {
            return Err(Error::Invalid(format!("a session has at most {MAX_TAGS} tags")));
        }
    }
    Ok(added)
}

/// Lets no other node change a session until this transaction ends; false when there is none.
fn lock(db: &Db<'_>, column: &str, value: Value<'_>) -> Result<bool> {
    let sql = format!("SELECT 1 FROM session WHERE {column} = ?1 FOR UPDATE");
    Ok(!db.is_postgres() || db.exists(&sql, &[value])?)
}

/// A session that is to be changed.
fn find_to_change(db: &Db<'_>, id: &str) -> Result<Session> {
    // One that began anew while it was waited for has another row.
    let locked = lock(db, "id", Value::Text(id))? || lock(db, "id", Value::Text(id))?;
    // What is read now is as the other node left it.
    let found = if locked { find(db, "id", Value::Text(id))? } else { None };
    found.ok_or(Error::NotFound("session"))
}

/// A session by its id, also if the index does not lead to it.
fn find_by_id(db: &Db<'_>, damages: &Damages, id: &str) -> Result<Option<Session>> {
    let found = find(db, "id", Value::Text(id))?.filter(|session| session.id == id);
    if found.is_some() {
        return Ok(found);
    }
    match unindexed::key_of(db, damages, "id", id)? {
        Some(key) => find_by_key(db, key),
        None => Ok(None),
    }
}

/// A session by its label, also if the index does not lead to it, or leads to another one.
fn find_by_label(db: &Db<'_>, damages: &Damages, label: &str) -> Result<Option<Session>> {
    let found = match find(db, "label", Value::Text(label)) {
        Ok(Some(session)) if session.label.as_deref() == Some(label) => return Ok(Some(session)),
        Err(error) if !matches!(error, Error::Damaged(_)) => return Err(error),
        found => found,
    };
    match unindexed::key_of(db, damages, "label", label)? {
        Some(key) => find_by_key(db, key),
        // What the index leads to is not what it says.
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
    db.optional(&sql, &[value], |r| {
        if !sum::row_holds(r, &[1, 2, 3], 8)? {
            damage::found(Damage::new(r.get(0)?, damage::Part::Session, 0, 0));
            return Err(Error::Damaged("the row of a session is not as it was written".to_owned()));
        }
        Ok(Session {
            key: r.get(0)?,
            id: r.get(1)?,
            epoch: r.get(2)?,
            label: r.get(3)?,
            seq: r.get(4)?,
            tags: lines(r.get::<Option<String>>(5)?.as_deref()),
            ended: r.get(6)?,
            pen: r.get(7)?,
        })
    })
}
