//! The change of one cell of a notebook, out of the notebook before and after.

use crate::json::{Index, Json, Kind};
use crate::sanitize::Raw;
use crate::tool::{Diff, Scope};

/// Cells that are looked at.
const MAX_CELLS: usize = 10_000;

/// What an edit did to its cell. Without a notebook to compare with, the new text is all there is.
pub(super) fn diff(value: Json<'_>) -> Option<Diff<Raw>> {
    let text = |names: &[&str]| value.any(names).and_then(Json::owned);
    let path = text(&["notebook_path", "notebookPath", "filePath"]).unwrap_or_default();
    let new = text(&["new_source", "newSource"]);
    let mode = text(&["edit_mode", "editMode"]).unwrap_or_default();
    let id = text(&["cell_id", "cellId"]);
    let before = text(&["original_file", "originalFile"]).map(|t| cells(&t));
    let after = text(&["updated_file", "updatedFile"]).map(|t| cells(&t));
    let known = value.any(&["old_source", "oldSource"]).and_then(Json::owned);
    let old = || known.or_else(|| replaced(before?, after.as_deref(), id.as_deref()));
    let (old_text, new_text) = match mode.as_str() {
        "insert" => (None, new),
        "delete" => (Some(old()?), None),
        _ => (old(), new),
    };
    (old_text.is_some() || new_text.is_some()).then(|| Diff {
        old_text: old_text.map(Raw::new),
        new_text: Some(Raw::new(new_text.unwrap_or_default())),
        ..Diff::of(Raw::new(path), Scope::Hunk)
    })
}

/// A cell: its id and its text.
struct Cell {
    id: Option<String>,
    source: String,
}

/// The text of a cell that was there before: by its id, its place (`cell-3`), or because it is the
/// first one that is another now.
fn replaced(before: Vec<Cell>, after: Option<&[Cell]>, id: Option<&str>) -> Option<String> {
    let place = id.and_then(|id| id.strip_prefix("cell-")).and_then(|n| n.parse::<usize>().ok());
    let named = id.and_then(|id| before.iter().position(|c| c.id.as_deref() == Some(id)));
    let changed = || {
        let after = after?;
        (0..before.len()).find(|at| after.get(*at).is_none_or(|c| c.source != before[*at].source))
    };
    let at = named.or(place.filter(|at| *at < before.len())).or_else(changed)?;
    before.into_iter().nth(at).map(|cell| cell.source)
}

fn cells(notebook: &str) -> Vec<Cell> {
    let mut index = Index::default();
    let Ok(doc) = index.read(notebook.trim()) else { return Vec::new() };
    let list = doc.root().get("cells").filter(|c| c.kind() == Kind::Array);
    let cell = |cell: Json<'_>| {
        let source = cell.get("source");
        let lines = || source.into_iter().flat_map(Json::items).filter_map(Json::str);
        Cell {
            id: cell.get("id").and_then(Json::owned),
            source: source.and_then(Json::owned).unwrap_or_else(|| lines().collect()),
        }
    };
    list.into_iter().flat_map(Json::items).take(MAX_CELLS).map(cell).collect()
}
