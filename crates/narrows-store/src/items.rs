//! Rows of items: written when an item closes, completed from the log's tail on read.

use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::log::{event_key, keys};
use crate::pack::text;
use crate::store::Store;
use crate::tail::Tail;
use crate::which::{Which, take};
use narrows::session::SessionInfo;
use narrows::{Item, Items, stored};
use std::collections::{BTreeSet, HashSet};

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
    /// The last event in its row; what came later is in the item too.
    pub seq: u64,
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
    /// All items that the session has.
    pub total: u64,
    /// The order of the next item to come.
    pub next_order: u64,
}

/// The state of a session's log.
pub(crate) struct Log {
    pub(crate) seq: u64,
    pub(crate) epoch: String,
    pub(crate) ended: bool,
    pub(crate) tail: Tail,
    info: String,
    items: u64,
    pub(crate) next_order: u64,
}

impl Log {
    pub(crate) fn read(db: &Db<'_>, session: i64) -> Result<Log> {
        let found = db.optional(
            "SELECT seq, settled, epoch, info, ended, items, next_order FROM session WHERE key = ?1",
            &params![session],
            |r| {
                let log = Log {
                    seq: r.get(0)?,
                    epoch: r.get(2)?,
                    info: r.get(3)?,
                    ended: r.get(4)?,
                    items: r.get(5)?,
                    next_order: r.get(6)?,
                    tail: Tail::default(),
                };
                Ok((r.get(1)?, log))
            },
        )?;
        let (settled, mut log) = found.ok_or(Error::NotFound("session"))?;
        log.tail = Tail::read(db, session, settled)?;
        Ok(log)
    }
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
pub(crate) fn row(db: &Db<'_>, session: i64, id: &str) -> Result<Option<(u64, Item)>> {
    db.optional(
        "SELECT seq, body FROM item WHERE session = ?1 AND id = ?2",
        &params![session, id],
        |r| Ok((r.get(0)?, read_item(&text(r.bytes(1)?.unwrap_or_default())?)?)),
    )
}

pub(crate) fn read_item(body: &str) -> Result<Item> {
    stored::item(body).map_err(|e| Error::Damaged(format!("an item cannot be read: {e}")))
}

impl Store {
    /// Some items of a session, as they are now.
    pub async fn items(&self, session: i64, window: Window, limit: usize) -> Result<WindowPage> {
        self.items_of(session, Which::All, window, limit).await
    }

    /// Some of those items that are meant: a window counts only these.
    pub async fn items_of(
        &self,
        session: i64,
        which: Which,
        window: Window,
        limit: usize,
    ) -> Result<WindowPage> {
        self.read(move |db| {
            let Log { seq, epoch, ended, tail, info, items, next_order } = Log::read(db, session)?;
            let (first, last) = keys(session);
            // One more than asked tells whether there are more.
            let back = |before: u64, n: usize| {
                take(db, session, &which, (first, event_key(session, before)), true, n, &tail)
            };
            let on = |from: u64, n: usize| {
                take(db, session, &which, (event_key(session, from), last + 1), false, n, &tail)
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
                total: items + tail.new.len() as u64,
                next_order,
            })
        })
        .await
    }

    /// One item, as it is now, and whether the session's source is over.
    pub async fn item(&self, session: i64, id: &str) -> Result<(Item, bool)> {
        let id = id.to_owned();
        self.read(move |db| {
            let known = db.optional(
                "SELECT settled, ended FROM session WHERE key = ?1",
                &params![session],
                |r| Ok((r.get(0)?, r.get(1)?)),
            )?;
            let (settled, ended) = known.ok_or(Error::NotFound("session"))?;
            let tail = Tail::read(db, session, settled)?;
            let found = tail.item(db, session, &id)?;
            found.map(|item| (item, ended)).ok_or(Error::NotFound("item"))
        })
        .await
    }

    /// What is needed to go on: the header, open items and the last `recent` ones.
    pub async fn kept(&self, session: i64, recent: usize) -> Result<Kept> {
        self.read(move |db| {
            let found = db.optional(
                "SELECT seq, settled, next_order, state FROM session WHERE key = ?1",
                &params![session],
                |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)),
            )?;
            let (seq, settled, next_order, state): (u64, u64, u64, Option<String>) =
                found.ok_or(Error::NotFound("session"))?;
            let info = match state {
                Some(state) => stored::info(&state)
                    .map_err(|e| Error::Damaged(format!("a header cannot be read: {e}")))?,
                None => SessionInfo::default(),
            };
            let tail = Tail::read(db, session, settled)?;
            let (first, last) = keys(session);
            let recent = take(db, session, &Which::All, (first, last + 1), true, recent, &tail)?;
            let mut found: Vec<Item> = recent.into_iter().map(|row| row.item).collect();
            let known: HashSet<String> =
                found.iter().map(|item| item.id.as_str().to_owned()).collect();
            let unsettled = tail.unsettled(db, session)?;
            for id in maybe_open(db, session, &unsettled)? {
                if !known.contains(&id) {
                    found.extend(tail.item(db, session, &id)?);
                }
            }
            found.sort_by_key(|item| item.order);
            let mut items = Items::from_parts(info, found);
            items.set_next_order(next_order);
            Ok(Kept { items, unsettled, seq, next_order })
        })
        .await
    }
}

/// The items that are open, and those of which their rows may not tell that they are.
fn maybe_open(db: &Db<'_>, session: i64, unsettled: &[(String, u64)]) -> Result<BTreeSet<String>> {
    let open = "SELECT id FROM item WHERE session = ?1 AND open = 1";
    let open: Vec<String> = db.all(open, &params![session], |r| r.get(0))?;
    let mut open = BTreeSet::from_iter(open);
    open.extend(unsettled.iter().map(|(id, _)| id.clone()));
    Ok(open)
}

/// The items that are open, in their order.
pub(crate) fn open_items(db: &Db<'_>, session: i64, tail: &Tail) -> Result<Vec<Item>> {
    let mut open = Vec::new();
    for id in maybe_open(db, session, &tail.unsettled(db, session)?)? {
        open.extend(tail.item(db, session, &id)?.filter(Item::is_open));
    }
    open.sort_by_key(|item| item.order);
    Ok(open)
}
