//! A store of which something cannot be read, made anew of all that can be.
//!
//! Every row that is as it was written is copied into a new database. A session of which something is
//! missing gets an event that says so in the place of what is lost; its items are completed from its
//! log by the code that always does it. The index of search is made anew. The old database is kept.

mod back;
mod cells;
mod copy;
mod log;
mod old;
mod pages;
mod rescue;
mod row;
mod session;
pub(crate) mod swap;

use crate::connection::{check_version, open_writer};
use crate::damage;
use crate::db::{Db, Row, params};
use crate::dir::DataDir;
use crate::durable::{self, Durable};
use crate::error::{Error, Result};
use crate::frames;
use crate::{around, beside, blob, index, meta, words};
use copy::Table;
use rescue::Rescued;
use rusqlite::Connection;
use serde::Serialize;
use session::Sessions;
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

/// Lines of what the database itself says of its damage.
const LINES: usize = 20;

/// How far a repair is.
#[derive(Debug, Clone, Copy)]
pub struct Repairing {
    /// What is done now.
    pub what: &'static str,
    /// How much of it is done.
    pub done: u64,
    /// How much there is; 0 where that is not known.
    pub all: u64,
}

/// A session of which something could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RepairedSession {
    /// Its id.
    pub id: String,
    /// What it is about, where that is known.
    pub title: Option<String>,
    /// Events that are kept.
    pub events: u64,
    /// Events that are lost: the first and the last of each run.
    pub lost: Vec<(u64, u64)>,
    /// Items that are kept.
    pub items: u64,
    /// Items that are lost.
    pub lost_items: u64,
    /// What else there is to say.
    pub notes: Vec<String>,
}

/// What a repair found, kept and lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Repaired {
    /// Whether something was damaged at all.
    pub damaged: bool,
    /// Sessions that are as they were.
    pub whole: u64,
    /// Sessions of which something could not be read.
    pub sessions: Vec<RepairedSession>,
    /// Sessions that are lost, by their ids or numbers.
    pub gone: Vec<String>,
    /// What else is lost, in words.
    pub lost: Vec<String>,
    /// What the database itself says of its damage.
    pub database: Vec<String>,
    /// Where the store is kept as it was.
    pub aside: Option<PathBuf>,
}

/// Makes the store of a data directory anew, of all that can be read; with `dry`, only tells what that
/// would be. A store that is whole stays as it is.
pub fn repair(data: &Path, dry: bool, mut tell: impl FnMut(Repairing)) -> Result<Repaired> {
    check_version(rusqlite::version_number())?;
    if !data.exists() {
        return Err(Error::NotFound("store"));
    }
    let dir = DataDir::open(data)?;
    let _lock = dir.lock()?;
    swap::finish(&dir)?;
    // Of a database that is gone, the write-ahead log may hold the newest part.
    let is_left = holds_much(&dir.wal());
    if let Some(what) = gone(&dir).filter(|_| !is_left) {
        return Err(Error::Damaged(what));
    }
    if !dir.database().exists() && !is_left {
        return Err(Error::NotFound("store"));
    }
    let fresh = swap::begin(&dir)?;
    let made = make(&dir, &fresh, &mut tell);
    old::close(&fresh);
    // What was found on the way is told here.
    drop(damage::take());
    let mut repaired = match made {
        Ok(repaired) => repaired,
        Err(error) => {
            swap::give_up(&dir);
            return Err(error);
        }
    };
    if dry || !repaired.damaged {
        swap::give_up(&dir);
    } else {
        repaired.aside = Some(swap::count(&dir)?);
    }
    Ok(repaired)
}

/// Says that the database is no longer in a data directory, where one was.
pub fn gone(dir: &DataDir) -> Option<String> {
    let sessions = Durable::gone(dir)?;
    let sessions = match sessions {
        0 => String::new(),
        1 => ", with one session at least".to_owned(),
        n => format!(", with {n} sessions at least"),
    };
    Some(format!("the database was here and is gone (narrows.db was deleted or moved){sessions}"))
}

