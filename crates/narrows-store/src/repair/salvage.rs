//! The rows of a database whose pages do not lead to each other any more: every page is looked at, and
//! what stands on it is put into a database of its own, from which the repair goes on.
//!
//! Whose rows a page has is known by the list of tables, wherever the pages of that list lie. Rows of
//! trees that nobody knows are taken where their checksum says that they are what they look like.

use super::cells::{Cells, Kind, columns};
use super::old::RESCUED;
use super::pages::{Page, Pages, SIZE};
use crate::around;
use crate::connection::open_writer;
use crate::db::{Db, Value, params};
use crate::dir::DataDir;
use crate::error::Result;
use crate::sum::{self, ItemSum};
use rusqlite::Connection;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Trees are no deeper than this.
const DEPTH: usize = 64;
/// The indexes that know sessions by their ids and their labels.
const NAMES: [&str; 2] = ["sqlite_autoindex_session_1", "sqlite_autoindex_session_2"];

/// What was found.
pub(super) struct Rescued {
    pub(super) db: Connection,
    /// Ids and labels of sessions, as indexes have them.
    pub(super) names: [BTreeMap<i64, String>; 2],
    /// Pages that are not there.
    pub(super) missing: u32,
    /// Sessions of which something was brought back that was lost.
    pub(super) back: BTreeSet<i64>,
}

/// A table as this version writes it.
pub(super) struct Shape {
    pub(super) name: String,
    /// In the order in which a row has them, with their types and whether they must be there.
    columns: Vec<(String, String, bool)>,
    /// The column that is the row's number.
    number: Option<usize>,
    /// Whether rows have numbers.
    numbered: bool,
}

/// Which page stands above each.
pub(super) struct Trees {
    above: Vec<u32>,
    /// Pages at the top of a tree of which is known what it holds.
    roots: HashMap<u32, String>,
    missing: u32,
}

/// Takes all rows that stand on some page.
pub(super) fn rescue(dir: &DataDir, fresh: &DataDir, new: &Connection) -> Result<Rescued> {
    let pages = Pages::open(dir);
    let trees = Trees::find(&pages);
    let shapes = shapes(new)?;
    let place = DataDir::open(&fresh.path().join(RESCUED))?;
    let db = open_writer(&place, None)?;
    // What a new store has from its beginning is this one's own.
    db.execute_batch(
        "PRAGMA journal_mode = MEMORY; PRAGMA synchronous = OFF; BEGIN; DELETE FROM meta",
    )?;
    let mut rescued =
        Rescued { db, names: Default::default(), missing: trees.missing, back: BTreeSet::new() };
    let mut page: Page = [0; SIZE];
    for number in 1..=pages.count {
        if !pages.read(number, &mut page) {
            continue;
        }
        let Some(cells) = Cells::of(&page, number) else { continue };
        let owner = trees.owner(number);
        for (row, bytes) in cells.rows(&pages, &page) {
            if let Some(values) = columns(&bytes) {
                rescued.take(&shapes, owner, &cells, row, values)?;
            }
        }
    }
    rescued.db.execute_batch("COMMIT")?;
    Ok(rescued)
}

/// The tables, but for those that are made anew.
pub(super) fn shapes(new: &Connection) -> Result<Vec<Shape>> {
    let sql = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'
         AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'search%' AND name <> 'fresh'";
    let db = Db::Sqlite(new);
    let mut shapes = Vec::new();
    for (name, without) in db.all(sql, &[], |r| Ok((r.get::<String>(0)?, r.get::<bool>(1)?)))? {
        // A row without a number begins with its key.
        let order = if without { "pk = 0, pk, cid" } else { "cid" };
        let sql = format!(
            "SELECT name, type, \"notnull\", pk > 0 FROM pragma_table_info(?1) ORDER BY {order}"
        );
        let read = db.all(&sql, &params![name], |r| {
            Ok(((r.get::<String>(0)?, r.get::<String>(1)?, r.get::<bool>(2)?), r.get::<bool>(3)?))
        })?;
        let is_number = |((_, kind, _), key): &((String, String, bool), bool)| {
            *key && kind == "INTEGER" && !without
        };
        let number = read.iter().position(is_number);
        let columns = read.into_iter().map(|(column, _)| column).collect();
        shapes.push(Shape { name, columns, number, numbered: !without });
    }
    Ok(shapes)
}

impl Trees {
    pub(super) fn find(pages: &Pages) -> Trees {
        let mut above = vec![0; pages.count as usize + 1];
        let (mut roots, mut missing) = (HashMap::new(), 0);
        let mut page: Page = [0; SIZE];
        for number in 1..=pages.count {
            if !pages.read(number, &mut page) {
                missing += 1;
                continue;
            }
            let Some(cells) = Cells::of(&page, number) else { continue };
            for below in cells.below(&page) {
                if let Some(place) = above.get_mut(below as usize) {
                    *place = number;
                }
            }
            if cells.kind == Kind::Rows {
                for (_, row) in cells.rows(pages, &page) {
                    roots.extend(columns(&row).as_deref().and_then(listed));
                }
            }
        }
        Trees { above, roots, missing }
    }

    /// Whose a page is.
    pub(super) fn owner(&self, mut page: u32) -> Option<&str> {
        for _ in 0..DEPTH {
            if let Some(name) = self.roots.get(&page) {
                return Some(name);
            }
            page = *self.above.get(page as usize).filter(|above| **above > 0)?;
        }
        None
    }
}

