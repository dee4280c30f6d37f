//! What can go wrong, in words that help.

use crate::durable::GONE;
use std::fmt;

/// The result of a store's work.
pub type Result<T> = std::result::Result<T, Error>;

/// Why something could not be done. Never holds what a session says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// Another process writes this data directory.
    Locked(String),
    /// The directory or a file cannot be used as it is.
    Refused(String),
    /// The database was made by a newer version.
    Newer {
        /// Its schema.
        found: u32,
        /// The newest that this version knows.
        known: u32,
    },
    /// The database was made by an older version, and nobody has brought it up to date.
    Older {
        /// Its schema.
        found: u32,
        /// The one that this version reads.
        known: u32,
    },
    /// No such session, item, picture or token.
    NotFound(&'static str),
    /// Somebody else has appended: the log ends at another place than the caller knew.
    Conflict {
        /// Where the log ends.
        last: u64,
    },
    /// There is no room.
    Full,
    /// The database cannot be written.
    ReadOnly,
    /// The disk fails, or is slow beyond patience.
    Io(String),
    /// The database is damaged.
    Damaged(String),
    /// The database cannot be reached, or is too busy.
    Unavailable(String),
    /// Another node has taken over what this one was doing.
    Fenced,
    /// Packets were read by somebody who is gone, or by another node, and what was held back of them is
    /// not here: those after this place must be sent again.
    Resend {
        /// The place of the last packet none of whose text is held back.
        acknowledged: u64,
        /// The key of the request that the packet after it came with, where it had one.
        key: Option<String>,
    },
    /// What was asked makes no sense.
    Invalid(String),
    /// Another request is writing the session.
    Busy,
    /// The key of a request was used before, with another body.
    KeyReused,
    /// The store is closed.
    Closed,
}

impl Error {
    /// Whether the same may work later, without anybody doing anything here.
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

/// A statement was given up.
const TOO_LONG: &str = "it takes too long";

impl Error {
    /// Whether what was asked for cannot be read, where something else may be.
    pub(crate) fn is_unreadable(&self) -> bool {
        match self {
            Error::Damaged(_) => true,
            Error::Io(what) => what != TOO_LONG,
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
                write!(f, "the session was written by somebody else, up to event {last}")
            }
            Error::Resend { acknowledged, .. } => write!(
                f,
                "what was held back of packets before these is gone: in one request, send again all that \
                 comes after packet {acknowledged}, these included, with `first={}` (`narrows ingest --first`)",
                acknowledged + 1
            ),
            Error::Busy => f.write_str("another request is writing this session"),
            Error::Fenced => f.write_str("another node has taken this session over"),
            Error::Full => f.write_str("no space left for the store"),
            Error::ReadOnly => f.write_str("the store cannot be written: it is read-only"),
            // The disk has nothing to do with it.
            Error::Io(what) if what.ends_with(GONE) => f.write_str(what),
            Error::Io(what) => write!(f, "the store's disk fails: {what}"),
            Error::Damaged(what) => write!(f, "the store is damaged: {what}"),
            Error::KeyReused => {
                f.write_str("this Idempotency-Key came before, with another body: use a new key")
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
            Some(Code::DatabaseCorrupt | Code::NotADatabase) => Error::Damaged(words(&error)),
            Some(Code::OperationInterrupted) => Error::Io(TOO_LONG.to_owned()),
            Some(_) => Error::Io(words(&error)),
            None => Error::Damaged(words(&error)),
        }
    }
}

/// What SQLite says of its own state; it never quotes values.
fn words(error: &rusqlite::Error) -> String {
    match error {
        rusqlite::Error::SqliteFailure(code, text) => match text {
            Some(text) => format!("{text} ({})", code.extended_code),
            None => code.to_string(),
        },
        rusqlite::Error::QueryReturnedNoRows => "a row is missing".to_owned(),
        rusqlite::Error::InvalidColumnType(..) | rusqlite::Error::FromSqlConversionFailure(..) => {
            "a column holds something else".to_owned()
        }
        _ => "unexpected answer".to_owned(),
    }
}
