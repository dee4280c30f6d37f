//! What was durable last, in a file beside the database: whether the write-ahead log was lost, cut or
//! damaged since is known when the store is opened.
//!
//! A place for each of the sessions that were written last says where its log ends. It is written
//! right after the commit and never waited for: it may lack the newest commits after a power cut, and
//! is never ahead of what was durable.

use crate::damage::{Damage, Part};
use crate::db::{Db, params};
use crate::dir::DataDir;
use crate::error::{Error, Result};
use crate::intact::Intact;
use crate::names::{new_epoch, now};
use crate::sessions::name_sum;
use rusqlite::Connection;
use std::cell::RefCell;
use std::collections::HashMap;
use std::fs::{File, Metadata, OpenOptions};
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::PathBuf;
use std::sync::Arc;

const FILE: &str = "narrows.durable";
/// Sessions whose ends are kept; of more, those that were written last.
const PLACES: u64 = 1024;
/// Bytes of a place: key, last event, the session's id, checksum.
const SIZE: usize = 64;
const ID: usize = 40;
/// After the places: the highest key that a session ever had.
const HIGHEST: u64 = PLACES;

thread_local! {
    static WRITTEN: RefCell<Vec<(i64, Option<u64>)>> = const { RefCell::new(Vec::new()) };
}

/// A log ends here when the transaction is durable; a session that is deleted has no end.
pub(crate) fn wrote(session: i64, last: Option<u64>) {
    WRITTEN.with_borrow_mut(|written| written.push((session, last)));
}

fn written() -> Vec<(i64, Option<u64>)> {
    WRITTEN.with_borrow_mut(std::mem::take)
}

/// What is said of a file that was taken away from a store in use.
pub(crate) const GONE: &str = "is no longer in the data directory: it was deleted or replaced; nothing is kept until a restart";

/// A file by what the disk calls it.
type Node = (u64, u64);

fn node(about: &Metadata) -> Node {
    (about.dev(), about.ino())
}

/// The ends of logs, kept beside the database.
#[derive(Debug)]
pub(crate) struct Durable {
    file: Option<File>,
    places: HashMap<i64, (u64, String)>,
    next: u64,
    highest: i64,
    database: PathBuf,
    wal: PathBuf,
    known: Option<Node>,
    known_wal: Option<Node>,
    intact: Option<Arc<Intact>>,
}

