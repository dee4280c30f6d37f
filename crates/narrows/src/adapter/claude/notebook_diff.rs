//! The diff of one notebook cell, from the notebook before and after the edit.

use crate::json::{Index, Json, Kind};
use crate::model::tool::{Diff, DiffScope};
use crate::sanitize::Raw;

/// The number of cells that are read.
const MAX_CELLS: usize = 10_000;

/// Returns the diff of the edited cell; without the old notebook it has only the new text.
pub(super) fn notebook_diff(value: Json<'_>) -> Option<Diff<Raw>> {
    let text = |names: &[&str]| value.any(names).and_then(Json::owned);
    let path = text(&["notebook_path", "notebookPath", "filePath"]).unwrap_or_default();
    let new = text(&["new_source", "newSource"]);
    let mode = text(&["edit_mode", "editMode"]).unwrap_or_default();
    let id = text(&["cell_id", "cellId"]);
    let before = text(&["original_file", "originalFile"]).map(|t| parse_cells(&t));
    let after = text(&["updated_file", "updatedFile"]).map(|t| parse_cells(&t));
    let explicit = value.any(&["old_source", "oldSource"]).and_then(Json::owned);
    let old = || explicit.or_else(|| old_source(before?, after.as_deref(), id.as_deref()));
    let (old_text, new_text) = match mode.as_str() {
        "insert" => (None, new),
        "delete" => (Some(old()?), None),
        _ => (old(), new),
    };
    (old_text.is_some() || new_text.is_some()).then(|| Diff {
        old_text: old_text.map(Raw::new),
        new_text: Some(Raw::new(new_text.unwrap_or_default())),
        ..Diff::new(Raw::new(path), DiffScope::Hunk)
    })
}

/// A cell of a notebook.
struct NotebookCell {
    id: Option<String>,
    source: String,
}

/// Returns the old text of the edited cell. It is found by its id, by its index (`cell-3`), or as the
/// first cell that differs.
fn old_source(
    before: Vec<NotebookCell>,
    after: Option<&[NotebookCell]>,
    id: Option<&str>,
) -> Option<String> {
    let by_index = id.and_then(|id| id.strip_prefix("cell-")).and_then(|n| n.parse::<usize>().ok());
    let by_id = id.and_then(|id| before.iter().position(|c| c.id.as_deref() == Some(id)));
    let changed = || {
        let after = after?;
        (0..before.len()).find(|at| after.get(*at).is_none_or(|c| c.source != before[*at].source))
    };
    let at = by_id.or(by_index.filter(|at| *at < before.len())).or_else(changed)?;
    before.into_iter().nth(at).map(|cell| cell.source)
}

fn parse_cells(notebook: &str) -> Vec<NotebookCell> {
    let mut index = Index::default();
    let Ok(doc) = index.read(notebook.trim()) else { return Vec::new() };
    let list = doc.root().get("cells").filter(|c| c.kind() == Kind::Array);
    let cell = |cell: Json<'_>| {
        let source = cell.get("source");
        let lines = || source.into_iter().flat_map(Json::items).filter_map(Json::str);
        NotebookCell {
            id: cell.get("id").and_then(Json::owned),
            source: source.and_then(Json::owned).unwrap_or_else(|| lines().collect()),
        }
    };
    list.into_iter().flat_map(Json::items).take(MAX_CELLS).map(cell).collect()
}
