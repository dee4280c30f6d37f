//! Sessions: making, finding, listing, labelling, deleting.

use crate::error::{Error, Result};
use crate::log::gone;
use crate::names::{new_epoch, new_id, now};
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use serde_json::value::RawValue;
use std::path::Path;

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
}

/// A session as lists show it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// Its id.
    pub id: String,
    /// The caller's own name for it.
    pub label: Option<String>,
    /// Words to find it by.
    pub tags: Vec<String>,
    /// Follow its log from here.
    pub cursor: String,
    /// Events so far.
    pub events: u64,
    /// Items so far.
    pub items: u64,
    /// Bytes of its log.
    pub bytes: u64,
    /// Milliseconds since 1970.
    pub created_at: i64,
    /// Milliseconds since 1970.
    pub updated_at: i64,
    /// Whether its source said that nothing more comes.
    pub ended: bool,
    /// Agent, model, title, status, tokens.
    pub info: Box<RawValue>,
    /// The last name of the folder in which the agent works.
    pub project: Option<String>,
    /// The agent's own id of the session.
    pub native_id: Option<String>,
    /// Whether the agent's own file is still there, where the session was read from one.
    pub file_exists: Option<bool>,
    /// How the first prompt begins, on one line.
    pub prompt: Option<String>,
    /// Calls of tools that are over.
    pub calls: u64,
    /// Those of them that failed.
    pub failed: u64,
    #[serde(skip)]
    pub(crate) key: i64,
}

/// Which sessions somebody may see: all, or only some by id or tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sight {
    /// These sessions.
    pub sessions: Option<Vec<String>>,
    /// And those that have one of these tags.
    pub tags: Option<Vec<String>>,
}

impl Sight {
    /// Whether everything is seen.
    pub fn is_all(&self) -> bool {
        self.sessions.is_none() && self.tags.is_none()
    }

    /// Whether a session is seen.
    pub fn sees(&self, id: &str, tags: &[String]) -> bool {
        let named = self.sessions.as_ref().is_some_and(|s| s.iter().any(|s| s == id));
        let tagged = self.tags.as_ref().is_some_and(|t| t.iter().any(|t| tags.contains(t)));
        self.is_all() || named || tagged
    }
}

/// Tags of one session.
const MAX_TAGS: usize = 32;

pub(crate) const COLUMNS: &str = "s.touched, s.id, s.label, s.epoch, s.seq, s.items, s.bytes, s.created, s.updated, \
     s.ended, s.info, (SELECT group_concat(tag, char(10)) FROM tag WHERE session = s.key), s.title, \
     s.project, s.native, (SELECT NOT min(gone) FROM source WHERE session = s.key \
     AND path IS NOT NULL AND parent IS NULL), s.key, s.prompt, s.calls, s.failed";

/// The next count of changes.
pub(crate) fn touch(db: &Connection) -> Result<i64> {
    Ok(last_touched(db)? + 1)
}

/// The count of the last change. It is that of the session which changed last, or of one that was
/// deleted since: so nothing more needs to be written for a change.
pub(crate) fn last_touched(db: &Connection) -> Result<i64> {
    let mut last = db.prepare_cached(
        "SELECT max(coalesce((SELECT max(touched) FROM session), 0),
                    coalesce((SELECT value FROM meta WHERE key = 'touched'), 0))",
    )?;
    Ok(last.query_row([], |r| r.get(0))?)
}

