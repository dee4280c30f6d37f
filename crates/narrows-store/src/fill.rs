//! What a migration cannot say in SQL: rows that are made of what stands in others.

use crate::error::Result;
use crate::items::read_item;
use crate::pack::text;
use crate::prompt;
use crate::rows::{is_there, keep_files};
use narrows::item::ItemBody;
use narrows::tool::ChangedFile;
use rusqlite::{Connection, params};
use serde::Deserialize;
use std::borrow::Cow;

/// Items that are read in one go.
const SLICE: usize = 1000;

/// One of these stands in every call that changes files.
const EDITS: [&str; 3] = [r#""kind":"edit""#, r#""kind":"move""#, r#""kind":"delete""#];

/// What is read of an item.
#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow)]
    id: Cow<'a, str>,
    #[serde(borrow, rename = "parentToolCallId")]
    parent: Option<Cow<'a, str>>,
}

/// What is found in the row of an item.
struct Found {
    key: i64,
    session: i64,
    parent: Option<String>,
    files: Vec<ChangedFile>,
}

/// The parents of items, and the files that calls changed.
pub(crate) fn items(db: &Connection) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let (found, last) = slice(db, after)?;
        for Found { key, session, parent, files } in found {
            keep_files(db, key, &files)?;
            if let Some(parent) = parent {
                let top = !is_there(db, session, &parent)?;
                db.prepare_cached("UPDATE item SET parent = ?2, top = ?3 WHERE key = ?1")?
                    .execute(params![key, parent, top])?;
            }
        }
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// What is to be written of the items after a key, and the last of them.
fn slice(db: &Connection, after: i64) -> Result<(Vec<Found>, Option<i64>)> {
    let mut query = db.prepare_cached(
        "SELECT key, session, kind, body, EXISTS (SELECT 1 FROM call WHERE call.key = item.key)
         FROM item WHERE key > ?1 ORDER BY key LIMIT ?2",
    )?;
    let mut rows = query.query(params![after, SLICE])?;
    let (mut found, mut last) = (Vec::new(), None);
    while let Some(row) = rows.next()? {
        let (key, session, kind): (i64, i64, String) = (row.get(0)?, row.get(1)?, row.get(2)?);
        last = Some(key);
        // A row that cannot be read stays as it is: reading it tells.
        let Ok(body) = text(row.get_ref(3)?) else { continue };
        let Ok(head) = serde_json::from_str::<Head<'_>>(&body) else { continue };
        let parent = head.parent.filter(|parent| *parent != head.id).map(Cow::into_owned);
        let mut files = Vec::new();
        if row.get(4)?
            && kind == "tool_call"
            && EDITS.iter().any(|kind| body.contains(kind))
            && let Ok(item) = read_item(&body)
            && let ItemBody::ToolCall { tool_call } = &item.body
        {
            files = tool_call.call.changed_files();
        }
        if parent.is_some() || !files.is_empty() {
            found.push(Found { key, session, parent, files });
        }
    }
    Ok((found, last))
}

/// The first prompts of sessions, and how many calls they have.
pub(crate) fn sessions(db: &Connection) -> Result<()> {
    let mut query = db.prepare("SELECT key FROM session")?;
    let keys = query.query_map([], |r| r.get(0))?;
    let keys: Vec<i64> = keys.collect::<rusqlite::Result<_>>()?;
    for key in keys {
        let (first, last) = crate::log::keys(key);
        db.prepare_cached(
            "UPDATE session SET (calls, failed) =
             (SELECT count(*), coalesce(sum(failed), 0) FROM call WHERE key BETWEEN ?2 AND ?3)
             WHERE key = ?1",
        )?
        .execute([key, first, last])?;
        prompt::find(db, key)?;
    }
    Ok(())
}
