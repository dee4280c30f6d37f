//! Salvages rows from a database whose pages no longer lead to each other: reads every page and writes
//! its rows into a separate database, which the repair then copies from.
//!
//! The table of a page follows from the schema rows, wherever they are. Rows of unknown tables are taken
//! if their checksum proves which table they belong to.

use super::damaged_db::SALVAGE_DIR;
use super::page_cells::{PageCells, PageKind, decode_columns};
use super::page_source::{PAGE_BYTES, PageBuffer, PageSource};
use super::table_shape::TableShape;
use crate::data_dir::DataDir;
use crate::db::{Db, Value};
use crate::error::Result;
use crate::migrations::open_writer;
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// The deepest B-tree.
const MAX_DEPTH: usize = 64;
/// The indexes of session ids and labels.
const NAME_INDEXES: [&str; 2] = ["sqlite_autoindex_session_1", "sqlite_autoindex_session_2"];

/// The salvaged rows.
pub(super) struct SalvagedRows {
    pub(super) db: Connection,
    /// Session ids and labels from [`NAME_INDEXES`], by session key.
    pub(super) names: [BTreeMap<i64, String>; 2],
    /// Pages that are not in any file.
    pub(super) missing_pages: u32,
    /// Sessions that recovered lost events from a copy of the WAL.
    pub(super) recovered: BTreeSet<i64>,
}

/// The parent of each page, and the tables of root pages.
pub(super) struct PageTree {
    parents: Vec<u32>,
    /// The names of tables and indexes by their root pages.
    roots: HashMap<u32, String>,
    missing: u32,
}

/// Salvages all rows of all pages.
pub(super) fn salvage(dir: &DataDir, new_dir: &DataDir, new: &Connection) -> Result<SalvagedRows> {
    let pages = PageSource::open(dir);
    let tree = PageTree::read(&pages);
    let shapes = TableShape::all(new)?;
    let salvage_dir = DataDir::open(&new_dir.path().join(SALVAGE_DIR))?;
    let db = open_writer(&salvage_dir, None)?;
    // The settings of a new store must not be taken for salvaged ones.
    db.execute_batch(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN; DELETE FROM meta",
    )?;
    let mut salvaged = SalvagedRows {
        db,
        names: Default::default(),
        missing_pages: tree.missing,
        recovered: BTreeSet::new(),
    };
    let mut page: PageBuffer = [0; PAGE_BYTES];
    for number in 1..=pages.count {
        if !pages.read(number, &mut page) {
            continue;
        }
        let Some(cells) = PageCells::parse(&page, number) else { continue };
        let owner = tree.owner(number);
        for (rowid, bytes) in cells.rows(&pages, &page) {
            if let Some(values) = decode_columns(&bytes) {
                salvaged.add(&shapes, owner, &cells, rowid, values)?;
            }
        }
    }
    salvaged.db.execute_batch("COMMIT")?;
    Ok(salvaged)
}

impl PageTree {
    pub(super) fn read(pages: &PageSource) -> PageTree {
        let mut parents = vec![0; pages.count as usize + 1];
        let (mut roots, mut missing) = (HashMap::new(), 0);
        let mut page: PageBuffer = [0; PAGE_BYTES];
        for number in 1..=pages.count {
            if !pages.read(number, &mut page) {
                missing += 1;
                continue;
            }
            let Some(cells) = PageCells::parse(&page, number) else { continue };
            for child in cells.children(&page) {
                if let Some(parent) = parents.get_mut(child as usize) {
                    *parent = number;
                }
            }
            if cells.kind == PageKind::TableLeaf {
                for (_, row) in cells.rows(pages, &page) {
                    roots.extend(decode_columns(&row).as_deref().and_then(schema_entry));
                }
            }
        }
        PageTree { parents, roots, missing }
    }

    /// The table or index of a page.
    pub(super) fn owner(&self, mut page: u32) -> Option<&str> {
        for _ in 0..MAX_DEPTH {
            if let Some(name) = self.roots.get(&page) {
                return Some(name);
            }
            page = *self.parents.get(page as usize).filter(|parent| **parent > 0)?;
        }
        None
    }
}

/// The root page and the name of a table or index, if a row is one of the schema table.
fn schema_entry(row: &[Value<'_>]) -> Option<(u32, String)> {
    match row {
        [
            Value::Text("table" | "index"),
            Value::Text(name),
            Value::Text(_),
            Value::Int(root),
            _,
        ] => Some((u32::try_from(*root).ok().filter(|root| *root > 1)?, (*name).to_owned())),
        _ => None,
    }
}

impl SalvagedRows {
    /// Adds a row if it belongs to a table.
    fn add(
        &mut self,
        shapes: &[TableShape],
        owner: Option<&str>,
        cells: &PageCells,
        rowid: i64,
        mut values: Vec<Value<'_>>,
    ) -> Result<()> {
        if let Some(at) = NAME_INDEXES.iter().position(|name| owner == Some(name)) {
            if let [Value::Text(name), Value::Int(key)] = values[..] {
                self.names[at].insert(key, name.to_owned());
            }
            return Ok(());
        }
        let has_rowid = cells.kind == PageKind::TableLeaf;
        let own = TableShape::find(shapes, owner);
        if let Some(shape) = own.filter(|shape| shape.fits(has_rowid, &values)) {
            let verdict = shape.set_rowid(rowid, &mut values).verify(&values);
            // A missing event or item is noticed by its number, so a damaged row is better left out.
            let is_numbered = matches!(shape.name.as_str(), "event" | "item");
            return if verdict == Some(false) && is_numbered {
                Ok(())
            } else {
                self.insert(shape, &values, "IGNORE")
            };
        }
        match TableShape::find_verified(shapes, None, cells, rowid, &values) {
            Some((shape, values)) => self.insert(shape, &values, "IGNORE"),
            None => Ok(()),
        }
    }

    /// Inserts a row. `on_conflict` is `IGNORE` or `REPLACE`.
    pub(super) fn insert(
        &self,
        shape: &TableShape,
        values: &[Value<'_>],
        on_conflict: &str,
    ) -> Result<()> {
        let names = shape.column_names().take(values.len()).map(|name| format!("\"{name}\""));
        let names = names.collect::<Vec<_>>().join(", ");
        let placeholders = vec!["?"; values.len()].join(", ");
        let table = &shape.name;
        let sql = format!("INSERT OR {on_conflict} INTO {table} ({names}) VALUES ({placeholders})");
        Db::Sqlite(&self.db).execute(&sql, values).map(|_| ())
    }
}
