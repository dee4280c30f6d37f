//! Checks that the search index has the terms of each item.
//!
//! SQLite's own check finds broken pages, but not a term that changed into another one. So each item has
//! one more term, the sum of its other terms ([`crate::checksum::search_terms`]). This check queries
//! every term as a search does, and adds the sums up again.

use crate::checksum::search_terms::{SUM_PREFIX, term_weight, with_sum_term};
use crate::compress;
use crate::damage;
use crate::damage::Damage;
use crate::db::{Db, params};
use crate::error::{Error, Result};
use crate::items;
use crate::search::index::{INDEX_INCOMPLETE, search_terms};
use crate::search::trigrams::TrigramSet;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Pairs of a term and an item that one slice reads, about.
const PAIRS_PER_SLICE: u64 = 20_000;
/// Items that one round over all terms adds up.
const ITEMS_PER_ROUND: usize = 1 << 18;
/// Items that are checked again one by one, as they may have changed meanwhile.
const MAX_RECHECKED_ITEMS: usize = 1000;

/// The terms of an item that were read so far.
#[derive(Debug, Default)]
struct ItemTerms {
    sum: u64,
    count: u64,
    /// The sum that its sum term gives.
    stored_sum: Option<u64>,
}

/// A check of all terms, done in slices and in rounds over ranges of items.
#[derive(Debug, Default)]
pub(crate) struct TermCheck {
    items: HashMap<i64, ItemTerms>,
    last_term: String,
    /// The items of this round are after this one; none when all rounds are done.
    after: Option<i64>,
    /// The last item of this round.
    up_to: i64,
    has_range: bool,
}

impl TermCheck {
    pub(crate) fn new() -> TermCheck {
        TermCheck { after: Some(i64::MIN), ..TermCheck::default() }
    }

    /// Checks some terms; false when all are checked, or damage was reported.
    pub(crate) fn run_slice(&mut self, db: &Db<'_>) -> Result<bool> {
        if db.is_postgres() {
            return Ok(false);
        }
        match self.try_slice(db) {
            Err(error) if error.is_unreadable() => {
                damage::report(Damage::database(INDEX_INCOMPLETE));
                Ok(false)
            }
            more => more,
        }
    }

    fn try_slice(&mut self, db: &Db<'_>) -> Result<bool> {
        let Some(after) = self.after else { return Ok(false) };
        if !self.has_range {
            let end = "SELECT id FROM search_docsize WHERE id > ?1 ORDER BY id LIMIT 1 OFFSET ?2";
            let end = db.query_opt(end, &params![after, ITEMS_PER_ROUND], |r| r.get(0))?;
            self.up_to = end.unwrap_or(i64::MAX);
            self.has_range = true;
        }
        if self.add_terms(db)? {
            return Ok(true);
        }
        if !self.compare(db, after)? {
            damage::report(Damage::database(INDEX_INCOMPLETE));
            return Ok(false);
        }
        self.after = Some(self.up_to).filter(|up_to| *up_to < i64::MAX);
        self.items.clear();
        self.last_term.clear();
        self.has_range = false;
        Ok(self.after.is_some())
    }

