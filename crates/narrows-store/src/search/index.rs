//! The trigram index of items, and the queue of items to index.

use crate::checksum::search_terms::with_sum_term;
use crate::compress;
use crate::db::{Db, Row, Value, params};
use crate::error::Result;
use crate::fold_case::to_lower;
use crate::items;
use crate::preview::visit_texts;
use crate::search::trigrams::{TrigramSet, parse_terms};
use std::collections::HashSet;
use std::hash::{Hash, Hasher};
use std::ops::ControlFlow;

/// Bytes of an item's text that are indexed; later text is not found.
pub(crate) const MAX_INDEXED: usize = 256 << 10;
/// The work of a slice while callers may wait.
const BUSY_SLICE: IndexSlice = IndexSlice { items: 50, bytes: 64 << 10 };
/// The work of a slice while the writer is idle.
const IDLE_SLICE: IndexSlice = IndexSlice { items: 1000, bytes: 2 << 20 };

#[derive(Clone, Copy)]
struct IndexSlice {
    items: usize,
    bytes: usize,
}

/// The trigrams of an item's texts.
pub(crate) fn search_terms(body: &str, trigrams: &mut TrigramSet) -> String {
    let mut tokens = String::new();
    let Ok(value) = serde_json::from_str(body) else { return tokens };
    let mut size = 0;
    // An edit contains the same text several times.
    let mut seen_texts = HashSet::new();
    visit_texts(value, |_, text| {
        if size < MAX_INDEXED && (text.len() < 64 || seen_texts.insert(hash(text))) {
            let room = MAX_INDEXED - size;
            let end = (0..=room.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            let text = &text[..end.unwrap_or(0)];
            size += text.len();
            // Trigrams do not span texts.
            if text.is_ascii() {
                trigrams
                    .add_chars(text.bytes().map(|b| to_lower(char::from(b.to_ascii_lowercase()))));
            } else {
                trigrams.add_chars(text.chars().map(to_lower));
            }
        }
    });
    trigrams.take_terms(&mut tokens);
    tokens
}

fn hash(text: &str) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The queue with its items. On PostgreSQL, items being written by another node are skipped and the
/// selected ones are locked, so that the indexed text is the latest.
const SELECT_QUEUE: &str = "SELECT fresh.key, seq, body, id, kind, open, parent, top, crc
     FROM fresh LEFT JOIN item ON item.key = fresh.key LIMIT ?1";
const SELECT_QUEUE_PG: &str = "SELECT key, seq, body, id, kind, open, parent, top, crc FROM item
     WHERE key = ANY (ARRAY (SELECT key FROM fresh LIMIT ?1)) FOR UPDATE SKIP LOCKED";

/// Indexes a slice of the queue; returns whether items are left.
pub(crate) fn index_slice(db: &Db<'_>, idle: bool) -> Result<bool> {
    let slice = if idle { IDLE_SLICE } else { BUSY_SLICE };
    let (mut indexed, mut bytes) = (Vec::new(), 0);
    let mut trigrams = TrigramSet::default();
    let queue = if db.is_postgres() { SELECT_QUEUE_PG } else { SELECT_QUEUE };
    let mut index_row = |row: &Row<'_>| {
        let key = row.get(0)?;
        let body = items::verify_row(row).and_then(|(_, body)| compress::decode_text(body).ok());
        // A damaged item is not indexed; a removed one has no body.
        if body.is_none() && row.bytes(2).is_ok_and(|body| body.is_some()) {
            items::report_damage(key >> 32, key, key);
        }
        let body = body.unwrap_or_default();
        bytes += body.len().min(MAX_INDEXED);
        indexed.push((key, search_terms(&body, &mut trigrams)));
        let is_full = bytes >= slice.bytes;
        Ok(if is_full { ControlFlow::Break(()) } else { ControlFlow::Continue(()) })
    };
    let scanned = db.query_each(queue, &params![slice.items], &mut index_row);
    match scanned {
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            // Row by row; unreadable items leave the queue.
            let known: HashSet<i64> = indexed.iter().map(|(key, _)| *key).collect();
            let one = format!("SELECT {} FROM item WHERE key = ?1", items::COLUMNS);
            let queued =
                db.query_all("SELECT key FROM fresh LIMIT ?1", &params![slice.items], |r| r.get(0));
            for key in queued?.into_iter().filter(|key| !known.contains(key)) {
                let body = db.query_opt(&one, &params![key], |row| {
                    let body = items::verify_row(row)
                        .and_then(|(_, body)| compress::decode_text(body).ok());
                    Ok(body.map(std::borrow::Cow::into_owned))
                });
                let body = body.ok().flatten().flatten();
                if body.is_none() {
                    items::report_damage(key >> 32, key, key);
                }
                indexed.push((key, search_terms(&body.unwrap_or_default(), &mut trigrams)));
            }
            bytes = slice.bytes;
        }
        scanned => scanned?,
    }
    // Discarded index pages contain no readable text: they need not be overwritten.
    if let Db::Sqlite(db) = db {
        db.execute_batch("PRAGMA secure_delete = FAST")?;
    }
    let written = write_batch(db, &indexed);
    if let Db::Sqlite(db) = db {
        db.execute_batch("PRAGMA secure_delete = ON")?;
    }
    written?;
    Ok(indexed.len() == slice.items || bytes >= slice.bytes)
}

