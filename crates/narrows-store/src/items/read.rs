//! Reading item rows, completed with the changes that rows do not contain yet.

use crate::checksum::{self, ItemChecksum};
use crate::compress::decode_text;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, params};
use crate::error::{Error, Result};
use crate::items::overlay::LogOverlay;
use crate::items::select::{ReadLimit, Which, select};
use crate::keys::{event_key, keys, number};
use crate::log::{LOG_COUNTERS, LogCounters};
use crate::sessions::row::damaged_info;
use narrows::session::SessionInfo;
use narrows::{Item, Items, stored};
use std::collections::{BTreeSet, HashSet};

/// Approximate bytes of items that are loaded to resume a session.
const MAX_RESUME_BYTES: usize = 16 << 20;

/// A window of a session's items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Window {
    /// The last items.
    End,
    /// The items before this order.
    Before(u64),
    /// The items from this order on.
    From(u64),
    /// The items around this order.
    Around(u64),
}

/// The current state of an item.
#[derive(Debug, Clone)]
pub struct ItemRow {
    /// Its position.
    pub order: u64,
    /// The last event in the stored row; the item also has later changes.
    pub seq: u64,
    /// The item.
    pub item: Item,
}

/// A page of items, and the log position it reflects.
#[derive(Debug, Clone, Default)]
pub struct WindowPage {
    /// The items, in order.
    pub items: Vec<ItemRow>,
    /// The last event the page reflects; follow the log from here.
    pub seq: u64,
    /// The epoch of the log.
    pub epoch: String,
    /// Whether there are items before the page.
    pub before: bool,
    /// Whether there are items after the page.
    pub after: bool,
    /// The header, as JSON.
    pub info: String,
    /// Whether the source has ended.
    pub ended: bool,
    /// The number of the session's items.
    pub total: u64,
    /// The order of the next new item.
    pub next_order: u64,
}

/// The other columns of the header's checksum, and the checksum.
const HEADER_COLUMNS: &str = "title, agent, model, status, facts_crc";

/// The head and header of a session, with the log overlay.
pub(crate) struct SessionSnapshot {
    pub(crate) seq: u64,
    pub(crate) epoch: String,
    pub(crate) ended: bool,
    pub(crate) overlay: LogOverlay,
    info: String,
    items: u64,
    pub(crate) next_order: u64,
}

impl SessionSnapshot {
    pub(crate) fn read(db: &Db<'_>, session: i64) -> Result<SessionSnapshot> {
        let sql = format!(
            "SELECT {LOG_COUNTERS}, epoch, info, ended, {HEADER_COLUMNS} FROM session WHERE key = ?1"
        );
        let found = db.query_opt(&sql, &params![session], |r| {
            let header_matches = checksum::row_matches(r, &[6, 8, 9, 10, 11], 12)?;
            Ok((LogCounters::read(r)?, r.get(5)?, r.get(6)?, r.get(7)?, header_matches))
        })?;
        let (counters, epoch, info, ended, header_matches) =
            found.ok_or(Error::NotFound("session"))?;
        let LogCounters { seq, settled, next_order, items, .. } = counters.checked(db, session)?;
        let info = if header_matches {
            info
        } else {
            damage::report(Damage::new(session, damage::DamageKind::Session, 0, 0));
            damaged_info()
        };
        let overlay = LogOverlay::read(db, session, settled, seq)?;
        Ok(SessionSnapshot { seq, epoch, ended, overlay, info, items, next_order })
    }
}

/// The state needed to resume writing a session.
#[derive(Debug)]
pub struct Kept {
    /// Recent items and all open ones, as of the last event.
    pub items: Items,
    /// Ids of items whose rows are behind, each with the first missing event.
    pub unsettled: Vec<(String, u64)>,
    /// The last event.
    pub seq: u64,
    /// The order of the next new item.
    pub next_order: u64,
}

/// The columns needed to read and verify an item row.
pub(crate) const COLUMNS: &str = "key, seq, body, id, kind, open, parent, top, crc";

/// Reads a row of [`COLUMNS`]: its last event and the item. `None` if it does not match its
/// checksum.
pub(crate) fn read_row(row: &Row<'_>) -> Option<(u64, Item)> {
    let (seq, body) = verify_row(row)?;
    Some((seq, read_item(&decode_text(body).ok()?).ok()?))
}

/// Verifies a row of [`COLUMNS`]: its last event and the stored body. `None` if it does not match
/// its checksum.
pub(crate) fn verify_row<'a>(row: &'a Row<'_>) -> Option<(u64, &'a [u8])> {
    let body = row.bytes(2).ok()??;
    let seq = row.get(1).ok()?;
    if let Some(kept) = row.get::<Option<i64>>(8).ok()? {
        let (id, kind) = (row.get::<String>(3).ok()?, row.get::<String>(4).ok()?);
        let parent: Option<String> = row.get(6).ok()?;
        // Partial indexes compare with 1: another truthy number is damage.
        let flag = |at: usize| row.get::<u64>(at).ok().filter(|n| *n < 2).map(|n| n == 1);
        let is = ItemChecksum {
            key: row.get(0).ok()?,
            id: &id,
            seq,
            kind: &kind,
            open: flag(5)?,
            body,
            parent: parent.as_deref(),
        };
        if is.with_level(flag(7)?) != kept {
            return None;
        }
    }
    Some((seq, body))
}

