//! The diff of an edit, from the structured result of its call.

use crate::adapter::tool_input::MAX_LIST;
use crate::json::{Json, Kind};
use crate::model::tool::{Diff, DiffScope, Hunk};
use crate::sanitize::Raw;

/// The longest file that is computed by applying an edit, in bytes.
const MAX_FILE_BYTES: usize = 64 << 20;

/// Returns the diff: the text of the file before and after if both are known, else the replaced
/// part.
pub(super) fn edit_diff(value: Json<'_>) -> Option<Diff<Raw>> {
    let names = ["filePath", "structuredPatch", "originalFile"];
    value.any(&names)?;
    // An empty path stands for the path of the call.
    let path = Raw::new(value.text("filePath").unwrap_or_default());
    let hunks = value.get("structuredPatch").filter(|p| !p.is_empty()).map(parse_hunks);
    let text = |name: &str| value.get(name).and_then(Json::owned);
    let original = text("originalFile");
    let is_creation = value.text("type").as_deref() == Some("create");
    if let Some(content) = text("content") {
        let old_text = original.filter(|_| !is_creation).map(Raw::new);
        let new_text = Some(Raw::new(content));
        return Some(Diff { old_text, new_text, hunks, ..Diff::new(path, DiffScope::File) });
    }
    if let Some(edits) = value.get("edits").filter(|e| e.kind() == Kind::Array)
        && let Some(before) = original.clone().or_else(|| text("originalFileContents"))
        && let Some(after) = apply_edits(&before, edits)
    {
        let (old_text, new_text) = (Some(Raw::new(before)), Some(Raw::new(after)));
        return Some(Diff { old_text, new_text, hunks, ..Diff::new(path, DiffScope::File) });
    }
    let (old, new) = (text("oldString"), text("newString"));
    let all = value.get("replaceAll").and_then(Json::bool) == Some(true);
    if let (Some(original), Some(old), Some(new)) = (&original, &old, &new)
        && let Some(modified) = apply_edit(original, old, new, all)
    {
        let (old_text, new_text) = (Some(Raw::new(original.clone())), Some(Raw::new(modified)));
        return Some(Diff { old_text, new_text, hunks, ..Diff::new(path, DiffScope::File) });
    }
    let (old_text, new_text) = (old.map(Raw::new), new.map(Raw::new));
    Some(Diff { old_text, new_text, hunks, ..Diff::new(path, DiffScope::Hunk) })
}

/// Applies several edits in order.
fn apply_edits(before: &str, edits: Json<'_>) -> Option<String> {
    edits.items().take(MAX_LIST).try_fold(before.to_owned(), |file, edit| {
        let text = |names: &[&str]| edit.any(names).and_then(Json::owned);
        let (old, new) = (text(&["old_string", "oldString"])?, text(&["new_string", "newString"])?);
        let all = edit.any(&["replace_all", "replaceAll"]).and_then(Json::bool) == Some(true);
        apply_edit(&file, &old, &new, all)
    })
}

/// Applies one edit; none when the file does not contain the replaced text.
fn apply_edit(original: &str, old: &str, new: &str, all: bool) -> Option<String> {
    if old.is_empty() {
        return original.is_empty().then(|| new.to_owned());
    }
    let matches = memchr::memmem::find_iter(original.as_bytes(), old.as_bytes());
    let matches: Vec<usize> = matches.take(if all { usize::MAX } else { 1 }).collect();
    // An edit that replaces every byte by a page is not worth its memory.
    let len = original.len() + matches.len().saturating_mul(new.len());
    if matches.is_empty() || len > MAX_FILE_BYTES {
        return None;
    }
    let mut out = String::with_capacity(len);
    let mut from = 0;
    for at in matches {
        out.push_str(original.get(from..at)?);
        out.push_str(new);
        from = at + old.len();
    }
    out.push_str(original.get(from..)?);
    Some(out)
}

fn parse_hunks(list: Json<'_>) -> Vec<Hunk<Raw>> {
    let hunk = |h: Json<'_>| {
        let number = |name: &str| h.get(name).and_then(Json::u64).unwrap_or(0);
        let lines = h.get("lines").into_iter().flat_map(Json::items);
        Hunk {
            old_start: number("oldStart"),
            old_lines: number("oldLines"),
            new_start: number("newStart"),
            new_lines: number("newLines"),
            lines: lines.filter_map(Json::str).map(Raw::new).collect(),
        }
    };
    list.items().filter(|h| h.kind() == Kind::Object).map(hunk).collect()
}
