//! The changes of a log that item rows do not contain yet.

use crate::damage::notice;
use crate::db::{Db, Param, Value, params};
use crate::error::{Error, Result};
use crate::items::ItemWrite;
use crate::items::row;
use crate::log::events_after;
use narrows::{Change, Item, stored};
use std::collections::{BTreeMap, HashMap, HashSet};

/// The unmaterialized changes at the end of a log.
#[derive(Debug, Default)]
pub(crate) struct LogOverlay {
    changes: HashMap<String, Vec<(u64, Change)>>,
    /// Items without a row, by order, each with its last event.
    pub(crate) new: BTreeMap<u64, (u64, Item)>,
    /// The orders of the new items, by id.
    orders: HashMap<String, u64>,
    removed: HashSet<String>,
}

impl LogOverlay {
    /// Reads the changes after the event `settled` of a log that ends at `last`.
    pub(crate) fn read(db: &Db<'_>, session: i64, settled: u64, last: u64) -> Result<LogOverlay> {
        let (mut overlay, mut notices) = (LogOverlay::default(), Vec::new());
        for row in events_after(db, session, settled, last, usize::MAX, usize::MAX)? {
            let Some(changes) = &row.changes else { continue };
            let text = std::str::from_utf8(changes).unwrap_or("[]");
            let changes = stored::changes(text)
                .map_err(|e| Error::Damaged(format!("changes cannot be read: {e}")))?;
            if row.kind == notice::KIND {
                notices.extend(changes.into_iter().map(|change| (row.seq, change)));
            } else {
                changes.into_iter().for_each(|change| overlay.apply(row.seq, change));
            }
        }
        notices.into_iter().for_each(|(seq, change)| overlay.add_notice(seq, change));
        // An item with a row gets its changes when the row is read.
        let existing =
            existing_rows(db, session, overlay.new.values().map(|(_, item)| item.id.as_str()))?;
        overlay.new.retain(|_, (_, item)| !existing.contains_key(item.id.as_str()));
        overlay.orders.retain(|id, _| !existing.contains_key(id));
        Ok(overlay)
    }

    /// Adds a notice about unreadable events as an item of its own, which never gets a row.
    fn add_notice(&mut self, seq: u64, change: Change) {
        if let Change::Put { item } = change {
            let mut order = item.order;
            while self.new.contains_key(&order) {
                order += 1;
            }
            self.new.insert(order, (seq, Item { order, ..*item }));
        }
    }

