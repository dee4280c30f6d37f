//! Revoked tokens, in a file next to the database: a restored copy of the database does not know the
//! revocations since it was made.

use crate::data_dir::DataDir;
use crate::error::{Error, Result};
use crate::ids::now;
use rusqlite::{Connection, OpenFlags};
use std::collections::{HashMap, HashSet};
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

/// One line for each token: its hash and its expiry, `-` if it has none.
const FILE_NAME: &str = "revoked";

/// The revoked tokens of a data directory: hash and expiry in milliseconds.
#[derive(Debug, Default)]
pub(crate) struct Revocations {
    tokens: Mutex<HashMap<[u8; 32], Option<i64>>>,
}

fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |e| match e.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::FileTooLarge => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Refused(format!("{path}: {e}")),
    }
}

fn encode(hash: &[u8; 32], expires: Option<i64>) -> String {
    let hash: String = hash.iter().map(|b| format!("{b:02x}")).collect();
    format!("{hash} {}\n", expires.map_or_else(|| "-".to_owned(), |at| at.to_string()))
}

fn decode(line: &str) -> Option<([u8; 32], Option<i64>)> {
    let (hash, expires) = line.split_once(' ').unwrap_or((line, "-"));
    let mut bytes = [0; 32];
    let digits = |at: usize| hash.get(at * 2..at * 2 + 2);
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(digits(at)?, 16).ok()?;
    }
    Some((bytes, expires.trim().parse().ok()))
}

impl Revocations {
    /// Reads the revoked tokens of a data directory. Expired ones are dropped.
    pub(crate) fn load(dir: &DataDir) -> Result<Revocations> {
        let path = dir.path().join(FILE_NAME);
        let text = match fs::read(&path) {
            Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
            Err(e) if e.kind() == io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(file_error(&path)(e)),
        };
        let tokens = text.lines().filter_map(decode);
        let tokens = tokens.filter(|(_, expires)| expires.is_none_or(|at| at > now())).collect();
        Ok(Revocations { tokens: Mutex::new(tokens) })
    }

    pub(crate) fn contains(&self, hash: &[u8; 32]) -> bool {
        self.tokens.lock().unwrap_or_else(PoisonError::into_inner).contains_key(hash)
    }

    /// Revokes tokens. The file is synced before it returns.
    pub(crate) fn add(&self, dir: &DataDir, tokens: &[([u8; 32], Option<i64>)]) -> Result<()> {
        let path = dir.path().join(FILE_NAME);
        let mut revoked = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        let new: String = tokens
            .iter()
            .filter(|(hash, _)| !revoked.contains_key(hash))
            .map(|(hash, expires)| encode(hash, *expires))
            .collect();
        if !new.is_empty() {
            let open = OpenOptions::new().create(true).append(true).mode(0o600).open(&path);
            let mut file = open.map_err(file_error(&path))?;
            file.write_all(new.as_bytes())
                .and_then(|()| file.sync_all())
                .map_err(file_error(&path))?;
        }
        revoked.extend(tokens.iter().copied());
        Ok(())
    }

    /// Withdraws a revocation: the owner may put its own token back.
    pub(crate) fn remove(&self, dir: &DataDir, hash: &[u8; 32]) -> Result<()> {
        let mut revoked = self.tokens.lock().unwrap_or_else(PoisonError::into_inner);
        if revoked.remove(hash).is_none() {
            return Ok(());
        }
        let path = dir.path().join(FILE_NAME);
        let text: String = revoked.iter().map(|(hash, expires)| encode(hash, *expires)).collect();
        crate::data_dir::write_private(&path, text.as_bytes()).map_err(file_error(&path))
    }
}

/// Deletes the tokens from a copy of a database that the current store no longer has, before the copy
/// replaces it: they must not become valid again. In a directory that was never used the revocations
/// since the copy was made are unknown, so all its tokens are deleted. Returns the number of deleted
/// tokens.
pub(crate) fn delete_revoked_tokens(dir: &DataDir, copy: &Path) -> Result<usize> {
    let was_used = dir.path().join(FILE_NAME).exists()
        || dir.path().join(crate::data_dir::TOKEN_FILE).exists();
    let current = current_hashes(dir);
    if current.is_none() && was_used {
        // The store is gone or damaged. Tokens in the file are refused anyway.
        return Ok(0);
    }
    let current = current.unwrap_or_default();
    let mut db = Connection::open_with_flags(copy, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let tx = db.transaction()?;
    let hashes: Vec<Vec<u8>> = tx
        .prepare("SELECT hash FROM token")?
        .query_map([], |r| r.get(0))?
        .collect::<rusqlite::Result<_>>()?;
    let revoked: Vec<Vec<u8>> = hashes.into_iter().filter(|hash| !current.contains(hash)).collect();
    for hash in &revoked {
        tx.execute("DELETE FROM token WHERE hash = ?1", [hash])?;
    }
    tx.commit()?;
    Ok(revoked.len())
}

/// The token hashes of the current store, if it can be read.
fn current_hashes(dir: &DataDir) -> Option<HashSet<Vec<u8>>> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let db = Connection::open_with_flags(dir.database(), flags).ok()?;
    let mut rows = db.prepare("SELECT hash FROM token").ok()?;
    let rows = rows.query_map([], |r| r.get(0)).ok()?;
    rows.collect::<rusqlite::Result<_>>().ok()
}
