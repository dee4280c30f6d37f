//! The columns of a table, to recognize its rows on a page.

use super::page_cells::{PageCells, PageKind};
use crate::checksum;
use crate::checksum::ItemChecksum;
use crate::db::{Db, Value, params};
use crate::error::Result;
use crate::integrity::side_tables;
use rusqlite::Connection;

/// A table as this version writes it.
pub(super) struct TableShape {
    pub(super) name: String,
    /// In the order of a row.
    columns: Vec<ColumnShape>,
    /// The index of the column that aliases the rowid.
    rowid_column: Option<usize>,
    has_rowid: bool,
}

struct ColumnShape {
    name: String,
    sql_type: String,
    is_not_null: bool,
}

impl TableShape {
    /// All tables except those that a repair builds again.
    pub(super) fn all(new: &Connection) -> Result<Vec<TableShape>> {
        let sql = "SELECT name, sql LIKE '%WITHOUT ROWID%' FROM sqlite_schema WHERE type = 'table'
             AND name NOT LIKE 'sqlite!_%' ESCAPE '!' AND name NOT LIKE 'search%' AND name <> 'fresh'";
        let db = Db::Sqlite(new);
        let mut shapes = Vec::new();
        for (name, without_rowid) in
            db.query_all(sql, &[], |r| Ok((r.get::<String>(0)?, r.get::<bool>(1)?)))?
        {
            // A row without a rowid begins with its key.
            let order = if without_rowid { "pk = 0, pk, cid" } else { "cid" };
            let sql = format!(
                "SELECT name, type, \"notnull\", pk > 0 FROM pragma_table_info(?1) ORDER BY {order}"
            );
            let columns = db.query_all(&sql, &params![name], |r| {
                let column =
                    ColumnShape { name: r.get(0)?, sql_type: r.get(1)?, is_not_null: r.get(2)? };
                Ok((column, r.get::<bool>(3)?))
            })?;
            let is_rowid = |(column, is_key): &(ColumnShape, bool)| {
                *is_key && column.sql_type == "INTEGER" && !without_rowid
            };
            let rowid_column = columns.iter().position(is_rowid);
            let columns = columns.into_iter().map(|(column, _)| column).collect();
            shapes.push(TableShape { name, columns, rowid_column, has_rowid: !without_rowid });
        }
        Ok(shapes)
    }

    pub(super) fn find<'s>(
        shapes: &'s [TableShape],
        owner: Option<&str>,
    ) -> Option<&'s TableShape> {
        shapes.iter().find(|shape| Some(shape.name.as_str()) == owner)
    }

    /// The table whose checksum a row matches: only the owner of the page, if it is known.
    pub(super) fn find_verified<'s, 'v>(
        shapes: &'s [TableShape],
        owner: Option<&str>,
        cells: &PageCells,
        rowid: i64,
        values: &[Value<'v>],
    ) -> Option<(&'s TableShape, Vec<Value<'v>>)> {
        let own = TableShape::find(shapes, owner);
        let has_rowid = cells.kind == PageKind::TableLeaf;
        shapes
            .iter()
            .filter(|shape| own.is_none_or(|own| own.name == shape.name))
            .filter(|shape| shape.fits(has_rowid, values))
            .find_map(|shape| {
                let mut values = values.to_vec();
                let verdict = shape.set_rowid(rowid, &mut values).verify(&values);
                (verdict == Some(true)).then_some((shape, values))
            })
    }

    pub(super) fn column_names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter().map(|column| column.name.as_str())
    }

    /// The value of a column; NULL if the row does not have it.
    pub(super) fn value<'v>(&self, values: &[Value<'v>], name: &str) -> Value<'v> {
        let at = self.columns.iter().position(|column| column.name == name);
        at.and_then(|at| values.get(at)).cloned().unwrap_or(Value::Null)
    }

    /// Whether a row may belong to this table. Rows of earlier versions are shorter.
    pub(super) fn fits(&self, has_rowid: bool, values: &[Value<'_>]) -> bool {
        let fits = |(at, value): (usize, &Value<'_>)| {
            let Some(column) = self.columns.get(at) else { return false };
            match (value, column.sql_type.as_str()) {
                (Value::Null, _) => !column.is_not_null || self.rowid_column == Some(at),
                (_, _) if self.rowid_column == Some(at) => false,
                (Value::Int(_), "INTEGER" | "REAL" | "") => true,
                (Value::Real(_), "REAL" | "") => true,
                (Value::Text(_), "TEXT" | "") => true,
                // Long texts are compressed.
                (Value::Bytes(_), "TEXT" | "BLOB" | "") => true,
                _ => false,
            }
        };
        self.has_rowid == has_rowid && !values.is_empty() && values.iter().enumerate().all(fits)
    }

    /// Puts the rowid into the column that aliases it.
    pub(super) fn set_rowid(&self, rowid: i64, values: &mut [Value<'_>]) -> &TableShape {
        if let Some(value) = self.rowid_column.and_then(|at| values.get_mut(at)) {
            *value = Value::Int(rowid);
        }
        self
    }

    /// Whether a row matches its checksum; none if it has none.
    pub(super) fn verify(&self, values: &[Value<'_>]) -> Option<bool> {
        let get = |name: &str| self.value(values, name);
        let number = |name: &str| if let Value::Int(n) = get(name) { n } else { 0 };
        let text = |name: &str| if let Value::Text(text) = get(name) { text } else { "" };
        let stored = |name: &str| if let Value::Int(n) = get(name) { Some(n) } else { None };
        match self.name.as_str() {
            "event" => {
                let parts = ["event", "changes", "activity"].map(|name| match get(name) {
                    Value::Text(text) => Some(text.as_bytes()),
                    Value::Bytes(bytes) => Some(bytes),
                    _ => None,
                });
                let computed = checksum::of_event_row(number("key"), text("kind"), parts);
                Some(stored("crc")? == computed)
            }
            "item" => {
                let body = match get("body") {
                    Value::Text(text) => text.as_bytes(),
                    Value::Bytes(bytes) => bytes,
                    _ => return None,
                };
                let parent =
                    if let Value::Text(parent) = get("parent") { Some(parent) } else { None };
                let item = ItemChecksum {
                    key: number("key"),
                    id: text("id"),
                    seq: number("seq").unsigned_abs(),
                    kind: text("kind"),
                    open: number("open") != 0,
                    body,
                    parent,
                };
                Some(stored("crc")? == item.with_level(number("top") != 0))
            }
            "session" => {
                let names = [get("id"), get("epoch"), get("label")];
                Some(stored("name_crc")? == checksum::of_values(&names))
            }
            other => side_tables::verify(other, get),
        }
    }
}
