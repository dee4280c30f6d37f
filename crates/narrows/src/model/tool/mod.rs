//! Tool calls in the one vocabulary that all formats share.

mod call;
mod diff;
mod fields;
mod labels;
mod line_counts;
mod merge;
mod names;
mod output_text;

pub use call::ToolCall;
pub use diff::{Diff, DiffAction, DiffScope, Hunk};
pub use fields::{Image, Location, Permission, Todo, ToolOutput, TriState};
pub use line_counts::ChangedFile;
pub use merge::ChangedFields;
pub use names::{display_title, kind_agrees, search_tool_by_metadata, tool_by_input, tool_by_name};
pub use output_text::{exit_code, file_text, shell_text, task_text, without_line_numbers};

// Former names, for the crates that still use them.
#[doc(hidden)]
pub use self::{ChangedFields as Fresh, DiffScope as Scope, ToolOutput as Output, TriState as Tri};

use serde::Serialize;

/// The tool of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolName {
    Glob,
    Grep,
    Read,
    Write,
    Edit,
    Bash,
    Task,
    TodoWrite,
    WebFetch,
    WebSearch,
    #[serde(rename = "apply_patch")]
    ApplyPatch,
    Skill,
    List,
    Lsp,
    Question,
    Notebook,
    #[serde(rename = "plan_mode")]
    PlanMode,
    Mcp,
    Unknown,
}

/// Kind of the action of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolKind {
    Search,
    Read,
    Execute,
    Edit,
    Task,
    Other,
    Delete,
    Move,
    Think,
    Fetch,
    SwitchMode,
}

impl ToolKind {
    /// Parses an agent's word; none if it is unknown.
    pub fn parse(word: &str) -> Option<ToolKind> {
        Some(match word {
            "search" => ToolKind::Search,
            "read" => ToolKind::Read,
            "execute" => ToolKind::Execute,
            "edit" => ToolKind::Edit,
            "task" => ToolKind::Task,
            "other" => ToolKind::Other,
            "delete" => ToolKind::Delete,
            "move" => ToolKind::Move,
            "think" => ToolKind::Think,
            "fetch" => ToolKind::Fetch,
            "switch_mode" => ToolKind::SwitchMode,
            _ => return None,
        })
    }
}

/// Progress of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[cfg_attr(feature = "stored", derive(serde::Deserialize))]
#[serde(rename_all = "snake_case")]
#[expect(missing_docs, reason = "the names say it")]
pub enum ToolStatus {
    Pending,
    InProgress,
    Completed,
    Failed,
    Cancelled,
}

impl ToolStatus {
    /// Parses an agent's word; none if it is unknown, which keeps the old status.
    pub fn parse(word: &str) -> Option<ToolStatus> {
        Some(match word {
            "pending" => ToolStatus::Pending,
            "in_progress" => ToolStatus::InProgress,
            "completed" => ToolStatus::Completed,
            "failed" => ToolStatus::Failed,
            "cancelled" => ToolStatus::Cancelled,
            _ => return None,
        })
    }

    /// Whether the call has ended.
    pub fn is_final(self) -> bool {
        self.rank() == 2
    }

    /// Rank of the status; a status only moves to a higher rank.
    pub(crate) fn rank(self) -> u8 {
        match self {
            ToolStatus::Pending => 0,
            ToolStatus::InProgress => 1,
            ToolStatus::Completed | ToolStatus::Failed | ToolStatus::Cancelled => 2,
        }
    }
}
