//! Creating, finding, labelling and deleting sessions.

use super::Store;
use crate::cluster::changes::{Deleted, record_deletion};
use crate::damage::unindexed_lookup::find_session_key;
use crate::db::{Value, params};
use crate::error::{Error, Result};
use crate::ids::{new_id, now};
use crate::sessions::copies;
use crate::sessions::row::{COLUMNS, SessionRow, read};
use crate::sessions::{
    NewSession, Session, add_tags, bump_revision, file_names, find_by_id, find_by_key,
    find_by_label, find_locked, insert, lock, schedule_delete,
};
use std::sync::Arc;

impl Store {
    /// Creates a session; true if it is new. An existing session with the same label gets the tags.
    pub async fn create(&self, new: NewSession) -> Result<(Session, bool)> {
        self.create_beside(new, None).await
    }

    /// Creates a session; a new one is listed as a copy of `of`, if given.
    pub async fn create_beside(&self, new: NewSession, of: Option<i64>) -> Result<(Session, bool)> {
        let damages = Arc::clone(self.damage_registry());
        self.write(256, move |db| {
            let existing = || match &new.label {
                Some(label) => find_by_label(db, &damages, label),
                None => Ok(None),
            };
            let (key, is_new) = if let Some(existing) = existing()? {
                (existing.key, false)
            } else if let Some(key) = insert(db, &new_id()?, new.label.as_deref(), now())? {
                (key, true)
            } else {
                // Another node created it first.
                (existing()?.ok_or(Error::NotFound("session"))?.key, false)
            };
            if let Some(of) = of.filter(|_| is_new) {
                copies::set_copy(db, key, Some(of))?;
            }
            if let Some(label) = &new.label {
                db.execute_pipelined("DELETE FROM forgotten WHERE label = ?1", &params![label])?;
            }
            if !is_new && !new.tags.is_empty() {
                lock(db, "key", Value::Int(key))?;
            }
            if add_tags(db, key, &new.tags)? > 0 && !is_new {
                bump_revision(db, key)?;
            }
            let session = find_by_key(db, key)?.ok_or(Error::NotFound("session"))?;
            Ok((session, is_new))
        })
        .await
    }

    /// Finds a session by id.
    pub async fn session(&self, id: &str) -> Result<Session> {
        let (id, damages) = (id.to_owned(), Arc::clone(self.damage_registry()));
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

    /// Finds a session by label.
    pub async fn session_by_label(&self, label: &str) -> Result<Session> {
        let (label, damages) = (label.to_owned(), Arc::clone(self.damage_registry()));
        self.read(move |db| find_by_label(db, &damages, &label)?.ok_or(Error::NotFound("session")))
            .await
    }

    /// Reads a session as lists show it.
    pub async fn session_row(&self, id: &str) -> Result<SessionRow> {
        let (id, damages) = (id.to_owned(), Arc::clone(self.damage_registry()));
        self.read(move |db| {
            let sql = format!("SELECT {COLUMNS} FROM session s WHERE s.id = ?1 AND s.left_out = 0");
            let found = db.query_opt(&sql, &params![id], read)?.filter(|row| row.id == id);
            if let Some(found) = found {
                return Ok(found);
            }
            let key = find_session_key(db, &damages, "id", &id)?;
            let key = key.ok_or(Error::NotFound("session"))?;
            let sql =
                format!("SELECT {COLUMNS} FROM session s WHERE s.key = ?1 AND s.left_out = 0");
            db.query_opt(&sql, &params![key], read)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// Adds and removes tags.
    pub async fn tag(&self, id: &str, add: Vec<String>, remove: Vec<String>) -> Result<()> {
        let id = id.to_owned();
        self.write(256, move |db| {
            let session = find_locked(db, &id)?;
            add_tags(db, session.key, &add)?;
            for tag in &remove {
                let sql = "DELETE FROM tag WHERE session = ?1 AND tag = ?2";
                db.execute_pipelined(sql, &params![session.key, tag])?;
                record_deletion(db, Deleted::Tag, tag)?;
            }
            bump_revision(db, session.key)
        })
        .await
    }

    /// Starts a new log epoch under the same id: the old log is deleted in slices, and clients
    /// reload.
    pub async fn begin_anew(&self, id: &str) -> Result<Session> {
        let id = id.to_owned();
        self.write(256, move |db| {
            let old = find_locked(db, &id)?;
            let sql = "SELECT created, copy_of FROM session WHERE key = ?1";
            let (created, copy_of) =
                db.query_one(sql, &params![old.key], |r| Ok((r.get(0)?, r.get(1)?)))?;
            let names = file_names(db, old.key)?;
            schedule_delete(db, old.key)?;
            for name in names {
                db.execute_pipelined("DELETE FROM forgotten WHERE label = ?1", &params![name])?;
            }
            let key = insert(db, &old.id, old.label.as_deref(), created)?;
            let key = key.ok_or(Error::NotFound("session"))?;
            add_tags(db, key, &old.tags)?;
            copies::move_copies(db, copy_of, old.key, key)?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// Finds a session by the agent's id; the most recently updated of several.
    pub async fn session_by_native(&self, native: &str) -> Result<Session> {
        let native = native.to_owned();
        self.read(move |db| {
            let sql = "SELECT key FROM session WHERE native = ?1 ORDER BY updated DESC LIMIT 1";
            let key = db.query_opt(sql, &params![native], |r| r.get(0))?;
            let key = key.ok_or(Error::NotFound("session"))?;
            find_by_key(db, key)?.ok_or(Error::NotFound("session"))
        })
        .await
    }

    /// Labels of sessions that were deleted while the agent's files still exist.
    pub async fn forgotten(&self) -> Result<Vec<String>> {
        self.read(|db| db.query_all("SELECT label FROM forgotten", &[], |r| r.get(0))).await
    }

    /// Deletes a session. It disappears at once; its rows are deleted in slices.
    pub async fn delete(&self, id: &str) -> Result<()> {
        let id = id.to_owned();
        self.write(64, move |db| {
            let session = find_locked(db, &id)?;
            record_deletion(db, Deleted::Session, &id)?;
            copies::schedule_delete_all(db, session.key)
        })
        .await
    }
}
