//! Payloads about files: artifacts, changes, the agent's own files.

use crate::sanitize::Clean;
use serde::Serialize;

/// An artifact: a file or an app that a person may want to open.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Artifact<T = Clean> {
    /// The artifact; the nesting is that of the packets it comes from.
    pub artifact: ArtifactInfo<T>,
}

/// The fields of an artifact. Their JSON names are those of the packets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct ArtifactInfo<T = Clean> {
    /// Id of the artifact.
    pub id: T,
    /// `file`, `image`, `web_app`, `nextjs_app`, or a kind that the agent names.
    pub r#type: T,
    /// Display name.
    pub name: T,
    /// Path relative to the session root.
    pub path: T,
    /// URL of a preview.
    pub preview_url: Option<T>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct FileChange<T = Clean> {
    /// Path relative to the session root.
    pub path: T,
    /// Kind of the change.
    pub action: FileAction,
    /// New size in bytes, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The call that changed it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}

/// Kind of a file change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileAction {
    Created,
    Modified,
    Deleted,
}

/// A file of the agent itself: a plan or a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct AgentFile<T = Clean> {
    /// Path relative to the session root, or to the home folder if it is outside of the root.
    pub path: T,
    /// The call that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}
