//! Payloads for input that the adapters do not understand.

use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// A packet of an unknown kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(bound(
    serialize = "T: Serialize, Tree<T>: Serialize",
    deserialize = "T: serde::Deserialize<'de>, Tree<T>: serde::Deserialize<'de>"
))]
pub struct UnknownPacket<T = Clean> {
    /// Kind that the packet names.
    pub kind: T,
    /// Content of the packet.
    pub tree: Option<Tree<T>>,
}

/// A line that is no valid packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Malformed {
    /// Reason.
    pub reason: &'static str,
    /// Position of the error.
    pub position: Position,
    /// Length of the line in bytes.
    pub length: u64,
    /// Source of the line, as in a packet.
    #[serde(skip)]
    pub source: u32,
}

/// A position in a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Position {
    /// Line, from 1.
    pub line: u64,
    /// Byte in the line, from 0.
    pub column: u64,
    /// Byte in the source, from 0.
    pub offset: u64,
}
