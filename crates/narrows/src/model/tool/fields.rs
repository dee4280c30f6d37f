//! Types of the fields of a call.

use super::ToolStatus;
use crate::sanitize::Clean;
use serde::{Serialize, Serializer};

/// An optional boolean with an explicit unknown, which is null in JSON.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TriState {
    Unknown,
    Yes,
    No,
}

impl Serialize for TriState {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            TriState::Unknown => s.serialize_none(),
            TriState::Yes => s.serialize_bool(true),
            TriState::No => s.serialize_bool(false),
        }
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for TriState {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Option::<bool>::deserialize(d)? {
            None => TriState::Unknown,
            Some(true) => TriState::Yes,
            Some(false) => TriState::No,
        })
    }
}

/// The output of a call: all of it, or the part that follows earlier output.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum ToolOutput<T = Clean> {
    /// Replaces earlier output.
    #[serde(rename = "rawOutput")]
    Whole(T),
    /// Appends to earlier output.
    #[serde(rename = "rawOutputAppend")]
    More(T),
}

/// One entry of a todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Todo<T = Clean> {
    /// The task.
    pub content: T,
    /// `pending`, `in_progress` or `completed`; also `cancelled` if the agent reports it.
    pub status: ToolStatus,
    /// The task in its active form, for display while it is in progress.
    pub active_form: T,
    /// `high`, `medium` or `low`, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<T>,
    /// Id of the entry, if it is not just the position in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<T>,
}

/// A file position that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Location<T = Clean> {
    /// Path relative to the session root.
    pub path: T,
    /// Line, from 1.
    pub line: Option<u64>,
}

/// An image; its bytes are stored as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// SHA-256 of the bytes, in hexadecimal.
    pub blob: String,
    /// MIME type, such as `image/png`.
    pub mime_type: String,
    /// Length in bytes.
    pub size: u64,
}

/// The decision on the permission request of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Permission<T = Clean> {
    /// `allowed`, `rejected` or `cancelled`.
    pub decision: T,
    /// Label of the chosen option, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<T>,
    /// How long the call waited for the decision, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "stored", serde(default))]
    pub waited_ms: Option<u64>,
}