/// A row of the list of tables and indexes: the page on which it begins, and its name.
fn listed(row: &[Value<'_>]) -> Option<(u32, String)> {
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

impl Rescued {
    /// Takes a row, if it is one of a table.
    fn take(
        &mut self,
        shapes: &[Shape],
        owner: Option<&str>,
        cells: &Cells,
        row: i64,
        mut values: Vec<Value<'_>>,
    ) -> Result<()> {
        if let Some(at) = NAMES.iter().position(|name| owner == Some(name)) {
            if let [Value::Text(name), Value::Int(key)] = values[..] {
                self.names[at].insert(key, name.to_owned());
            }
            return Ok(());
        }
        let numbered = cells.kind == Kind::Rows;
        let own = Shape::of(shapes, owner);
        if let Some(shape) = own.filter(|shape| shape.fits(numbered, &values)) {
            let proof = shape.numbers(row, &mut values).proof(&values);
            // Of these, what is not as it was written is missed by its number.
            let is_counted = matches!(shape.name.as_str(), "event" | "item");
            return if proof == Some(false) && is_counted {
                Ok(())
            } else {
                self.put(shape, &values, "IGNORE")
            };
        }
        match Shape::proven(shapes, None, cells, row, &values) {
            Some((shape, values)) => self.put(shape, &values, "IGNORE"),
            None => Ok(()),
        }
    }

    /// Keeps a row, or the one that there is.
    pub(super) fn put(&self, shape: &Shape, values: &[Value<'_>], how: &str) -> Result<()> {
        let names = shape.columns.iter().take(values.len()).map(|(name, ..)| format!("\"{name}\""));
        let names = names.collect::<Vec<_>>().join(", ");
        let marks = vec!["?"; values.len()].join(", ");
        let sql = format!("INSERT OR {how} INTO {} ({names}) VALUES ({marks})", shape.name);
        Db::Sqlite(&self.db).execute(&sql, values).map(|_| ())
    }
}

impl Shape {
    fn of<'s>(shapes: &'s [Shape], owner: Option<&str>) -> Option<&'s Shape> {
        shapes.iter().find(|shape| Some(shape.name.as_str()) == owner)
    }

    /// The table of which a row says by its checksum that it is one: that of the page, where it is known.
    pub(super) fn proven<'s, 'v>(
        shapes: &'s [Shape],
        owner: Option<&str>,
        cells: &Cells,
        row: i64,
        values: &[Value<'v>],
    ) -> Option<(&'s Shape, Vec<Value<'v>>)> {
        let own = Shape::of(shapes, owner);
        let numbered = cells.kind == Kind::Rows;
        shapes
            .iter()
            .filter(|shape| own.is_none_or(|own| own.name == shape.name))
            .filter(|shape| shape.fits(numbered, values))
            .find_map(|shape| {
                let mut values = values.to_vec();
                let proof = shape.numbers(row, &mut values).proof(&values);
                (proof == Some(true)).then_some((shape, values))
            })
    }

    /// What a row has in a column.
    pub(super) fn get<'v>(&self, values: &[Value<'v>], name: &str) -> Value<'v> {
        let at = self.columns.iter().position(|(column, ..)| column == name);
        at.and_then(|at| values.get(at)).cloned().unwrap_or(Value::Null)
    }

    /// Whether a row may be one of this table; rows of earlier versions are shorter.
    fn fits(&self, numbered: bool, values: &[Value<'_>]) -> bool {
        let fits = |(at, value): (usize, &Value<'_>)| {
            let Some((_, kind, must)) = self.columns.get(at) else { return false };
            match (value, kind.as_str()) {
                (Value::Null, _) => !must || self.number == Some(at),
                (_, _) if self.number == Some(at) => false,
                (Value::Int(_), "INTEGER" | "REAL" | "") => true,
                (Value::Real(_), "REAL" | "") => true,
                (Value::Text(_), "TEXT" | "") => true,
                // Long texts are packed.
                (Value::Bytes(_), "TEXT" | "BLOB" | "") => true,
                _ => false,
            }
        };
        self.numbered == numbered && !values.is_empty() && values.iter().enumerate().all(fits)
    }

    /// Puts the row's number where it belongs.
    fn numbers(&self, row: i64, values: &mut [Value<'_>]) -> &Shape {
        if let Some(place) = self.number.and_then(|at| values.get_mut(at)) {
            *place = Value::Int(row);
        }
        self
    }

    /// Whether the row has a checksum that says what it is; none where it has no checksum.
    fn proof(&self, values: &[Value<'_>]) -> Option<bool> {
        let get = |name: &str| self.get(values, name);
        let number = |name: &str| if let Value::Int(n) = get(name) { n } else { 0 };
        let text = |name: &str| if let Value::Text(text) = get(name) { text } else { "" };
        let kept = |name: &str| if let Value::Int(n) = get(name) { Some(n) } else { None };
        match self.name.as_str() {
            "event" => {
                let parts = ["event", "changes", "activity"].map(|name| match get(name) {
                    Value::Text(text) => Some(text.as_bytes()),
                    Value::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                Some(kept("crc")? == sum::event(number("key"), text("kind"), parts))
            }
            "item" => {
                let body = match get("body") {
                    Value::Text(text) => text.as_bytes(),
                    Value::Bytes(bytes) => bytes,
                    _ => return None,
                };
                let item = ItemSum {
                    key: number("key"),
                    id: text("id"),
                    seq: number("seq").unsigned_abs(),
                    kind: text("kind"),
                    open: number("open") != 0,
                    body,
                    parent: if let Value::Text(parent) = get("parent") {
                        Some(parent)
                    } else {
                        None
                    },
                };
                Some(kept("crc")? == item.at(number("top") != 0))
            }
            "session" => {
                Some(kept("name_crc")? == sum::of(&[get("id"), get("epoch"), get("label")]))
            }
            other => around::proof(other, get),
        }
    }
}
