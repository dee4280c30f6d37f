//! The end of a log that the rows of items lack.

use crate::error::{Error, Result};
use crate::items::row;
use crate::log::after;
use crate::rows::is_there;
use narrows::{Change, Item, stored};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, HashMap, HashSet};

/// What the log's tail adds to the rows of items.
#[derive(Debug, Default)]
pub(crate) struct Tail {
    changes: HashMap<String, Vec<(u64, Change)>>,
    /// Items that have no row yet, by order.
    pub(crate) new: BTreeMap<u64, (u64, Item)>,
    removed: HashSet<String>,
}

impl Tail {
    pub(crate) fn read(db: &Connection, session: i64, settled: u64) -> Result<Tail> {
        let mut tail = Tail::default();
        for row in after(db, session, settled, usize::MAX, usize::MAX)? {
            let Some(changes) = &row.changes else { continue };
            let text = std::str::from_utf8(changes).unwrap_or("[]");
            let changes = stored::changes(text)
                .map_err(|e| Error::Damaged(format!("changes cannot be read: {e}")))?;
            changes.into_iter().for_each(|change| tail.take(row.seq, change));
        }
        // An item whose row is there takes its changes itself.
        let mut new = BTreeMap::new();
        for (order, (seq, item)) in std::mem::take(&mut tail.new) {
            if !is_there(db, session, &item.id)? {
                new.insert(order, (seq, item));
            }
        }
        tail.new = new;
        Ok(tail)
    }

    fn take(&mut self, seq: u64, change: Change) {
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return };
        match &change {
            Change::Remove { .. } => {
                self.new.retain(|_, (_, item)| *item.id != *id);
                self.changes.remove(&id);
                self.removed.insert(id);
                return;
            }
            Change::Put { item } => {
                self.removed.remove(&id);
                if !self.has_new(&id) {
                    self.new.insert(item.order, (seq, (**item).clone()));
                }
            }
            _ => {}
        }
        if let Some((last, item)) = self.new.values_mut().find(|(_, item)| *item.id == *id) {
            *last = seq;
            item.apply(change.clone());
        }
        self.changes.entry(id).or_default().push((seq, change));
    }

    /// The item of a row as it is now; none when it is gone.
    pub(crate) fn complete(&self, known: u64, mut item: Item) -> Option<Item> {
        if self.removed.contains(item.id.as_str()) {
            return None;
        }
        for (seq, change) in self.changes.get(item.id.as_str()).into_iter().flatten() {
            if *seq > known {
                item.apply(change.clone());
            }
        }
        Some(item)
    }

    /// Whether an item without a row is there.
    pub(crate) fn has_new(&self, id: &str) -> bool {
        self.new.values().any(|(_, item)| *item.id == *id)
    }

    /// An item as it is now.
    pub(crate) fn item(&self, db: &Connection, session: i64, id: &str) -> Result<Option<Item>> {
        let new = || self.new.values().map(|(_, item)| item).find(|item| *item.id == *id);
        Ok(match row(db, session, id)? {
            Some((seq, item)) => self.complete(seq, item),
            None => new().cloned(),
        })
    }

    /// Items whose rows lack something, and since which event.
    pub(crate) fn unsettled(&self, db: &Connection, session: i64) -> Result<Vec<(String, u64)>> {
        let mut query = db.prepare_cached("SELECT seq FROM item WHERE session = ?1 AND id = ?2")?;
        let mut lack = Vec::new();
        for (id, changes) in &self.changes {
            let known = query.query_row(params![session, id], |r| r.get(0)).optional()?;
            let known: u64 = known.unwrap_or(0);
            let first = changes.iter().find(|(seq, _)| *seq > known);
            lack.extend(first.map(|(seq, _)| (id.clone(), *seq)));
        }
        Ok(lack)
    }
}
