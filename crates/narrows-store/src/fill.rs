//! What a migration cannot say in SQL: rows that are made of what stands in others.

use crate::db::{Db, params};
use crate::error::Result;
use crate::items::read_item;
use crate::pack::text;
use crate::prompt;
use crate::rows::{is_there, keep_files};
use narrows::item::ItemBody;
use narrows::tool::ChangedFile;
use serde::Deserialize;
use std::borrow::Cow;
use std::ops::ControlFlow;

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
pub(crate) fn items(db: &Db<'_>) -> Result<()> {
    let mut after = i64::MIN;
    loop {
        let (found, last) = slice(db, after)?;
        for Found { key, session, parent, files } in found {
            keep_files(db, key, &files)?;
            if let Some(parent) = parent {
                let top = !is_there(db, session, &parent)?;
                let set = "UPDATE item SET parent = ?2, top = ?3 WHERE key = ?1";
                db.later(set, &params![key, parent, top])?;
            }
        }
        match last {
            Some(last) => after = last,
            None => return Ok(()),
        }
    }
}

/// What is to be written of the items after a key, and the last of them.
fn slice(db: &Db<'_>, after: i64) -> Result<(Vec<Found>, Option<i64>)> {
    let sql = "SELECT key, session, kind, body,
         EXISTS (SELECT 1 FROM call WHERE call.key = item.key)
         FROM item WHERE key > ?1 ORDER BY key LIMIT ?2";
    let (mut found, mut last) = (Vec::new(), None);
    db.each(sql, &params![after, SLICE], |row| {
        let key = row.get(0)?;
        last = Some(key);
        let (session, kind, called) = (row.get(1)?, row.get::<String>(2)?, row.get(4)?);
        // A row that cannot be read stays as it is: reading it tells.
        if let Some(body) = row.bytes(3)?.and_then(|kept| text(kept).ok())
            && let Ok(head) = serde_json::from_str::<Head<'_>>(&body)
        {
            let parent = head.parent.filter(|parent| *parent != head.id).map(Cow::into_owned);
            let calls = called && kind == "tool_call";
            let files = if calls { changed(&body) } else { Vec::new() };
            if parent.is_some() || !files.is_empty() {
                found.push(Found { key, session, parent, files });
            }
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok((found, last))
}

/// The files that a call changed.
fn changed(body: &str) -> Vec<ChangedFile> {
    if EDITS.iter().any(|kind| body.contains(kind))
        && let Ok(item) = read_item(body)
        && let ItemBody::ToolCall { tool_call } = &item.body
    {
        return tool_call.call.changed_files();
    }
    Vec::new()
}

/// The first prompts of sessions, and how many calls they have.
pub(crate) fn sessions(db: &Db<'_>) -> Result<()> {
    for key in db.all("SELECT key FROM session", &[], |r| r.get(0))? {
        let (first, last) = crate::log::keys(key);
        db.later(
            "UPDATE session SET (calls, failed) =
             (SELECT count(*), coalesce(sum(failed), 0) FROM call WHERE key BETWEEN ?2 AND ?3)
             WHERE key = ?1",
            &params![key, first, last],
        )?;
        prompt::find(db, key)?;
    }
    Ok(())
}
