//! Sessions that came by two ways: what was recorded between an agent and its client is in the
//! agent's own file too. Both logs are kept, one of them is listed.

use crate::beside;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::ids::now;
use crate::sessions::list::is_live;
use crate::sessions::{doom, mark_touched};
use std::collections::BTreeMap;

/// The formats of what is recorded between an agent and its client, and of what an agent prints.
const RECORDED: &str = "acp";
const PRINTED: &str = "claude-stream";
/// A file that goes on for longer than this after its recording, in milliseconds, was written by an
/// agent that nobody recorded.
const SLACK: i64 = 2000;

/// Adds up what is told by the files of agents where there is one, and by recordings elsewhere: `own`
/// is the session that tells it, `s` the one that is listed.
pub(crate) const COUNTED: &str = "JOIN session s ON s.key = coalesce(own.copy_of, own.key) WHERE CASE
     WHEN own.copy_of IS NULL THEN NOT EXISTS (SELECT 1 FROM session c JOIN source f ON f.session = c.key
       WHERE c.copy_of = own.key AND f.path IS NOT NULL)
     ELSE EXISTS (SELECT 1 FROM source f WHERE f.session = own.key AND f.path IS NOT NULL) END
     AND s.left_out = 0";

/// Adds up answers, which are known by their own names in whichever session they stand; what is only told
/// of a whole turn is counted as everything else is.
pub(crate) const ANSWERS: &str = "JOIN session s ON s.key = coalesce(own.copy_of, own.key)
     WHERE s.left_out = 0 AND (substr(u.id, 1, length(own.id) + 1) <> own.id || '/' OR CASE
     WHEN own.copy_of IS NULL THEN NOT EXISTS (SELECT 1 FROM session c JOIN source f ON f.session = c.key
       WHERE c.copy_of = own.key AND f.path IS NOT NULL)
     ELSE EXISTS (SELECT 1 FROM source f WHERE f.session = own.key AND f.path IS NOT NULL) END)";

/// One of the sessions that an agent calls by the same name.
pub(crate) struct Member {
    key: i64,
    id: String,
    native: String,
    /// When its last event happened.
    updated: i64,
    /// Something goes on in it, or waits for an answer.
    live: bool,
    turns: u64,
    copy_of: Option<i64>,
    /// It is the agent's own file.
    is_file: bool,
    is_recording: bool,
    /// It was sent as its agent printed it: whoever sent it twice wants two.
    is_printed: bool,
    is_run: bool,
}

pub(crate) fn set_copy(db: &Db<'_>, key: i64, of: Option<i64>) -> Result<()> {
    set(db, "key = ?1", key, of)?;
    mark_touched(db, key)
}

/// A session has another row from now on: what is listed in its place stays, and in whose place it is.
pub(crate) fn follow(db: &Db<'_>, of: Option<i64>, old: i64, new: i64) -> Result<()> {
    set(db, "key = ?1", new, of)?;
    set(db, "copy_of = ?1", old, Some(new))
}

fn set(db: &Db<'_>, which: &str, key: i64, of: Option<i64>) -> Result<()> {
    let hidden = beside::hidden("CAST(?2 AS BIGINT)", "left_out");
    let sql = format!("UPDATE session SET copy_of = ?2, hidden = {hidden} WHERE {which}");
    db.later(&sql, &params![key, of])
}

/// Deletes a session, and those in whose place it is listed.
pub(crate) fn doom_all(db: &Db<'_>, key: i64) -> Result<()> {
    let sql = "SELECT key FROM session WHERE copy_of = ?1";
    for copy in db.all(sql, &params![key], |r| r.get(0))? {
        doom(db, copy)?;
    }
    doom(db, key)
}

pub(crate) fn members(db: &Db<'_>, native: Option<&str>) -> Result<Vec<Member>> {
    const NAME: &str = "coalesce(s.native, s.label)";
    let which = match native {
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
         EXISTS (SELECT 1 FROM run WHERE run.session = s.key)
         FROM session s WHERE {which}"
    );
    let values: Vec<Value<'_>> = native.into_iter().map(Value::Text).collect();
    let now = now();
    db.all(&sql, &values, |r| member(r, now))
}

fn member(r: &Row<'_>, now: i64) -> Result<Member> {
    let (native, status): (String, String) = (r.get(2)?, r.get(6)?);
    let (label, format): (String, Option<String>) = (r.get(10)?, r.get(11)?);
    let (info, has_file): (String, bool) = (r.get(8)?, r.get(12)?);
    let info: serde_json::Value = serde_json::from_str(&info).unwrap_or_default();
    let is_printed = format.as_deref() == Some(PRINTED);
    let count = |name: &str| info[name].as_u64().unwrap_or(0);
    // Prompts are not printed, their answers are, but for one that was interrupted.
    let printed = if is_printed { count("answers").max(1) } else { 0 };
    Ok(Member {
        key: r.get(0)?,
        id: r.get(1)?,
        updated: r.get(3)?,
        live: is_live(r.get(4)?, r.get(5)?, &status, r.get(7)?, now),
        turns: count("turns").max(printed),
        copy_of: r.get(9)?,
        // A fork is read from a file of another name.
        is_file: has_file && label == native,
        is_recording: !has_file && matches!(format.as_deref(), Some(RECORDED | PRINTED)),
        is_printed,
        is_run: r.get(13)?,
        native,
    })
}

/// What has to change: which session, and in the place of which one another is listed.
pub(crate) fn wanted(
    members: Vec<Member>,
    attended: &impl Fn(i64) -> bool,
) -> Vec<(i64, String, Option<i64>)> {
    let mut groups: BTreeMap<String, Vec<Member>> = BTreeMap::new();
    for member in members {
        groups.entry(member.native.clone()).or_default().push(member);
    }
    let mut wanted = Vec::new();
    for mut group in groups.into_values() {
        group.retain(|m| m.is_file || m.is_recording);
        let Some(file) = group.iter().find(|m| m.is_file) else { continue };
        let listed = listed(file, &group, attended);
        for member in &group {
            let stays =
                member.key == listed || member.is_printed && !member.is_file && listed != file.key;
            let copy_of = (!stays).then_some(listed);
            if member.copy_of != copy_of {
                wanted.push((member.key, member.id.clone(), copy_of));
            }
        }
    }
    wanted
}

/// A recording shows what its agent asks for, and is where a run goes on: it is listed as long as the
/// file tells no more than it does.
fn listed(file: &Member, group: &[Member], attended: &impl Fn(i64) -> bool) -> i64 {
    let recordings = || group.iter().filter(|m| m.is_recording);
    let newest = |all: &mut dyn Iterator<Item = &Member>| {
        all.max_by_key(|m| (m.updated, m.key)).map(|m| m.key)
    };
    let active = newest(&mut recordings().filter(|m| m.live || attended(m.key)));
    let is_whole = |m: &&Member| {
        let goes_on = file.updated > m.updated + SLACK;
        // Once it went on without being recorded, the recording lacks something for good.
        let lacks = if m.is_run { m.copy_of == Some(file.key) } else { file.turns > m.turns };
        !goes_on && !lacks
    };
    active.or_else(|| newest(&mut recordings().filter(is_whole))).unwrap_or(file.key)
}
