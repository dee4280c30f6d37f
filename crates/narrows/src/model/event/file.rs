//! Payloads about files: artifacts, changes, the agent's own files.

use crate::sanitize::Clean;
use serde::Serialize;

/// Something to open. Its fields keep the names of the packets they come from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct Artifact<T = Clean> {
    /// The artifact.
    pub artifact: ArtifactInfo<T>,
}

/// What an artifact is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
pub struct ArtifactInfo<T = Clean> {
    /// Its id.
    pub id: T,
    /// `file`, `image`, `web_app`, `nextjs_app` or the agent's own word.
    pub r#type: T,
    /// Its name.
    pub name: T,
    /// Relative to the session root.
    pub path: T,
    /// Where it can be looked at.
    pub preview_url: Option<T>,
}

/// A changed file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct FileChange<T = Clean> {
    /// Relative to the session root.
    pub path: T,
    /// What happened to it.
    pub action: FileAction,
    /// Its new size, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub size_bytes: Option<u64>,
    /// The call that did it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}

/// What happened to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum FileAction {
    Created,
    Modified,
    Deleted,
}

/// A file of the agent's own: a plan, a skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct AgentFile<T = Clean> {
    /// Relative inside the session root, else from the home folder.
    pub path: T,
    /// The call that names it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<T>,
}
