//! The files in a packet of a tool call: diffs, locations, images.

use super::content::image_block;
use super::tool_call::ToolMeta;
use crate::adapter::output::AdapterOutput;
use crate::adapter::tool_input::MAX_LIST;
use crate::json::{Json, Kind};
use crate::model::tool::{
    Diff, DiffAction, DiffScope, Image, Location, ToolCall, ToolKind, ToolName, TriState,
};
use crate::sanitize::Raw;

/// Collects the changed files of a call: from the content, the metadata of the output, or as a last
/// resort the arguments.
pub(super) fn diffs(
    call: &ToolCall<Raw>,
    content: Option<Json<'_>>,
    input: Option<Json<'_>>,
    metadata: Option<Json<'_>>,
    is_whole_file: bool,
) -> Option<Vec<Diff<Raw>>> {
    let exists = metadata.and_then(|m| m.get("exists")).and_then(Json::bool) == Some(true);
    let text = |json: Json<'_>, names: &[&str]| json.any(names).and_then(Json::str).map(Raw::new);
    let mut list: Vec<Diff<Raw>> = Vec::new();
    for item in content.into_iter().flat_map(Json::items) {
        if item.text("type").as_deref() != Some("diff") {
            continue;
        }
        let action = diff_action(item.path(&["_meta", "kind"]));
        if item.get("path").is_none() && item.any(&["newText", "new_text"]).is_none() {
            continue;
        }
        let scope = if is_whole_file || action == Some(DiffAction::Add) {
            DiffScope::File
        } else {
            DiffScope::Hunk
        };
        list.push(Diff {
            // opencode sends an empty old text for an overwritten file: the old text is unknown.
            old_text: text(item, &["oldText", "old_text"]).filter(|t| !(exists && t.is_empty())),
            new_text: text(item, &["newText", "new_text"]),
            action,
            ..Diff::new(text(item, &["path"]).unwrap_or_default(), scope)
        });
    }
    let files = metadata.and_then(|m| m.get("files")).filter(|f| f.kind() == Kind::Array);
    for file in files.into_iter().flat_map(Json::items).filter(|f| f.kind() == Kind::Object) {
        let (before, after) = (text(file, &["before"]), text(file, &["after"]));
        let has_no_text = before.is_none() && after.is_none();
        let path = text(file, &["filePath", "relativePath", "path"]).unwrap_or_default();
        list.push(Diff {
            old_text: before,
            new_text: after,
            action: diff_action(file.get("type")),
            additions: file.get("additions").and_then(Json::u64),
            deletions: file.get("deletions").and_then(Json::u64),
            patch: has_no_text.then(|| text(file, &["diff"])).flatten(),
            ..Diff::new(path, DiffScope::File)
        });
    }
    if call.tool_name == ToolName::ApplyPatch && list.len() == 1 && list[0].path.is_empty() {
        // The example in the protocol's documentation has the path in the patch text only.
        if let Some(name) =
            input.and_then(|i| i.text("patchText")).as_deref().and_then(first_patched_file)
        {
            list[0].path = Raw::new(name);
        }
    }
    if list.is_empty() && matches!(call.tool_name, ToolName::Edit | ToolName::Write) {
        let input = input?;
        let old = text(input, &["oldString", "old_string"]);
        let new = text(input, &["newString", "new_string", "content"])?;
        let scope = if old.is_some() { DiffScope::Hunk } else { DiffScope::File };
        let path = call.file_path.clone().unwrap_or_default();
        list.push(Diff { old_text: old, new_text: Some(new), ..Diff::new(path, scope) });
    }
    (!list.is_empty()).then_some(list)
}

/// Returns the first file that a patch text names.
fn first_patched_file(patch: &str) -> Option<&str> {
    const HEADERS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    patch.lines().find_map(|line| HEADERS.iter().find_map(|header| line.strip_prefix(header)))
}

fn diff_action(action: Option<Json<'_>>) -> Option<DiffAction> {
    Some(match action.and_then(Json::str)?.as_ref() {
        "add" | "create" => DiffAction::Add,
        "update" | "modify" => DiffAction::Update,
        "delete" | "remove" => DiffAction::Delete,
        "move" | "rename" => DiffAction::Move,
        _ => return None,
    })
}

/// Whether an edit creates a file: only an explicit statement counts. An empty old text is no proof,
/// since agents send it for overwritten files too.
pub(super) fn is_new_file(
    call: &ToolCall<Raw>,
    metadata: Option<Json<'_>>,
    meta: &ToolMeta<'_>,
    content: Option<Json<'_>>,
) -> Option<TriState> {
    if call.kind != ToolKind::Edit {
        return None;
    }
    let known = |is_new: bool| Some(if is_new { TriState::Yes } else { TriState::No });
    if let Some(exists) = metadata.and_then(|m| m.get("exists")).and_then(Json::bool) {
        return known(!exists);
    }
    match meta.claude_result.and_then(|r| r.text("type")).as_deref() {
        Some("create") => return Some(TriState::Yes),
        Some("update") => return Some(TriState::No),
        _ => {}
    }
    let list = call.diffs.as_deref().unwrap_or_default();
    if metadata.is_some_and(|m| m.get("files").is_some()) && list.iter().any(|d| d.action.is_some())
    {
        return known(list.iter().all(|d| d.action == Some(DiffAction::Add)));
    }
    let first = list.first()?;
    if first.old_text.as_ref().is_some_and(|t| !t.is_empty()) {
        return Some(TriState::No);
    }
    // Codex sends `add` with a null old text for overwritten files too; Gemini's `add` is reliable.
    match first.action {
        Some(DiffAction::Update | DiffAction::Delete | DiffAction::Move) => Some(TriState::No),
        Some(DiffAction::Add) if first.old_text.is_some() && content.is_some() => {
            Some(TriState::Yes)
        }
        _ => None,
    }
}

pub(super) fn images(content: Option<Json<'_>>, out: &mut AdapterOutput) -> Option<Vec<Image>> {
    let mut list = Vec::new();
    for item in content.into_iter().flat_map(Json::items) {
        let block = item.get("content").filter(|c| c.text("type").as_deref() == Some("image"));
        list.extend(block.and_then(|b| image_block(b, &mut out.blobs)));
    }
    (!list.is_empty()).then_some(list)
}

pub(super) fn locations(list: Option<Json<'_>>) -> Option<Vec<Location<Raw>>> {
    let list: Vec<_> = list
        .into_iter()
        .flat_map(Json::items)
        .take(MAX_LIST)
        .filter_map(|l| {
            let path = l.text("path")?;
            Some(Location { path: Raw::new(path), line: l.get("line").and_then(Json::u64) })
        })
        .collect();
    (!list.is_empty()).then_some(list)
}
