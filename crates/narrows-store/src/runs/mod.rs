//! Runs: sessions whose agents narrows starts, and the queues of messages to those agents.
//!
//! `lease.rs` decides which node runs an agent, `commands.rs` forwards requests to that node.

mod commands;
mod lease;

pub use commands::Asked;
pub use lease::{Holding, Taken};

use crate::checksum;
use crate::db::{Db, Param, Row, Value, params};
use crate::error::{Error, Result};
use crate::ids::now;
use crate::sessions::{Session, find_by_key};
use crate::store::Store;
use sha2::{Digest, Sha256};

/// The configuration of a run. Its directories are paths of this machine and are never served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRow {
    /// The key of the session.
    pub session: i64,
    /// The name of the agent in the configuration.
    pub agent: String,
    /// The working directory.
    pub cwd: String,
    /// The agent's own id of the session.
    pub native: Option<String>,
    /// The requested mode.
    pub mode: Option<String>,
    /// The requested model.
    pub model: Option<String>,
    /// The number of processes started so far.
    pub runs: u32,
    /// Additional directories in which the agent may work.
    pub directories: Vec<String>,
}

/// The state of a queued message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// Waiting for earlier messages.
    Queued,
    /// The agent is processing it.
    Running,
    /// Its turn has ended.
    Done,
    /// Withdrawn, or its turn never started.
    Dropped,
}

impl MessageState {
    /// The name of the state.
    pub fn name(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Running => "running",
            MessageState::Done => "done",
            MessageState::Dropped => "dropped",
        }
    }

    fn from_name(name: &str) -> MessageState {
        match name {
            "queued" => MessageState::Queued,
            "running" => MessageState::Running,
            "done" => MessageState::Done,
            _ => MessageState::Dropped,
        }
    }
}

/// A message to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number in the session, from 1.
    pub number: u64,
    /// The sender's idempotency key.
    pub key: Option<String>,
    /// The message as JSON; empty once its turn has started.
    pub body: String,
    /// The state.
    pub state: MessageState,
    /// The last event before its turn.
    pub after: Option<u64>,
    /// The event that ended its turn.
    pub until: Option<u64>,
}

/// The columns of a [`RunRow`].
const RUN_COLUMNS: &str = "session, agent, cwd, native, mode, model, runs, directories";

fn run_row(row: &Row<'_>) -> Result<RunRow> {
    Ok(RunRow {
        session: row.get(0)?,
        agent: row.get(1)?,
        cwd: row.get(2)?,
        native: row.get(3)?,
        mode: row.get(4)?,
        model: row.get(5)?,
        runs: row.get(6)?,
        directories: row
            .get::<Option<String>>(7)?
            .and_then(|list| serde_json::from_str(&list).ok())
            .unwrap_or_default(),
    })
}

const MESSAGE_COLUMNS: &str = "number, key, body, state, after, until";

fn message(row: &Row<'_>) -> Result<MessageRow> {
    Ok(MessageRow {
        number: row.get(0)?,
        key: row.get(1)?,
        body: row.get(2)?,
        state: MessageState::from_name(&row.get::<String>(3)?),
        after: row.get(4)?,
        until: row.get(5)?,
    })
}

/// The checksum of a message after an update; `None` if its row is damaged.
fn updated_checksum(
    db: &Db<'_>,
    (session, number): (i64, u64),
    state: MessageState,
    (after, until): (Option<u64>, Option<u64>),
) -> Result<Option<i64>> {
    let sql = "SELECT session, number, key, digest, body, state, after, until, created, crc
         FROM message WHERE session = ?1 AND number = ?2 /*pg FOR UPDATE*/";
    let read = |row: &Row<'_>| {
        let is_intact = checksum::row_matches(row, &[0, 1, 2, 3, 4, 5, 6, 7, 8], 9)?;
        let mut values = (0..9).map(|at| row.value(at)).collect::<Result<Vec<Value<'_>>>>()?;
        if state != MessageState::Queued {
            values[4] = Value::Text("");
        }
        values[5] = Value::Text(state.name());
        for (at, value) in [(6, after.value()), (7, until.value())] {
            if value != Value::Null {
                values[at] = value;
            }
        }
        Ok(is_intact.then(|| checksum::of_values(&values)))
    };
    Ok(db.query_opt(sql, &params![session, number], read)?.flatten())
}

fn message_by_key(db: &Db<'_>, session: i64, key: &str) -> Result<Option<MessageRow>> {
    let sql = format!("SELECT {MESSAGE_COLUMNS} FROM message WHERE session = ?1 AND key = ?2");
    db.query_opt(&sql, &params![session, key], message)
}

impl Store {
    /// The configuration of a session's run, if any.
    pub async fn run(&self, session: i64) -> Result<Option<RunRow>> {
        self.read(move |db| {
            let sql = format!("SELECT {RUN_COLUMNS} FROM run WHERE session = ?1");
            db.query_opt(&sql, &params![session], run_row)
        })
        .await
    }

    /// The sessions with an agent's own session id, and their runs; newest first.
    pub async fn runs_of_native(&self, native: &str) -> Result<Vec<(Session, Option<RunRow>)>> {
        const MAX_SESSIONS: i64 = 16;
        let native = native.to_owned();
        self.read(move |db| {
            let sql = "SELECT key FROM session WHERE native = ?1
                       UNION SELECT session FROM run WHERE native = ?1 ORDER BY 1 DESC LIMIT ?2";
            let keys: Vec<i64> = db.query_all(sql, &params![native, MAX_SESSIONS], |r| r.get(0))?;
            let sql = format!("SELECT {RUN_COLUMNS} FROM run WHERE session = ?1");
            let mut found = Vec::new();
            for key in keys {
                let run = db.query_opt(&sql, &params![key], run_row)?;
                found.extend(find_by_key(db, key)?.map(|session| (session, run)));
            }
            Ok(found)
        })
        .await
    }

