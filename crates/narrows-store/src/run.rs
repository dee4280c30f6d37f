//! Sessions that narrows runs, and what was sent to their agents.

use crate::error::{Error, Result};
use crate::names::now;
use crate::store::Store;
use rusqlite::{Connection, OptionalExtension, Row, params};
use sha2::{Digest, Sha256};

/// How a session is run. Its folder is a path of this machine: nothing shows it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunRow {
    /// The session.
    pub session: i64,
    /// The agent's name in the settings.
    pub agent: String,
    /// Where it works.
    pub cwd: String,
    /// The agent's own id of the session.
    pub native: Option<String>,
    /// The mode that was asked for.
    pub mode: Option<String>,
    /// The model that was asked for.
    pub model: Option<String>,
    /// Processes so far.
    pub runs: u32,
}

/// How far a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageState {
    /// Others are before it.
    Queued,
    /// The agent is at it.
    Running,
    /// Its turn is over.
    Done,
    /// Somebody took it back, or its turn never began.
    Dropped,
}

impl MessageState {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            MessageState::Queued => "queued",
            MessageState::Running => "running",
            MessageState::Done => "done",
            MessageState::Dropped => "dropped",
        }
    }

    fn named(name: &str) -> MessageState {
        match name {
            "queued" => MessageState::Queued,
            "running" => MessageState::Running,
            "done" => MessageState::Done,
            _ => MessageState::Dropped,
        }
    }
}

/// Something that was sent to an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// Its number in the session, from 1.
    pub number: u64,
    /// The sender's own key.
    pub key: Option<String>,
    /// What was sent, as JSON; empty once its turn has begun.
    pub body: String,
    /// How far it is.
    pub state: MessageState,
    /// The log's last event before its turn.
    pub after: Option<u64>,
    /// The event that ended its turn.
    pub until: Option<u64>,
}

const MESSAGE: &str = "number, key, body, state, after, until";

fn message(row: &Row<'_>) -> rusqlite::Result<MessageRow> {
    Ok(MessageRow {
        number: row.get(0)?,
        key: row.get(1)?,
        body: row.get(2)?,
        state: MessageState::named(&row.get::<_, String>(3)?),
        after: row.get(4)?,
        until: row.get(5)?,
    })
}

fn by_key(db: &Connection, session: i64, key: &str) -> Result<Option<MessageRow>> {
    let sql = format!("SELECT {MESSAGE} FROM message WHERE session = ?1 AND key = ?2");
    Ok(db.prepare_cached(&sql)?.query_row(params![session, key], message).optional()?)
}

impl Store {
    /// How a session is run, if it is.
    pub async fn run(&self, session: i64) -> Result<Option<RunRow>> {
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT agent, cwd, native, mode, model, runs FROM run WHERE session = ?1",
            )?;
            let found = query.query_row([session], |r| {
                Ok(RunRow {
                    session,
                    agent: r.get(0)?,
                    cwd: r.get(1)?,
                    native: r.get(2)?,
                    mode: r.get(3)?,
                    model: r.get(4)?,
                    runs: r.get(5)?,
                })
            });
            Ok(found.optional()?)
        })
        .await
    }

    /// Keeps how a session is run.
    pub async fn keep_run(&self, run: RunRow) -> Result<()> {
        self.write(512, move |db| {
            db.execute(
                "INSERT INTO run (session, agent, cwd, native, mode, model, runs)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
                 ON CONFLICT DO UPDATE SET agent = excluded.agent, cwd = excluded.cwd,
                 native = excluded.native, mode = excluded.mode, model = excluded.model,
                 runs = excluded.runs",
                params![run.session, run.agent, run.cwd, run.native, run.mode, run.model, run.runs],
            )?;
            Ok(())
        })
        .await
    }

    /// Adds a message; the one of the same key, if there is one.
    pub async fn add_message(
        &self,
        session: i64,
        key: Option<String>,
        body: String,
    ) -> Result<(MessageRow, bool)> {
        let digest = Sha256::digest(&body).to_vec();
        self.write(body.len() + 256, move |db| {
            if let Some(key) = &key
                && let Some(known) = by_key(db, session, key)?
            {
                let same: bool = db.query_row(
                    "SELECT digest = ?3 FROM message WHERE session = ?1 AND number = ?2",
                    params![session, known.number, digest],
                    |r| r.get(0),
                )?;
                if !same {
                    let what = "the same Idempotency-Key came with another message";
                    return Err(Error::Invalid(what.to_owned()));
                }
                return Ok((known, false));
            }
            let last: u64 = db.query_row(
                "SELECT coalesce(max(number), 0) FROM message WHERE session = ?1",
                [session],
                |r| r.get(0),
            )?;
            let state = MessageState::Queued;
            let number = last + 1;
            db.execute(
                "INSERT INTO message (session, number, key, body, state, created, digest)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
                params![session, number, key, body, state.name(), now(), digest],
            )?;
            Ok((MessageRow { number, key, body, state, after: None, until: None }, true))
        })
        .await
    }

    /// Keeps how far a message is.
    pub async fn set_message(
        &self,
        session: i64,
        number: u64,
        state: MessageState,
        after: Option<u64>,
        until: Option<u64>,
    ) -> Result<()> {
        self.write(64, move |db| {
            db.execute(
                "UPDATE message SET state = ?3, after = coalesce(?4, after),
                 until = coalesce(?5, until),
                 body = CASE WHEN ?3 = 'queued' THEN body ELSE '' END WHERE session = ?1 AND number = ?2",
                params![session, number, state.name(), after, until],
            )?;
            Ok(())
        })
        .await
    }

    /// A message.
    pub async fn message(&self, session: i64, number: u64) -> Result<Option<MessageRow>> {
        self.read(move |db| {
            let sql = format!("SELECT {MESSAGE} FROM message WHERE session = ?1 AND number = ?2");
            Ok(db.prepare_cached(&sql)?.query_row(params![session, number], message).optional()?)
        })
        .await
    }

    /// Messages that an earlier server left: their sessions, and which they are.
    pub async fn open_messages(&self) -> Result<Vec<(String, MessageRow)>> {
        self.read(|db| {
            let mut query = db.prepare(
                "SELECT m.number, m.key, m.body, m.state, m.after, m.until, s.id FROM message m
                 JOIN session s ON s.key = m.session
                 WHERE m.state IN ('queued', 'running') ORDER BY m.session, m.number",
            )?;
            let rows = query.query_map([], |r| Ok((r.get(6)?, message(r)?)))?;
            Ok(rows.collect::<rusqlite::Result<Vec<_>>>()?)
        })
        .await
    }
}
