//! Tokens that are revoked stay so, whatever becomes of the database.

use crate::dir::DataDir;
use crate::error::{Error, Result};
use crate::names::now;
use rusqlite::{Connection, OpenFlags};
use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One line a token: its hash, and when it would have ended, if ever.
const FILE: &str = "revoked";

/// What was revoked here. It lies beside the database: a copy of the database that is put in its place
/// does not know what was revoked since.
#[derive(Debug, Default)]
pub(crate) struct Revoked {
    known: Mutex<HashMap<[u8; 32], Option<i64>>>,
}

fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let shown = path.display().to_string();
    move |e| match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Refused(format!("{shown}: {e}")),
    }
}

fn line(hash: &[u8; 32], ends: Option<i64>) -> String {
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("{hash} {}\n", ends.map_or_else(|| "-".to_owned(), |end| end.to_string()))
}

fn read_line(line: &str) -> Option<([u8; 32], Option<i64>)> {
    let (hash, end) = line.split_once(' ').unwrap_or((line, "-"));
    let mut bytes = [0; 32];
    let digits = |at: usize| hash.get(at * 2..at * 2 + 2);
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits(at)?, 16).ok()?;
    }
    Some((bytes, end.trim().parse().ok()))
}

impl Revoked {
    /// Reads what was revoked in a data directory. What would have ended meanwhile is forgotten.
    pub(crate) fn load(dir: &DataDir) -> Result<Revoked> {
        let path = dir.path().join(FILE);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(failed(&path)(e)),
        };
        let known = text.lines().filter_map(read_line);
        let known = known.filter(|(_, end)| end.is_none_or(|end| end > now())).collect();
        Ok(Revoked { known: Mutex::new(known) })
    }

    pub(crate) fn has(&self, hash: &[u8; 32]) -> bool {
        self.known.lock().unwrap_or_else(PoisonError::into_inner).contains_key(hash)
    }

    /// Remembers tokens for good, on disk first.
    pub(crate) fn add(&self, dir: &DataDir, tokens: &[([u8; 32], Option<i64>)]) -> Result<()> {
        let path = dir.path().join(FILE);
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let new: String = tokens
            .iter()
            .filter(|(hash, _)| !known.contains_key(hash))
            .map(|(hash, end)| line(hash, *end))
            .collect();
        if !new.is_empty() {
            let open = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
            let mut file = open.map_err(failed(&path))?;
            file.write_all(new.as_bytes()).and_then(|()| file.sync_all()).map_err(failed(&path))?;
        }
        known.extend(tokens.iter().copied());
        Ok(())
    }

    /// A token that is kept on purpose is not revoked: the owner's may be put back.
    pub(crate) fn forget(&self, dir: &DataDir, hash: &[u8; 32]) -> Result<()> {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.remove(hash).is_none() {
            return Ok(());
        }
        let path = dir.path().join(FILE);
        let text: String = known.iter().map(|(hash, end)| line(hash, *end)).collect();
        crate::dir::write_private(&path, text.as_bytes()).map_err(failed(&path))
    }
}

/// Takes out of a copy what must not be valid again when it is put in the place of the store of a data
/// directory: tokens that the store has no more. In a directory that was never used nobody knows what was
/// revoked since the copy was made: no token of it is valid there. Returns how many were taken out.
pub(crate) fn keep_revocations(dir: &DataDir, copy: &Path) -> Result<usize> {
    let used = dir.path().join(FILE).exists() || dir.path().join(crate::dir::TOKEN_FILE).exists();
    let present = present(dir);
    if present.is_none() && used {
        // The store is gone or damaged; what is listed as revoked is not let in anyway.
        return Ok(0);
    }
    let present = present.unwrap_or_default();
    let mut db = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let tx = db.transaction()?;
    let kept: Vec<Vec<u8>> = tx
        .prepare("SELECT hash FROM token")?
        .query_map([], |r| r.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let gone: Vec<Vec<u8>> = kept.into_iter().filter(|hash| !present.contains(hash)).collect();
    for hash in &gone {
        tx.execute("DELETE FROM token WHERE hash = ?1", [hash])?;
    }
    tx.commit()?;
    Ok(gone.len())
}

/// The tokens of the store that is there, if it can be read.
fn present(dir: &DataDir) -> Option<HashSet<Vec<u8>>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags).ok()?;
    let mut rows = db.prepare("SELECT hash FROM token").ok()?;
    let rows = rows.query_map([], |r| r.get(0)).ok()?;
    rows.collect::<rusqlite::Result<_>>().ok()
}
