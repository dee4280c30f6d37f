//! Sessions as lists show them, and the visibility of sessions.

use crate::checksum;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::ids::now;
use crate::sessions::list::is_live;
use serde::Serialize;
use serde_json::value::RawValue;

/// A session in a list.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionRow {
    /// The id.
    pub id: String,
    /// The caller's label.
    pub label: Option<String>,
    /// Tags to find it by.
    pub tags: Vec<String>,
    /// Follow the log from this cursor.
    pub cursor: String,
    /// The number of events.
    pub events: u64,
    /// The number of items.
    pub items: u64,
    /// Bytes of the log.
    pub bytes: u64,
    /// When it was created, in milliseconds since 1970.
    pub created_at: i64,
    /// When it changed last, in milliseconds since 1970: the last arrival while its agent worked,
    /// else by the dates of its events.
    pub updated_at: i64,
    /// When events arrived last, in milliseconds since 1970 by the clock of this machine.
    pub heard_at: i64,
    /// Whether no more events are expected: the source has ended or been silent for long.
    pub ended: bool,
    /// Whether the agent works or waits for an answer.
    pub live: bool,
    /// The number of open requests of the agent.
    pub waiting: u64,
    /// Agent, model, title, status, tokens.
    pub info: Box<RawValue>,
    /// The last component of the agent's working directory.
    pub project: Option<String>,
    /// The agent's own id of the session.
    pub native_id: Option<String>,
    /// Whether the agent's file still exists, for sessions read from one.
    pub file_exists: Option<bool>,
    /// The beginning of the first prompt, on one line.
    pub prompt: Option<String>,
    /// Finished tool calls.
    pub calls: u64,
    /// Failed tool calls.
    pub failed: u64,
    /// The id of the session that is listed instead of this one and has the same content.
    pub copy_of: Option<String>,
    /// Whether it is a fork: it begins as a copy of another session.
    pub fork: bool,
    /// The id of that session; of several, the one updated first.
    pub fork_of: Option<String>,
    #[serde(skip)]
    pub(crate) key: i64,
}

/// The sessions that a token can see: all, or some by id or tag.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sight {
    /// Sessions with these ids.
    pub sessions: Option<Vec<String>>,
    /// And sessions with one of these tags.
    pub tags: Option<Vec<String>>,
}

impl Sight {
    /// Whether it includes all sessions.
    pub fn is_all(&self) -> bool {
        self.sessions.is_none() && self.tags.is_none()
    }

    /// Whether it includes a session.
    pub fn sees(&self, id: &str, tags: &[String]) -> bool {
        let named = self.sessions.as_ref().is_some_and(|s| s.iter().any(|s| s == id));
        let tagged = self.tags.as_ref().is_some_and(|t| t.iter().any(|t| tags.contains(t)));
        self.is_all() || named || tagged
    }
}

/// The session that `s` is a fork of: one with the same first answer.
macro_rules! fork_of {
    () => {
        "(SELECT coalesce(o.id, t.id) FROM first_answer a JOIN first_answer b ON b.answer = a.answer \
     JOIN session t ON t.key = b.session LEFT JOIN session o ON o.key = t.copy_of WHERE a.session = s.key \
     AND coalesce(t.copy_of, t.key) <> coalesce(s.copy_of, s.key) \
     AND coalesce(t.native <> s.native, true) \
     AND (t.updated < s.updated OR (t.updated = s.updated AND t.key < s.key)) \
     ORDER BY t.updated, t.key LIMIT 1)"
    };
}

/// The session columns of a search hit.
pub(crate) const HIT_COLUMNS: &str = concat!(
    "s.id, coalesce(nullif(s.title, ''), s.prompt), s.label, \
     (SELECT string_agg(tag, '\n') FROM tag WHERE session = s.key), ",
    fork_of!(),
    " FROM item i JOIN session s ON s.key = i.session"
);

pub(crate) const COLUMNS: &str = concat!(
    "s.touched, s.id, s.label, s.epoch, s.seq, s.items, s.bytes, s.created, s.updated, \
     s.ended, s.info, (SELECT string_agg(tag, '\n') FROM tag WHERE session = s.key), s.title, \
     s.project, s.native, (SELECT min(gone) = 0 FROM source WHERE session = s.key \
     AND path IS NOT NULL AND parent IS NULL), s.key, s.prompt, s.calls, s.failed, s.agent, \
     s.heard, s.waiting, s.status, s.model, s.facts_crc, s.name_crc, \
     (SELECT o.id FROM session o WHERE o.key = s.copy_of), ",
    fork_of!(),
    ", (SELECT max(told.cost) FROM (SELECT sum(u.cost) AS cost FROM session c \
     JOIN usage u ON u.session = c.key WHERE c.copy_of = s.key GROUP BY c.key) AS told)"
);

