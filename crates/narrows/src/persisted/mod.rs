//! Reading back what narrows itself printed, for whoever keeps it and goes on after a restart.
//!
//! Only behind the feature `stored`: with it, clean text can be made out of any text, so it is for
//! the keeper of narrows' own output and for nothing else. What is read prints as it was printed,
//! byte for byte.

mod change;
mod event;
mod item;
mod tool;

pub use change::changes;
pub use event::event;
pub use item::item;

use crate::json::print;
use crate::model::session::SessionInfo;
use crate::model::usage::Ledger;
use serde::{Deserialize, Serialize};

/// What was read is nothing that narrows prints.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error(String);

impl Error {
    fn new(what: &str) -> Self {
        Error(what.to_owned())
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "not as narrows prints it: {}", self.0)
    }
}

impl std::error::Error for Error {}

impl From<serde_json::Error> for Error {
    fn from(e: serde_json::Error) -> Self {
        Error(e.to_string())
    }
}

/// What of a header is not shown, but goes on after a restart.
#[derive(Deserialize)]
struct Hidden {
    ledger: Option<Ledger>,
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
struct Whole<'a> {
    #[serde(flatten)]
    info: &'a SessionInfo,
    ledger: &'a Ledger,
    answered: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    answered_at: Option<i64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    ended: bool,
    named: bool,
}

/// Reads a header, whole or as a change shows it. One that was only shown goes on counting from its
/// sums.
pub fn info(json: &str) -> Result<SessionInfo, Error> {
    let mut info: SessionInfo = serde_json::from_str(json)?;
    let hidden: Hidden = serde_json::from_str(json)?;
    info.ledger = hidden
        .ledger
        .unwrap_or_else(|| Ledger::of(info.usage.as_ref(), info.subagent_usage.as_ref()));
    info.answered = hidden.answered;
    info.answered_at = hidden.answered_at;
    info.ended = hidden.ended;
    info.named = hidden.named;
    Ok(info)
}

/// Prints a header with what is not shown of it, so that counting goes on exactly.
pub fn print_info(info: &SessionInfo) -> Vec<u8> {
    let mut out = Vec::new();
    let (ledger, answered, named) = (&info.ledger, info.answered, info.named);
    let (answered_at, ended) = (info.answered_at, info.ended);
    if print(&mut out, &Whole { info, ledger, answered, answered_at, ended, named }).is_err() {
        out.clear();
    }
    out
}
