//! Detects a write-ahead log that was lost, truncated or damaged since the store was last open.
//!
//! A file next to the database holds the ends of the logs that were written last. It is updated right
//! after each commit and never synced: after a power cut it may lack the newest commits, but it is never
//! ahead of the durable log.

use super::file_guard::FileGuard;
use super::log_end_file::{ID_BYTES, LogEnd, LogEndFile, SLOT_COUNT};
use crate::checksum;
use crate::damage::{Damage, DamageKind};
use crate::data_dir::DataDir;
use crate::db::{Db, params};
use crate::error::{Error, FILE_REPLACED, Result};
use crate::ids::{new_epoch, now};
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::Arc;

thread_local! {
    static UNCOMMITTED: RefCell<Vec<(i64, Option<u64>)>> = const { RefCell::new(Vec::new()) };
}

/// Notes where a log ends once the current transaction is durable; none for a deleted session.
pub(crate) fn note_log_end(session: i64, last: Option<u64>) {
    UNCOMMITTED.with_borrow_mut(|ends| ends.push((session, last)));
}

fn take_uncommitted() -> Vec<(i64, Option<u64>)> {
    UNCOMMITTED.with_borrow_mut(std::mem::take)
}

/// The device and inode of a file.
type DiskFileId = (u64, u64);

fn file_id(about: &Metadata) -> DiskFileId {
    (about.dev(), about.ino())
}

/// The log ends of an open store.
#[derive(Debug)]
pub(crate) struct LogEnds {
    file: LogEndFile,
    /// The slot and the id of each session that has a slot.
    slots: HashMap<i64, (u64, String)>,
    next_slot: u64,
    highest_key: i64,
    database: PathBuf,
    wal: PathBuf,
    database_id: Option<DiskFileId>,
    wal_id: Option<DiskFileId>,
    guard: Arc<FileGuard>,
}

impl LogEnds {
    /// Compares the durable log ends with the database, and records missing events in the table
    /// `damage`.
    pub(crate) fn open(dir: &DataDir, db: &Connection, guard: &Arc<FileGuard>) -> Result<LogEnds> {
        let file = LogEndFile::open(dir);
        let highest_key = file.highest_key();
        let mut ends = LogEnds {
            file,
            slots: HashMap::new(),
            next_slot: 0,
            highest_key,
            database: dir.database(),
            wal: dir.wal(),
            database_id: std::fs::metadata(dir.database()).ok().as_ref().map(file_id),
            wal_id: None,
            guard: Arc::clone(guard),
        };
        ends.record_losses(db)?;
        ends.reserve_keys(db)?;
        Ok(ends)
    }

    /// Reserves the keys of lost sessions: a new session with such a key would inherit the damage
    /// reports of the lost one.
    fn reserve_keys(&mut self, db: &Connection) -> Result<()> {
        let lost = recorded_losses(&Db::Sqlite(db))?.into_iter().map(|damage| damage.session);
        self.highest_key = lost.max().unwrap_or(0).max(self.highest_key);
        reserve_keys_up_to(db, self.highest_key)
    }

    /// The highest key that a session of a data directory ever had, as far as known.
    pub(crate) fn highest_key(dir: &DataDir) -> i64 {
        LogEndFile::open_read_only(dir).highest_key()
    }

    /// Removes the log ends of a database that was replaced.
    pub(crate) fn remove(dir: &DataDir) {
        LogEndFile::remove(dir);
    }

    /// The log ends that were durable in a data directory: session key, last event, session id.
    pub(crate) fn read(dir: &DataDir) -> Vec<(i64, u64, String)> {
        let ends = LogEndFile::open_read_only(dir).read_all();
        ends.into_iter().map(|(_, end)| (end.session, end.last, end.id)).collect()
    }

    /// The number of sessions in a database that is no longer in its data directory; none if it is
    /// there, or never was.
    pub(crate) fn missing_database(dir: &DataDir) -> Option<usize> {
        if dir.database().exists() {
            return None;
        }
        let has_wal = std::fs::metadata(dir.wal()).is_ok_and(|wal| wal.len() > 0);
        let sessions = LogEnds::read(dir).len();
        (has_wal || sessions > 0).then_some(sessions)
    }

    fn record_losses(&mut self, db: &Connection) -> Result<()> {
        let mut losses = Vec::new();
        for (slot, LogEnd { session, last, id }) in self.file.read_all() {
            let stored = match stored_log_end(db, session, &id) {
                // A row that cannot be read is reported by its readers.
                Err(Error::Damaged(_)) => continue,
                stored => stored?,
            };
            let Some(stored) = stored else {
                if !is_deleted(db, session) {
                    losses.push((session, 0, last, id));
                }
                self.file.write(slot, &LogEnd::EMPTY);
                continue;
            };
            if stored < last {
                losses.push((session, stored + 1, last, id.clone()));
                self.file.write(slot, &LogEnd { session, last: stored, id: id.clone() });
            }
            self.slots.insert(session, (slot, id));
            self.next_slot = self.next_slot.max(slot + 1);
        }
        if losses.is_empty() {
            return Ok(());
        }
        let tx = db.unchecked_transaction()?;
        for (session, first, last, name) in losses {
            if first > 0 {
                start_new_epoch(&tx, session)?;
            }
            let crc = checksum::of_values(&params![session, first, last, name]);
            Db::Sqlite(&tx).execute_pipelined(
                "INSERT INTO damage (session, first, last, name, at, crc)
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (session, first)
                 DO UPDATE SET last = excluded.last, name = excluded.name, crc = excluded.crc
                 WHERE excluded.last > damage.last",
                &params![session, first, last, name, now(), crc],
            )?;
        }
        tx.commit()?;
        // The report must survive the loss of the next write-ahead log, too.
        let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        Ok(())
    }