impl Durable {
    /// Compares what was durable with what is there; what is missing is remembered in the database.
    pub(crate) fn open(dir: &DataDir, db: &Connection, intact: &Arc<Intact>) -> Result<Durable> {
        let path = dir.path().join(FILE);
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false).mode(0o600);
        // Best effort: without it everything works, and less is known after a loss.
        let file = options.open(&path).ok();
        let mut durable = Durable {
            file,
            places: HashMap::new(),
            next: 0,
            highest: 0,
            database: dir.database(),
            wal: dir.wal(),
            known: std::fs::metadata(dir.database()).ok().as_ref().map(node),
            known_wal: None,
            intact: Some(Arc::clone(intact)),
        };
        durable.highest = durable.highest_kept();
        durable.compare(db)?;
        durable.keep_keys(db)?;
        Ok(durable)
    }

    /// Keys that lost sessions had are not given again: what is known of them would be taken for
    /// something of the new ones.
    fn keep_keys(&mut self, db: &Connection) -> Result<()> {
        let lost = lost(&Db::Sqlite(db))?.into_iter().map(|damage| damage.session);
        self.highest = lost.max().unwrap_or(0).max(self.highest);
        raise_keys(db, self.highest)
    }

    /// The highest key that is known.
    fn highest_kept(&self) -> i64 {
        let mut bytes = vec![0; SIZE];
        let read = |file: &File| file.read_exact_at(&mut bytes, HIGHEST * SIZE as u64).ok();
        let own = self.file.as_ref().and_then(read).and_then(|()| Kept::read(&bytes));
        let kept = self.kept().into_iter().map(|(_, kept)| kept.session).max();
        own.map_or(0, |own| own.session).max(kept.unwrap_or(0))
    }

    /// The highest key that a session of a data directory ever had, as far as it is known.
    pub(crate) fn highest(dir: &DataDir) -> i64 {
        Durable::beside(dir).highest_kept()
    }

    /// Forgets everything: what is there now is what there is.
    pub(crate) fn forget(dir: &DataDir) {
        let _ = std::fs::remove_file(dir.path().join(FILE));
    }

    /// The ends of logs that were durable in a data directory: session, last event, the session's id.
    pub(crate) fn ends(dir: &DataDir) -> Vec<(i64, u64, String)> {
        let kept = Durable::beside(dir).kept();
        kept.into_iter().map(|(_, k)| (k.session, k.last, k.id)).collect()
    }

    /// Of a data directory that is only read.
    fn beside(dir: &DataDir) -> Durable {
        Durable {
            file: File::open(dir.path().join(FILE)).ok(),
            places: HashMap::new(),
            next: 0,
            highest: 0,
            database: dir.database(),
            wal: dir.wal(),
            known: None,
            known_wal: None,
            intact: None,
        }
    }

    /// How many sessions were in a database that is not in its data directory any more; none when it
    /// is there, or never was.
    pub(crate) fn gone(dir: &DataDir) -> Option<usize> {
        if dir.database().exists() {
            return None;
        }
        let wal = std::fs::metadata(dir.wal()).is_ok_and(|wal| wal.len() > 0);
        let sessions = Durable::ends(dir).len();
        (wal || sessions > 0).then_some(sessions)
    }

    /// The places that can be read.
    fn kept(&self) -> Vec<(u64, Kept)> {
        let Some(file) = &self.file else { return Vec::new() };
        let mut bytes = vec![0; SIZE];
        let mut kept = Vec::new();
        for place in 0..PLACES {
            if file.read_exact_at(&mut bytes, place * SIZE as u64).is_err() {
                break;
            }
            kept.extend(Kept::read(&bytes).map(|one| (place, one)));
        }
        kept
    }

    fn compare(&mut self, db: &Connection) -> Result<()> {
        let mut lost = Vec::new();
        for (place, Kept { session, last, id }) in self.kept() {
            let found = match end(db, session, &id) {
                // A row that cannot be read is told by whoever reads it.
                Err(Error::Damaged(_)) => continue,
                found => found?,
            };
            let is = found.unwrap_or(0);
            if found.is_none() && is_deleted(db, session) {
                self.put(place, &Kept::NONE);
                continue;
            }
            if found.is_none() {
                lost.push((session, 0, last, id));
                self.put(place, &Kept::NONE);
                continue;
            }
            if is < last {
                lost.push((session, is + 1, last, id.clone()));
                self.put(place, &Kept { session, last: is, id: id.clone() });
            }
            self.places.insert(session, (place, id));
            self.next = self.next.max(place + 1);
        }
        if !lost.is_empty() {
            let tx = db.unchecked_transaction()?;
            for (session, first, last, name) in lost {
                if first > 0 {
                    anew(&tx, session)?;
                }
                let sum = crate::sum::of(&params![session, first, last, name]);
                Db::Sqlite(&tx).later(
                    "INSERT INTO damage (session, first, last, name, at, crc)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (session, first)
                     DO UPDATE SET last = excluded.last, name = excluded.name, crc = excluded.crc
                     WHERE excluded.last > damage.last",
                    &params![session, first, last, name, now(), sum],
                )?;
            }
            tx.commit()?;
            // If this log is lost too, it is still known what the one before held.
            let _ = db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
        }
        Ok(())
    }

    /// Whether the files that are written are still those in the data directory: what goes into others
    /// is seen by nobody after a restart.
    pub(crate) fn check_files(&mut self) -> Result<()> {
        let of = |path: &PathBuf| std::fs::metadata(path).ok().as_ref().map(node);
        let gone = |what: &str| {
            let what = format!("{what} {GONE}");
            Err(Error::Io(what))
        };
        if self.known.is_some() && of(&self.database) != self.known {
            return gone("the database");
        }
        self.intact.as_ref().map_or(Ok(()), |intact| intact.look())?;
        let wal = of(&self.wal);
        if self.known_wal.is_some() && wal != self.known_wal {
            return gone("the write-ahead log");
        }
        self.known_wal = wal;
        Ok(())
    }

    /// What was done in the last transaction was rolled back.
    pub(crate) fn roll_back() {
        drop(written());
    }

    /// What was done in the last transaction is durable.
    pub(crate) fn committed(&mut self, db: &Connection) {
        for (session, last) in written() {
            match last {
                Some(last) => self.keep(db, session, last),
                None => {
                    if let Some((place, _)) = self.places.remove(&session) {
                        self.put(place, &Kept::NONE);
                    }
                }
            }
        }
    }

    fn keep(&mut self, db: &Connection, session: i64, last: u64) {
        if !self.places.contains_key(&session) {
            let sql = "SELECT id FROM session WHERE key = ?1";
            let id = Db::Sqlite(db).optional(sql, &params![session], |r| r.get::<String>(0));
            let Ok(Some(id)) = id else { return };
            let place = self.next % PLACES;
            self.next += 1;
            if self.next > PLACES {
                self.places.retain(|_, (taken, _)| *taken != place);
            }
            self.places.insert(session, (place, id));
        }
        if session > self.highest {
            self.highest = session;
            self.put(HIGHEST, &Kept { session, last: 0, id: String::new() });
        }
        if let Some((place, id)) = self.places.get(&session) {
            self.put(*place, &Kept { session, last, id: id.clone() });
        }
    }

    fn put(&self, place: u64, kept: &Kept) {
        if let Some(file) = &self.file {
            let _ = file.write_all_at(&kept.bytes(), place * SIZE as u64);
        }
    }
}