    /// Adds the next terms; false at the end of all terms.
    fn add_terms(&mut self, db: &Db<'_>) -> Result<bool> {
        let Db::Sqlite(connection) = db else { return Ok(false) };
        // A temporary virtual table, which writes nothing to disk.
        connection.execute_batch(
            "PRAGMA query_only = 0;
             CREATE VIRTUAL TABLE IF NOT EXISTS temp.search_terms USING fts5vocab(main, search, row);
             PRAGMA query_only = 1",
        )?;
        let (mut pairs, from) = (0, self.last_term.clone());
        let mut has_terms = false;
        let terms = "SELECT term FROM temp.search_terms WHERE term > ?1 ORDER BY term";
        let items = "SELECT rowid FROM search WHERE search MATCH ?1";
        db.query_each(terms, &params![from], |row| {
            has_terms = true;
            self.last_term = row.get(0)?;
            let term = &self.last_term;
            let stored_sum = term.strip_prefix(SUM_PREFIX).map(|sum| u64::from_str_radix(sum, 16));
            let quoted = format!("\"{}\"", term.replace('"', "\"\""));
            db.query_each(items, &params![quoted], |row| {
                pairs += 1;
                let key: i64 = row.get(0)?;
                if self.after.is_some_and(|after| key > after) && key <= self.up_to {
                    let item = self.items.entry(key).or_default();
                    item.count += 1;
                    match &stored_sum {
                        None => item.sum = item.sum.wrapping_add(term_weight(key, term)),
                        // A second sum term is that of another item.
                        Some(sum) if item.stored_sum.is_none() => {
                            item.stored_sum = sum.as_ref().ok().copied();
                        }
                        Some(_) => item.sum = item.sum.wrapping_add(1),
                    }
                }
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(if pairs < PAIRS_PER_SLICE {
                ControlFlow::Continue(())
            } else {
                ControlFlow::Break(())
            })
        })?;
        Ok(has_terms)
    }

    /// Whether the items of this round have all their terms.
    fn compare(&mut self, db: &Db<'_>, after: i64) -> Result<bool> {
        let sql = "SELECT id, sz FROM search_docsize WHERE id > ?1 AND id <= ?2";
        let mut suspect = Vec::new();
        db.query_each(sql, &params![after, self.up_to], |row| {
            let key: i64 = row.get(0)?;
            let count = row.bytes(1)?.map_or(0, varint);
            let matches = match self.items.remove(&key) {
                None => count == 0,
                // Earlier versions wrote no sum term.
                Some(ItemTerms { count: read, stored_sum: None, .. }) => read == count,
                Some(ItemTerms { count: read, stored_sum: Some(stored), sum }) => {
                    read == count && sum == stored
                }
            };
            if !matches {
                suspect.push(key);
            }
            Ok(ControlFlow::Continue(()))
        })?;
        suspect.extend(self.items.keys());
        for key in suspect.into_iter().take(MAX_RECHECKED_ITEMS) {
            if !is_found_by_its_terms(db, key)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Checks all terms at once.
pub(crate) fn check_all(db: &Db<'_>) -> Result<()> {
    let mut check = TermCheck::new();
    while check.run_slice(db)? {}
    Ok(())
}

/// Decodes a variable-length integer of SQLite: seven bits in each byte.
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

/// Whether each term of an item finds it now: it may have changed since the terms were read.
fn is_found_by_its_terms(db: &Db<'_>, key: i64) -> Result<bool> {
    let sql = format!(
        "SELECT {} FROM item WHERE key = ?1
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key)",
        items::COLUMNS
    );
    let mut trigrams = TrigramSet::default();
    let terms = db.query_opt(&sql, &params![key], |row| {
        let body = items::verify_row(row).and_then(|(_, body)| compress::decode_text(body).ok());
        // An item that cannot be read is reported by its readers.
        Ok(body.map(|body| search_terms(&body, &mut trigrams)))
    })?;
    let Some(terms) = terms.flatten() else { return Ok(true) };
    let sql = "SELECT 1 FROM search WHERE search MATCH ?1 AND rowid = ?2";
    for term in with_sum_term(key, &terms).split(' ').filter(|term| !term.is_empty()) {
        if !db.exists(sql, &params![term, key])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Whether all items of a session are in the index or queued for it.
pub(crate) fn contains_all(db: &Db<'_>, (first, last): (i64, i64)) -> Result<bool> {
    if db.is_postgres() {
        return Ok(true);
    }
    let missing = "SELECT 1 FROM item WHERE key BETWEEN ?1 AND ?2
         AND NOT EXISTS (SELECT 1 FROM fresh WHERE fresh.key = item.key)
         AND NOT EXISTS (SELECT 1 FROM search_docsize WHERE id = item.key)";
    match db.exists(missing, &params![first, last]) {
        Err(Error::Damaged(_)) => Ok(false),
        missing => missing.map(|missing| !missing),
    }
}
