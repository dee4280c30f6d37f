//! The index of search: which three letters stand in which item.

use crate::clip::texts;
use crate::error::Result;
use crate::pack;
use crate::threes::Threes;
use rusqlite::types::ValueRef;
use rusqlite::{Connection, params};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};

/// Text of one item that is indexed; what comes after is not found.
pub(crate) const MAX_INDEXED: usize = 256 << 10;
/// What is indexed in one go, so that nobody waits for long.
const SMALL: Slice = Slice { items: 50, bytes: 64 << 10 };
/// The same when nobody is there who could wait.
const LARGE: Slice = Slice { items: 1000, bytes: 2 << 20 };

#[derive(Clone, Copy)]
struct Slice {
    items: usize,
    bytes: usize,
}

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
pub(crate) fn said(body: &str, threes: &mut Threes) -> String {
    let mut tokens = String::new();
    let Ok(value) = serde_json::from_str(body) else { return tokens };
    let mut size = 0;
    // An edit tells the same text several times.
    let mut told = HashSet::new();
    texts(value, |_, text| {
        if size < MAX_INDEXED && (text.len() < 64 || told.insert(hash(text))) {
            let room = MAX_INDEXED - size;
            let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            let text = &text[..end.unwrap_or(0)];
            size += text.len();
            // No three letters go over the end of a text.
            if text.is_ascii() {
                threes.add_letters(text.bytes().map(|b| small(char::from(b.to_ascii_lowercase()))));
            } else {
                threes.add_letters(text.chars().map(small));
            }
        }
    });
    threes.tokens(&mut tokens);
    tokens
}

fn hash(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// Indexes some items; true when there are more.
pub(crate) fn some(db: &Connection, idle: bool) -> Result<bool> {
    let slice = if idle { LARGE } else { SMALL };
    let mut query = db.prepare_cached(
        "SELECT key, (SELECT body FROM item WHERE item.key = fresh.key) FROM fresh LIMIT ?1",
    )?;
    let mut rows = query.query([slice.items])?;
    let (mut done, mut bytes) = (Vec::new(), 0);
    let mut threes = Threes::default();
    while bytes < slice.bytes {
        let Some(row) = rows.next()? else { break };
        let body = match row.get_ref(1)? {
            ValueRef::Null => String::new(),
            kept => pack::text(kept)?.into_owned(),
        };
        bytes += body.len().min(MAX_INDEXED);
        done.push((row.get(0)?, said(&body, &mut threes)));
    }
    drop(rows);
    drop(query);
    // What the index throws away all the time says nothing; it need not be overwritten.
    db.execute_batch("PRAGMA secure_delete = FAST")?;
    let written = write(db, &done);
    db.execute_batch("PRAGMA secure_delete = ON")?;
    written?;
    Ok(done.len() == slice.items || bytes >= slice.bytes)
}

fn write(db: &Connection, done: &[(i64, String)]) -> Result<()> {
    let mut index =
        db.prepare_cached("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)")?;
    let mut mark = db.prepare_cached("DELETE FROM fresh WHERE key = ?1")?;
    for (key, text) in done {
        index.execute(params![key, text])?;
        mark.execute([key])?;
    }
    Ok(())
}