impl Store {
    /// Makes a session; true when it is new. The same label gives the same session, and its tags grow.
    pub async fn create(&self, new: NewSession) -> Result<(Session, bool)> {
        self.write(256, move |db| {
            let find = |db: &Connection| match &new.label {
                Some(label) => find(db, "label", label),
                None => Ok(None),
            };
            if let Some(label) = &new.label {
                db.prepare_cached("DELETE FROM forgotten WHERE label = ?1")?.execute([label])?;
            }
            let (key, made) = if let Some(known) = find(db)? {
                (known.key, false)
            } else {
                let at = now();
                db.execute(
                    "INSERT INTO session (id, epoch, label, created, updated, touched, info)
                         VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
                    params![new_id()?, new_epoch()?, new.label, at, touch(db)?, empty_info()],
                )?;
                (db.last_insert_rowid(), true)
            };
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
        let id = id.to_owned();
        self.read(move |db| find(db, "id", &id)?.ok_or(Error::NotFound("session"))).await
    }

    /// A session by the caller's own name for it.
    pub async fn session_by_label(&self, label: &str) -> Result<Session> {
        let label = label.to_owned();
        self.read(move |db| find(db, "label", &label)?.ok_or(Error::NotFound("session"))).await
    }

    /// A session as lists show it.
    pub async fn session_row(&self, id: &str) -> Result<SessionRow> {
        let id = id.to_owned();
        self.read(move |db| {
            let mut query =
                db.prepare_cached(&format!("SELECT {COLUMNS} FROM session s WHERE s.id = ?1"))?;
            query.query_row([id], read).map_err(gone)
        })
        .await
    }

    /// Gives a session more tags, and takes some away.
    pub async fn tag(&self, id: &str, add: Vec<String>, remove: Vec<String>) -> Result<()> {
        let id = id.to_owned();
        self.write(256, move |db| {
            let session = find(db, "id", &id)?.ok_or(Error::NotFound("session"))?;
            add_tags(db, session.key, &add)?;
            for tag in &remove {
                db.execute(
                    "DELETE FROM tag WHERE session = ?1 AND tag = ?2",
                    params![session.key, tag],
                )?;
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
            let old = find(db, "id", &id)?.ok_or(Error::NotFound("session"))?;
            let created: i64 =
                db.query_row("SELECT created FROM session WHERE key = ?1", [old.key], |r| {
                    r.get(0)
                })?;
            let names = names_on_disk(db, old.key)?;
            doom(db, old.key)?;
            for name in names {
                db.execute("DELETE FROM forgotten WHERE label = ?1", [name])?;
            }
            db.execute(
                "INSERT INTO session (id, epoch, label, created, updated, touched, info)
                 VALUES (?1, ?2, ?3, ?4, ?4, ?5, ?6)",
                params![old.id, new_epoch()?, old.label, created, touch(db)?, empty_info()],
            )?;
            let key = db.last_insert_rowid();
            add_tags(db, key, &old.tags)?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// A session by the agent's own id of it; the one that changed last where several have it.
    pub async fn session_by_native(&self, native: &str) -> Result<Session> {
        let native = native.to_owned();
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT key FROM session WHERE native = ?1 ORDER BY updated DESC LIMIT 1",
            )?;
            let key: i64 = query.query_row([native], |r| r.get(0)).map_err(gone)?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// The labels of sessions that were deleted here though the agent's files are there.
    pub async fn forgotten(&self) -> Result<Vec<String>> {
        self.read(|db| {
            let mut query = db.prepare_cached("SELECT label FROM forgotten")?;
            let labels = query.query_map([], |r| r.get(0))?;
            Ok(labels.collect::<rusqlite::Result<_>>()?)
        })
        .await
    }

    /// Deletes a session. It is gone at once; its rows are removed little by little.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(64, move |db| {
            let session = find(db, "id", &id)?.ok_or(Error::NotFound("session"))?;
            doom(db, session.key)
        })
        .await
    }
}

/// The header of a session of which nothing is known.
fn empty_info() -> String {
    let mut text = Vec::new();
    let printed = narrows::json::print(&mut text, &narrows::session::SessionInfo::default());
    printed.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| "{}".to_owned())
}

pub(crate) fn doom(db: &Connection, key: i64) -> Result<()> {
    // The session may be the one that was touched last: its count is not given again.
    let touched = touch(db)?;
    db.execute("INSERT OR REPLACE INTO meta VALUES ('touched', ?1)", [touched])?;
    for name in names_on_disk(db, key)? {
        db.execute("INSERT OR REPLACE INTO forgotten VALUES (?1, ?2)", params![name, now()])?;
    }
    db.execute("DELETE FROM session WHERE key = ?1", [key])?;
    db.execute("DELETE FROM tag WHERE session = ?1", [key])?;
    db.execute("INSERT OR IGNORE INTO doomed VALUES (?1)", [key])?;
    Ok(())
}

/// What a session is called that is read from files: its label, and the names of its own files.
fn names_on_disk(db: &Connection, key: i64) -> Result<Vec<String>> {
    let mut query = db.prepare_cached(
        "SELECT s.label, f.path FROM session s JOIN source f ON f.session = s.key
         WHERE s.key = ?1 AND f.path IS NOT NULL AND f.parent IS NULL",
    )?;
    let mut rows = query.query([key])?;
    let mut names = Vec::new();
    while let Some(row) = rows.next()? {
        let (label, path): (Option<String>, String) = (row.get(0)?, row.get(1)?);
        let file = Path::new(&path).file_stem().map(|n| n.to_string_lossy().into_owned());
        names.extend(label.into_iter().chain(file));
    }
    names.sort_unstable();
    names.dedup();
    Ok(names)
}

/// Tells whoever follows the list that a session has changed.
pub(crate) fn mark_touched(db: &Connection, key: i64) -> Result<()> {
    let touched = touch(db)?;
    db.execute("UPDATE session SET touched = ?2 WHERE key = ?1", params![key, touched])?;
    Ok(())
}

/// Returns how many of them are new.
fn add_tags(db: &Connection, key: i64, tags: &[String]) -> Result<usize> {
    let mut add = db.prepare_cached("INSERT OR IGNORE INTO tag VALUES (?1, ?2)")?;
    let mut added = 0;
    for tag in tags {
        added += add.execute(params![key, tag])?;
    }
    let all: usize =
        db.query_row("SELECT count(*) FROM tag WHERE session = ?1", [key], |r| r.get(0))?;
    if all > MAX_TAGS {
        return Err(Error::Invalid(format!("a session has at most {MAX_TAGS} tags")));
    }
    Ok(added)
}

fn find_by_key(db: &Connection, key: i64) -> Result<Option<Session>> {
    find(db, "key", &key)
}

fn find(db: &Connection, column: &str, value: &dyn rusqlite::ToSql) -> Result<Option<Session>> {
    let mut query = db.prepare_cached(&format!(
        "SELECT s.key, s.id, s.epoch, s.label, s.seq,
         (SELECT group_concat(tag, char(10)) FROM tag WHERE session = s.key), s.ended
         FROM session s WHERE s.{column} = ?1"
    ))?;
    let found = query.query_row([value], |r| {
        Ok(Session {
            key: r.get(0)?,
            id: r.get(1)?,
            epoch: r.get(2)?,
            label: r.get(3)?,
            seq: r.get(4)?,
            tags: lines(r.get::<_, Option<String>>(5)?.as_deref()),
            ended: r.get(6)?,
        })
    });
    Ok(found.optional()?)
}

fn lines(text: Option<&str>) -> Vec<String> {
    let mut lines: Vec<String> =
        text.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    lines.sort_unstable();
    lines
}

pub(crate) fn read(r: &Row<'_>) -> rusqlite::Result<SessionRow> {
    let (epoch, seq): (String, u64) = (r.get(3)?, r.get(4)?);
    let info: String = r.get(10)?;
    Ok(SessionRow {
        id: r.get(1)?,
        label: r.get(2)?,
        cursor: format!("{epoch}-{seq}"),
        events: seq,
        items: r.get(5)?,
        bytes: r.get(6)?,
        created_at: r.get(7)?,
        updated_at: r.get(8)?,
        ended: r.get(9)?,
        info: RawValue::from_string(info).unwrap_or_default(),
        tags: lines(r.get::<_, Option<String>>(11)?.as_deref()),
        project: r.get(13)?,
        native_id: r.get(14)?,
        file_exists: r.get(15)?,
        key: r.get(16)?,
        prompt: r.get(17)?,
        calls: r.get(18)?,
        failed: r.get(19)?,
    })
}
