//! Whether the index of search has of each item what was put into it.
//!
//! SQLite's own check finds pages that lead nowhere, and no word that has become another one: the index
//! keeps no text to compare it with. So each item has one word more in it, a sum of its other words, and
//! whoever looks asks for every word as a search does and adds up anew.

use crate::damage::{self, Damage};
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::index::{ASTRAY, said};
use crate::threes::Threes;
use crate::{items, pack};
use std::collections::HashMap;
use std::ops::ControlFlow;

/// How the word begins that is a sum: no three letters make such a word.
const MARK: char = 'z';
/// Words of items that are read in one go, about.
const PAIRS: u64 = 20_000;
/// Items that are added up in one round over all words.
const ITEMS: usize = 1 << 18;
/// Items that are looked at one by one, as they may have changed meanwhile.
const ONE_BY_ONE: usize = 1000;

/// What a word of an item adds to the sum.
fn weight(key: i64, word: &str) -> u64 {
    let hash = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    });
    let mut mixed = hash ^ key.cast_unsigned().wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// The words of an item, and their sum.
pub(crate) fn with_sum(key: i64, words: &str) -> String {
    if words.is_empty() {
        return String::new();
    }
    let sum = words.split(' ').fold(0_u64, |sum, word| sum.wrapping_add(weight(key, word)));
    format!("{words} {MARK}{sum:x}")
}

/// What is known of an item while its words are added up.
#[derive(Debug, Default)]
struct Item {
    sum: u64,
    count: u64,
    told: Option<u64>,
}

/// Where whoever looks at all words is.
#[derive(Debug, Default)]
pub(crate) struct Words {
    items: HashMap<i64, Item>,
    /// The last word.
    last: String,
    /// The items of this round: after one and up to another.
    after: Option<i64>,
    up_to: i64,
    begun: bool,
}

impl Words {
    pub(crate) fn new() -> Words {
        Words { after: Some(i64::MIN), ..Words::default() }
    }

    /// Looks at some words; false when all were looked at, or something is wrong, which is told.
    pub(crate) fn more(&mut self, db: &Db<'_>) -> Result<bool> {
        if db.is_postgres() {
            return Ok(false);
        }
        match self.some(db) {
            Err(error) if error.is_unreadable() => {
                damage::found(Damage::database(ASTRAY));
                Ok(false)
            }
            more => more,
        }
    }

    fn some(&mut self, db: &Db<'_>) -> Result<bool> {
        let Some(after) = self.after else { return Ok(false) };
        if !self.begun {
            let end = "SELECT id FROM search_docsize WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2";
            let end = db.optional(end, &params![after, ITEMS], |r| r.get(0))?;
            self.up_to = end.unwrap_or(i64::MAX);
            self.begun = true;
        }
        if self.add_up(db)? {
            return Ok(true);
        }
        if !self.compare(db, after)? {
            damage::found(Damage::database(ASTRAY));
            return Ok(false);
        }
        self.after = Some(self.up_to).filter(|up_to| *up_to < i64::MAX);
        self.items.clear();
        self.last.clear();
        self.begun = false;
        Ok(self.after.is_some())
    }

    /// Adds up what comes next; false at the end of all words.
    fn add_up(&mut self, db: &Db<'_>) -> Result<bool> {
        let Db::Sqlite(connection) = db else { return Ok(false) };
        // The list of words is nowhere on the disk.
        connection.execute_batch(
            "PRAGMA query_only = 0;
             CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_words USING fts5vocab(main, search, row);
             PRAGMA query_only = 1",
        )?;
        let (mut pairs, from) = (0, self.last.clone());
        let mut some = false;
        let words = "SELECT term FROM temp.search_words WHERE term > ?1 ORDER BY term";
        let items = "SELECT rowid FROM search WHERE search MATCH ?1";
        db.each(words, &params![from], |row| {
            some = true;
            self.last = row.get(0)?;
            let word = &self.last;
            let told = word.strip_prefix(MARK).map(|sum| u64::from_str_radix(sum, 16));
            let quoted = format!("\"{}\"", word.replace('"', "\"\""));
            db.each(items, &params![quoted], |row| {
                pairs += 1;
                let key: i64 = row.get(0)?;
                if self.after.is_some_and(|after| key > after) && key <= self.up_to {
                    let item = self.items.entry(key).or_default();
                    item.count += 1;
                    match &told {
                        None => item.sum = item.sum.wrapping_add(weight(key, word)),
                        // Another item's, if there is one already.
                        Some(sum) if item.told.is_none() => item.told = sum.as_ref().ok().copied(),
                        Some(_) => item.sum = item.sum.wrapping_add(1),
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(if pairs < PAIRS { ControlFlow::Continue(()) } else { ControlFlow::Break(()) })
        })?;
        Ok(some)
    }

    /// Whether the items of this round have what was put into the index.
    fn compare(&mut self, db: &Db<'_>, after: i64) -> Result<bool> {
        let sql = "SELECT id, sz FROM search_docsize WHERE id > ?1 AND id <= ?2";
        let mut doubtful = Vec::new();
        db.each(sql, &params![after, self.up_to], |row| {
            let key: i64 = row.get(0)?;
            let count = row.bytes(1)?.map_or(0, varint);
            let sound = match self.items.remove(&key) {
                None => count == 0,
                // An earlier version kept no sum.
                Some(Item { count: is, told: None, .. }) => is == count,
                Some(Item { count: is, told: Some(told), sum }) => is == count && sum == told,
            };
            if !sound {
                doubtful.push(key);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        doubtful.extend(self.items.keys());
        for key in doubtful.into_iter().take(ONE_BY_ONE) {
            if !is_found(db, key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Looks at all words at once.
pub(crate) fn all(db: &Db<'_>) -> Result<()> {
    let mut words = Words::new();
    while words.more(db)? {}
    Ok(())
}

/// A number as SQLite keeps it: seven bits a byte.
fn varint(bytes: &[u8]) -> u64 {
    let mut number = 0;
    for byte in bytes.iter().take(8) {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            break;
        }
    }
    number
}

/// Whether an item is found by each of its words now: it may have changed since the words were read.
fn is_found(db: &Db<'_>, key: i64) -> Result<bool> {
    let sql = format!(
        "SELECT {} FROM item WHERE key = ?1
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key)",
        items::COLUMNS
    );
    let mut threes = Threes::default();
    let words = db.optional(&sql, &params![key], |row| {
        let body = items::sound(row).and_then(|(_, body)| pack::text(body).ok());
        // What cannot be read is told by whoever reads it.
        Ok(body.map(|body| said(&body, &mut threes)))
    })?;
    let Some(words) = words.flatten() else { return Ok(true) };
    let sql = "SELECT 1 FROM search WHERE search MATCH ?1 AND rowid = ?2";
    for word in with_sum(key, &words).split(' ').filter(|word| !word.is_empty()) {
        if !db.exists(sql, &params![word, key])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all items of a session are in the index, or wait for it.
pub(crate) fn has_all(db: &Db<'_>, (first, last): (i64, i64)) -> Result<bool> {
    if db.is_postgres() {
        return Ok(true);
    }
    let lacks = "SELECT 1 FROM item WHERE key BETWEEN ?1 AND ?2
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key)
         AND NOT EXISTS (SELECT 1 FROM search_docsize WHERE id = item.key)";
    match db.exists(lacks, &params![first, last]) {
        Err(Error::Damaged(_)) => Ok(false),
        lacks => lacks.map(|lacks| !lacks),
    }
}