/// The columns without subqueries of other tables.
pub(crate) fn columns_without_subqueries() -> String {
    let (mut columns, mut depth) = (String::new(), 0);
    for c in COLUMNS.chars() {
        match c {
            '(' => {
                depth += 1;
                columns.push_str(if depth == 1 { "NULL" } else { "" });
            }
            ')' => depth -= 1,
            c if depth == 0 => columns.push(c),
            _ => {}
        }
    }
    columns
}

/// The header of a new session.
pub(crate) fn empty_info() -> String {
    let mut text = Vec::new();
    let printed = narrows::json::print(&mut text, &narrows::session::SessionInfo::default());
    printed.ok().and_then(|()| String::from_utf8(text).ok()).unwrap_or_else(|| "{}".to_owned())
}

/// The header of a session whose header is damaged.
pub(crate) fn damaged_info() -> String {
    let mut info: serde_json::Value = serde_json::from_str(&empty_info()).unwrap_or_default();
    info["title"] = "The header of this session cannot be read: the store is damaged".into();
    info.to_string()
}

pub(crate) fn sorted_lines(text: Option<&str>) -> Vec<String> {
    let mut sorted_lines: Vec<String> =
        text.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    sorted_lines.sort_unstable();
    sorted_lines
}

pub(crate) fn read(r: &Row<'_>) -> Result<SessionRow> {
    let (epoch, seq): (String, u64) = (r.get(3)?, r.get(4)?);
    let mut info: String = r.get(10)?;
    let (heard_at, waiting, ended): (i64, u64, bool) = (r.get(21)?, r.get(22)?, r.get(9)?);
    let status = r.get::<Option<String>>(23)?.unwrap_or_default();
    let (copy_of, fork_of): (Option<String>, Option<String>) = (r.get(27)?, r.get(28)?);
    if !checksum::row_matches(r, &[10, 12, 20, 24, 23], 25)?
        || !checksum::row_matches(r, &[1, 3, 2], 26)?
    {
        damage::report(Damage::new(r.get(16)?, damage::DamageKind::Session, 0, 0));
        info = damaged_info();
    }
    // The cost is reported by the hidden copy.
    if let Some(cost) = r.get::<Option<f64>>(29)? {
        info = info.replacen("\"costUsd\":null", &format!("\"costUsd\":{cost}"), 1);
    }
    Ok(SessionRow {
        id: r.get(1)?,
        label: r.get(2)?,
        cursor: format!("{epoch}-{seq}"),
        events: seq,
        items: r.get(5)?,
        bytes: r.get(6)?,
        created_at: r.get(7)?,
        updated_at: r.get(8)?,
        heard_at,
        ended,
        live: copy_of.is_none() && is_live(ended, waiting, &status, heard_at, now()),
        waiting,
        info: RawValue::from_string(info).unwrap_or_default(),
        tags: sorted_lines(r.get::<Option<String>>(11)?.as_deref()),
        project: r.get(13)?,
        native_id: r.get(14)?,
        file_exists: r.get(15)?,
        key: r.get(16)?,
        prompt: r.get(17)?,
        calls: r.get(18)?,
        failed: r.get(19)?,
        copy_of,
        fork: fork_of.is_some(),
        fork_of,
    })
}

/// Whether lists can read each column of a session's row.
pub(crate) fn is_listable(db: &Db<'_>, session: i64) -> Result<bool> {
    let sql = format!("SELECT {} FROM session s WHERE s.key = ?1", columns_without_subqueries());
    match db.query_opt(&sql, &params![session], read) {
        Err(Error::Damaged(_)) => Ok(false),
        row => row.map(|_| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_subqueries_keep_count() {
        let columns = columns_without_subqueries();
        assert!(!columns.contains("SELECT"), "{columns}");
        let db = rusqlite::Connection::open_in_memory().expect("database");
        let names: Vec<&str> = columns.split(", ").map(|c| c.trim_start_matches("s.")).collect();
        assert_eq!(names.len(), 30);
        let mut plain: Vec<&str> = names.iter().copied().filter(|c| *c != "NULL").collect();
        plain.dedup();
        db.execute_batch(&format!("CREATE TABLE session ({})", plain.join(", "))).expect("table");
        let count =
            db.prepare(&format!("SELECT {columns} FROM session s")).expect("query").column_count();
        assert_eq!(count, 30);
    }
}
