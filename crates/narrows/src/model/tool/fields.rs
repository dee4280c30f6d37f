//! Types of the fields of a call.

use super::ToolStatus;
use crate::sanitize::Clean;
use serde::{Serialize, Serializer};

/// Yes, no, or nobody has said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Tri {
    Unknown,
    Yes,
    No,
}

impl Serialize for Tri {
    fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        match self {
            Tri::Unknown => s.serialize_none(),
            Tri::Yes => s.serialize_bool(true),
            Tri::No => s.serialize_bool(false),
        }
    }
}

#[cfg(feature = "stored")]
impl<'de> serde::Deserialize<'de> for Tri {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Option::<bool>::deserialize(d)? {
            None => Tri::Unknown,
            Some(true) => Tri::Yes,
            Some(false) => Tri::No,
        })
    }
}

/// The output of a call: all of it, or what comes after the part already given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub enum Output<T = Clean> {
    /// Replaces what there was.
    #[serde(rename = "rawOutput")]
    Whole(T),
    /// Goes on where the last one ended.
    #[serde(rename = "rawOutputAppend")]
    More(T),
}

/// One entry of a todo list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Todo<T = Clean> {
    /// What is to be done.
    pub content: T,
    /// `pending`, `in_progress` or `completed`; agents' `cancelled` stays.
    pub status: ToolStatus,
    /// The same while it is being done.
    pub active_form: T,
    /// `high`, `medium` or `low`, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<T>,
    /// Its id, where entries have one that is not their place in the list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<T>,
}

/// A place that a call touches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Location<T = Clean> {
    /// Relative to the session root.
    pub path: T,
    /// The line, from 1.
    pub line: Option<u64>,
}

/// A picture: its bytes travel as a blob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Image {
    /// The SHA-256 of the bytes, in hexadecimal.
    pub blob: String,
    /// `image/png` and the like.
    pub mime_type: String,
    /// Length in bytes.
    pub size: u64,
}

/// What somebody decided about a call that needed leave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Permission<T = Clean> {
    /// `allowed`, `rejected` or `cancelled`.
    pub decision: T,
    /// The option that was chosen, by its name where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<T>,
    /// How long the call waited for it, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "stored", serde(default))]
    pub waited_ms: Option<u64>,
}
