//! What a packet of a call says about files: diffs, places, pictures.

use super::tool::Meta;
use crate::adapter::input::MAX_LIST;
use crate::adapter::{Yield, blob};
use crate::json::{Json, Kind};
use crate::sanitize::Raw;
use crate::tool::{Diff, DiffAction, Image, Location, Scope, ToolCall, ToolKind, ToolName, Tri};

/// Every changed file of a call: from the content, the notes, or as a last resort the arguments.
pub(super) fn diffs(
    call: &ToolCall<Raw>,
    content: Option<Json<'_>>,
    input: Option<Json<'_>>,
    notes: Option<Json<'_>>,
    whole: bool,
) -> Option<Vec<Diff<Raw>>> {
    let exists = notes.and_then(|n| n.get("exists")).and_then(Json::bool) == Some(true);
    let text = |json: Json<'_>, names: &[&str]| json.any(names).and_then(Json::str).map(Raw::new);
    let mut list: Vec<Diff<Raw>> = Vec::new();
    for item in content.into_iter().flat_map(Json::items) {
        if item.text("type").as_deref() != Some("diff") {
            continue;
        }
        let action = action(item.path(&["_meta", "kind"]));
        if item.get("path").is_none() && item.any(&["newText", "new_text"]).is_none() {
            continue;
        }
        let scope =
            if whole || action == Some(DiffAction::Add) { Scope::File } else { Scope::Hunk };
        list.push(Diff {
            // opencode sends an empty old text for a file that it overwrites: it is not known.
            old_text: text(item, &["oldText", "old_text"]).filter(|t| !(exists && t.is_empty())),
            new_text: text(item, &["newText", "new_text"]),
            action,
            ..Diff::of(text(item, &["path"]).unwrap_or_default(), scope)
        });
    }
    let files = notes.and_then(|n| n.get("files")).filter(|f| f.kind() == Kind::Array);
    for file in files.into_iter().flat_map(Json::items).filter(|f| f.kind() == Kind::Object) {
        let (before, after) = (text(file, &["before"]), text(file, &["after"]));
        let missing = before.is_none() && after.is_none();
        let path = text(file, &["filePath", "relativePath", "path"]).unwrap_or_default();
        list.push(Diff {
            old_text: before,
            new_text: after,
            action: action(file.get("type")),
            additions: file.get("additions").and_then(Json::u64),
            deletions: file.get("deletions").and_then(Json::u64),
            patch: missing.then(|| text(file, &["diff"])).flatten(),
            ..Diff::of(path, Scope::File)
        });
    }
    if call.tool_name == ToolName::ApplyPatch && list.len() == 1 && list[0].path.is_empty() {
        // The document's own example leaves the path to the patch text.
        if let Some(name) =
            input.and_then(|i| i.text("patchText")).as_deref().and_then(patched_file)
        {
            list[0].path = Raw::new(name);
        }
    }
    if list.is_empty() && matches!(call.tool_name, ToolName::Edit | ToolName::Write) {
        let input = input?;
        let old = text(input, &["oldString", "old_string"]);
        let new = text(input, &["newString", "new_string", "content"])?;
        let scope = if old.is_some() { Scope::Hunk } else { Scope::File };
        let path = call.file_path.clone().unwrap_or_default();
        list.push(Diff { old_text: old, new_text: Some(new), ..Diff::of(path, scope) });
    }
    (!list.is_empty()).then_some(list)
}

/// The first file that a patch text names.
fn patched_file(patch: &str) -> Option<&str> {
    const HEADS: [&str; 3] = ["*** Add File: ", "*** Update File: ", "*** Delete File: "];
    patch.lines().find_map(|line| HEADS.iter().find_map(|head| line.strip_prefix(head)))
}

fn action(word: Option<Json<'_>>) -> Option<DiffAction> {
    Some(match word.and_then(Json::str)?.as_ref() {
        "add" | "create" => DiffAction::Add,
        "update" | "modify" => DiffAction::Update,
        "delete" | "remove" => DiffAction::Delete,
        "move" | "rename" => DiffAction::Move,
        _ => return None,
    })
}

/// Whether an edit makes a new file: only what somebody says counts. An empty old text is no
/// proof, since agents send it for overwritten files too.
pub(super) fn is_new(
    call: &ToolCall<Raw>,
    notes: Option<Json<'_>>,
    meta: &Meta<'_>,
    content: Option<Json<'_>>,
) -> Option<Tri> {
    if call.kind != ToolKind::Edit {
        return None;
    }
    let yes = |yes: bool| Some(if yes { Tri::Yes } else { Tri::No });
    if let Some(exists) = notes.and_then(|n| n.get("exists")).and_then(Json::bool) {
        return yes(!exists);
    }
    match meta.response.and_then(|r| r.text("type")).as_deref() {
        Some("create") => return Some(Tri::Yes),
        Some("update") => return Some(Tri::No),
        _ => {}
    }
    let list = call.diffs.as_deref().unwrap_or_default();
    if notes.is_some_and(|n| n.get("files").is_some()) && list.iter().any(|d| d.action.is_some()) {
        return yes(list.iter().all(|d| d.action == Some(DiffAction::Add)));
    }
    let first = list.first()?;
    if first.old_text.as_ref().is_some_and(|t| !t.is_empty()) {
        return Some(Tri::No);
    }
    // Codex says `add` with a null old text for overwritten files too, gemini says what is true.
    match first.action {
        Some(DiffAction::Update | DiffAction::Delete | DiffAction::Move) => Some(Tri::No),
        Some(DiffAction::Add) if first.old_text.is_some() && content.is_some() => Some(Tri::Yes),
        _ => None,
    }
}

pub(super) fn images(content: Option<Json<'_>>, out: &mut Yield) -> Option<Vec<Image>> {
    let mut list = Vec::new();
    for item in content.into_iter().flat_map(Json::items) {
        let block = item.get("content").filter(|c| c.text("type").as_deref() == Some("image"));
        list.extend(block.and_then(|b| blob::image(b, &mut out.blobs)));
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
