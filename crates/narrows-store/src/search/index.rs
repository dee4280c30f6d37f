//! The trigram index of items, and the queue of items to index.

use crate::compress;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::fold_case::small;
use crate::items;
use crate::preview::texts;
use crate::search::trigrams::{Threes, numbers};
use crate::words;
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;

/// Bytes of an item's text that are indexed; later text is not found.
pub(crate) const MAX_INDEXED: usize = 256 << 10;
/// The work of a slice while callers may wait.
const SMALL: Slice = Slice { items: 50, bytes: 64 << 10 };
/// The work of a slice while the writer is idle.
const LARGE: Slice = Slice { items: 1000, bytes: 2 << 20 };

#[derive(Clone, Copy)]
struct Slice {
    items: usize,
    bytes: usize,
}

/// The trigrams of an item's texts.
pub(crate) fn said(body: &str, threes: &mut Threes) -> String {
    let mut tokens = String::new();
    let Ok(value) = serde_json::from_str(body) else { return tokens };
    let mut size = 0;
    // An edit contains the same text several times.
    let mut told = HashSet::new();
    texts(value, |_, text| {
        if size < MAX_INDEXED && (text.len() < 64 || told.insert(hash(text))) {
            let room = MAX_INDEXED - size;
            let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            let text = &text[..end.unwrap_or(0)];
            size += text.len();
            // Trigrams do not span texts.
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

/// The queue with its items. On PostgreSQL, items being written by another node are skipped and the
/// selected ones are locked, so that the indexed text is the latest.
const WAITING: &str = "SELECT fresh.key, seq, body, id, kind, open, parent, top, crc
     FROM fresh LEFT JOIN item ON item.key = fresh.key LIMIT ?1";
const WAITING_PG: &str = "SELECT key, seq, body, id, kind, open, parent, top, crc FROM item
     WHERE key = ANY (ARRAY (SELECT key FROM fresh LIMIT ?1)) FOR UPDATE SKIP LOCKED";

/// Indexes a slice of the queue; returns whether items are left.
pub(crate) fn some(db: &Db<'_>, idle: bool) -> Result<bool> {
    let slice = if idle { LARGE } else { SMALL };
    let (mut done, mut bytes) = (Vec::new(), 0);
    let mut threes = Threes::default();
    let waiting = if db.is_postgres() { WAITING_PG } else { WAITING };
    let mut take = |row: &Row<'_>| {
        let key = row.get(0)?;
        let body = items::sound(row).and_then(|(_, body)| compress::text(body).ok());
        // A damaged item is not indexed; a removed one has no body.
        if body.is_none() && row.bytes(2).is_ok_and(|body| body.is_some()) {
            items::lost(key >> 32, key, key);
        }
        let body = body.unwrap_or_default();
        bytes += body.len().min(MAX_INDEXED);
        done.push((key, said(&body, &mut threes)));
        let full = bytes >= slice.bytes;
        Ok(if full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let walked = db.each(waiting, &params![slice.items], &mut take);
    match walked {
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            // Row by row; unreadable items leave the queue.
            let known: HashSet<i64> = done.iter().map(|(key, _)| *key).collect();
            let one = format!("SELECT {} FROM item WHERE key = ?1", items::COLUMNS);
            let fresh =
                db.all("SELECT key FROM fresh LIMIT ?1", &params![slice.items], |r| r.get(0));
            for key in fresh?.into_iter().filter(|key| !known.contains(key)) {
                let body = db.optional(&one, &params![key], |row| {
                    let body = items::sound(row).and_then(|(_, body)| compress::text(body).ok());
                    Ok(body.map(std::borrow::Cow::into_owned))
                });
                let body = body.ok().flatten().flatten();
                if body.is_none() {
                    items::lost(key >> 32, key, key);
                }
                done.push((key, said(&body.unwrap_or_default(), &mut threes)));
            }
            bytes = slice.bytes;
        }
        walked => walked?,
    }
    // Discarded index pages contain no readable text: they need not be overwritten.
    if let Db::Sqlite(db) = db {
        db.execute_batch("PRAGMA secure_delete = FAST")?;
    }
    let written = write(db, &done);
    if let Db::Sqlite(db) = db {
        db.execute_batch("PRAGMA secure_delete = ON")?;
    }
    written?;
    Ok(done.len() == slice.items || bytes >= slice.bytes)
}

fn write(db: &Db<'_>, done: &[(i64, String)]) -> Result<()> {
    for (key, tokens) in done {
        put(db, *key, tokens)?;
        if !db.is_postgres() {
            db.later("DELETE FROM fresh WHERE key = ?1", &params![key])?;
        }
    }
    if db.is_postgres() {
        let keys = Value::List(done.iter().map(|(key, _)| Value::Int(*key)).collect());
        db.later("DELETE FROM fresh WHERE key = ANY (?1)", &[keys])?;
    }
    Ok(())
}

/// Sets the trigrams of an item.
pub(crate) fn put(db: &Db<'_>, key: i64, tokens: &str) -> Result<()> {
    if db.is_postgres() {
        return db.later(
            "INSERT INTO search VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET threes = excluded.threes",
            &params![key, numbers(tokens)],
        );
    }
    let words = words::with_sum(key, tokens);
    db.later("INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)", &params![key, words])
}

/// Items of a session to look up, and terms of each.
const PROBES: (usize, usize) = (3, 8);

/// Whether the index finds some of the last items of a session. Older versions may have indexed
/// slightly different terms, but never entirely different ones.
pub(crate) fn leads(db: &Db<'_>, session: i64) -> Result<bool> {
    if db.is_postgres() {
        return Ok(true);
    }
    let (first, last) = crate::keys::keys(session);
    let sql = format!(
        "SELECT {} FROM item WHERE key BETWEEN ?1 AND ?2 AND open = 0
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key) ORDER BY key DESC LIMIT ?3",
        items::COLUMNS
    );
    let mut threes = Threes::default();
    let known = db.all(&sql, &params![first, last, PROBES.0], |row| {
        let body = items::sound(row).and_then(|(_, body)| compress::text(body).ok());
        Ok((row.get::<i64>(0)?, said(&body.unwrap_or_default(), &mut threes)))
    })?;
    for (key, tokens) in known.iter().filter(|(_, tokens)| !tokens.is_empty()) {
        let words: Vec<&str> = tokens.split(' ').collect();
        let some = words.iter().step_by(words.len().div_ceil(PROBES.1));
        let mut found = false;
        for word in some {
            let sql = "SELECT 1 FROM search WHERE search MATCH ?1 AND rowid = ?2";
            found = found || db.exists(sql, &params![word, key])?;
        }
        if !found {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The damage reported for an index that does not find existing items.
pub(crate) const ASTRAY: &str = "the index of search does not lead to what is there";

/// Removes an item from the index.
pub(crate) fn remove(db: &Db<'_>, key: i64) -> Result<()> {
    let column = if db.is_postgres() { "key" } else { "rowid" };
    db.later(&format!("DELETE FROM search WHERE {column} = ?1"), &params![key])
}
