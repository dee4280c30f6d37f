//! Reads back what narrows printed, for a store that continues after a restart.
//!
//! Only with the feature `stored`: it makes clean text from any text, so it is only for the code
//! that stores the output of narrows. A value that was read prints byte for byte as before.

mod change;
mod event;
mod item;
mod tool;

pub use change::changes;
pub use event::event;
pub use item::item;

use crate::json::to_writer;
use crate::model::session::SessionInfo;
use crate::model::usage::TokenLedger;
use serde::{Deserialize, Serialize};

/// The input is nothing that narrows prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadBackError(String);

impl ReadBackError {
    fn new(what: &str) -> Self {
        ReadBackError(what.to_owned())
    }
}

impl std::fmt::Display for ReadBackError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not printed by narrows: {}", self.0)
    }
}

impl std::error::Error for ReadBackError {}

impl From<serde_json::Error> for ReadBackError {
    fn from(e: serde_json::Error) -> Self {
        ReadBackError(e.to_string())
    }
}

/// The fields of a header that are not in its public JSON.
#[derive(Deserialize)]
struct PrivateFields {
    ledger: Option<TokenLedger>,
    #[serde(default)]
    answered: bool,
    #[serde(default)]
    answered_at: Option<i64>,
    #[serde(default)]
    ended: bool,
    #[serde(default)]
    named: bool,
}

#[derive(Serialize)]
struct FullHeader<'a> {
    #[serde(flatten)]
    info: &'a SessionInfo,
    ledger: &'a TokenLedger,
    answered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ended: bool,
    named: bool,
}

/// Reads a header with its private fields, or as a change prints it. Without them, token counting
/// continues from the sums.
pub fn info(json: &str) -> Result<SessionInfo, ReadBackError> {
    let mut info: SessionInfo = serde_json::from_str(json)?;
    let private: PrivateFields = serde_json::from_str(json)?;
    info.ledger = private.ledger.unwrap_or_else(|| {
        TokenLedger::from_sums(info.usage.as_ref(), info.subagent_usage.as_ref())
    });
    info.answered = private.answered;
    info.answered_at = private.answered_at;
    info.ended = private.ended;
    info.named = private.named;
    Ok(info)
}

/// Prints a header with its private fields, so that token counting continues exactly.
pub fn print_info(info: &SessionInfo) -> Vec<u8> {
    let mut out = Vec::new();
    let (ledger, answered, named) = (&info.ledger, info.answered, info.named);
    let (answered_at, ended) = (info.answered_at, info.ended);
    if to_writer(&mut out, &FullHeader { info, ledger, answered, answered_at, ended, named })
        .is_err()
    {
        out.clear();
    }
    out
}

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::ReadBackError as Error;
