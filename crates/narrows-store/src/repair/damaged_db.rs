//! Opening a database of which the header or the list of tables may be damaged.

use crate::connection::{SCHEMA, check_schema, open_reader, open_writer};
use crate::db::{Db, params};
use crate::dir::DataDir;
use crate::error::{Error, Result};
use crate::frames;
use crate::layout;
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// A copy is made in this folder, beside the new database.
const COPY: &str = "old";
/// What was found on its pages is put into this one.
pub(super) const RESCUED: &str = "rescued";
/// What every database of a store begins with: its name, pages of 4096 bytes, a write-ahead log.
const HEADER: &[u8; 24] = b"SQLite format 3\0\x10\x00\x02\x02\x00\x40\x20\x20";
/// Where the header has the format of its list of tables, the encoding of texts and the schema.
const FORMAT: (u64, u32) = (44, 4);
const ENCODING: (u64, u32) = (56, 1);
const VERSION: u64 = 60;
/// No store has a schema of this number: one that has is damaged, not newer.
const NEVER: u32 = 1000;
/// Tables without which nothing is known, with what is read of them.
const NEEDED: [&str; 3] = [
    "SELECT key, kind, event, changes, activity, crc FROM event LIMIT 0",
    "SELECT key, seq, body, id, kind, open, parent, top, crc FROM item LIMIT 0",
    "SELECT key, id, epoch, label, name_crc, facts_crc, state_crc, tally FROM session LIMIT 0",
];

/// The damaged database, to be read; none when nothing leads to its rows. It stays as it is, but for
/// the schema of an earlier version. Returns what cannot be read of its header or its list of tables,
/// too.
pub(super) fn open(
    dir: &DataDir,
    fresh: &DataDir,
    new: &Connection,
) -> Result<(Option<Connection>, Option<String>)> {
    if fs::metadata(dir.database()).map_or(0, |about| about.len()) == 0 && dir.wal().exists() {
        // SQLite would delete the write-ahead log.
        return Ok((None, Some("the database is empty or gone".to_owned())));
    }
    let what = match plain(dir, new) {
        Ok(db) => return Ok((Some(db), None)),
        // It may be damaged, or only too old.
        Err(error @ Error::Older { .. }) => {
            // Whoever writes begins the write-ahead log anew.
            frames::keep(dir)?;
            if open_writer(dir, None).is_ok()
                && let Ok(db) = plain(dir, new)
            {
                return Ok((Some(db), None));
            }
            error
        }
        Err(error @ Error::Newer { found: NEVER.., .. }) => error,
        Err(error) if error.is_unreadable() => error,
        Err(error) => return Err(error),
    };
    let copy = DataDir::open(&fresh.path().join(COPY))?;
    match mend(dir, &copy, new).and_then(|()| readable(&copy)) {
        Ok(db) => Ok((Some(db), Some(what.to_string()))),
        Err(Error::Full) => Err(Error::Full),
        // Its pages are still there.
        Err(_) => Ok((None, Some(what.to_string()))),
    }
}

/// A database whose header and list of tables are whole.
fn plain(dir: &DataDir, new: &Connection) -> Result<Connection> {
    let db = open_reader(dir)?;
    let found = check_schema(&db)?;
    if found < SCHEMA {
        return Err(Error::Older { found, known: SCHEMA });
    }
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'
         AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    for table in Db::Sqlite(new).all(tables, &[], |r| r.get::<String>(0))? {
        let missing = |error: rusqlite::Error| Error::Damaged(format!("{table}: {error}"));
        db.prepare(&format!("SELECT * FROM \"{table}\" LIMIT 0")).map_err(missing)?;
    }
    if let Some(what) = layout::differs(&db)? {
        return Err(Error::Damaged(what));
    }
    Ok(db)
}

/// Removes the copies, if some were made.
pub(super) fn close(fresh: &DataDir) {
    for folder in [COPY, RESCUED] {
        let _ = fs::remove_dir_all(fresh.path().join(folder));
    }
}

/// Opens a database in which what is needed is found.
fn readable(dir: &DataDir) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags)?;
    // Without this, a database that lacks its end or one table cannot be read at all.
    db.pragma_update(None, "writable_schema", true)?;
    // The first statement may fail: it reads the list of tables.
    let _ = db.prepare(NEEDED[0]);
    let found = check_schema(&db)?;
    if found < SCHEMA {
        return Err(Error::Older { found, known: SCHEMA });
    }
    for needed in NEEDED {
        let missing = |_| Error::Damaged("its list of tables cannot be read".to_owned());
        db.prepare(needed).map_err(missing)?;
    }
    Ok(db)
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let shown = path.display().to_string();
    move |e| match e.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        _ => Error::Io(format!("{shown}: {e}")),
    }
}

/// Copies the database, and writes into the copy what is the same in all of them.
fn mend(dir: &DataDir, copy: &DataDir, new: &Connection) -> Result<()> {
    let path = copy.database();
    fs::copy(dir.database(), &path).map_err(failed(&path))?;
    if dir.wal().exists() {
        fs::copy(dir.wal(), copy.wal()).map_err(failed(&path))?;
    }
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(failed(&path))?;
    let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).map_err(failed(&path));
    put(HEADER, 0)?;
    for (at, number) in [FORMAT, ENCODING, (VERSION, SCHEMA)] {
        put(&number.to_be_bytes(), at)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&path, flags)?;
    db.pragma_update(None, "writable_schema", true)?;
    let _ = db.prepare("SELECT 1 FROM sqlite_schema");
    db.pragma_update(None, "user_version", SCHEMA)?;
    name_tables(&db, new)
}

/// Writes what the list of tables should say, where it says something else.
fn name_tables(old: &Connection, new: &Connection) -> Result<()> {
    // The texts of tables that were changed by migrations are the same in all stores.
    let list = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid";
    let read = |db: &Connection| -> Result<Vec<(i64, [Option<String>; 4])>> {
        Db::Sqlite(db).all(list, &[], |r| {
            let text = |at| r.get::<Option<String>>(at).ok().flatten();
            Ok((r.get(0)?, [text(1), text(2), text(3), text(4)]))
        })
    };
    let mut right: BTreeMap<Option<String>, [Option<String>; 4]> =
        read(new)?.into_iter().map(|(_, row)| (row[1].clone(), row)).collect();
    let mut strange = Vec::new();
    for (rowid, row) in read(old)? {
        match right.remove(&row[1]) {
            Some(should) if should == row => {}
            Some(should) => rename(old, rowid, &should)?,
            None => strange.push((rowid, row)),
        }
    }
    // A name that nobody knows is the one that is missing and most like it.
    for (rowid, row) in strange {
        let like = |should: &[Option<String>; 4]| {
            should.iter().zip(&row).map(|(a, b)| alike(a.as_deref(), b.as_deref())).sum::<usize>()
        };
        let best = right.values().max_by_key(|should| like(should)).cloned();
        if let Some(should) = best {
            right.remove(&should[1]);
            rename(old, rowid, &should)?;
        }
    }
    Ok(())
}

fn rename(
    db: &Connection,
    rowid: i64,
    [kind, name, table, sql]: &[Option<String>; 4],
) -> Result<()> {
    let set =
        "UPDATE sqlite_schema SET type = ?2, name = ?3, tbl_name = ?4, sql = ?5 WHERE rowid = ?1";
    Db::Sqlite(db).execute(set, &params![rowid, kind, name, table, sql]).map(|_| ())
}

/// Letters that two texts have at the same places.
fn alike(a: Option<&str>, b: Option<&str>) -> usize {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.bytes().zip(b.bytes()).filter(|(a, b)| a == b).count()
}
