//! Data migrations: columns and rows that SQL alone cannot derive.

use crate::checksum::{self, Checksum, ItemChecksum};
use crate::compress::decode_text;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::items::derived::row_exists;
use crate::items::first_prompt;
use crate::items::read_item;
use crate::log::read_row;
use crate::meta;
use narrows::item::ItemBody;
use narrows::tool::ChangedFile;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::ControlFlow;

/// Items read per batch.
const BATCH_ITEMS: usize = 1000;

/// Every call that edits files contains one of these.
const EDIT_MARKERS: [&str; 3] = [r#""kind":"edit""#, r#""kind":"move""#, r#""kind":"delete""#];

/// The fields read from an item.
#[derive(Deserialize)]
struct ItemHead<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "parentToolCallId")]
    parent: Option<Cow<'a, str>>,
}

/// The columns derived from an item.
struct DerivedItem {
    key: i64,
    session: i64,
    parent: Option<String>,
    files: Vec<ChangedFile>,
}

/// Fills the parents of items and the edits of calls.
pub(crate) fn items(db: &Db<'_>) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let (derived, last) = derive_batch(db, after)?;
        for DerivedItem { key, session, parent, files } in derived {
            // The checksum columns do not exist yet.
            for ChangedFile { path, added, removed } in &files {
                let insert = "INSERT OR REPLACE INTO edit VALUES (?1, ?2, ?3, ?4)";
                db.execute_pipelined(insert, &params![key, path, added, removed])?;
            }
            if let Some(parent) = parent {
                let top = !row_exists(db, session, &parent)?;
                let set = "UPDATE item SET parent = ?2, top = ?3 WHERE key = ?1";
                db.execute_pipelined(set, &params![key, parent, top])?;
            }
        }
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// Derives the columns of a batch of items after a key; also returns the last key.
fn derive_batch(db: &Db<'_>, after: i64) -> Result<(Vec<DerivedItem>, Option<i64>)> {
    let sql = "SELECT key, session, kind, body,
         EXISTS (SELECT 1 FROM call WHERE call.key = item.key)
         FROM item WHERE key > ?1 ORDER BY key LIMIT ?2";
    let (mut derived, mut last) = (Vec::new(), None);
    db.query_each(sql, &params![after, BATCH_ITEMS], |row| {
        let key = row.get(0)?;
        last = Some(key);
        let (session, kind, called) = (row.get(1)?, row.get::<String>(2)?, row.get(4)?);
        // A row that cannot be read stays unchanged; reading it reports the damage.
        if let Some(body) = row.bytes(3)?.and_then(|value| decode_text(value).ok())
            && let Ok(head) = serde_json::from_str::<ItemHead<'_>>(&body)
        {
            let parent = head.parent.filter(|parent| *parent != head.id).map(Cow::into_owned);
            let calls = called && kind == "tool_call";
            let files = if calls { edited_files(&body) } else { Vec::new() };
            if parent.is_some() || !files.is_empty() {
                derived.push(DerivedItem { key, session, parent, files });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((derived, last))
}

/// The files edited by a call.
fn edited_files(body: &str) -> Vec<ChangedFile> {
    if EDIT_MARKERS.iter().any(|kind| body.contains(kind))
        && let Ok(item) = read_item(body)
        && let ItemBody::ToolCall { tool_call } = &item.body
    {
        return tool_call.call.changed_files();
    }
    Vec::new()
}

/// Fills the first prompts and call counters of sessions.
pub(crate) fn sessions(db: &Db<'_>) -> Result<()> {
    for key in db.query_all("SELECT key FROM session", &[], |r| r.get(0))? {
        let (first, last) = crate::keys::keys(key);
        db.execute_pipelined(
            "UPDATE session SET (calls, failed) =
             (SELECT count(*), coalesce(sum(failed), 0) FROM call WHERE key BETWEEN ?2 AND ?3)
             WHERE key = ?1",
            &params![key, first, last],
        )?;
        first_prompt::find_unchecked(db, key)?;
    }
    Ok(())
}

/// Fills the checksums of small tables. Those of events and items are filled by maintenance.
pub(crate) fn checksums(db: &Db<'_>) -> Result<()> {
    let sql = "SELECT key, id, epoch, label, info, title, agent, model, status, state FROM session
         WHERE name_crc IS NULL";
    let derived = db.query_all(sql, &[], |r| {
        let sum = |columns: &[usize]| -> Result<i64> {
            let mut sum = Checksum::default();
            for at in columns {
                sum.add(&r.value(*at)?);
            }
            Ok(sum.finish())
        };
        Ok((r.get::<i64>(0)?, sum(&[1, 2, 3])?, sum(&[4, 5, 6, 7, 8])?, sum(&[9])?))
    })?;
    let tally = checksum::log_counters_sql("seq", "settled", "next_order", "items");
    let sql = format!(
        "UPDATE session SET name_crc = ?2, facts_crc = ?3, state_crc = ?4, tally = {tally}
         WHERE key = ?1"
    );
    for (key, names, facts, state) in derived {
        db.execute_pipelined(&sql, &params![key, names, facts, state])?;
    }
    Ok(())
}

/// Rows that get checksums per slice.
const CHECKSUM_SLICE_ROWS: usize = 200;
/// The tables whose old rows get checksums, and the `meta` keys of their progress.
const CHECKSUM_PROGRESS: [(&str, &str); 2] = [("event", "summed_events"), ("item", "summed_items")];

/// The last key of a table that was processed. PostgreSQL stores values as bytes.
fn progress(db: &Db<'_>, place: &str) -> Result<Option<i64>> {
    let sql = "SELECT value FROM meta WHERE key = ?1";
    if !db.is_postgres() {
        return db.query_opt(sql, &params![place], |r| r.get(0));
    }
    let value: Option<Vec<u8>> = db.query_opt(sql, &params![place], |r| r.get(0))?;
    Ok(value.and_then(|value| String::from_utf8(value).ok()?.parse().ok()))
}

/// Fills the checksums of a slice of old rows; returns whether rows are left.
pub(crate) fn checksum_slice(db: &Db<'_>) -> Result<bool> {
    for (table, place) in CHECKSUM_PROGRESS {
        let done_up_to = progress(db, place)?;
        if done_up_to == Some(i64::MAX) {
            continue;
        }
        let columns = if table == "event" {
            "key, kind, event, changes, activity, crc"
        } else {
            crate::items::COLUMNS
        };
        let after = done_up_to.unwrap_or(i64::MIN);
        // Rows being written by another node get theirs from it.
        let sql = format!(
            "SELECT {columns} FROM {table} WHERE key > ?1 ORDER BY key LIMIT ?2
             /*pg FOR UPDATE SKIP LOCKED*/"
        );
        let (mut last, mut sums) = (None, Vec::new());
        db.query_each(&sql, &params![after, CHECKSUM_SLICE_ROWS], |row| {
            let key: i64 = row.get(0)?;
            last = Some(key);
            sums.extend(missing_checksum(table, key, row)?.map(|sum| (key, sum)));
            Ok(ControlFlow::Continue(()))
        })?;
        let set = format!("UPDATE {table} SET crc = ?2 WHERE key = ?1");
        for (key, sum) in sums {
            db.execute_pipelined(&set, &params![key, sum])?;
        }
        let last = last.unwrap_or(i64::MAX);
        if db.is_postgres() {
            meta::set(db, place, &Value::Bytes(last.to_string().as_bytes()))?;
        } else {
            meta::set(db, place, &Value::Int(last))?;
        }
        return Ok(true);
    }
    Ok(false)
}

/// The checksum of a readable row that has none.
fn missing_checksum(table: &str, key: i64, row: &Row<'_>) -> Result<Option<i64>> {
    if table == "event" {
        if row.get::<Option<i64>>(5)?.is_some() || read_row(row).is_none() {
            return Ok(None);
        }
        let parts = [row.bytes(2)?, row.bytes(3)?, row.bytes(4)?];
        return Ok(Some(checksum::of_event_row(key, &row.get::<String>(1)?, parts)));
    }
    if row.get::<Option<i64>>(8)?.is_some() || crate::items::read_row(row).is_none() {
        return Ok(None);
    }
    let (id, kind) = (row.get::<String>(3)?, row.get::<String>(4)?);
    let parent: Option<String> = row.get(6)?;
    let sum = ItemChecksum {
        key,
        id: &id,
        seq: row.get(1)?,
        kind: &kind,
        open: row.get(5)?,
        body: row.bytes(2)?.unwrap_or_default(),
        parent: parent.as_deref(),
    };
    Ok(Some(sum.with_level(row.get(7)?)))
}
