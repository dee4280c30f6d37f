//! Sessions recorded twice: what `narrows acp` records is also in the agent's own file. Both logs
//! are kept, one of them is listed.

use crate::checksum::side_tables;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::ids::now;
use crate::sessions::list::is_live;
use crate::sessions::{bump_revision, schedule_delete};
use std::collections::BTreeMap;
use std::path::Path;

/// The formats of recordings: between an agent and its client, and of an agent's output.
const RECORDING_FORMAT: &str = "acp";
const OUTPUT_FORMAT: &str = "claude-stream";
/// The format of an agent's file that a client sends.
const FILE_FORMAT: &str = "claude-history";
/// If a file ends later than its recording by more than this, in milliseconds, the agent continued
/// without being recorded.
const MAX_LAG_MS: i64 = 2000;

/// Whether `own` is the counted one of the sessions that `s` is listed for: the agent's file if there is
/// one, else the listed session.
macro_rules! is_counted {
    () => {
        "(own.copy_of IS NULL AND NOT EXISTS (SELECT 1 FROM session c WHERE c.copy_of = own.key)
     OR own.key = (SELECT m.key FROM session m WHERE m.key = s.key OR m.copy_of = s.key
       ORDER BY CASE WHEN EXISTS (SELECT 1 FROM source f WHERE f.session = m.key
       AND f.path IS NOT NULL) THEN 0 WHEN m.copy_of IS NULL THEN 1 ELSE 2 END, m.key LIMIT 1))"
    };
}

/// Sums count the agent's file where there is one, else the listed session: `own` is the counted
/// session, `s` the listed one.
pub(crate) const ONE_LOG_PER_SESSION: &str = concat!(
    "JOIN session s ON s.key = coalesce(own.copy_of, own.key) WHERE s.left_out = 0 AND ",
    is_counted!()
);

/// Answers have ids of their own and count in whichever session has them; totals of whole turns
/// count like everything else.
pub(crate) const ONE_LOG_PER_ANSWER: &str = concat!(
    "JOIN session s ON s.key = coalesce(own.copy_of, own.key)
     WHERE s.left_out = 0 AND (substr(u.id, 1, length(own.id) + 1) <> own.id || '/' OR ",
    is_counted!(),
    ")"
);

/// One of the sessions with the same id of the agent.
pub(crate) struct Member {
    key: i64,
    id: String,
    native: String,
    /// The time of its last event.
    updated: i64,
    /// Whether the agent works or waits for an answer.
    live: bool,
    turns: u64,
    copy_of: Option<i64>,
    /// Whether it is the agent's own file.
    is_file: bool,
    is_recording: bool,
    /// The message id of the first answer of output or of a file that a client sent: of those with the same
    /// first answer, one contains all others.
    first_answer: Option<String>,
    is_run: bool,
}

pub(crate) fn set_copy(db: &Db<'_>, key: i64, of: Option<i64>) -> Result<()> {
    update_copy_of(db, "key = ?1", key, of)?;
    bump_revision(db, key)
}

/// Gives a session a new row: its own `copy_of` and those that refer to it are kept.
pub(crate) fn move_copies(db: &Db<'_>, of: Option<i64>, old: i64, new: i64) -> Result<()> {
    update_copy_of(db, "key = ?1", new, of)?;
    update_copy_of(db, "copy_of = ?1", old, Some(new))
}

fn update_copy_of(db: &Db<'_>, condition: &str, key: i64, of: Option<i64>) -> Result<()> {
    let hidden = side_tables::visibility_sql("CAST(?2 AS BIGINT)", "left_out");
    let sql = format!("UPDATE session SET copy_of = ?2, hidden = {hidden} WHERE {condition}");
    db.execute_pipelined(&sql, &params![key, of])
}

/// Deletes a session and its hidden copies.
pub(crate) fn schedule_delete_all(db: &Db<'_>, key: i64) -> Result<()> {
    let sql = "SELECT key FROM session WHERE copy_of = ?1";
    for copy in db.query_all(sql, &params![key], |r| r.get(0))? {
        schedule_delete(db, copy)?;
    }
    schedule_delete(db, key)
}

pub(crate) fn members(db: &Db<'_>, native: Option<&str>) -> Result<Vec<Member>> {
    const NAME: &str = "coalesce(s.native, s.label)";
    let condition = match native {
        Some(_) => "(s.native = ?1 OR s.label = ?1)",
        None => {
            "s.native IN (SELECT native FROM session WHERE native IS NOT NULL
             GROUP BY native HAVING count(*) > 1)"
        }
    };
    let sql = format!(
        "SELECT s.key, s.id, {NAME}, s.updated, s.ended, s.waiting, coalesce(s.status, ''), s.heard, s.info,
         s.copy_of, coalesce(s.label, ''), (SELECT format FROM source WHERE session = s.key AND number = 0),
         EXISTS (SELECT 1 FROM source WHERE session = s.key AND path IS NOT NULL AND parent IS NULL),
         (SELECT path FROM source WHERE session = s.key AND number = 0),
         EXISTS (SELECT 1 FROM run WHERE run.session = s.key),
         (SELECT answer FROM first_answer WHERE session = s.key)
         FROM session s WHERE {condition}"
    );
    let values: Vec<Value<'_>> = native.into_iter().map(Value::Text).collect();
    let now = now();
    db.query_all(&sql, &values, |r| member(r, now))
}

