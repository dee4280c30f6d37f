//! Repairs a damaged store: writes a new one from everything that can be read.
//!
//! Every row that matches its checksum is copied into a new database. A session with missing events gets
//! an event in their place that says so, and its item rows are rebuilt from its log. The search index is
//! built again. The old database is kept.

mod damaged_db;
mod page_cells;
mod page_source;
mod report;
mod salvage;
mod session_log;
mod session_row;
mod sessions;
mod side_tables;
mod table_copy;
mod table_shape;
mod wal_recovery;

pub use report::{RepairProgress, RepairReport, SessionRepair};

use crate::damage;
use crate::damage::Damage;
use crate::data_dir::DataDir;
use crate::db::sqlite::connection::check_version;
use crate::db::{Db, params};
use crate::durability::log_ends::{self, LogEnds};
use crate::durability::swap;
use crate::durability::wal_frames;
use crate::error::{Error, Result};
use crate::integrity::database::integrity_problems;
use crate::integrity::search_index;
use crate::migrations::open_writer;
use crate::search::index;
use rusqlite::Connection;
use salvage::SalvagedRows;
use sessions::SessionRepairer;
use std::collections::{BTreeMap, HashSet};
use std::path::Path;
use table_copy::TableCopy;

/// The last event and the id of each session whose log end is known, by session key.
type KnownEnds = BTreeMap<i64, (u64, String)>;

/// Repairs the store of a data directory; with `dry_run`, only reports what a repair would do. An intact
/// store stays as it is.
pub fn repair(
    data: &Path,
    dry_run: bool,
    mut on_progress: impl FnMut(RepairProgress),
) -> Result<RepairReport> {
    check_version(rusqlite::version_number())?;
    if !data.exists() {
        return Err(Error::NotFound("store"));
    }
    let dir = DataDir::open(data)?;
    let _lock = dir.lock()?;
    swap::finish(&dir)?;
    // Without a database, the write-ahead log may still hold the newest part of it.
    let has_wal = is_not_empty(&dir.wal());
    if let Some(problem) = missing_database(&dir).filter(|_| !has_wal) {
        return Err(Error::Damaged(problem));
    }
    if !dir.database().exists() && !has_wal {
        return Err(Error::NotFound("store"));
    }
    let new_dir = swap::begin(&dir)?;
    let result = rebuild(&dir, &new_dir, &mut on_progress);
    damaged_db::remove_copies(&new_dir);
    // The report names all damage that was met.
    drop(damage::drain_reports());
    let mut report = match result {
        Ok(report) => report,
        Err(error) => {
            swap::abort(&dir);
            return Err(error);
        }
    };
    if dry_run || !report.damaged {
        swap::abort(&dir);
    } else {
        report.aside = Some(swap::commit(&dir)?);
    }
    Ok(report)
}

/// Describes a database that is no longer in its data directory.
pub fn missing_database(dir: &DataDir) -> Option<String> {
    let sessions = match LogEnds::missing_database(dir)? {
        0 => String::new(),
        1 => ", with at least 1 session".to_owned(),
        n => format!(", with at least {n} sessions"),
    };
    Some(format!("the database is missing (narrows.db was deleted or moved){sessions}"))
}

/// Where the rows of a damaged store are read.
struct RepairSource<'a> {
    /// The rows: as the database leads to them, or as they were found on its pages.
    rows: &'a Connection,
    /// The damaged database, if its schema can be read.
    damaged: Option<&'a Connection>,
    salvaged: Option<&'a SalvagedRows>,
}