fn write_batch(db: &Db<'_>, indexed: &[(i64, String)]) -> Result<()> {
    for (key, tokens) in indexed {
        put(db, *key, tokens)?;
        if !db.is_postgres() {
            db.execute_pipelined("DELETE FROM fresh WHERE key = ?1", &params![key])?;
        }
    }
    if db.is_postgres() {
        let keys = Value::List(indexed.iter().map(|(key, _)| Value::Int(*key)).collect());
        db.execute_pipelined("DELETE FROM fresh WHERE key = ANY (?1)", &[keys])?;
    }
    Ok(())
}

/// Sets the trigrams of an item.
pub(crate) fn put(db: &Db<'_>, key: i64, tokens: &str) -> Result<()> {
    if db.is_postgres() {
        return db.execute_pipelined(
            "INSERT INTO search VALUES (?1, ?2)
             ON CONFLICT (key) DO UPDATE SET threes = excluded.threes",
            &params![key, parse_terms(tokens)],
        );
    }
    let words = with_sum_term(key, tokens);
    db.execute_pipelined(
        "INSERT OR REPLACE INTO search (rowid, text) VALUES (?1, ?2)",
        &params![key, words],
    )
}

/// Items of a session to look up, and terms of each.
const PROBE_ITEMS_AND_TERMS: (usize, usize) = (3, 8);

/// Whether the index finds some of the last items of a session. Older versions may have indexed
/// slightly different terms, but never entirely different ones.
pub(crate) fn finds_items(db: &Db<'_>, session: i64) -> Result<bool> {
    if db.is_postgres() {
        return Ok(true);
    }
    let (first, last) = crate::keys::keys(session);
    let sql = format!(
        "SELECT {} FROM item WHERE key BETWEEN ?1 AND ?2 AND open = 0
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key) ORDER BY key DESC LIMIT ?3",
        items::COLUMNS
    );
    let mut trigrams = TrigramSet::default();
    let known = db.query_all(&sql, &params![first, last, PROBE_ITEMS_AND_TERMS.0], |row| {
        let body = items::verify_row(row).and_then(|(_, body)| compress::decode_text(body).ok());
        Ok((row.get::<i64>(0)?, search_terms(&body.unwrap_or_default(), &mut trigrams)))
    })?;
    for (key, tokens) in known.iter().filter(|(_, tokens)| !tokens.is_empty()) {
        let words: Vec<&str> = tokens.split(' ').collect();
        let sample = words.iter().step_by(words.len().div_ceil(PROBE_ITEMS_AND_TERMS.1));
        let mut found = false;
        for word in sample {
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
pub(crate) const INDEX_INCOMPLETE: &str = "the index of search does not lead to what is there";

/// Removes an item from the index.
pub(crate) fn remove(db: &Db<'_>, key: i64) -> Result<()> {
    let column = if db.is_postgres() { "key" } else { "rowid" };
    db.execute_pipelined(&format!("DELETE FROM search WHERE {column} = ?1"), &params![key])
}