fn member(r: &Row<'_>, now: i64) -> Result<Member> {
    let (native, status): (String, String) = (r.get(2)?, r.get(6)?);
    let (label, format): (String, Option<String>) = (r.get(10)?, r.get(11)?);
    let (info, has_file): (String, bool) = (r.get(8)?, r.get(12)?);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap_or_default();
    let is_printed = matches!(format.as_deref(), Some(OUTPUT_FORMAT | FILE_FORMAT));
    // A fork is read from a file with another name; so is an uploaded fork.
    let is_own = label == native || !is_file_name(&label);
    // The file of a subagent names the session that it worked for.
    let path: Option<String> = r.get(13)?;
    let file = path.as_deref().and_then(|path| Path::new(path).file_name());
    let is_subagent = file.is_some_and(|name| name.as_encoded_bytes().starts_with(b"agent-"));
    let count = |name: &str| info[name].as_u64().unwrap_or(0);
    // Output contains answers but no prompts, and an interrupted prompt has no answer.
    let printed = if is_printed { count("answers").max(1) } else { 0 };
    Ok(Member {
        key: r.get(0)?,
        id: r.get(1)?,
        updated: r.get(3)?,
        live: is_live(r.get(4)?, r.get(5)?, &status, r.get(7)?, now),
        turns: count("turns").max(printed),
        copy_of: r.get(9)?,
        is_file: has_file && is_own && !is_subagent,
        is_recording: !has_file
            && is_own
            && (is_printed || format.as_deref() == Some(RECORDING_FORMAT)),
        first_answer: r.get::<Option<String>>(15)?.filter(|_| is_printed && !has_file),
        is_run: r.get(14)?,
        native,
    })
}

/// The changes needed: sessions, and the one listed instead of each.
pub(crate) fn copy_changes(
    members: Vec<Member>,
    is_attended: &impl Fn(i64) -> bool,
) -> Vec<(i64, String, Option<i64>)> {
    let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for member in members {
        groups.entry(member.native.clone()).or_default().push(member);
    }
    let mut changes = Vec::new();
    for mut group in groups.into_values() {
        group.retain(|m| m.is_file || m.is_recording);
        // A session that was uploaded and continues in its file has two files.
        let file = group.iter().filter(|m| m.is_file).max_by_key(|m| (m.turns, m.key));
        for member in &group {
            let listed = match file {
                Some(file) => choose_listed(file, &group, is_attended),
                None => longest_with_same_start(member, &group, is_attended),
            };
            let copy_of = (member.key != listed).then_some(listed);
            if member.copy_of != copy_of {
                changes.push((member.key, member.id.clone(), copy_of));
            }
        }
    }
    changes
}

/// Among uploads with the same first answer, the one with the most turns. The output of another turn of the
/// session begins with another answer: nothing else contains it.
fn longest_with_same_start(
    member: &Member,
    group: &[Member],
    is_attended: &impl Fn(i64) -> bool,
) -> i64 {
    let has_same_start =
        |m: &&Member| m.first_answer.is_some() && m.first_answer == member.first_answer;
    let rank = |m: &&Member| (m.live || is_attended(m.key), m.turns, m.updated, m.key);
    group.iter().filter(has_same_start).max_by_key(rank).map_or(member.key, |m| m.key)
}

/// Whether a label is a name that an agent gives to its files.
fn is_file_name(label: &str) -> bool {
    let parts: Vec<usize> = label.split('-').map(str::len).collect();
    parts == [8, 4, 4, 4, 12] && label.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-')
}

/// A recording shows open requests and is where a run resumes: it is listed unless the file
/// contains more.
fn choose_listed(file: &Member, group: &[Member], is_attended: &impl Fn(i64) -> bool) -> i64 {
    let recordings = || group.iter().filter(|m| m.is_recording);
    let newest = |all: &mut dyn Iterator<Item = &Member>| {
        all.max_by_key(|m| (m.updated, m.key)).map(|m| m.key)
    };
    let active = newest(&mut recordings().filter(|m| m.live || is_attended(m.key)));
    let is_whole = |m: &&Member| {
        let continues_unrecorded = file.updated > m.updated + MAX_LAG_MS;
        // Once the agent continued unrecorded, the recording stays incomplete.
        let is_incomplete =
            if m.is_run { m.copy_of == Some(file.key) } else { file.turns > m.turns };
        !continues_unrecorded && !is_incomplete
    };
    active.or_else(|| newest(&mut recordings().filter(is_whole))).unwrap_or(file.key)
}