fn make(dir: &DataDir, fresh: &DataDir, tell: &mut impl FnMut(Repairing)) -> Result<Repaired> {
    let mut say = |what, done, all| tell(Repairing { what, done, all });
    let mut repaired = Repaired::default();
    say("looking at the database", 0, 0);
    let new = open_writer(fresh, None)?;
    let (old, unread) = &old::open(dir, fresh, &new)?;
    if let Some(old) = old {
        repaired.database = integrity(old)?;
    }
    repaired.database.extend(unread.clone());
    repaired.database.extend(frames::said_of_log(dir, old.as_ref()).into_iter().map(|d| d.what));
    let rescued = if old.is_none() || !repaired.database.is_empty() {
        say("looking at every page", 0, 0);
        let mut rescued = rescue::rescue(dir, fresh, &new)?;
        back::bring(dir, &new, &mut rescued)?;
        Some(rescued)
    } else {
        None
    };
    let rows = rescued.as_ref().map(|rescued| &rescued.db).or(old.as_ref());
    let rows = rows.ok_or(Error::NotFound("store"))?;
    // What is read is of one moment.
    let rows = &*rows.unchecked_transaction()?;
    let from = &From { rows, list: old.as_ref(), rescued: rescued.as_ref() };
    // If this is cut off, all of it is thrown away.
    new.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")?;
    let (mut ends, mut before) = (BTreeMap::new(), Vec::new());
    for (session, last, id) in Durable::ends(dir) {
        ends.insert(session, (last, id));
    }
    for lost in durable::lost(&Db::Sqlite(rows)).unwrap_or_default() {
        repaired.damaged = true;
        ends.entry(lost.session).or_insert((0, lost.what.clone()));
        before.push(lost);
    }
    let tables = Table::all(rows, &new)?;
    let sessions = Sessions::find(from, &new, &tables, &ends, &mut repaired)?;
    others(from, &new, &tables, &sessions.keys, &mut repaired)?;
    let all = sessions.keys.len() as u64;
    for (done, key) in (0..).zip(sessions.keys.iter().copied()) {
        say("copying sessions", done, all);
        sessions.one(key, &before, &mut repaired)?;
        // It is made anew, whatever is wrong with it.
        if from.rescued.is_none() && !index::leads(&Db::Sqlite(rows), key).unwrap_or(true) {
            repaired.database = vec![index::ASTRAY.to_owned()];
        }
        new.execute_batch("COMMIT; BEGIN")?;
    }
    if rescued.is_none() && repaired.database.is_empty() {
        say("looking at the index of search", 0, 0);
        drop(damage::take());
        words::all(&Db::Sqlite(rows))?;
        repaired.database.extend(damage::take().into_iter().map(|damage| damage.what));
    }
    let known: HashSet<i64> = sessions.keys.iter().copied().collect();
    let is_gone = |key: &i64| !known.contains(key) && !durable::is_deleted(rows, *key);
    for (key, (_, id)) in ends.iter().filter(|(key, _)| is_gone(key)) {
        let name = if id.is_empty() { format!("#{key}") } else { id.clone() };
        repaired.gone.push(name);
    }
    // Another session may have the key of one that is lost, in a store of an earlier version.
    let of_lost = before.iter().filter(|lost| lost.first == 0).filter_map(|lost| lost.lost_name());
    for id in of_lost {
        if !Db::Sqlite(&new).exists("SELECT 1 FROM session WHERE id = ?1", &params![id])? {
            repaired.gone.push(id.to_owned());
        }
    }
    repaired.gone.sort();
    repaired.gone.dedup();
    let highest = ends.keys().copied().chain([Durable::highest(dir)]).max();
    durable::raise_keys(&new, highest.unwrap_or(0))?;
    finish(old.as_ref().unwrap_or(rows), new, &mut say)?;
    let Repaired { sessions, gone, lost, database, .. } = &repaired;
    let is_whole = sessions.is_empty() && gone.is_empty() && lost.is_empty() && database.is_empty();
    repaired.damaged |= !is_whole;
    Ok(repaired)
}

/// Where the rows of a damaged store are read.
struct From<'a> {
    /// Rows, as the database leads to them, or as they were found on its pages.
    rows: &'a Connection,
    /// The database, if its list of tables can be read.
    list: Option<&'a Connection>,
    rescued: Option<&'a Rescued>,
}

/// Whether a file is there, and not empty.
fn holds_much(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.len() > 0)
}

/// What the database says of itself.
fn integrity(db: &Connection) -> Result<Vec<String>> {
    let sql = format!("PRAGMA integrity_check({LINES})");
    let told = match Db::Sqlite(db).all(&sql, &[], |r| r.get::<String>(0)) {
        Err(error) if error.is_unreadable() => return Ok(vec![error.to_string()]),
        told => told?,
    };
    let lines = told.iter().flat_map(|told| told.lines());
    let bad = lines.filter(|line| *line != "ok" && !line.starts_with("*** in"));
    Ok(bad.take(LINES).map(str::to_owned).collect())
}

