//! Backup and restore of a store on SQLite.

use crate::access::revocations::delete_revoked_tokens;
use crate::checksum::of_session_names;
use crate::data_dir::{DataDir, make_private};
use crate::db::sqlite::connection::check_version;
use crate::durability::log_ends::LogEnds;
use crate::durability::swap;
use crate::durability::wal_frames;
use crate::error::{Error, Result};
use crate::ids::{new_epoch, now};
use crate::migrations::check_schema;
use rusqlite::{Connection, OpenFlags};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

fn failed(path: &Path) -> impl FnOnce(std::io::Error) -> Error {
    let shown = path.display().to_string();
    move |e| Error::Refused(format!("{shown}: {e}"))
}

/// Writes a consistent copy of the store in `data` to the new file `to`, also while the store is in
/// use. Returns the size of the copy in bytes.
pub fn backup(data: &Path, to: &Path) -> Result<u64> {
    let dir = DataDir::open(data)?;
    if !dir.database().exists() {
        return Err(Error::NotFound("store"));
    }
    if to.exists() {
        return Err(Error::Refused(format!("{}: already exists", to.display())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags)?;
    check_schema(&db)?;
    make_private(to).map_err(failed(to))?;
    let name =
        to.to_str().ok_or_else(|| Error::Invalid("the file name is not UTF-8".to_owned()))?;
    if let Err(error) = db.execute("VACUUM INTO ?1", [name]) {
        let _ = fs::remove_file(to);
        return Err(error.into());
    }
    let file = fs::File::open(to).map_err(failed(to))?;
    file.sync_all().map_err(failed(to))?;
    Ok(file.metadata().map_or(0, |m| m.len()))
}

/// Replaces the store in `data` by the copy `from`, and keeps the replaced store under another
/// name. Every log gets a new epoch, so that clients reload. Returns the number of sessions.
pub fn restore(from: &Path, data: &Path) -> Result<u64> {
    check_version(rusqlite::version_number())?;
    // Opening a pipe would block until a process writes to it.
    if !fs::metadata(from).map_err(failed(from))?.is_file() {
        return Err(Error::Refused(format!("{}: not a file", from.display())));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let source = Connection::open_with_flags(from, flags)
        .map_err(|_| Error::Refused(format!("{}: cannot be opened", from.display())))?;
    let is_store = "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'session')";
    if check_schema(&source)? == 0 || !source.query_row(is_store, [], |r| r.get::<_, bool>(0))? {
        return Err(Error::Refused(format!("{}: not a narrows store", from.display())));
    }
    let quick_check: String = source.query_row("PRAGMA quick_check(1)", [], |r| r.get(0))?;
    if quick_check != "ok" {
        return Err(Error::Damaged(format!("{}: {quick_check}", from.display())));
    }
    drop(source);
    let dir = DataDir::open(data)?;
    let _lock = dir.lock()?;
    swap::finish(&dir)?;
    let (database, restored) = (dir.database(), dir.path().join("narrows.db.restoring"));
    let _ = fs::remove_file(&restored);
    make_private(&restored).map_err(failed(&restored))?;
    fs::copy(from, &restored).map_err(failed(&restored))?;
    make_file_private(&restored)?;
    let sessions = restart_logs(&restored)?;
    delete_revoked_tokens(&dir, &restored)?;
    fs::File::open(&restored).and_then(|f| f.sync_all()).map_err(failed(&restored))?;
    let aside = dir.path().join(format!("narrows.db.before-{}", now()));
    if database.exists() {
        // A damaged database is set aside unchanged.
        let _ = checkpoint_wal(&database);
        fs::rename(&database, &aside).map_err(failed(&database))?;
    }
    // A WAL that could not be checkpointed stays with its database: it must not be applied to the
    // new one.
    let with_suffix = |path: &Path, end: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        PathBuf::from(name)
    };
    let wal = with_suffix(&database, "-wal");
    if wal.exists() {
        fs::rename(&wal, with_suffix(&aside, "-wal")).map_err(failed(&wal))?;
    }
    let _ = fs::remove_file(with_suffix(&database, "-shm"));
    let name = aside.file_name().map(|name| name.to_string_lossy().into_owned());
    wal_frames::move_copies_aside(&dir, &name.unwrap_or_default());
    fs::rename(&restored, &database).map_err(failed(&database))?;
    LogEnds::remove(&dir);
    fs::File::open(dir.path()).and_then(|d| d.sync_all()).map_err(failed(data))?;
    Ok(sessions)
}

/// `fs::copy` copies the mode too.
fn make_file_private(path: &Path) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed(path))
}

fn checkpoint_wal(database: &Path) -> Result<()> {
    let db = Connection::open_with_flags(database, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    db.busy_timeout(Duration::ZERO)?;
    db.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?;
    Ok(())
}

fn restart_logs(path: &Path) -> Result<u64> {
    let mut db = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let tx = db.transaction()?;
    // Copies made by older versions have no checksums.
    let sums = tx.prepare("SELECT name_crc FROM session").is_ok();
    let sum = if sums { ", name_crc = ?3" } else { "" };
    let keys: Vec<(i64, String, Option<String>)> = tx
        .prepare("SELECT key, id, label FROM session")?
        .query_map([], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?)))?
        .collect::<rusqlite::Result<_>>()?;
    for (key, id, label) in &keys {
        let epoch = new_epoch()?;
        let names = of_session_names(id, &epoch, label.as_deref());
        let mut values: Vec<&dyn rusqlite::ToSql> = vec![key, &epoch];
        if sums {
            values.push(&names);
        }
        tx.execute(&format!("UPDATE session SET epoch = ?2{sum} WHERE key = ?1"), &values[..])?;
    }
    tx.commit()?;
    Ok(keys.len() as u64)
}
