//! Opens a database whose header or schema may be damaged.

use crate::data_dir::DataDir;
use crate::db::sqlite::connection::open_reader;
use crate::db::{Db, params};
use crate::durability::{file_error, wal_frames};
use crate::error::{Error, Result};
use crate::integrity::schema;
use crate::migrations::{SCHEMA, check_schema, open_writer};
use rusqlite::{Connection, OpenFlags};
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;

/// The folder of the mended copy, next to the new database.
const COPY_DIR: &str = "old";
/// The folder of the salvaged rows.
pub(super) const SALVAGE_DIR: &str = "salvaged";
/// The first bytes of every store: the magic string, pages of 4096 bytes, WAL mode.
const HEADER: &[u8; 24] = b"SQLite format 3\0\x10\x00\x02\x02\x00\x40\x20\x20";
/// The offsets and values of the schema format and of the text encoding, and the offset of the schema
/// version.
const SCHEMA_FORMAT: (u64, u32) = (44, 4);
const TEXT_ENCODING: (u64, u32) = (56, 1);
const VERSION_OFFSET: u64 = 60;
/// No store has a schema version from this one on: a database that has is damaged, not newer.
const IMPOSSIBLE_SCHEMA: u32 = 1000;
/// Queries of the tables without which nothing can be repaired.
const REQUIRED_QUERIES: [&str; 3] = [
    "SELECT key, kind, event, changes, activity, crc FROM event LIMIT 0",
    "SELECT key, seq, body, id, kind, open, parent, top, crc FROM item LIMIT 0",
    "SELECT key, id, epoch, label, name_crc, facts_crc, state_crc, tally FROM session LIMIT 0",
];

/// Opens the damaged database for reading; none if nothing leads to its rows. The database stays as it
/// is, except that an old schema is migrated. Also returns the problem of the header or the schema.
pub(super) fn open(
    dir: &DataDir,
    new_dir: &DataDir,
    new: &Connection,
) -> Result<(Option<Connection>, Option<String>)> {
    if fs::metadata(dir.database()).map_or(0, |about| about.len()) == 0 && dir.wal().exists() {
        // SQLite would delete the write-ahead log.
        return Ok((None, Some("the database is empty or missing".to_owned())));
    }
    let problem = match open_intact(dir, new) {
        Ok(db) => return Ok((Some(db), None)),
        // It may be damaged, or only too old.
        Err(error @ Error::Older { .. }) => {
            // Opening for writing overwrites the write-ahead log.
            wal_frames::copy_if_damaged(dir)?;
            if open_writer(dir, None).is_ok()
                && let Ok(db) = open_intact(dir, new)
            {
                return Ok((Some(db), None));
            }
            error
        }
        Err(error @ Error::Newer { found: IMPOSSIBLE_SCHEMA.., .. }) => error,
        Err(error) if error.is_unreadable() => error,
        Err(error) => return Err(error),
    };
    let copy = DataDir::open(&new_dir.path().join(COPY_DIR))?;
    match mend(dir, &copy, new).and_then(|()| open_mended(&copy)) {
        Ok(db) => Ok((Some(db), Some(problem.to_string()))),
        Err(Error::Full) => Err(Error::Full),
        // Its pages can still be read one by one.
        Err(_) => Ok((None, Some(problem.to_string()))),
    }
}

/// Opens a database with an intact header and schema.
fn open_intact(dir: &DataDir, new: &Connection) -> Result<Connection> {
    let db = open_reader(dir)?;
    let found = check_schema(&db)?;
    if found < SCHEMA {
        return Err(Error::Older { found, known: SCHEMA });
    }
    let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'
         AND name NOT LIKE 'sqlite!_%' ESCAPE '!'";
    for table in Db::Sqlite(new).query_all(tables, &[], |r| r.get::<String>(0))? {
        let unreadable = |error: rusqlite::Error| Error::Damaged(format!("{table}: {error}"));
        db.prepare(&format!("SELECT * FROM \"{table}\" LIMIT 0")).map_err(unreadable)?;
    }
    if let Some(difference) = schema::difference(&db)? {
        return Err(Error::Damaged(difference));
    }
    Ok(db)
}

/// Removes the folders of the copy and of the salvaged rows.
pub(super) fn remove_copies(new_dir: &DataDir) {
    for folder in [COPY_DIR, SALVAGE_DIR] {
        let _ = fs::remove_dir_all(new_dir.path().join(folder));
    }
}

