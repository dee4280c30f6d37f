//! Mapping of PostgreSQL errors. Messages never contain the values that the server quotes.

use crate::error::Error;
use tokio_postgres::error::SqlState;

/// An error for a database that is unavailable now.
pub(super) fn connection_lost(why: &str) -> Error {
    Error::Unavailable(format!("PostgreSQL: {why}"))
}

/// Maps an error; also returns whether the connection is unusable.
pub(super) fn map_error(error: &tokio_postgres::Error) -> (Error, bool) {
    let Some(db_error) = error.as_db_error() else {
        return (connection_lost("the connection was lost"), true);
    };
    let code = db_error.code();
    let text = code.code();
    let message = format!("PostgreSQL error {text}");
    match *code {
        SqlState::DISK_FULL => (Error::Full, false),
        // The server was the primary and is none any more.
        SqlState::READ_ONLY_SQL_TRANSACTION => {
            (connection_lost("the server does not accept writes"), true)
        }
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED => (connection_lost("lock conflict or timeout"), false),
        SqlState::TOO_MANY_CONNECTIONS => (connection_lost("too many connections"), true),
        // Classes of connection errors, resource limits, operator intervention and system errors.
        _ if ["08", "53", "57", "58"].iter().any(|class| text.starts_with(class)) => {
            (Error::Unavailable(message), true)
        }
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            (Error::Refused("PostgreSQL rejected the user name or password".to_owned()), true)
        }
        SqlState::INVALID_CATALOG_NAME => {
            (Error::Refused("the PostgreSQL database does not exist".to_owned()), true)
        }
        _ => (Error::Damaged(message), false),
    }
}