/// Copies what is not of the logs.
fn others(
    from: &From<'_>,
    new: &Connection,
    tables: &[Table],
    sessions: &[i64],
    repaired: &mut Repaired,
) -> Result<()> {
    let kept: BTreeSet<i64> = sessions.iter().copied().collect();
    // What leads to rows that were found otherwise is only asked whether it leads to all of them.
    let list = match from.list.filter(|_| from.rescued.is_some()) {
        Some(list) => Table::all(list, new)?,
        None => Vec::new(),
    };
    for table in tables {
        let name = table.name.as_str();
        // These are made anew, or copied with their sessions; what was deleted is not copied.
        if ["session", "event", "item", "call", "edit", "fresh", "doomed", "damage"].contains(&name)
        {
            continue;
        }
        let mut bad = 0;
        let at = |column: &str| table.at(column);
        let is_sound = |row: &Row<'_>| around::is_sound(name, row, at);
        // What a picture is beside its bytes is mended below.
        let is_kept = |row: &Row<'_>| name == "blob" && blob::is_sound(row, at("hash"), at("body"));
        let of_session = table.is_of_sessions().then(|| table.at("session"));
        let mut torn = table.copy(from.rows, new, sessions, |row| {
            let session = of_session.map(|at| row.get::<i64>(at));
            let strays = session.is_some_and(|key| key.is_ok_and(|key| !kept.contains(&key)));
            let sound = is_sound(row);
            bad += u64::from(!sound);
            !strays && (sound || is_kept(row))
        })?;
        if let (Some(db), Some(led)) = (from.list, list.iter().find(|led| led.name == name)) {
            torn |= led.copy(db, new, sessions, |_| false)?;
        }
        if torn {
            repaired.lost.push(format!("some {}", called(name)));
        } else if bad > 0 {
            repaired.lost.push(format!("{bad} {}", called(name)));
        }
    }
    let db = Db::Sqlite(new);
    blob::mend(&db)?;
    if db.exists("SELECT 1 FROM meta WHERE key LIKE 'mark_key%'", &[])? {
        meta::mark_key(&db)?;
    }
    drop(damage::take());
    let old = Db::Sqlite(from.rows);
    if beside::strays(&old).and_then(|()| beside::marks(&old)).is_ok() {
        repaired.lost.extend(damage::take().into_iter().map(|damage| damage.what));
    }
    let moved = "SELECT 1 FROM item NOT INDEXED WHERE session <> key >> 32";
    if old.exists(moved, &[]).unwrap_or(false) {
        repaired.database.push("rows of items say that they are of another session".to_owned());
    }
    if let (None, Some(rescued)) = (from.list, from.rescued) {
        let many =
            if rescued.missing == 0 { "some".to_owned() } else { rescued.missing.to_string() };
        repaired.lost.push(format!(
            "what stood on {many} pages of the database that are gone: tokens, tags, sums and marks \
             may be among it"
        ));
    }
    Ok(())
}

/// What the rows of a table are for people.
fn called(table: &str) -> &str {
    match table {
        "token" => "tokens: whoever used them is refused",
        "source" => {
            "marks of how far packets or files were read: they are read again from their beginning"
        }
        "made" => "marks of which token made which: those are not revoked with it any more",
        "blob" | "blob_use" => "pictures",
        "usage" | "first_answer" => "counts of tokens and costs",
        "active" => "times of activity",
        "seen" => "marks of records that were read: some may be read again",
        "tag" => "tags of sessions",
        "request" => "answers to requests: they are not known when they are sent again",
        "audit" => "entries of the audit log",
        "forgotten" => "names of deleted sessions: their files may be read again",
        "run" | "message" | "command" => "messages to agents",
        "meta" => "settings of the store",
        other => other,
    }
}

/// Counters, the index of search, and whether all of it is as it should be.
fn finish(
    old: &Connection,
    new: Connection,
    say: &mut impl FnMut(&'static str, u64, u64),
) -> Result<()> {
    let db = Db::Sqlite(&new);
    // Numbers that were given are not given again.
    let given = "SELECT name, seq FROM sqlite_sequence";
    let given = Db::Sqlite(old).all(given, &[], |r| Ok((r.get::<String>(0)?, r.get::<i64>(1)?)));
    for (name, seq) in given.unwrap_or_default() {
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if db.execute(raise, &params![name, seq])? == 0 {
            db.execute("INSERT INTO sqlite_sequence VALUES (?1, ?2)", &params![name, seq])?;
        }
    }
    db.execute("INSERT OR IGNORE INTO fresh SELECT key FROM item", &[])?;
    new.execute_batch("COMMIT")?;
    let waiting = || db.one("SELECT count(*) FROM fresh", &[], |r| r.get::<u64>(0));
    let all = waiting()?;
    loop {
        say("making them searchable", all - waiting()?.min(all), all);
        new.execute_batch("BEGIN")?;
        let more = index::some(&db, true)?;
        new.execute_batch("COMMIT")?;
        if !more {
            break;
        }
    }
    say("looking at the new database", 0, 0);
    if let Some(line) = integrity(&new)?.first() {
        return Err(Error::Damaged(format!("what was made anew is not whole: {line}")));
    }
    new.execute_batch("PRAGMA journal_mode = WAL")?;
    new.close().map_err(|(_, error)| error.into())
}
