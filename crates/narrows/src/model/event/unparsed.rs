//! Payloads for input that the adapters do not understand.

use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// A kind that nobody modelled.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct Unknown<T = Clean> {
    /// Its own name.
    pub kind: T,
    /// Everything it said.
    pub tree: Option<Tree<T>>,
}

/// A line that could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Malformed {
    /// What is wrong with it.
    pub reason: &'static str,
    /// Where.
    pub position: Position,
    /// How long the line is.
    pub length: u64,
    /// Which file of the session it is in, as in a packet.
    #[serde(skip)]
    pub source: u32,
}

/// A place in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Position {
    /// The line, from 1.
    pub line: u64,
    /// The byte in the line, from 0.
    pub column: u64,
    /// The byte in the source, from 0.
    pub offset: u64,
}
