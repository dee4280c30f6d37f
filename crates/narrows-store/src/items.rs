//! Rows of items: written when an item closes, completed from the log's tail on read.

use crate::error::{Error, Result};
use crate::log::{after, event_key, gone, keys, number};
use crate::pack::text;
use crate::store::Store;
use narrows::session::SessionInfo;
use narrows::{Change, Item, Items, stored};
use rusqlite::{Connection, OptionalExtension, params};
use std::collections::{BTreeMap, HashMap, HashSet};

/// A window of a session's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last ones.
    End,
    /// Those before this order.
    Before(u64),
    /// Those from this order on.
    From(u64),
    /// Those around this order.
    Around(u64),
}

/// An item as it is now.
#[derive(Debug, Clone)]
pub struct ItemRow {
    /// Its place.
    pub order: u64,
    /// The item.
    pub item: Item,
}

/// Some items, and the place in the log that they are of.
#[derive(Debug, Clone, Default)]
pub struct WindowPage {
    /// The items, in their order.
    pub items: Vec<ItemRow>,
    /// Follow the log from here.
    pub seq: u64,
    /// The life of the log.
    pub epoch: String,
    /// Whether there are items before these.
    pub before: bool,
    /// Whether there are items after these.
    pub after: bool,
    /// The header, as JSON.
    pub info: String,
    /// Whether the session's source said that nothing more comes.
    pub ended: bool,
}

/// What is needed to go on with a session.
#[derive(Debug)]
pub struct Kept {
    /// Recent items and all open ones, as they are after the last event.
    pub items: Items,
    /// Items whose rows lack something, and since which event.
    pub unsettled: Vec<(String, u64)>,
    /// The last event.
    pub seq: u64,
    /// The order of the next item.
    pub next_order: u64,
}

/// The row of an item: the last event in it, and the item.
pub(crate) fn row(db: &Connection, session: i64, id: &str) -> Result<Option<(u64, Item)>> {
    let mut query =
        db.prepare_cached("SELECT seq, body FROM item WHERE session = ?1 AND id = ?2")?;
    let mut rows = query.query(params![session, id])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some((row.get(0)?, read_item(&text(row.get_ref(1)?)?)?)))
}

pub(crate) fn read_item(body: &str) -> Result<Item> {
    stored::item(body).map_err(|e| Error::Damaged(format!("an item cannot be read: {e}")))
}

/// What the log's tail adds to the rows of items.
#[derive(Debug, Default)]
struct Tail {
    changes: HashMap<String, Vec<(u64, Change)>>,
    /// Items that have no row yet, by order.
    new: BTreeMap<u64, (u64, Item)>,
    removed: HashSet<String>,
}