    /// Fails if the open files are no longer those in the data directory: data in other files is
    /// gone after a restart.
    pub(crate) fn check_files(&mut self) -> Result<()> {
        let id_of = |path: &PathBuf| std::fs::metadata(path).ok().as_ref().map(file_id);
        let replaced = |name: &str| Err(Error::Io(format!("{name} {FILE_REPLACED}")));
        if self.database_id.is_some() && id_of(&self.database) != self.database_id {
            return replaced("the database");
        }
        self.guard.check()?;
        let wal = id_of(&self.wal);
        if self.wal_id.is_some() && wal != self.wal_id {
            return replaced("the write-ahead log");
        }
        self.wal_id = wal;
        Ok(())
    }

    /// Drops the log ends of a transaction that was rolled back.
    pub(crate) fn discard_uncommitted() {
        drop(take_uncommitted());
    }

    /// Writes the log ends of a transaction that is durable.
    pub(crate) fn write_committed(&mut self, db: &Connection) {
        for (session, last) in take_uncommitted() {
            match last {
                Some(last) => self.write(db, session, last),
                None => {
                    if let Some((slot, _)) = self.slots.remove(&session) {
                        self.file.write(slot, &LogEnd::EMPTY);
                    }
                }
            }
        }
    }

    fn write(&mut self, db: &Connection, session: i64, last: u64) {
        if !self.slots.contains_key(&session) {
            let sql = "SELECT id FROM session WHERE key = ?1";
            let id = Db::Sqlite(db).query_opt(sql, &params![session], |r| r.get::<String>(0));
            let Ok(Some(id)) = id else { return };
            let slot = self.next_slot % SLOT_COUNT;
            self.next_slot += 1;
            if self.next_slot > SLOT_COUNT {
                self.slots.retain(|_, (used, _)| *used != slot);
            }
            self.slots.insert(session, (slot, id));
        }
        if session > self.highest_key {
            self.highest_key = session;
            self.file.write_highest_key(session);
        }
        if let Some((slot, id)) = self.slots.get(&session) {
            self.file.write(*slot, &LogEnd { session, last, id: id.clone() });
        }
    }
}

/// The last event of a session in the database; none if the session is missing or another session has
/// its key.
fn stored_log_end(db: &Connection, session: i64, id: &str) -> Result<Option<u64>> {
    let sql = "SELECT seq, id FROM session WHERE key = ?1";
    let row = Db::Sqlite(db)
        .query_opt(sql, &params![session], |r| Ok((r.get(0)?, r.get::<String>(1)?)))?;
    let is_same = |stored: &str| id.is_empty() || id.len() >= ID_BYTES || stored == id;
    Ok(row.filter(|(_, stored)| is_same(stored)).map(|(seq, _)| seq))
}

/// Makes new sessions get keys above `highest`.
pub(crate) fn reserve_keys_up_to(db: &Connection, highest: i64) -> Result<()> {
    let db = Db::Sqlite(db);
    let sql = "SELECT seq FROM sqlite_sequence WHERE name = 'session'";
    match db.query_opt(sql, &[], |r| r.get::<i64>(0)) {
        Ok(Some(reserved)) if reserved >= highest => Ok(()),
        Ok(None) if highest == 0 => Ok(()),
        Ok(Some(_)) => {
            let raise = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'session'";
            db.execute(raise, &params![highest]).map(|_| ())
        }
        Ok(None) => {
            let raise = "INSERT INTO sqlite_sequence VALUES ('session', ?1)";
            db.execute(raise, &params![highest]).map(|_| ())
        }
        // Then no session can be created either.
        Err(error) if error.is_unreadable() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a session was deleted: a crash may come before its slot is emptied.
pub(crate) fn is_deleted(db: &Connection, session: i64) -> bool {
    let sql = "SELECT 1 FROM doomed WHERE session = ?1";
    Db::Sqlite(db).exists(sql, &params![session]).unwrap_or(false)
}

/// The losses that a read-only connection sees. `ends` ([`LogEnds::read`]) must be read before the
/// database is opened.
pub(crate) fn find_losses(db: &Connection, ends: Vec<(i64, u64, String)>) -> Vec<Damage> {
    let loss = |(session, last, id): (i64, u64, String)| {
        let first = match stored_log_end(db, session, &id).ok()? {
            Some(stored) if stored >= last => return None,
            None if is_deleted(db, session) => return None,
            stored => stored.map_or(0, |stored| stored + 1),
        };
        Some(Damage { what: id, ..Damage::new(session, DamageKind::Lost, first, last) })
    };
    ends.into_iter().filter_map(loss).collect()
}

/// Starts a new epoch for a log that lost its end: clients that have seen more of it reload, and do not
/// take new events for those they have seen.
fn start_new_epoch(db: &Connection, session: i64) -> Result<()> {
    let db = Db::Sqlite(db);
    let sql = "SELECT id, label FROM session WHERE key = ?1";
    let names = db.query_opt(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let Some((id, label)): Option<(String, Option<String>)> = names else { return Ok(()) };
    let epoch = new_epoch()?;
    let crc = checksum::of_session_names(&id, &epoch, label.as_deref());
    let sql = "UPDATE session SET epoch = ?2, name_crc = ?3 WHERE key = ?1";
    db.execute_pipelined(sql, &params![session, epoch, crc])
}

/// The losses that the database records.
pub(crate) fn recorded_losses(db: &Db<'_>) -> Result<Vec<Damage>> {
    db.query_all("SELECT session, first, last, name FROM damage ORDER BY session", &[], |r| {
        let what = r.get(3)?;
        Ok(Damage { what, ..Damage::new(r.get(0)?, DamageKind::Lost, r.get(1)?, r.get(2)?) })
    })
}
