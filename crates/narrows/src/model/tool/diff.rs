//! Changed files of a call.

use crate::sanitize::Clean;
use serde::Serialize;

/// Extent of the texts of a diff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DiffScope {
    File,
    Hunk,
}

/// Kind of the change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum DiffAction {
    Add,
    Update,
    Delete,
    Move,
}

/// One changed file of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Diff<T = Clean> {
    /// Path relative to the session root.
    pub path: T,
    /// Old text; none if unknown.
    pub old_text: Option<T>,
    /// New text; none if the file was deleted.
    pub new_text: Option<T>,
    /// Extent of the texts.
    pub scope: DiffScope,
    /// Kind of the change, if the agent reports it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DiffAction>,
    /// Lines added, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additions: Option<u64>,
    /// Lines removed, if they were counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// Unified diff, if the texts are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<T>,
    /// Changed lines, if the agent reports them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<Hunk<T>>>,
}

impl<T> Diff<T> {
    /// A change of the file at `path` without any details.
    pub fn new(path: T, scope: DiffScope) -> Self {
        Diff {
            path,
            old_text: None,
            new_text: None,
            scope,
            action: None,
            additions: None,
            deletions: None,
            patch: None,
            hunks: None,
        }
    }
}

/// Changed lines of a file, with context.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Hunk<T = Clean> {
    /// First line in the old file, from 1.
    pub old_start: u64,
    /// Number of lines in the old file.
    pub old_lines: u64,
    /// First line in the new file, from 1.
    pub new_start: u64,
    /// Number of lines in the new file.
    pub new_lines: u64,
    /// The lines, each with a prefix of a blank, `-` or `+`.
    pub lines: Vec<T>,
}
