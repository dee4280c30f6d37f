//! Changed files of a call.

use crate::sanitize::Clean;
use serde::Serialize;

/// Whether the texts of a diff are whole files.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum Scope {
    File,
    Hunk,
}

/// What happened to a file.
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
    /// Relative to the session root.
    pub path: T,
    /// The text before; none when nobody told.
    pub old_text: Option<T>,
    /// The text after; none when the file is gone.
    pub new_text: Option<T>,
    /// What the texts are.
    pub scope: Scope,
    /// What happened, where somebody told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub action: Option<DiffAction>,
    /// Lines added, where somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub additions: Option<u64>,
    /// Lines removed, where somebody counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deletions: Option<u64>,
    /// The change as a unified diff, where the texts are missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<T>,
    /// The changed lines, where the agent tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hunks: Option<Vec<Hunk<T>>>,
}

impl<T> Diff<T> {
    /// A change of the file at `path` of which nothing is known.
    pub fn of(path: T, scope: Scope) -> Self {
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

/// Changed lines of a file, with some around them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "camelCase")]
pub struct Hunk<T = Clean> {
    /// The first line before the change, from 1.
    pub old_start: u64,
    /// How many lines it had.
    pub old_lines: u64,
    /// The first line after the change, from 1.
    pub new_start: u64,
    /// How many lines it has.
    pub new_lines: u64,
    /// The lines, each after a blank, a `-` or a `+`.
    pub lines: Vec<T>,
}
