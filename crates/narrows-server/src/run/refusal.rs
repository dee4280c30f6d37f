//! Why something was not done; also as one node tells it to another.

use narrows_store::Error;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Why something was not done.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Refusal {
    /// The server does not run agents.
    NotAllowed,
    /// narrows does not run this session.
    NotRun,
    /// There is no such agent, or it is not installed.
    NoAgent(String),
    /// The session's folder is on another machine, or gone.
    NoFolder,
    /// The agent's process is not there.
    NotRunning,
    /// Nobody asks that.
    NotAsked,
    /// Somebody answered before.
    AlreadyAnswered,
    /// The answer is none of those on offer.
    NoSuchOption,
    /// The answer says why, and the agent has no way to be told, or it is no refusal.
    NoReason,
    /// The form wants something else; what.
    Unfit(String),
    /// Not everything is answered; what is not.
    Missing(String),
    /// The agent does not offer what is chosen; what it offers.
    NotOffered(String),
    /// Too much waits.
    Full(Cow<'static, str>),
    Store(#[serde(with = "store")] Error),
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        Refusal::Store(error)
    }
}

/// What a store's trouble on one node is on another: what clients are told of it is the same.
mod store {
    use narrows_store::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    #[derive(Serialize, Deserialize)]
    enum Told {
        Invalid(String),
        NotFound,
        KeyReused,
        Full,
        ReadOnly,
        Closed,
        Other(String),
    }

    pub(super) fn serialize<S: Serializer>(error: &Error, to: S) -> Result<S::Ok, S::Error> {
        let told = match error {
            Error::Invalid(what) => Told::Invalid(what.clone()),
            Error::NotFound(_) => Told::NotFound,
            Error::KeyReused => Told::KeyReused,
            Error::Full => Told::Full,
            Error::ReadOnly => Told::ReadOnly,
            Error::Closed => Told::Closed,
            other => Told::Other(other.to_string()),
        };
        told.serialize(to)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Error, D::Error> {
        Ok(match Told::deserialize(from)? {
            Told::Invalid(what) => Error::Invalid(what),
            Told::NotFound => Error::NotFound("session"),
            Told::KeyReused => Error::KeyReused,
            Told::Full => Error::Full,
            Told::ReadOnly => Error::ReadOnly,
            Told::Closed => Error::Closed,
            // Whatever it is there, it may pass.
            Told::Other(what) => Error::Unavailable(what),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ApiError;

    #[test]
    fn another_node_tells_clients_the_same() {
        let all = [
            Refusal::NotAllowed,
            Refusal::NotRun,
            Refusal::NoAgent("there is no agent `x`".to_owned()),
            Refusal::NoFolder,
            Refusal::NotRunning,
            Refusal::NotAsked,
            Refusal::AlreadyAnswered,
            Refusal::NoSuchOption,
            Refusal::NoReason,
            Refusal::Unfit("`age` is missing".to_owned()),
            Refusal::Missing("question 1".to_owned()),
            Refusal::NotOffered("there is no option `x`".to_owned()),
            Refusal::Full("too many messages wait for this agent".into()),
            Refusal::Store(Error::Invalid("another message".to_owned())),
            Refusal::Store(Error::NotFound("session")),
            Refusal::Store(Error::KeyReused),
            Refusal::Store(Error::Full),
            Refusal::Store(Error::Closed),
            Refusal::Store(Error::Unavailable("PostgreSQL: it does not answer".to_owned())),
        ];
        for refusal in all {
            let text = serde_json::to_string(&refusal).expect("text");
            let again: Refusal = serde_json::from_str(&text).expect(&text);
            let (one, other) = (ApiError::from(refusal), ApiError::from(again));
            assert_eq!(one.told(), other.told(), "{text}");
        }
    }
}