impl Tail {
    fn read(db: &Connection, session: i64, settled: u64) -> Result<Tail> {
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
            match row(db, session, &item.id)? {
                Some(_) => {}
                None => drop(new.insert(order, (seq, item))),
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
                if !self.new.values().any(|(_, known)| known.id == item.id) {
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
    fn complete(&self, known: u64, mut item: Item) -> Option<Item> {
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

    /// An item as it is now.
    fn item(&self, db: &Connection, session: i64, id: &str) -> Result<Option<Item>> {
        let new = || self.new.values().map(|(_, item)| item).find(|item| *item.id == *id);
        Ok(match row(db, session, id)? {
            Some((seq, item)) => self.complete(seq, item),
            None => new().cloned(),
        })
    }

    /// Items whose rows lack something, and since which event.
    fn unsettled(&self, db: &Connection, session: i64) -> Result<Vec<(String, u64)>> {
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

impl Store {
    /// Some items of a session, as they are now.
    pub async fn items(&self, session: i64, window: Window, limit: usize) -> Result<WindowPage> {
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT seq, settled, epoch, info, ended FROM session WHERE key = ?1",
            )?;
            let (seq, settled, epoch, info, ended): (u64, u64, String, String, bool) = query
                .query_row([session], |r| {
                    Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?))
                })
                .map_err(gone)?;
            let tail = Tail::read(db, session, settled)?;
            let (first, last) = keys(session);
            // One more than asked tells whether there are more.
            let back = |before: u64, n: usize| {
                take(db, session, (first, event_key(session, before)), true, n, &tail)
            };
            let on = |from: u64, n: usize| {
                take(db, session, (event_key(session, from), last + 1), false, n, &tail)
            };
            let (mut before, mut after) = (Vec::new(), Vec::new());
            let (mut more_before, mut more_after) = (false, false);
            match window {
                Window::End => before = back(u64::from(u32::MAX), limit + 1)?,
                Window::Before(order) => {
                    before = back(order, limit + 1)?;
                    more_after = !on(order, 1)?.is_empty();
                }
                Window::From(order) => {
                    after = on(order, limit + 1)?;
                    more_before = !back(order, 1)?.is_empty();
                }
                Window::Around(order) => {
                    let half = limit / 2;
                    before = back(order, half + 1)?;
                    after = on(order, limit - half + 1)?;
                    more_before = before.len() > half;
                    before.truncate(half);
                    more_after = after.len() > limit - half;
                    after.truncate(limit - half);
                }
            }
            if before.len() > limit {
                more_before = true;
                before.truncate(limit);
            }
            if after.len() > limit {
                more_after = true;
                after.truncate(limit);
            }
            before.reverse();
            before.append(&mut after);
            Ok(WindowPage {
                items: before,
                seq,
                epoch,
                before: more_before,
                after: more_after,
                info,
                ended,
            })
        })
        .await
    }

    /// One item, as it is now, and whether the session's source is over.
    pub async fn item(&self, session: i64, id: &str) -> Result<(Item, bool)> {
        let id = id.to_owned();
        self.read(move |db| {
            let mut query =
                db.prepare_cached("SELECT settled, ended FROM session WHERE key = ?1")?;
            let (settled, ended) =
                query.query_row([session], |r| Ok((r.get(0)?, r.get(1)?))).map_err(gone)?;
            let tail = Tail::read(db, session, settled)?;
            let found = tail.item(db, session, &id)?;
            found.map(|item| (item, ended)).ok_or(Error::NotFound("item"))
        })
        .await
    }

    /// What is needed to go on: the header, open items and the last `recent` ones.
    pub async fn kept(&self, session: i64, recent: usize) -> Result<Kept> {
        self.read(move |db| {
            let mut query = db.prepare_cached(
                "SELECT seq, settled, next_order, state FROM session WHERE key = ?1",
            )?;
            let (seq, settled, next_order, state): (u64, u64, u64, Option<String>) = query
                .query_row([session], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)))
                .map_err(gone)?;
            let info = match state {
                Some(state) => stored::info(&state)
                    .map_err(|e| Error::Damaged(format!("a header cannot be read: {e}")))?,
                None => SessionInfo::default(),
            };
            let tail = Tail::read(db, session, settled)?;
            let (first, last) = keys(session);
            let mut found = take(db, session, (first, last + 1), true, recent, &tail)?;
            let mut known: HashSet<String> =
                found.iter().map(|row| row.item.id.as_str().to_owned()).collect();
            let mut open =
                db.prepare_cached("SELECT id FROM item WHERE session = ?1 AND open = 1")?;
            let open = open.query_map([session], |r| r.get::<_, String>(0))?;
            let mut open = open.collect::<rusqlite::Result<Vec<_>>>()?;
            // Of these the row may not tell that they are open, or there may be none.
            let unsettled = tail.unsettled(db, session)?;
            open.extend(unsettled.iter().map(|(id, _)| id.clone()));
            for id in open {
                if !known.contains(&id)
                    && let Some(item) = tail.item(db, session, &id)?
                {
                    found.push(ItemRow { order: item.order, item });
                    known.insert(id);
                }
            }
            found.sort_by_key(|row| row.order);
            let mut items = Items::from_parts(info, found.into_iter().map(|row| row.item));
            items.set_next_order(next_order);
            Ok(Kept { items, unsettled, seq, next_order })
        })
        .await
    }
}

/// Items with keys in a range, from its end or its beginning, with those that have no row yet.
fn take(
    db: &Connection,
    session: i64,
    (from, until): (i64, i64),
    backwards: bool,
    limit: usize,
    tail: &Tail,
) -> Result<Vec<ItemRow>> {
    let order = if backwards { "DESC" } else { "ASC" };
    let mut query = db.prepare_cached(&format!(
        "SELECT key, seq, body FROM item WHERE key >= ?1 AND key < ?2 ORDER BY key {order}"
    ))?;
    let mut rows = query.query([from, until])?;
    let in_range = |order: &u64| (from..until).contains(&event_key(session, *order));
    let mut new: Vec<(u64, &Item)> = tail
        .new
        .iter()
        .filter(|(order, _)| in_range(order))
        .map(|(o, (_, item))| (*o, item))
        .collect();
    if !backwards {
        new.reverse();
    }
    let before = |a: u64, b: u64| if backwards { a > b } else { a < b };
    let mut out = Vec::new();
    while out.len() < limit {
        let Some(row) = rows.next()? else { break };
        let place = number(row.get(0)?);
        while out.len() < limit
            && let Some((order, item)) = new.pop_if(|(order, _)| before(*order, place))
        {
            out.push(ItemRow { order, item: item.clone() });
        }
        let body = text(row.get_ref(2)?)?;
        if out.len() < limit
            && let Some(item) = tail.complete(row.get(1)?, read_item(&body)?)
        {
            out.push(ItemRow { order: place, item });
        }
    }
    while out.len() < limit
        && let Some((order, item)) = new.pop()
    {
        out.push(ItemRow { order, item: item.clone() });
    }
    Ok(out)
}