/// Where the log of a session ends now, if it is there: another one may have its key.
fn end(db: &Connection, session: i64, id: &str) -> Result<Option<u64>> {
    let sql = "SELECT seq, id FROM session WHERE key = ?1";
    let found = Db::Sqlite(db)
        .optional(sql, &params![session], |r| Ok((r.get(0)?, r.get::<String>(1)?)))?;
    Ok(found.filter(|(_, is)| id.is_empty() || id.len() >= ID || is == id).map(|(seq, _)| seq))
}

/// No key up to this one is given to a session any more.
pub(crate) fn raise_keys(db: &Connection, highest: i64) -> Result<()> {
    let db = Db::Sqlite(db);
    let given = "SELECT seq FROM sqlite_sequence WHERE name = 'session'";
    match db.optional(given, &[], |r| r.get::<i64>(0)) {
        Ok(Some(given)) if given >= highest => Ok(()),
        Ok(None) if highest == 0 => Ok(()),
        Ok(Some(_)) => {
            let raise = "UPDATE sqlite_sequence SET seq = ?1 WHERE name = 'session'";
            db.execute(raise, &params![highest]).map(|_| ())
        }
        Ok(None) => {
            let raise = "INSERT INTO sqlite_sequence VALUES ('session', ?1)";
            db.execute(raise, &params![highest]).map(|_| ())
        }
        // Then no session can be made either.
        Err(error) if error.is_unreadable() => Ok(()),
        Err(error) => Err(error),
    }
}

/// Whether a session was deleted: a crash may come before that is kept here.
pub(crate) fn is_deleted(db: &Connection, session: i64) -> bool {
    let sql = "SELECT 1 FROM doomed WHERE session = ?1";
    Db::Sqlite(db).exists(sql, &params![session]).unwrap_or(false)
}

/// What was durable once and is not there, for whoever only reads. `ends` are to be read before.
pub(crate) fn missing(db: &Connection, ends: Vec<(i64, u64, String)>) -> Vec<Damage> {
    let lost = |(session, last, what): (i64, u64, String)| {
        let is = end(db, session, &what).ok()?;
        let first = match is {
            Some(is) if is >= last => return None,
            None if is_deleted(db, session) => return None,
            is => is.map_or(0, |is| is + 1),
        };
        Some(Damage { what, ..Damage::new(session, Part::Lost, first, last) })
    };
    ends.into_iter().filter_map(lost).collect()
}

/// A log that lost its end begins a new life: whoever has seen more of it is told to read it again,
/// and does not take what comes for what it has seen.
fn anew(db: &Connection, session: i64) -> Result<()> {
    let db = Db::Sqlite(db);
    let sql = "SELECT id, label FROM session WHERE key = ?1";
    let names = db.optional(sql, &params![session], |r| Ok((r.get(0)?, r.get(1)?)))?;
    let Some((id, label)): Option<(String, Option<String>)> = names else { return Ok(()) };
    let epoch = new_epoch()?;
    let sum = name_sum(&id, &epoch, label.as_deref());
    let sql = "UPDATE session SET epoch = ?2, name_crc = ?3 WHERE key = ?1";
    db.later(sql, &params![session, epoch, sum])
}

/// One place.
struct Kept {
    session: i64,
    last: u64,
    id: String,
}

impl Kept {
    const NONE: Kept = Kept { session: 0, last: 0, id: String::new() };

    fn bytes(&self) -> [u8; SIZE] {
        let mut bytes = [0; SIZE];
        bytes[..8].copy_from_slice(&self.session.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.last.to_le_bytes());
        let id = self.id.as_bytes();
        let length = id.len().min(ID);
        bytes[16..16 + length].copy_from_slice(&id[..length]);
        let sum = crc32fast::hash(&bytes[..SIZE - 8]);
        bytes[SIZE - 4..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn read(bytes: &[u8]) -> Option<Kept> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let sum = bytes.get(SIZE - 4..)?.try_into().ok().map(u32::from_le_bytes)?;
        let session = i64::try_from(number(0)?).ok().filter(|session| *session > 0)?;
        if sum != crc32fast::hash(bytes.get(..SIZE - 8)?) {
            return None;
        }
        let id = bytes.get(16..16 + ID)?.split(|b| *b == 0).next()?;
        Some(Kept { session, last: number(8)?, id: String::from_utf8(id.to_vec()).ok()? })
    }
}

/// What was lost, as the database remembers it.
pub(crate) fn lost(db: &Db<'_>) -> Result<Vec<Damage>> {
    db.all("SELECT session, first, last, name FROM damage ORDER BY session", &[], |r| {
        let what = r.get(3)?;
        Ok(Damage { what, ..Damage::new(r.get(0)?, Part::Lost, r.get(1)?, r.get(2)?) })
    })
}
