//! The data directory: permissions, the lock of the writing process, private files.

use crate::error::{Error, Result};
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The file with the address of a running server.
pub const ADDRESS_FILE: &str = "server.json";
/// The file with the owner's token.
pub const TOKEN_FILE: &str = "token";
const LOCK_FILE: &str = "lock";
const DATABASE: &str = "narrows.db";

/// A data directory that only this user can access.
#[derive(Debug, Clone)]
pub struct DataDir {
    path: PathBuf,
}

/// The lock of the writing process, held until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl DataDir {
    /// Opens or creates the directory. Rejects one that other users can write.
    pub fn open(path: &Path) -> Result<DataDir> {
        let shown = path.display();
        let failed = |e: io::Error| Error::Refused(format!("data directory {shown}: {e}"));
        if !path.exists() {
            DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
        }
        let about = fs::metadata(path).map_err(failed)?;
        if !about.is_dir() {
            return Err(Error::Refused(format!("data directory {shown}: not a directory")));
        }
        let mode = about.permissions().mode();
        if mode & 0o002 != 0 {
            let what = format!(
                "data directory {shown}: writable by other users; `chmod 700` it or use another"
            );
            return Err(Error::Refused(what));
        }
        if mode & 0o077 != 0 {
            // Best effort: a directory on read-only media keeps its mode.
            let _ = fs::set_permissions(path, fs::Permissions::from_mode(0o700));
        }
        Ok(DataDir { path: path.to_owned() })
    }

    /// The path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of the database.
    pub fn database(&self) -> PathBuf {
        self.path.join(DATABASE)
    }

    /// The path of the write-ahead log.
    pub(crate) fn wal(&self) -> PathBuf {
        self.path.join(format!("{DATABASE}-wal"))
    }

    /// Whether a process holds the lock.
    pub fn is_in_use(&self) -> bool {
        let file = OpenOptions::new().read(true).open(self.path.join(LOCK_FILE));
        file.is_ok_and(|f| matches!(f.try_lock_shared(), Err(TryLockError::WouldBlock)))
    }

    /// Acquires the lock, which one process can hold at a time.
    pub(crate) fn lock(&self) -> Result<Lock> {
        let path = self.path.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false).mode(0o600);
        let mut file = options.open(&path).map_err(|e| match e.kind() {
            io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
            _ => Error::Refused(format!("{}: {e}", path.display())),
        })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(&path).unwrap_or_default();
                let holder = match holder.trim().parse::<u32>() {
                    Ok(pid) => format!(" (process {pid})"),
                    Err(_) => String::new(),
                };
                let shown = self.path.display();
                return Err(Error::Locked(format!(
                    "another narrows{holder} uses the data directory {shown}: \
                     stop it, or name another with --data"
                )));
            }
            Err(TryLockError::Error(e)) => {
                return Err(Error::Refused(format!("{}: {e}", path.display())));
            }
        }
        let own = file.metadata().map(|m| m.uid());
        let directory = fs::metadata(&self.path).map(|m| m.uid());
        if let (Ok(own), Ok(directory)) = (own, directory)
            && own != directory
        {
            let shown = self.path.display();
            return Err(Error::Refused(format!("data directory {shown}: owned by another user")));
        }
        // A hint for the process that finds the lock held; nothing depends on it.
        let _ = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
        Ok(Lock { _file: file })
    }
}

/// Writes a file that only its owner can read, atomically.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".new");
    let fresh = path.with_file_name(name);
    let _ = fs::remove_file(&fresh);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&fresh)?;
    file.write_all(content)?;
    file.sync_all()?;
    fs::rename(&fresh, path)
}

/// Creates an empty private file if there is none: SQLite gives its WAL the same mode.
pub(crate) fn make_private(path: &Path) -> io::Result<()> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(e) => Err(e),
    }
}
