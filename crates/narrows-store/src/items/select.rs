//! Selecting items of a session, and scanning them in order.

use crate::damage::key_scan::{KeyScan, ScanStep};
use crate::damage::notice;
use crate::db::{Db, Value, params};
use crate::error::{Error, Result};
use crate::items::derived::{parent, row_exists};
use crate::items::overlay::LogOverlay;
use crate::items::{COLUMNS, ItemRow, read_row, report_damage};
use crate::keys::{event_key, number};
use narrows::Item;
use narrows::item::ItemBody;
use std::ops::ControlFlow;

/// A selection of items.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Which {
    /// All items.
    #[default]
    All,
    /// Top-level items: those without a parent, or whose parent does not exist.
    Top,
    /// The children of a call.
    Of(String),
    /// Prompts of the user.
    Prompts,
    /// Todo lists, except those of subagents.
    TodoLists,
}

impl Which {
    /// The condition that finds the rows through an index in key order, so that no other rows are
    /// scanned; with the value of `?3`.
    fn rows(&self, session: i64) -> (&'static str, Option<Value<'_>>) {
        match self {
            Which::All => ("WHERE true", None),
            Which::Top => {
                ("INDEXED BY item_top WHERE session = ?3 AND top = 1", Some(Value::Int(session)))
            }
            Which::Of(id) => ("INDEXED BY item_child WHERE parent = ?3", Some(Value::Text(id))),
            Which::Prompts => (
                "INDEXED BY item_mark WHERE parent IS NULL
                 AND kind IN ('user_message', 'todo_list') AND kind = 'user_message'",
                None,
            ),
            Which::TodoLists => (
                "INDEXED BY item_mark WHERE parent IS NULL
                 AND kind IN ('user_message', 'todo_list') AND kind = 'todo_list'",
                None,
            ),
        }
    }

    fn sql(&self, session: i64, backwards: bool) -> (String, Option<Value<'_>>) {
        let (rows, value) = self.rows(session);
        let order = if backwards { "DESC" } else { "ASC" };
        let range = "key >= ?1 AND key < ?2 ORDER BY key";
        (format!("SELECT {COLUMNS} FROM item {rows} AND {range} {order}"), value)
    }

    /// Whether an item is selected. A row found through the selector's index is, unless the overlay
    /// changed it.
    fn contains(&self, item: &Item, at_top: impl FnOnce(&str) -> Result<bool>) -> Result<bool> {
        let parent = parent(item);
        Ok(match self {
            Which::All => true,
            Which::Top => match parent {
                Some(parent) => at_top(parent)?,
                None => true,
            },
            Which::Of(id) => parent == Some(id),
            Which::Prompts => parent.is_none() && matches!(item.body, ItemBody::UserMessage { .. }),
            Which::TodoLists => parent.is_none() && matches!(item.body, ItemBody::TodoList { .. }),
        })
    }
}

/// Approximate bytes of the items returned at once; at least one item is returned.
pub const MAX_BYTES: usize = 4 << 20;

/// The limit of a scan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReadLimit {
    /// Maximum number of items.
    pub(crate) items: usize,
    /// Approximate bytes of their bodies; at least one item is returned.
    pub(crate) bytes: usize,
}

impl ReadLimit {
    pub(crate) fn items(items: usize) -> ReadLimit {
        ReadLimit { items, bytes: MAX_BYTES }
    }
}

