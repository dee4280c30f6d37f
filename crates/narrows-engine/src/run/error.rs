//! Errors of runs, which nodes also exchange.

use narrows_store::Error;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Why a request to a run failed.
#[derive(Debug, Serialize, Deserialize)]
pub enum RunError {
    /// This server does not run agents.
    NotAllowed,
    /// The session is not a run.
    NotRun,
    /// The agent is unknown or not installed.
    NoAgent(String),
    /// The working directory is gone or on another machine.
    NoFolder,
    /// The agent's process is not running.
    NotRunning,
    /// There is no such request.
    NotAsked,
    /// The request was answered before.
    AlreadyAnswered,
    /// The option was not offered.
    NoSuchOption,
    /// The answer has a reason that the agent cannot receive, or that is not part of a refusal.
    NoReason,
    /// The answer does not fit the form; why.
    Unfit(String),
    /// Answers are missing; which.
    Missing(String),
    /// The agent does not offer a setting; what it offers.
    NotOffered(String),
    /// A limit is reached.
    Full(Cow<'static, str>),
    Store(#[serde(with = "store")] Error),
}

impl From<Error> for RunError {
    fn from(error: Error) -> Self {
        RunError::Store(error)
    }
}

/// Serializes store errors, so that clients get the same response from every node.
mod store {
    use narrows_store::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum RemoteStoreError {
        Invalid(String),
        NotFound,
        Busy,
        KeyReused,
        Full,
        ReadOnly,
        Closed,
        Other(String),
    }

    pub(super) fn serialize<S: Serializer>(error: &Error, to: S) -> Result<S::Ok, S::Error> {
        let remote = match error {
            Error::Invalid(what) => RemoteStoreError::Invalid(what.clone()),
            Error::NotFound(_) => RemoteStoreError::NotFound,
            Error::Busy => RemoteStoreError::Busy,
            Error::KeyReused => RemoteStoreError::KeyReused,
            Error::Full => RemoteStoreError::Full,
            Error::ReadOnly => RemoteStoreError::ReadOnly,
            Error::Closed => RemoteStoreError::Closed,
            other => RemoteStoreError::Other(other.to_string()),
        };
        remote.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Error, D::Error> {
        Ok(match RemoteStoreError::deserialize(from)? {
            RemoteStoreError::Invalid(what) => Error::Invalid(what),
            RemoteStoreError::NotFound => Error::NotFound("session"),
            RemoteStoreError::Busy => Error::Busy,
            RemoteStoreError::KeyReused => Error::KeyReused,
            RemoteStoreError::Full => Error::Full,
            RemoteStoreError::ReadOnly => Error::ReadOnly,
            RemoteStoreError::Closed => Error::Closed,
            // An unknown error of another node counts as temporary.
            RemoteStoreError::Other(what) => Error::Unavailable(what),
        })
    }
}