    fn apply(&mut self, seq: u64, change: Change) {
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return };
        match &change {
            Change::Remove { .. } => {
                if let Some(order) = self.orders.remove(&id) {
                    self.new.remove(&order);
                }
                self.changes.remove(&id);
                self.removed.insert(id);
                return;
            }
            Change::Put { item } => {
                self.removed.remove(&id);
                if !self.has_new(&id) {
                    self.orders.insert(id.clone(), item.order);
                    self.new.insert(item.order, (seq, (**item).clone()));
                }
            }
            _ => {}
        }
        let new = self.orders.get(&id).and_then(|order| self.new.get_mut(order));
        if let Some((last, item)) = new.filter(|(_, item)| *item.id == *id) {
            *last = seq;
            item.apply(change.clone());
        }
        self.changes.entry(id).or_default().push((seq, change));
    }

    /// Applies the changes after the event `known` to the item of a row; none if it was removed.
    pub(crate) fn apply_to(&self, row_seq: u64, mut item: Item) -> Option<Item> {
        if self.removed.contains(item.id.as_str()) {
            return None;
        }
        for (seq, change) in self.changes.get(item.id.as_str()).into_iter().flatten() {
            if *seq > row_seq {
                item.apply(change.clone());
            }
        }
        Some(item)
    }

    /// Whether the item exists without a row.
    pub(crate) fn has_new(&self, id: &str) -> bool {
        self.orders.contains_key(id)
    }

    /// Reads the current state of an item.
    pub(crate) fn item(&self, db: &Db<'_>, session: i64, id: &str) -> Result<Option<Item>> {
        let new = || self.new.get(self.orders.get(id)?).map(|(_, item)| item.clone());
        Ok(match row(db, session, id)? {
            Some((seq, item)) => self.apply_to(seq, item),
            None => new(),
        })
    }

    /// The current state of the items whose rows may be behind.
    pub(crate) fn changed(&self, db: &Db<'_>, session: i64) -> Result<Vec<Item>> {
        let mut items = Vec::new();
        for id in self.changes.keys() {
            items.extend(self.item(db, session, id)?);
        }
        items.sort_by_key(|item| item.order);
        Ok(items)
    }

    /// The writes that bring the item rows up to date.
    pub(crate) fn writes(&self, db: &Db<'_>, session: i64) -> Result<Vec<ItemWrite>> {
        let mut writes: Vec<ItemWrite> =
            self.removed.iter().map(|id| ItemWrite::Remove { id: id.clone() }).collect();
        for item in self.changed(db, session)? {
            let last = self.changes.get(item.id.as_str()).and_then(|changes| changes.last());
            let seq = last.map_or(0, |(seq, _)| *seq);
            writes.push(ItemWrite::Put { item: Box::new(item), seq });
        }
        Ok(writes)
    }

    /// The items to write to bring rows up to the event `last`, the end of this overlay; rows may
    /// be ahead of it. Deletes the rows of removed items.
    pub(crate) fn catch_up(
        &self,
        db: &Db<'_>,
        session: i64,
        last: u64,
    ) -> Result<Vec<(Item, u64)>> {
        let named = self.changes.keys().chain(&self.removed).map(String::as_str);
        let existing = existing_rows(db, session, named)?;
        for id in &self.removed {
            if existing.get(id).is_some_and(|seq| *seq <= last) {
                let gone = "DELETE FROM item WHERE session = ?1 AND id = ?2";
                db.execute_pipelined(gone, &params![session, id])?;
            }
        }
        let mut items = Vec::new();
        for (id, changes) in &self.changes {
            let seq = changes.last().map_or(0, |(seq, _)| *seq);
            if existing.get(id).is_none_or(|row_seq| *row_seq < seq) {
                items.extend(self.item(db, session, id)?.map(|item| (item, seq)));
            }
        }
        items.sort_by_key(|(item, _)| item.order);
        Ok(items)
    }

    /// Ids of items whose rows are behind, each with the first missing event.
    pub(crate) fn rows_behind(&self, db: &Db<'_>, session: i64) -> Result<Vec<(String, u64)>> {
        let existing = existing_rows(db, session, self.changes.keys().map(String::as_str))?;
        let mut behind = Vec::new();
        for (id, changes) in &self.changes {
            let row_seq = existing.get(id).copied().unwrap_or(0);
            let first = changes.iter().find(|(seq, _)| *seq > row_seq);
            behind.extend(first.map(|(seq, _)| (id.clone(), *seq)));
        }
        Ok(behind)
    }
}

/// The items among `ids` that have rows, with the last event in each row.
fn existing_rows<'a>(
    db: &Db<'_>,
    session: i64,
    ids: impl Iterator<Item = &'a str>,
) -> Result<HashMap<String, u64>> {
    let mut rows = HashMap::new();
    if db.is_postgres() {
        // One query for all ids: each query is a round trip.
        let ids: Vec<Value<'_>> = ids.map(Value::Text).collect();
        if !ids.is_empty() {
            let sql = "SELECT a.id, i.seq FROM unnest(?2::text[]) AS a (id), LATERAL
                 (SELECT seq FROM item WHERE session = ?1 AND id = a.id OFFSET 0) AS i";
            let found = db.query_all(sql, &[session.value(), Value::List(ids)], |r| {
                Ok((r.get(0)?, r.get(1)?))
            })?;
            rows.extend(found);
        }
        return Ok(rows);
    }
    for id in ids {
        let sql = "SELECT seq FROM item WHERE session = ?1 AND id = ?2";
        let seq = db.query_opt(sql, &params![session, id], |r| r.get(0))?;
        rows.extend(seq.map(|seq| (id.to_owned(), seq)));
    }
    Ok(rows)
}