/// Writes the new database.
fn rebuild(
    dir: &DataDir,
    new_dir: &DataDir,
    on_progress: &mut impl FnMut(RepairProgress),
) -> Result<RepairReport> {
    let mut progress = |what, done, all| on_progress(RepairProgress { what, done, all });
    let mut report = RepairReport::default();
    progress("checking the database", 0, 0);
    let new = open_writer(new_dir, None)?;
    let (damaged, unreadable) = &damaged_db::open(dir, new_dir, &new)?;
    if let Some(damaged) = damaged {
        report.database = integrity_problems(&Db::Sqlite(damaged))?;
    }
    report.database.extend(unreadable.clone());
    let wal_damage = wal_frames::damage_of_wal(dir, damaged.as_ref());
    report.database.extend(wal_damage.into_iter().map(|damage| damage.what));
    let salvaged = if damaged.is_none() || !report.database.is_empty() {
        progress("reading every page", 0, 0);
        let mut salvaged = salvage::salvage(dir, new_dir, &new)?;
        wal_recovery::recover(dir, &new, &mut salvaged)?;
        Some(salvaged)
    } else {
        None
    };
    let rows = salvaged.as_ref().map(|salvaged| &salvaged.db).or(damaged.as_ref());
    let rows = rows.ok_or(Error::NotFound("store"))?;
    // All rows are read in one transaction.
    let rows = &*rows.unchecked_transaction()?;
    let source = &RepairSource { rows, damaged: damaged.as_ref(), salvaged: salvaged.as_ref() };
    // Durability is not needed: an interrupted repair is thrown away.
    new.execute_batch("PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN")?;
    let (mut ends, mut losses) = (KnownEnds::new(), Vec::new());
    for (session, last, id) in LogEnds::read(dir) {
        ends.insert(session, (last, id));
    }
    for loss in log_ends::recorded_losses(&Db::Sqlite(rows)).unwrap_or_default() {
        report.damaged = true;
        ends.entry(loss.session).or_insert((0, loss.what.clone()));
        losses.push(loss);
    }
    let tables = TableCopy::all(rows, &new)?;
    let sessions = SessionRepairer::find(source, &new, &tables, &ends, &mut report)?;
    side_tables::copy(source, &new, &tables, &sessions.keys, &mut report)?;
    let total = sessions.keys.len() as u64;
    for (done, key) in (0..).zip(sessions.keys.iter().copied()) {
        progress("copying sessions", done, total);
        sessions.repair(key, &losses, &mut report)?;
        // The search index is built again anyway; one line is enough for the report.
        if source.salvaged.is_none() && !index::finds_items(&Db::Sqlite(rows), key).unwrap_or(true)
        {
            report.database = vec![index::INDEX_INCOMPLETE.to_owned()];
        }
        new.execute_batch("COMMIT; BEGIN")?;
    }
    if salvaged.is_none() && report.database.is_empty() {
        progress("checking the search index", 0, 0);
        drop(damage::drain_reports());
        search_index::check_all(&Db::Sqlite(rows))?;
        report.database.extend(damage::drain_reports().into_iter().map(|damage| damage.what));
    }
    add_lost_sessions(&Db::Sqlite(&new), rows, &sessions.keys, (&ends, &losses), &mut report)?;
    let highest_key = ends.keys().copied().chain([LogEnds::highest_key(dir)]).max();
    log_ends::reserve_keys_up_to(&new, highest_key.unwrap_or(0))?;
    finish(damaged.as_ref().unwrap_or(rows), new, &mut progress)?;
    let RepairReport { sessions, gone, lost, database, .. } = &report;
    let is_intact =
        sessions.is_empty() && gone.is_empty() && lost.is_empty() && database.is_empty();
    report.damaged |= !is_intact;
    Ok(report)
}

/// Reports the sessions that existed and are not in the new database.
fn add_lost_sessions(
    new: &Db<'_>,
    rows: &Connection,
    keys: &[i64],
    (ends, losses): (&KnownEnds, &[Damage]),
    report: &mut RepairReport,
) -> Result<()> {
    let copied: HashSet<i64> = keys.iter().copied().collect();
    let is_lost = |key: &i64| !copied.contains(key) && !log_ends::is_deleted(rows, *key);
    for (key, (_, id)) in ends.iter().filter(|(key, _)| is_lost(key)) {
        let name = if id.is_empty() { format!("#{key}") } else { id.clone() };
        report.gone.push(name);
    }
    // In a store of an earlier version, another session may have the key of a lost one.
    let whole_losses = losses.iter().filter(|loss| loss.first == 0);
    for id in whole_losses.filter_map(|loss| loss.lost_session_id()) {
        if !new.exists("SELECT 1 FROM session WHERE id = ?1", &params![id])? {
            report.gone.push(id.to_owned());
        }
    }
    report.gone.sort();
    report.gone.dedup();
    Ok(())
}

fn is_not_empty(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|about| about.len() > 0)
}

/// Writes the key sequences and the search index, and checks the new database.
fn finish(
    old: &Connection,
    new: Connection,
    progress: &mut impl FnMut(&'static str, u64, u64),
) -> Result<()> {
    let db = Db::Sqlite(&new);
    // Keys are never reused.
    let sql = "SELECT name, seq FROM sqlite_sequence";
    let sequences =
        Db::Sqlite(old).query_all(sql, &[], |r| Ok((r.get::<String>(0)?, r.get::<i64>(1)?)));
    for (name, seq) in sequences.unwrap_or_default() {
        let raise = "UPDATE sqlite_sequence SET seq = max(seq, ?2) WHERE name = ?1";
        if db.execute(raise, &params![name, seq])? == 0 {
            db.execute("INSERT INTO sqlite_sequence VALUES (?1, ?2)", &params![name, seq])?;
        }
    }
    db.execute("INSERT OR IGNORE INTO fresh SELECT key FROM item", &[])?;
    new.execute_batch("COMMIT")?;
    let queued = || db.query_one("SELECT count(*) FROM fresh", &[], |r| r.get::<u64>(0));
    let total = queued()?;
    loop {
        progress("building the search index", total - queued()?.min(total), total);
        new.execute_batch("BEGIN")?;
        let has_more = index::index_slice(&db, true)?;
        new.execute_batch("COMMIT")?;
        if !has_more {
            break;
        }
    }
    progress("checking the new database", 0, 0);
    if let Some(problem) = integrity_problems(&Db::Sqlite(&new))?.first() {
        return Err(Error::Damaged(format!("the repaired database is damaged: {problem}")));
    }
    new.execute_batch("PRAGMA journal_mode = WAL")?;
    new.close().map_err(|(_, error)| error.into())
}
