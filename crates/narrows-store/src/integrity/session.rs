//! Checks one session: its row, its events and items in slices, its other rows and its indexes.

use super::search_index;
use super::side_tables::{COUNTERS_MATCH, check_session_rows};
use crate::checksum;
use crate::checksum::row_matches;
use crate::checksum::side_tables::visibility_sql;
use crate::damage;
use crate::damage::{Damage, DamageKind, notice};
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::items::overlay::LogOverlay;
use crate::items::select::{ReadLimit, Which, select};
use crate::keys::{event_key, keys};
use crate::log::{LOG_COUNTERS, LogCounters, events_after};
use crate::search::index;
use crate::sessions::row;
use std::ops::ControlFlow;

/// Limits of what one slice reads.
const SLICE_ROWS: usize = 1000;
const SLICE_BYTES: usize = 1 << 20;

/// Where the next slice begins: after an event, and at the order of an item.
pub(super) type SlicePosition = (u64, u64);

/// Checks some events and items from a position on; returns the next position, none at the end.
pub(super) fn check_slice(
    db: &Db<'_>,
    session: i64,
    (seq, first_order): SlicePosition,
) -> Result<Option<SlicePosition>> {
    let numbers = check_row(db, session)?;
    let is_written = numbers.hold();
    let numbers = numbers.checked(db, session)?;
    if seq < numbers.seq {
        let rows = events_after(db, session, seq, numbers.seq, SLICE_ROWS, SLICE_BYTES)?;
        if let Some(last) = rows.last() {
            return Ok(Some((last.seq, first_order)));
        }
    }
    let (_, last) = keys(session);
    let low = event_key(session, first_order);
    let overlay = LogOverlay::default();
    let limit = ReadLimit::items(SLICE_ROWS);
    let (items, _) = select(db, session, &Which::All, (low, last + 1), false, limit, &overlay)?;
    if let Some(row) = items.last() {
        let next = row.order.max(first_order) + 1;
        // Unreadable items may seem to have no end. If the counters are damaged too, the session ends
        // where its items become unreadable.
        let is_end =
            if is_written { next >= numbers.next_order } else { notice::is_notice(&row.item) };
        if !is_end {
            return Ok(Some((numbers.seq, next)));
        }
    }
    if !row::is_listable(db, session)? {
        damage::report(Damage::new(session, DamageKind::Session, 0, 0));
    }
    check_session_rows(db, session)?;
    if !search_index::contains_all(db, keys(session))? || !index::finds_items(db, session)? {
        damage::report(Damage::database(index::INDEX_INCOMPLETE));
    }
    if is_written && !db.is_postgres() {
        check_item_indexes(db, session, numbers.items)?;
    }
    Ok(None)
}

fn check_row(db: &Db<'_>, session: i64) -> Result<LogCounters> {
    let sql = format!(
        "SELECT {LOG_COUNTERS}, id, epoch, label, name_crc, info, title, agent, model, status, facts_crc,
         state, state_crc, hidden = {}, {} FROM session WHERE key = ?1",
        visibility_sql("copy_of", "left_out"),
        COUNTERS_MATCH.as_str()
    );
    let numbers = db.query_opt(&sql, &params![session], |r| {
        let matches = row_matches(r, &[5, 6, 7], 8)?
            && row_matches(r, &[9, 10, 11, 12, 13], 14)?
            && row_matches(r, &[15], 16)?
            && r.get::<bool>(17)?;
        if !matches {
            damage::report(Damage::new(session, DamageKind::Session, 0, 0));
        }
        if !r.get::<bool>(18)? {
            let detail = "the times or counters of a session do not match their checksum";
            damage::report(Damage { session, ..Damage::other(detail) });
        }
        LogCounters::read(r)
    })?;
    numbers.ok_or(Error::NotFound("session"))
}

/// Checks that the indexes of items have exactly the items of a session.
fn check_item_indexes(db: &Db<'_>, session: i64, items: u64) -> Result<()> {
    let (first, last) = keys(session);
    let sql = "SELECT count(*) FROM item NOT INDEXED WHERE true AND key BETWEEN ?1 AND ?2";
    let rows = db.query_one(sql, &params![first, last], |r| r.get::<u64>(0))?;
    if rows != items {
        let detail = format!("a session has {rows} item rows and counts {items}");
        damage::report(Damage { session, ..Damage::database(detail) });
    }
    // The number and an order-independent checksum of the rows of a query.
    let fingerprint = |column: &str, source: &str| -> Result<(u64, i64)> {
        let sql = format!("SELECT key, {column} FROM item {source} AND key BETWEEN ?1 AND ?2");
        let (mut count, mut sum) = (0, 0);
        db.query_each(&sql, &params![first, last], |r| {
            count += 1;
            sum ^= checksum::of_values(&[r.value(0)?, r.value(1)?]);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok((count, sum))
    };
    let by_id = format!("INDEXED BY item_id WHERE session = {session}");
    let top_level = format!("INDEXED BY item_top WHERE session = {session} AND top = 1");
    for (column, table, index) in [
        ("id", "NOT INDEXED WHERE true", by_id.as_str()),
        ("session", "NOT INDEXED WHERE top = 1", top_level.as_str()),
        (
            "parent",
            "NOT INDEXED WHERE parent IS NOT NULL",
            "INDEXED BY item_child WHERE parent IS NOT NULL",
        ),
    ] {
        if fingerprint(column, table)? != fingerprint(column, index)? {
            let detail = "an index of items does not agree with its table";
            damage::report(Damage { session, ..Damage::database(detail) });
        }
    }
    Ok(())
}
