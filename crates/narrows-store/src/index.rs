//! The index of search: which three letters stand in which item.

use crate::clip::texts;
use crate::error::Result;
use rusqlite::{Connection, params};

/// Text of one item that is indexed; what comes after is not found.
pub(crate) const MAX_INDEXED: usize = 256 << 10;
/// What is indexed in one go, so that nobody waits for long.
const SLICE_ITEMS: usize = 50;
const SLICE_BYTES: usize = 64 << 10;

/// One meaning of "the same letter" everywhere: small letters, where a letter has just one.
/// The index ends texts at NUL, so that is another letter.
pub(crate) fn fold_case(text: &str) -> String {
    text.chars().map(small).collect()
}

pub(crate) fn small(c: char) -> char {
    let mut small = c.to_lowercase();
    match (small.next(), small.next()) {
        (Some('\0'), None) => char::REPLACEMENT_CHARACTER,
        // Two forms of one letter.
        (Some('ς'), None) => 'σ',
        (Some(one), None) => one,
        _ => c,
    }
}

/// What an item says, for the index.
fn said(body: &str) -> String {
    let mut all = String::new();
    let Ok(value) = serde_json::from_str(body) else { return all };
    texts(value, |_, text| {
        if all.len() < MAX_INDEXED {
            let room = MAX_INDEXED - all.len();
            let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            all.extend(text[..end.unwrap_or(0)].chars().map(small));
            // No three letters go over the end of a text.
            all.push('\n');
        }
    });
    all
}

/// Indexes some items; true when there are more.
pub(crate) fn some(db: &Connection) -> Result<bool> {
    let mut query =
        db.prepare_cached("SELECT key, body FROM item WHERE indexed = 0 ORDER BY key LIMIT ?1")?;
    let mut rows = query.query([SLICE_ITEMS])?;
    let (mut done, mut bytes) = (Vec::new(), 0);
    while bytes < SLICE_BYTES {
        let Some(row) = rows.next()? else { break };
        let (key, body): (i64, String) = (row.get(0)?, row.get(1)?);
        bytes += body.len().min(MAX_INDEXED);
        done.push((key, said(&body)));
    }
    drop(rows);
    drop(query);
    // What the index throws away all the time says nothing; it need not be overwritten.
    db.execute_batch("PRAGMA secure_delete = FAST")?;
    let written = write(db, &done);
    db.execute_batch("PRAGMA secure_delete = ON")?;
    written?;
    Ok(done.len() == SLICE_ITEMS || bytes >= SLICE_BYTES)
}

fn write(db: &Connection, done: &[(i64, String)]) -> Result<()> {
    let mut index =
        db.prepare_cached("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)")?;
    let mut mark = db.prepare_cached("UPDATE item SET indexed = 1 WHERE key = ?1")?;
    for (key, text) in done {
        index.execute(params![key, text])?;
        mark.execute([key])?;
    }
    Ok(())
}