    /// Inserts or updates a run. With a `fence`, only while the caller holds the lease.
    pub async fn keep_run(&self, run: RunRow, fence: Option<u64>) -> Result<()> {
        self.write(512, move |db| {
            lease::guard(db, run.session, fence)?;
            let directories = (!run.directories.is_empty())
                .then(|| serde_json::json!(run.directories).to_string());
            let columns = params![
                run.session,
                run.agent,
                run.cwd,
                run.native,
                run.mode,
                run.model,
                run.runs,
                directories
            ];
            let sum = checksum::of_values(&columns);
            let values: Vec<Value<'_>> = columns.into_iter().chain(params![sum]).collect();
            db.execute_pipelined(
                "INSERT INTO run (session, agent, cwd, native, mode, model, runs, directories, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
                 ON CONFLICT (session) DO UPDATE SET agent = excluded.agent, cwd = excluded.cwd,
                 native = excluded.native, mode = excluded.mode, model = excluded.model,
                 runs = excluded.runs, directories = excluded.directories,
                 crc = excluded.crc",
                &values,
            )
        })
        .await
    }

    /// Queues a message; returns an existing one with the same key instead. With a `fence`, only
    /// while the caller holds the lease.
    pub async fn add_message(
        &self,
        session: i64,
        key: Option<String>,
        body: String,
        fence: Option<u64>,
    ) -> Result<(MessageRow, bool)> {
        let digest = Sha256::digest(&body).to_vec();
        self.write(body.len() + 256, move |db| {
            // Concurrent inserts wait here for their numbers.
            if db.is_postgres() {
                lease::lock(db, session)?;
            }
            lease::check(db, session, fence)?;
            if let Some(key) = &key
                && let Some(known) = message_by_key(db, session, key)?
            {
                let same: bool = db.query_one(
                    "SELECT digest = ?3 FROM message WHERE session = ?1 AND number = ?2",
                    &params![session, known.number, digest],
                    |r| r.get(0),
                )?;
                if !same {
                    return Err(Error::KeyReused);
                }
                return Ok((known, false));
            }
            let last: u64 = db.query_one(
                "SELECT coalesce(max(number), 0) FROM message WHERE session = ?1",
                &params![session],
                |r| r.get(0),
            )?;
            let state = MessageState::Queued;
            let number = last + 1;
            let (at, none) = (now(), Value::Null);
            let sum = checksum::of_values(&params![
                session,
                number,
                key,
                digest,
                body,
                state.name(),
                none,
                none,
                at
            ]);
            db.execute_pipelined(
                "INSERT INTO message (session, number, key, body, state, created, digest, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                &params![session, number, key, body, state.name(), at, digest, sum],
            )?;
            Ok((MessageRow { number, key, body, state, after: None, until: None }, true))
        })
        .await
    }

    /// Updates the state of a message. With a `fence`, only while the caller holds the lease.
    pub async fn set_message(
        &self,
        session: i64,
        number: u64,
        state: MessageState,
        (after, until): (Option<u64>, Option<u64>),
        fence: Option<u64>,
    ) -> Result<()> {
        self.write(64, move |db| {
            lease::guard(db, session, fence)?;
            let sum = updated_checksum(db, (session, number), state, (after, until))?;
            db.execute_pipelined(
                "UPDATE message SET state = ?3, after = coalesce(?4, after),
                 until = coalesce(?5, until),
                 body = CASE WHEN CAST(?3 AS TEXT) = 'queued' THEN body ELSE '' END,
                 crc = coalesce(?6, crc) WHERE session = ?1 AND number = ?2",
                &params![session, number, state.name(), after, until, sum],
            )
        })
        .await
    }

    /// Reads a message.
    pub async fn message(&self, session: i64, number: u64) -> Result<Option<MessageRow>> {
        self.read(move |db| {
            let sql =
                format!("SELECT {MESSAGE_COLUMNS} FROM message WHERE session = ?1 AND number = ?2");
            db.query_opt(&sql, &params![session, number], message)
        })
        .await
    }

    /// Ids of sessions with unfinished messages or open requests.
    pub async fn unfinished(&self) -> Result<Vec<String>> {
        self.read(|db| {
            db.query_all(
                "SELECT s.key, s.id FROM message m JOIN session s ON s.key = m.session
                 WHERE m.state IN ('queued', 'running')
                 UNION SELECT s.key, s.id FROM run r JOIN session s ON s.key = r.session
                 WHERE s.waiting > 0 ORDER BY 1",
                &[],
                |r| r.get(1),
            )
        })
        .await
    }

    /// The unfinished messages of a session, in order.
    pub async fn open_messages(&self, session: i64) -> Result<Vec<MessageRow>> {
        self.read(move |db| {
            let sql = format!(
                "SELECT {MESSAGE_COLUMNS} FROM message
                 WHERE state IN ('queued', 'running') AND session = ?1 ORDER BY number"
            );
            db.query_all(&sql, &params![session], message)
        })
        .await
    }
}