/// Scans the items with keys in a range, merged with items that have no row yet. Also returns
/// whether there are more.
pub(crate) fn select(
    db: &Db<'_>,
    session: i64,
    selector: &Which,
    (from, until): (i64, i64),
    backwards: bool,
    limit: ReadLimit,
    overlay: &LogOverlay,
) -> Result<(Vec<ItemRow>, bool)> {
    let (sql, value) = selector.sql(session, backwards);
    let values: Vec<_> = params![from, until].into_iter().chain(value).collect();
    let mut new: Vec<(u64, &(u64, Item))> = Vec::new();
    for (order, row) in &overlay.new {
        let report_damage =
            |parent: &str| Ok(!overlay.has_new(parent) && !row_exists(db, session, parent)?);
        if (from..until).contains(&event_key(session, *order))
            && selector.contains(&row.1, report_damage)?
        {
            new.push((*order, row));
        }
    }
    if !backwards {
        new.reverse();
    }
    let before = |a: u64, b: u64| if backwards { a > b } else { a < b };
    let without_row = |(order, (seq, item)): (u64, &(u64, Item))| ItemRow {
        order,
        seq: *seq,
        item: item.clone(),
    };
    let mut out = Selection { rows: Vec::new(), bytes: 0, limit, more: false };
    // Emits the items without a row that precede a position.
    let emit_new_before = |out: &mut Selection, new: &mut Vec<(u64, &(u64, Item))>, place: u64| {
        while !out.more
            && let Some(next) = new.pop_if(|(order, _)| before(*order, place))
        {
            out.push(without_row(next));
        }
    };
    let mut last_seen = None;
    let scanned = db.query_each(&sql, &values, |row| {
        let key = row.get(0)?;
        let place = number(key);
        // A row out of key order is not where it was written.
        if last_seen.is_some_and(|last_seen: i64| !before(number(last_seen), place)) {
            return Err(Error::Damaged("rows of items are out of order".to_owned()));
        }
        emit_new_before(&mut out, &mut new, place);
        if out.more {
            return Ok(ControlFlow::Break(()));
        }
        match read_row(row) {
            Some(found) => out.extend(current_item(selector, overlay, place, found)?),
            None => out.extend(damaged_notice(session, selector, key, key)),
        }
        last_seen = Some(key);
        Ok(if out.more { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    });
    match scanned {
        Err(Error::Damaged(_)) if !db.is_postgres() => {
            // A page of the table or its index is unreadable: read row by row, around the damage.
            let (low, high) = match last_seen {
                Some(key) if backwards => (from, key - 1),
                Some(key) => (key + 1, until - 1),
                None => (from, until - 1),
            };
            let mut keys = KeyScan::new("item", low, high, backwards);
            while !out.more {
                match keys.next(db)? {
                    ScanStep::End => break,
                    ScanStep::Gap(low, high) => {
                        emit_new_before(
                            &mut out,
                            &mut new,
                            number(if backwards { high } else { low }),
                        );
                        out.extend(damaged_notice(
                            session,
                            selector,
                            low,
                            high.min(last_key(db, session)?),
                        ));
                    }
                    ScanStep::Key(key) => {
                        emit_new_before(&mut out, &mut new, number(key));
                        if !out.more {
                            out.extend(read_by_key(db, session, selector, key, overlay)?);
                        }
                    }
                }
            }
        }
        scanned => scanned?,
    }
    while !out.more
        && let Some(next) = new.pop()
    {
        out.push(without_row(next));
    }
    Ok((out.rows, out.more))
}

/// Collects items up to the limit.
struct Selection {
    rows: Vec<ItemRow>,
    bytes: usize,
    limit: ReadLimit,
    /// Whether an item was found after the limit was reached.
    more: bool,
}

impl Selection {
    fn push(&mut self, row: ItemRow) {
        let full = self.bytes >= self.limit.bytes && !self.rows.is_empty();
        if full || self.rows.len() >= self.limit.items {
            self.more = true;
            return;
        }
        self.bytes += row.item.weight();
        self.rows.push(row);
    }

    fn extend(&mut self, row: Option<ItemRow>) {
        row.into_iter().for_each(|row| self.push(row));
    }
}

/// The current state of a row's item, if it is still selected.
fn current_item(
    selector: &Which,
    overlay: &LogOverlay,
    order: u64,
    (seq, item): (u64, Item),
) -> Result<Option<ItemRow>> {
    // For parents with rows, the item's own row has the answer already.
    let report_damage = |parent: &str| Ok(!overlay.has_new(parent));
    let Some(item) = overlay.apply_to(seq, item) else { return Ok(None) };
    Ok(selector.contains(&item, report_damage)?.then_some(ItemRow { order, seq, item }))
}

/// A notice in place of items that cannot be read.
fn damaged_notice(session: i64, selector: &Which, first: i64, last: i64) -> Option<ItemRow> {
    report_damage(session, first, last);
    let parent = if let Which::Of(id) = selector { Some(id.as_str()) } else { None };
    let item = notice::unreadable_items(number(first), number(last), parent)?;
    Some(ItemRow { order: item.order, seq: 0, item })
}

/// The highest key an item of the session can have.
fn last_key(db: &Db<'_>, session: i64) -> Result<i64> {
    let sql = "SELECT next_order FROM session WHERE key = ?1";
    let next: u64 = db.query_opt(sql, &params![session], |r| r.get(0))?.unwrap_or(0);
    Ok(event_key(session, next.saturating_sub(1)))
}

/// Reads a row by its key, without an index.
fn read_by_key(
    db: &Db<'_>,
    session: i64,
    selector: &Which,
    key: i64,
    overlay: &LogOverlay,
) -> Result<Option<ItemRow>> {
    let sql = format!("SELECT {COLUMNS} FROM item WHERE key = ?1");
    let read = db.query_opt(&sql, &params![key], |row| {
        let (kind, parent, top) =
            (row.get::<String>(4)?, row.get::<Option<String>>(6)?, row.get::<bool>(7)?);
        let selected = match selector {
            Which::All => true,
            Which::Top => top,
            Which::Of(id) => parent.as_ref() == Some(id),
            Which::Prompts => parent.is_none() && kind == "user_message",
            Which::TodoLists => parent.is_none() && kind == "todo_list",
        };
        Ok(selected.then(|| read_row(row)))
    });
    match read {
        Ok(None | Some(None)) => Ok(None),
        Ok(Some(Some(Some(found)))) => current_item(selector, overlay, number(key), found),
        Ok(Some(Some(None))) | Err(Error::Damaged(_)) => {
            Ok(damaged_notice(session, selector, key, key))
        }
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_dir::DataDir;
    use crate::migrations::open_writer;
    use rusqlite::params_from_iter;

    #[test]
    fn item_selectors_use_their_index() {
        let dir = tempfile::tempdir().expect("directory");
        let dir = DataDir::open(&dir.path().join("data")).expect("directory");
        let db = open_writer(&dir, None).expect("store");
        for (selector, by) in [
            (Which::All, "INTEGER PRIMARY KEY (rowid>? AND rowid<?)"),
            (Which::Top, "INDEX item_top (session=? AND rowid>? AND rowid<?)"),
            (Which::Of("c".to_owned()), "INDEX item_child (parent=? AND rowid>? AND rowid<?)"),
            (Which::Prompts, "INDEX item_mark (kind=? AND rowid>? AND rowid<?)"),
            (Which::TodoLists, "INDEX item_mark (kind=? AND rowid>? AND rowid<?)"),
        ] {
            for backwards in [false, true] {
                let (sql, value) = selector.sql(1, backwards);
                let values = [Value::Int(1), Value::Int(2)].into_iter().chain(value);
                let mut query = db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("query");
                let rows = query.query_map(params_from_iter(values), |r| r.get(3)).expect("plan");
                let plan: Vec<String> = rows.collect::<rusqlite::Result<_>>().expect("plan");
                // One step, and no sorting.
                assert_eq!(plan, [format!("SEARCH item USING {by}")], "{selector:?}");
            }
        }
    }
}
