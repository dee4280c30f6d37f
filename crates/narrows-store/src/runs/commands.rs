//! Commands to agents that run on other nodes, and their results. A command is executed at most
//! once: the executing node claims it first.

use super::lease::clock;
use crate::db::{Row, params};
use crate::error::Result;
use crate::ids::new_id;
use crate::store::Store;
use std::time::Duration;

/// The status of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Asked {
    /// No node has claimed it.
    Open,
    /// A node is executing it.
    Taken,
    /// It was executed or rejected, with this result.
    Answered(String),
    /// It does not exist any more.
    Gone,
}

/// The response column of a claimed, unfinished command.
const CLAIMED: &str = "";

/// Reads the status from a row.
fn read_status(row: &Row<'_>) -> Result<Asked> {
    Ok(match row.get::<Option<String>>(0)? {
        None => Asked::Open,
        Some(answer) if answer == CLAIMED => Asked::Taken,
        Some(answer) => Asked::Answered(answer),
    })
}

impl Store {
    /// Enqueues a command for the node that runs the session's agent; returns its id.
    pub async fn ask(&self, session: i64, body: String) -> Result<String> {
        let id = new_id()?;
        self.write(body.len() + 64, move |db| {
            let sql = format!(
                "INSERT INTO command (id, session, body, created) VALUES (?1, ?2, ?3, {})",
                clock(db)
            );
            db.execute_pipelined(&sql, &params![id, session, body])?;
            Ok(id)
        })
        .await
    }

    /// The status of a command.
    pub async fn asked(&self, id: String) -> Result<Asked> {
        self.read(move |db| {
            let sql = "SELECT answer FROM command WHERE id = ?1";
            Ok(db.query_opt(sql, &params![id], read_status)?.unwrap_or(Asked::Gone))
        })
        .await
    }

    /// Cancels a command, unless a node is executing it; returns its status. A pending command will
    /// not be executed.
    pub async fn withdraw(&self, id: String) -> Result<Asked> {
        self.write(64, move |db| {
            let sql = "DELETE FROM command WHERE id = ?1 AND (answer IS NULL OR answer <> ?2)
                 RETURNING answer";
            if let Some(was) = db.query_opt(sql, &params![id, CLAIMED], read_status)? {
                return Ok(was);
            }
            let there = "SELECT 1 FROM command WHERE id = ?1";
            Ok(if db.exists(there, &params![id])? { Asked::Taken } else { Asked::Gone })
        })
        .await
    }

    /// The pending commands of a session as ids and bodies, oldest first. Commands older than `age`
    /// have timed out and are skipped.
    pub async fn commands(&self, session: i64, age: Duration) -> Result<Vec<(String, String)>> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2);
        self.read(move |db| {
            let sql = format!(
                "SELECT id, body FROM command WHERE session = ?1 AND answer IS NULL
                 AND created > {} - ?2 ORDER BY created, id",
                clock(db)
            );
            db.query_all(&sql, &params![session, age], |r| Ok((r.get(0)?, r.get(1)?)))
        })
        .await
    }

    /// Claims a command for the node that holds the session with this fencing token, and erases its
    /// body. False if it is claimed, cancelled or timed out. Fails if another node holds the
    /// session.
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
            Ok(db.execute(&sql, &params![id, CLAIMED, age])? > 0)
        })
        .await
    }

    /// Stores the result of a claimed command.
    pub async fn answer_command(&self, id: String, answer: String) -> Result<()> {
        self.write(answer.len() + 64, move |db| {
            db.execute_pipelined(
                "UPDATE command SET answer = ?2 WHERE id = ?1 AND answer = ?3",
                &params![id, answer, CLAIMED],
            )
        })
        .await
    }

    /// Completes all commands of a session whose node is gone, with separate results for pending
    /// and claimed ones.
    pub async fn answer_commands(
        &self,
        session: i64,
        fence: u64,
        open: String,
        taken: String,
    ) -> Result<()> {
        self.write(128, move |db| {
            super::lease::guard(db, session, Some(fence))?;
            db.execute_pipelined(
                "UPDATE command SET answer = CASE WHEN answer IS NULL THEN ?2 ELSE ?3 END, body = ''
                 WHERE session = ?1 AND (answer IS NULL OR answer = ?4)",
                &params![session, open, taken, CLAIMED],
            )
        })
        .await
    }

    /// The sessions with pending commands.
    pub async fn asked_sessions(&self) -> Result<Vec<i64>> {
        self.read(|db| {
            let sql = "SELECT DISTINCT session FROM command WHERE answer IS NULL";
            db.query_all(sql, &[], |r| r.get(0))
        })
        .await
    }

    /// Deletes commands older than `age`, for which no caller waits. Returns their number.
    pub async fn forget_commands(&self, age: Duration) -> Result<usize> {
        let age = i64::try_from(age.as_millis()).unwrap_or(i64::MAX / 2);
        self.write(64, move |db| {
            let sql = format!("DELETE FROM command WHERE created < {} - ?1", clock(db));
            db.execute(&sql, &params![age])
        })
        .await
    }
}
