//! Rows of items: written when an item closes, completed from the log's tail on read.

use crate::compress::text;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::items::overlay::Tail;
use crate::items::select::{Most, Which, take};
use crate::keys::{event_key, keys, number};
use crate::log::{NUMBERS, Numbers};
use crate::sessions::row::damaged_info;
use crate::sum::{self, ItemSum};
use narrows::session::SessionInfo;
use narrows::{Item, Items, stored};
use std::collections::{BTreeSet, HashSet};

/// Bytes of the items that are read to go on with a session, about.
const MAX_KEPT: usize = 16 << 20;

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

/// What the header's checksum is of, beside the header itself, and the checksum.
const FACTS: &str = "title, agent, model, status, facts_crc";

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
        let sql =
            format!("SELECT {NUMBERS}, epoch, info, ended, {FACTS} FROM session WHERE key = ?1");
        let found = db.optional(&sql, &params![session], |r| {
            let facts = sum::row_holds(r, &[6, 8, 9, 10, 11], 12)?;
            Ok((Numbers::read(r)?, r.get(5)?, r.get(6)?, r.get(7)?, facts))
        })?;
        let (numbers, epoch, info, ended, facts) = found.ok_or(Error::NotFound("session"))?;
        let Numbers { seq, settled, next_order, items, .. } = numbers.checked(db, session)?;
        let info = if facts {
            info
        } else {
            damage::found(Damage::new(session, damage::Part::Session, 0, 0));
            damaged_info()
        };
        let tail = Tail::read(db, session, settled, seq)?;
        Ok(Log { seq, epoch, ended, tail, info, items, next_order })
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

/// The columns by which the row of an item is read and checked.
pub(crate) const COLUMNS: &str = "key, seq, body, id, kind, open, parent, top, crc";

/// A row as [`COLUMNS`] has it: the last event in it, and the item; none if it is not what was written.
pub(crate) fn read_row(row: &Row<'_>) -> Option<(u64, Item)> {
    let (seq, body) = sound(row)?;
    Some((seq, read_item(&text(body).ok()?).ok()?))
}

/// The last event in a row as [`COLUMNS`] has it, and its body; none if it is not what was written.
pub(crate) fn sound<'a>(row: &'a Row<'_>) -> Option<(u64, &'a [u8])> {
    let body = row.bytes(2).ok()??;
    let seq = row.get(1).ok()?;
    if let Some(kept) = row.get::<Option<i64>>(8).ok()? {
        let (id, kind) = (row.get::<String>(3).ok()?, row.get::<String>(4).ok()?);
        let parent: Option<String> = row.get(6).ok()?;
        // Statements look for 1: another number is not the same.
        let flag = |at: usize| row.get::<u64>(at).ok().filter(|n| *n < 2).map(|n| n == 1);
        let is = ItemSum {
            key: row.get(0).ok()?,
            id: &id,
            seq,
            kind: &kind,
            open: flag(5)?,
            body,
            parent: parent.as_deref(),
        };
        if is.at(flag(7)?) != kept {
            return None;
        }
    }
    Some((seq, body))
}

/// The row of an item: the last event in it, and the item. One that cannot be read is none.
pub(crate) fn row(db: &Db<'_>, session: i64, id: &str) -> Result<Option<(u64, Item)>> {
    let sql = format!("SELECT {COLUMNS} FROM item WHERE session = ?1 AND id = ?2");
    let found = db.optional(&sql, &params![session, id], |r| {
        let key = r.get(0)?;
        Ok((key, read_row(r)))
    })?;
    Ok(found.and_then(|(key, read)| {
        if read.is_none() {
            lost(session, key, key);
        }
        read
    }))
}

/// Remembers that items cannot be read.
pub(crate) fn lost(session: i64, first: i64, last: i64) {
    damage::found(Damage::new(session, damage::Part::Items, number(first), number(last)));
}

pub(crate) fn read_item(body: &str) -> Result<Item> {
    stored::item(body).map_err(|e| Error::Damaged(format!("an item cannot be read: {e}")))
}

/// Some of those items that are meant: a window counts only these.
pub(crate) fn window(
    db: &Db<'_>,
    session: i64,
    which: &Which,
    window: Window,
    limit: usize,
) -> Result<WindowPage> {
    let Log { seq, epoch, ended, tail, info, items, next_order } = Log::read(db, session)?;
    let (first, last) = keys(session);
    let back = |before: u64, n: usize| {
        let keys = (first, event_key(session, before));
        take(db, session, which, keys, true, Most::items(n), &tail)
    };
    let on = |from: u64, n: usize| {
        let keys = (event_key(session, from), last + 1);
        take(db, session, which, keys, false, Most::items(n), &tail)
    };
    let (none, half) = ((Vec::new(), false), limit / 2);
    let ((mut before, more_before), (mut after, more_after)) = match window {
        Window::End => (back(u64::from(u32::MAX), limit)?, none),
        Window::Before(order) => (back(order, limit)?, on(order, 0)?),
        Window::From(order) => (back(order, 0)?, on(order, limit)?),
        Window::Around(order) => (back(order, half)?, on(order, limit - half)?),
    };
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
}

/// One item, as it is now, and whether the session's source is over.
pub(crate) fn item(db: &Db<'_>, session: i64, id: &str) -> Result<(Item, bool)> {
    let known = db.optional(
        &format!("SELECT {NUMBERS}, ended FROM session WHERE key = ?1"),
        &params![session],
        |r| Ok((Numbers::read(r)?, r.get(5)?)),
    )?;
    let (numbers, ended) = known.ok_or(Error::NotFound("session"))?;
    let Numbers { seq, settled, .. } = numbers.checked(db, session)?;
    let tail = Tail::read(db, session, settled, seq)?;
    let found = tail.item(db, session, id)?;
    found.map(|item| (item, ended)).ok_or(Error::NotFound("item"))
}

/// What is needed to go on: the header, open items and the last `recent` ones.
pub(crate) fn kept(db: &Db<'_>, session: i64, recent: usize) -> Result<Kept> {
    let found = db.optional(
        &format!("SELECT {NUMBERS}, state, state_crc FROM session WHERE key = ?1"),
        &params![session],
        |r| Ok((Numbers::read(r)?, r.get(5)?, sum::row_holds(r, &[5], 6)?)),
    )?;
    let (numbers, state, sound): (_, Option<String>, bool) =
        found.ok_or(Error::NotFound("session"))?;
    if !sound || !numbers.hold() {
        // What is written after a wrong end or on a wrong header would be wrong, too.
        damage::found(Damage::new(session, damage::Part::Session, 0, 0));
        let what = "the row of the session is not as it was written";
        return Err(Error::Damaged(what.to_owned()));
    }
    let Numbers { seq, settled, next_order, .. } = numbers;
    let info = match state {
        Some(state) => stored::info(&state)
            .map_err(|e| Error::Damaged(format!("a header cannot be read: {e}")))?,
        None => SessionInfo::default(),
    };
    let tail = Tail::read(db, session, settled, seq)?;
    let (first, last) = keys(session);
    let most = Most { items: recent, bytes: MAX_KEPT };
    let (recent, _) = take(db, session, &Which::All, (first, last + 1), true, most, &tail)?;
    let mut found: Vec<Item> = recent.into_iter().map(|row| row.item).collect();
    let known: HashSet<String> = found.iter().map(|item| item.id.as_str().to_owned()).collect();
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
