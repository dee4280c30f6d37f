//! What PostgreSQL says when something goes wrong, without the values that it quotes.

use crate::error::Error;
use tokio_postgres::error::SqlState;

/// The database cannot be used now.
pub(super) fn lost(why: &str) -> Error {
    Error::Unavailable(format!("PostgreSQL: {why}"))
}

/// What went wrong, and whether the connection is of no use any more.
pub(super) fn trouble(error: &tokio_postgres::Error) -> (Error, bool) {
    let Some(said) = error.as_db_error() else {
        return (lost("the connection was lost"), true);
    };
    let code = said.code();
    let text = code.code();
    let what = format!("PostgreSQL error {text}");
    match *code {
        SqlState::DISK_FULL => (Error::Full, false),
        // A server that was the first and is it no more.
        SqlState::READ_ONLY_SQL_TRANSACTION => (lost("this server does not take writes"), true),
        SqlState::T_R_SERIALIZATION_FAILURE
        | SqlState::T_R_DEADLOCK_DETECTED
        | SqlState::LOCK_NOT_AVAILABLE
        | SqlState::QUERY_CANCELED => {
            (lost("somebody else was in the way, or it took too long"), false)
        }
        SqlState::TOO_MANY_CONNECTIONS => (lost("it has no more connections"), true),
        // Connections, resources, somebody's intervention, the system around it.
        _ if ["08", "53", "57", "58"].iter().any(|class| text.starts_with(class)) => {
            (Error::Unavailable(what), true)
        }
        SqlState::INVALID_PASSWORD | SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            (Error::Refused("PostgreSQL does not let this user in".to_owned()), true)
        }
        SqlState::INVALID_CATALOG_NAME => {
            (Error::Refused("PostgreSQL has no such database".to_owned()), true)
        }
        _ => (Error::Damaged(what), false),
    }
}
