//! Errors of the store.

use std::fmt;

/// The error for a file that was removed from a store in use.
pub(crate) const FILE_REPLACED: &str = "is no longer in the data directory: it was deleted, moved or replaced; nothing is stored until it is back or narrows restarts";

/// The result type of the store.
pub type Result<T> = std::result::Result<T, Error>;

/// An error of the store. Messages never contain session content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Another process holds the lock of the data directory.
    Locked(String),
    /// The data directory, a file or the database cannot be used.
    Refused(String),
    /// The database was written by a newer version.
    Newer {
        /// The schema of the database.
        found: u32,
        /// The newest schema that this version supports.
        known: u32,
    },
    /// The database was written by an older version and has not been migrated.
    Older {
        /// The schema of the database.
        found: u32,
        /// The schema that this version reads.
        known: u32,
    },
    /// The named object does not exist.
    NotFound(&'static str),
    /// Another writer has appended: the log does not end where the caller expected.
    Conflict {
        /// The last event of the log.
        last: u64,
    },
    /// The disk or the configured limit is full.
    Full,
    /// The database is read-only.
    ReadOnly,
    /// The disk failed or did not respond in time.
    Io(String),
    /// The database is damaged.
    Damaged(String),
    /// The database is unreachable or too busy.
    Unavailable(String),
    /// Another node has taken over the session.
    Fenced,
    /// Packets were read by a writer that is gone or on another node, with text still in the
    /// hold-back buffer: the packets after the checkpoint must be sent again.
    Resend {
        /// The number of the checkpoint's packet.
        acknowledged: u64,
        /// The idempotency key of the request that sent the packet after it, if any.
        key: Option<String>,
    },
    /// The request is invalid.
    Invalid(String),
    /// Another request is writing the session.
    Busy,
    /// The idempotency key was used before, with another body.
    KeyReused,
    /// The store is closed.
    Closed,
}

impl Error {
    /// Whether the operation may succeed later without intervention.
    pub fn is_retryable(&self) -> bool {
        matches!(
            self,
            Error::Full
                | Error::ReadOnly
                | Error::Io(_)
                | Error::Unavailable(_)
                | Error::Conflict { .. }
        )
    }
}

/// The message of a statement that was interrupted by its deadline.
const INTERRUPTED: &str = "the operation timed out";

impl Error {
    /// Whether data could not be read, while other data may be readable.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Error::Damaged(_) => true,
            Error::Io(what) => what != INTERRUPTED,
            _ => false,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Locked(what)
            | Error::Refused(what)
            | Error::Invalid(what)
            | Error::Unavailable(what) => f.write_str(what),
            Error::Newer { found, known } => write!(
                f,
                "the store was written by a newer narrows (schema {found}, this one knows {known}): \
                 use that version, or another data directory"
            ),
            Error::Older { found, known } => write!(
                f,
                "the store was written by an older narrows (schema {found}, this one reads {known}): \
                 `narrows index` brings it up to date; a server that is running must be restarted"
            ),
            Error::NotFound(what) => write!(f, "{what} not found"),
            Error::Conflict { last } => {
                write!(f, "another writer has appended: the log ends at event {last}")
            }
            Error::Resend { acknowledged, .. } => write!(
                f,
                "text held back from earlier packets was lost: resend everything after packet \
                 {acknowledged}, these packets included, in one request with `first={}` (`narrows ingest --first`)",
                acknowledged + 1
            ),
            Error::Busy => f.write_str("another request is writing this session"),
            Error::Fenced => f.write_str("another node has taken over this session"),
            Error::Full => f.write_str("no space left for the store"),
            Error::ReadOnly => f.write_str("the store cannot be written: it is read-only"),
            // The message is about a missing file, not about the disk.
            Error::Io(what) if what.ends_with(FILE_REPLACED) => f.write_str(what),
            Error::Io(what) => write!(f, "disk error: {what}"),
            Error::Damaged(what) => write!(f, "the store is damaged: {what}"),
            Error::KeyReused => {
                f.write_str("this Idempotency-Key was used with another body: use a new key")
            }
            Error::Closed => f.write_str("the store is closed"),
        }
    }
}

impl std::error::Error for Error {}

impl From<rusqlite::Error> for Error {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let code = error.sqlite_error_code();
        match code {
            Some(Code::DiskFull) => Error::Full,
            Some(Code::ReadOnly | Code::PermissionDenied) => Error::ReadOnly,
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => {
                Error::Damaged(sqlite_message(&error))
            }
            Some(Code::OperationInterrupted) => Error::Io(INTERRUPTED.to_owned()),
            Some(_) => Error::Io(sqlite_message(&error)),
            None => Error::Damaged(sqlite_message(&error)),
        }
    }
}

/// The message of SQLite about its own state; it never quotes values.
fn sqlite_message(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => match text {
            Some(text) => format!("{text} ({})", code.extended_code),
            None => code.to_string(),
        },
        rusqlite::Error::QueryReturnedNoRows => "a row is missing".to_owned(),
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            "a column has an unexpected type".to_owned()
        }
        _ => "unexpected answer".to_owned(),
    }
}
