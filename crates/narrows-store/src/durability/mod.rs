//! Crash safety of the SQLite files: WAL checkpoints, the log ends that were durable, copies of damaged
//! write-ahead logs, and the atomic replacement of the database by a repaired one.
//!
//! Knows the session rows only as far as their log ends; the repair itself is in `repair`.

pub(crate) mod checkpointer;
pub(crate) mod file_guard;
mod log_end_file;
pub(crate) mod log_ends;
pub(crate) mod swap;
pub(crate) mod wal_frames;

use crate::error::Error;
use std::io;
use std::path::Path;

/// Makes a store error of a failed file operation.
pub(crate) fn file_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    let path = path.display().to_string();
    move |e| match e.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Io(format!("{path}: {e}")),
    }
}
