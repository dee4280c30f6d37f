//! What is asked of an agent that another node runs, and what came of it. Each is done once at most:
//! the node that is to do it takes it first.

use super::lease::clock;
use crate::db::{Row, params};
use crate::error::Result;
use crate::ids::new_id;
use crate::store::Store;
use std::time::Duration;

/// How far something is that was asked of another node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// Nobody has looked at it.
    Open,
    /// A node is at it.
    Taken,
    /// It is done, or refused: what came of it.
    Answered(String),
    /// It is there no more.
    Gone,
}

/// The answer of what was taken and is not done.
const TAKEN: &str = "";

/// What a row tells.
fn asked(row: &Row<'_>) -> Result<Asked> {
    Ok(match row.get::<Option<String>>(0)? {
        None => Asked::Open,
        Some(answer) if answer == TAKEN => Asked::Taken,
        Some(answer) => Asked::Answered(answer),
    })
}

impl Store {
    /// Asks something of the node that runs a session's agent; returns its id.
    pub async fn ask(&self, session: i64, body: String) -> Result<String> {
        let id = new_id()?;
        self.write(body.len() + 64, move |db| {
            let sql = format!(
                "INSERT INTO command (id, session, body, created) VALUES (?1, ?2, ?3, {})",
                clock(db)
            );
            db.later(&sql, &params![id, session, body])?;
            Ok(id)
        })
        .await
    }

    /// How far it is.
    pub async fn asked(&self, id: String) -> Result<Asked> {
        self.read(move |db| {
            let sql = "SELECT answer FROM command WHERE id = ?1";
            Ok(db.optional(sql, &params![id], asked)?.unwrap_or(Asked::Gone))
        })
        .await
    }

    /// Removes it, unless a node is at it; returns how far it was. What was open is not done any more.
    pub async fn withdraw(&self, id: String) -> Result<Asked> {
        self.write(64, move |db| {
            let sql = "DELETE FROM command WHERE id = ?1 AND (answer IS NULL OR answer <> ?2)
                 RETURNING answer";
            if let Some(was) = db.optional(sql, &params![id, TAKEN], asked)? {
                return Ok(was);
            }
            let there = "SELECT 1 FROM command WHERE id = ?1";
            Ok(if db.exists(there, &params![id])? { Asked::Taken } else { Asked::Gone })
        })
        .await
    }

    /// What is asked of a session's agent, in order: ids and what they ask. What is older than `age`
    /// is not waited for any more, and not done.
    pub async fn commands(&self, session: i64, age: Duration) -> Result<Vec<(String, String)>> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2);
        self.read(move |db| {
            let sql = format!(
                "SELECT id, body FROM command WHERE session = ?1 AND answer IS NULL
                 AND created > {} - ?2 ORDER BY created, id",
                clock(db)
            );
            db.all(&sql, &params![session, age], |r| Ok((r.get(0)?, r.get(1)?)))
        })
        .await
    }

    /// Takes something that is asked, for the node that holds the session by this number. False when
    /// it is taken, withdrawn or too old, or when another node holds the session now. Its words are
    /// not kept beyond that.
    pub async fn take_command(
        &self,
        id: String,
        session: i64,
        fence: u64,
        age: Duration,
    ) -> Result<bool> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2);
        self.write(64, move |db| {
            super::lease::guard(db, session, Some(fence))?;
            let sql = format!(
                "UPDATE command SET answer = ?2, body = '' WHERE id = ?1 AND answer IS NULL
                 AND created > {} - ?3",
                clock(db)
            );
            Ok(db.execute(&sql, &params![id, TAKEN, age])? > 0)
        })
        .await
    }

    /// Tells what came of something that was taken.
    pub async fn answer_command(&self, id: String, answer: String) -> Result<()> {
        self.write(answer.len() + 64, move |db| {
            db.later(
                "UPDATE command SET answer = ?2 WHERE id = ?1 AND answer = ?3",
                &params![id, answer, TAKEN],
            )
        })
        .await
    }

    /// Answers everything that is asked of a session whose node is gone: what nobody has looked at,
    /// and what that node was at.
    pub async fn answer_commands(
        &self,
        session: i64,
        fence: u64,
        open: String,
        taken: String,
    ) -> Result<()> {
        self.write(128, move |db| {
            super::lease::guard(db, session, Some(fence))?;
            db.later(
                "UPDATE command SET answer = CASE WHEN answer IS NULL THEN ?2 ELSE ?3 END, body = ''
                 WHERE session = ?1 AND (answer IS NULL OR answer = ?4)",
                &params![session, open, taken, TAKEN],
            )
        })
        .await
    }

    /// The sessions of whose agents something is asked.
    pub async fn asked_sessions(&self) -> Result<Vec<i64>> {
        self.read(|db| {
            let sql = "SELECT DISTINCT session FROM command WHERE answer IS NULL";
            db.all(sql, &[], |r| r.get(0))
        })
        .await
    }

    /// Forgets what is older than `age`: nobody waits for it. Returns how many there were.
    pub async fn forget_commands(&self, age: Duration) -> Result<usize> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2);
        self.write(64, move |db| {
            let sql = format!("DELETE FROM command WHERE created < {} - ?1", clock(db));
            db.execute(&sql, &params![age])
        })
        .await
    }
}