/// Reads the row of an item by id; `None` if there is none or it is damaged.
pub(crate) fn row(db: &Db<'_>, session: i64, id: &str) -> Result<Option<(u64, Item)>> {
    let sql = format!("SELECT {COLUMNS} FROM item WHERE session = ?1 AND id = ?2");
    let found = db.query_opt(&sql, &params![session, id], |r| {
        let key = r.get(0)?;
        Ok((key, read_row(r)))
    })?;
    Ok(found.and_then(|(key, read)| {
        if read.is_none() {
            report_damage(session, key, key);
        }
        read
    }))
}

/// Reports damaged items.
pub(crate) fn report_damage(session: i64, first: i64, last: i64) {
    damage::report(Damage::new(session, damage::DamageKind::Items, number(first), number(last)));
}

pub(crate) fn read_item(body: &str) -> Result<Item> {
    stored::item(body).map_err(|e| Error::Damaged(format!("an item cannot be read: {e}")))
}

/// Reads a window over the selected items.
pub(crate) fn window(
    db: &Db<'_>,
    session: i64,
    which: &Which,
    window: Window,
    limit: usize,
) -> Result<WindowPage> {
    let SessionSnapshot { seq, epoch, ended, overlay, info, items, next_order } =
        SessionSnapshot::read(db, session)?;
    let (first, last) = keys(session);
    let back = |before: u64, n: usize| {
        let keys = (first, event_key(session, before));
        select(db, session, which, keys, true, ReadLimit::items(n), &overlay)
    };
    let on = |from: u64, n: usize| {
        let keys = (event_key(session, from), last + 1);
        select(db, session, which, keys, false, ReadLimit::items(n), &overlay)
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
        total: items + overlay.new.len() as u64,
        next_order,
    })
}

/// Reads the current state of an item, and whether the session's source has ended.
pub(crate) fn item(db: &Db<'_>, session: i64, id: &str) -> Result<(Item, bool)> {
    let known = db.query_opt(
        &format!("SELECT {LOG_COUNTERS}, ended FROM session WHERE key = ?1"),
        &params![session],
        |r| Ok((LogCounters::read(r)?, r.get(5)?)),
    )?;
    let (counters, ended) = known.ok_or(Error::NotFound("session"))?;
    let LogCounters { seq, settled, .. } = counters.checked(db, session)?;
    let overlay = LogOverlay::read(db, session, settled, seq)?;
    let found = overlay.item(db, session, id)?;
    found.map(|item| (item, ended)).ok_or(Error::NotFound("item"))
}

/// Reads the state needed to resume: header, open items and the last `recent` items.
pub(crate) fn resume_state(db: &Db<'_>, session: i64, recent: usize) -> Result<Kept> {
    let found = db.query_opt(
        &format!("SELECT {LOG_COUNTERS}, state, state_crc FROM session WHERE key = ?1"),
        &params![session],
        |r| Ok((LogCounters::read(r)?, r.get(5)?, checksum::row_matches(r, &[5], 6)?)),
    )?;
    let (counters, state, sound): (_, Option<String>, bool) =
        found.ok_or(Error::NotFound("session"))?;
    if !sound || !counters.hold() {
        // Appending at a wrong position or to a wrong header would spread the damage.
        damage::report(Damage::new(session, damage::DamageKind::Session, 0, 0));
        let what = "the session row does not match its checksum";
        return Err(Error::Damaged(what.to_owned()));
    }
    let LogCounters { seq, settled, next_order, .. } = counters;
    let info = match state {
        Some(state) => stored::info(&state)
            .map_err(|e| Error::Damaged(format!("a header cannot be read: {e}")))?,
        None => SessionInfo::default(),
    };
    let overlay = LogOverlay::read(db, session, settled, seq)?;
    let (first, last) = keys(session);
    let most = ReadLimit { items: recent, bytes: MAX_RESUME_BYTES };
    let (recent, _) = select(db, session, &Which::All, (first, last + 1), true, most, &overlay)?;
    let mut found: Vec<Item> = recent.into_iter().map(|row| row.item).collect();
    let known: HashSet<String> = found.iter().map(|item| item.id.as_str().to_owned()).collect();
    let unsettled = overlay.rows_behind(db, session)?;
    for id in maybe_open(db, session, &unsettled)? {
        if !known.contains(&id) {
            found.extend(overlay.item(db, session, &id)?);
        }
    }
    found.sort_by_key(|item| item.order);
    let mut items = Items::from_parts(info, found);
    items.set_next_order(next_order);
    Ok(Kept { items, unsettled, seq, next_order })
}

/// Ids of the open items, and of those whose rows may be outdated.
fn maybe_open(db: &Db<'_>, session: i64, unsettled: &[(String, u64)]) -> Result<BTreeSet<String>> {
    let open = "SELECT id FROM item WHERE session = ?1 AND open = 1";
    let open: Vec<String> = db.query_all(open, &params![session], |r| r.get(0))?;
    let mut open = BTreeSet::from_iter(open);
    open.extend(unsettled.iter().map(|(id, _)| id.clone()));
    Ok(open)
}

/// The open items, in order.
pub(crate) fn open_items(db: &Db<'_>, session: i64, overlay: &LogOverlay) -> Result<Vec<Item>> {
    let mut open = Vec::new();
    for id in maybe_open(db, session, &overlay.rows_behind(db, session)?)? {
        open.extend(overlay.item(db, session, &id)?.filter(Item::is_open));
    }
    open.sort_by_key(|item| item.order);
    Ok(open)
}
