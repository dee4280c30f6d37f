//! The files that a finished edit changed.

use crate::model::event::{FileAction, FileChange};
use crate::model::tool::{DiffAction, DiffScope, ToolCall, ToolKind, TriState};
use crate::sanitize::Clean;

/// Appends the files that a completed call changed, each once.
pub(super) fn file_changes(id: &Clean, call: &ToolCall, changes: &mut Vec<FileChange>) {
    let deletes = call.kind == ToolKind::Delete;
    if !deletes && !matches!(call.kind, ToolKind::Edit | ToolKind::Move) {
        return;
    }
    let default_action = match call.is_new_file {
        _ if deletes => FileAction::Deleted,
        Some(TriState::Yes) => FileAction::Created,
        _ => FileAction::Modified,
    };
    for diff in call.diffs.iter().flatten().filter(|d| !d.path.is_empty()) {
        let action = match diff.action {
            Some(DiffAction::Delete) => FileAction::Deleted,
            Some(DiffAction::Add) if call.is_new_file != Some(TriState::No) => FileAction::Created,
            _ => default_action,
        };
        let has_size = diff.scope == DiffScope::File && action != FileAction::Deleted;
        let size = diff.new_text.as_ref().filter(|_| has_size).map(|t| t.len() as u64);
        if changes.iter().all(|c| c.path != diff.path) {
            changes.push(FileChange {
                path: diff.path.clone(),
                action,
                size_bytes: size,
                tool_call_id: Some(id.clone()),
            });
        }
    }
    if changes.is_empty()
        && let Some(path) = call.file_path.clone().filter(|p| !p.is_empty())
    {
        let tool_call_id = Some(id.clone());
        changes.push(FileChange { path, action: default_action, size_bytes: None, tool_call_id });
    }
}