/// Opens a database in which the required tables can be read.
fn open_mended(dir: &DataDir) -> Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags)?;
    // Otherwise a truncated database or one with a damaged schema row cannot be read at all.
    db.pragma_update(None, "writable_schema", true)?;
    // The first statement may fail: it reads the schema.
    let _ = db.prepare(REQUIRED_QUERIES[0]);
    let found = check_schema(&db)?;
    if found < SCHEMA {
        return Err(Error::Older { found, known: SCHEMA });
    }
    for query in REQUIRED_QUERIES {
        let unreadable = |_| Error::Damaged("its schema cannot be read".to_owned());
        db.prepare(query).map_err(unreadable)?;
    }
    Ok(db)
}

/// Copies the database, and restores the parts of the copy that are the same in all stores.
fn mend(dir: &DataDir, copy: &DataDir, new: &Connection) -> Result<()> {
    let path = copy.database();
    fs::copy(dir.database(), &path).map_err(file_error(&path))?;
    if dir.wal().exists() {
        fs::copy(dir.wal(), copy.wal()).map_err(file_error(&path))?;
    }
    let file = OpenOptions::new().read(true).write(true).open(&path).map_err(file_error(&path))?;
    let put = |bytes: &[u8], at: u64| file.write_all_at(bytes, at).map_err(file_error(&path));
    put(HEADER, 0)?;
    for (at, number) in [SCHEMA_FORMAT, TEXT_ENCODING, (VERSION_OFFSET, SCHEMA)] {
        put(&number.to_be_bytes(), at)?;
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(&path, flags)?;
    db.pragma_update(None, "writable_schema", true)?;
    let _ = db.prepare("SELECT 1 FROM sqlite_schema");
    db.pragma_update(None, "user_version", SCHEMA)?;
    mend_schema(&db, new)
}

/// Restores the schema rows that differ from those of a new store.
fn mend_schema(old: &Connection, new: &Connection) -> Result<()> {
    // The statements of migrated tables are the same in all stores.
    let sql = "SELECT rowid, type, name, tbl_name, sql FROM sqlite_schema ORDER BY rowid";
    let read = |db: &Connection| -> Result<Vec<(i64, [Option<String>; 4])>> {
        Db::Sqlite(db).query_all(sql, &[], |r| {
            let text = |at| r.get::<Option<String>>(at).ok().flatten();
            Ok((r.get(0)?, [text(1), text(2), text(3), text(4)]))
        })
    };
    let mut missing: BTreeMap<Option<String>, [Option<String>; 4]> =
        read(new)?.into_iter().map(|(_, row)| (row[1].clone(), row)).collect();
    let mut unknown = Vec::new();
    for (rowid, row) in read(old)? {
        match missing.remove(&row[1]) {
            Some(expected) if expected == row => {}
            Some(expected) => write_schema_row(old, rowid, &expected)?,
            None => unknown.push((rowid, row)),
        }
    }
    // An unknown name stands for the most similar one that is missing.
    for (rowid, row) in unknown {
        let similarity = |expected: &[Option<String>; 4]| {
            expected
                .iter()
                .zip(&row)
                .map(|(a, b)| common_bytes(a.as_deref(), b.as_deref()))
                .sum::<usize>()
        };
        let best = missing.values().max_by_key(|expected| similarity(expected)).cloned();
        if let Some(expected) = best {
            missing.remove(&expected[1]);
            write_schema_row(old, rowid, &expected)?;
        }
    }
    Ok(())
}

fn write_schema_row(
    db: &Connection,
    rowid: i64,
    [kind, name, table, sql]: &[Option<String>; 4],
) -> Result<()> {
    let set =
        "UPDATE sqlite_schema SET type = ?2, name = ?3, tbl_name = ?4, sql = ?5 WHERE rowid = ?1";
    Db::Sqlite(db).execute(set, &params![rowid, kind, name, table, sql]).map(|_| ())
}

/// The number of equal bytes at the same positions.
fn common_bytes(a: Option<&str>, b: Option<&str>) -> usize {
    let (a, b) = (a.unwrap_or_default(), b.unwrap_or_default());
    a.bytes().zip(b.bytes()).filter(|(a, b)| a == b).count()
}
