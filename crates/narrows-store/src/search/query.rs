//! Search: an item matches if it contains every term, in any case, also within words.

use crate::compress;
use crate::damage::key_scan::session_keys;
use crate::damage::key_scan::{KeyScan, ScanStep};
use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value, params};
use crate::error::{Error, Result};
use crate::fold_case::{fold_case, to_lower};
use crate::items;
use crate::keys::number;
use crate::preview::visit_texts;
use crate::search::index::MAX_INDEXED;
use crate::search::trigrams::{TrigramSet, parse_terms};
use crate::sessions::list::skip_damaged_rows;
use crate::sessions::row::{HIT_COLUMNS, Sight};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Candidates scanned for one page; the page then has a cursor for more.
const MAX_SCANNED: usize = 20_000;
/// Items fetched per query from PostgreSQL.
const FETCH_BATCH: usize = 32;
/// Candidates taken from the index, newest first.
const MAX_CANDIDATES: usize = 500_000;
/// Characters of context on each side of a match.
const SNIPPET_CONTEXT_CHARS: usize = 60;
const MAX_TERMS: usize = 16;
const MAX_TERM_CHARS: usize = 256;

/// A search query.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Terms, or phrases in quotes; all of them must match.
    pub text: String,
    /// Search only this session.
    pub session: Option<i64>,
    /// Search only sessions of this agent.
    pub agent: Option<String>,
    /// Search only sessions whose project contains this.
    pub project: Option<String>,
    /// Search only sessions updated at or after this time.
    pub since: Option<i64>,
    /// Search only sessions updated before this time.
    pub until: Option<i64>,
    /// Return only the first hit of each session.
    pub one_each: bool,
    /// The sessions the caller can see.
    pub sight: Sight,
    /// The end of the previous page.
    pub after: Option<String>,
    /// The maximum number of hits.
    pub limit: usize,
}

/// A part of a snippet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Whether the part is a match.
    pub hit: bool,
}

/// A matching item.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The id of the session.
    pub session_id: String,
    /// The title of the session, or else its first prompt.
    pub title: Option<String>,
    /// The caller's label of the session.
    pub label: Option<String>,
    /// The id of the item.
    pub item_id: String,
    /// The type of the item.
    pub r#type: String,
    /// The position of the item.
    pub order: u64,
    /// The time of the item, if known.
    pub timestamp: Option<String>,
    /// The field that contains the first term.
    pub field: String,
    /// The snippet of that field.
    pub parts: Vec<Part>,
    /// Whether the session is a fork.
    pub fork: bool,
}

/// A page of hits, newest sessions first.
#[derive(Debug, Clone, Default)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// The start of the next page, if there may be more.
    pub next: Option<String>,
}

/// The terms of a query, case-folded.
fn terms(text: &str) -> Vec<String> {
    let mut terms = Vec::new();
    for (at, part) in text.split('"').enumerate() {
        if at % 2 == 1 {
            terms.push(fold_case(part));
        } else {
            terms.extend(part.split_whitespace().map(fold_case));
        }
    }
    terms.retain(|t| !t.trim().is_empty());
    terms
}

/// The trigrams that a matching item must contain. Their adjacency is verified in the item.
fn trigrams(terms: &[String]) -> Option<String> {
    let mut tokens = String::new();
    let mut trigrams = TrigramSet::default();
    terms.iter().for_each(|term| trigrams.add(term));
    trigrams.take_terms(&mut tokens);
    (!tokens.is_empty()).then_some(tokens)
}

pub(crate) fn search(db: &Db<'_>, query: &Query) -> Result<SearchPage> {
    let terms = terms(&query.text);
    if terms.is_empty() {
        return Err(Error::Invalid("nothing to search for".to_owned()));
    }
    if terms.len() > MAX_TERMS || terms.iter().any(|t| t.chars().count() > MAX_TERM_CHARS) {
        return Err(Error::Invalid(format!(
            "a search has at most {MAX_TERMS} terms of {MAX_TERM_CHARS} characters"
        )));
    }
    let after = query.after.as_deref().map(parse_cursor).transpose()?;
    let sessions = sessions(db, query)?;
    // Newest sessions first; within a session, the last items first.
    let mut positions = Vec::new();
    for key in candidates(db, &terms, query.session)? {
        if let Some(updated) = sessions.get(&(key >> 32))
            && after.is_none_or(|after| (*updated, key) < after)
        {
            positions.push((*updated, key));
        }
    }
    positions.sort_unstable_by(|a, b| b.cmp(a));
    let mut page = SearchPage::default();
    let (mut last, mut done, mut scanned_count) = (None, None, 0);
    for positions in positions.chunks(if db.is_postgres() { FETCH_BATCH } else { 1 }) {
        let mut items = None;
        for (updated, key) in positions.iter().copied() {
            if page.hits.len() == query.limit || scanned_count == MAX_SCANNED {
                page.next = last.map(|(updated, key): (i64, i64)| format!("{updated}.{key}"));
                return Ok(page);
            }
            scanned_count += 1;
            last = Some((updated, key));
            if done == Some(key >> 32) {
                continue;
            }
            let items = match &mut items {
                Some(items) => items,
                None => items.insert(fetch(db, positions.iter().map(|(_, key)| *key))?),
            };
            let item = items.remove(&key);
            if let Some(hit) = item.and_then(|item| item.match_item(key, &terms, &query.sight)) {
                page.hits.push(hit);
                done = query.one_each.then_some(key >> 32);
            }
        }
    }
    Ok(page)
}

/// Keys of items that may match, including items that are not indexed yet.
fn candidates(db: &Db<'_>, terms: &[String], session: Option<i64>) -> Result<Vec<i64>> {
    let (low, high) = session.map_or((0, i64::MAX), crate::keys::keys);
    let trigrams = trigrams(terms);
    let all = trigrams.as_ref().map(|trigrams| trigrams.replace(' ', " AND "));
    let mut values = params![low, high, MAX_CANDIDATES].to_vec();
    let from = match (&trigrams, &all) {
        (Some(trigrams), _) if db.is_postgres() => {
            values.push(parse_terms(trigrams));
            "SELECT key FROM search WHERE threes @> ?4 AND key BETWEEN ?1 AND ?2
             UNION SELECT key FROM fresh WHERE key BETWEEN ?1 AND ?2"
        }
        (_, Some(all)) => {
            values.push(Value::Text(all));
            "SELECT rowid AS key FROM search WHERE search MATCH ?4 AND rowid BETWEEN ?1 AND ?2
             UNION SELECT key FROM fresh WHERE key BETWEEN ?1 AND ?2"
        }
        _ => "SELECT key FROM item WHERE key BETWEEN ?1 AND ?2",
    };
    let order = "ORDER BY 1 DESC LIMIT ?3";
    match db.query_all(&format!("{from} {order}"), &values, |r| r.get(0)) {
        // Without a readable index, every item is a candidate.
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            damage::report(Damage::database(format!("the index of search: {error}")));
            let all =
                format!("SELECT key FROM item NOT INDEXED WHERE key BETWEEN ?1 AND ?2 {order}");
            match db.query_all(&all, &values[..3], |r| r.get(0)) {
                Err(error) if error.is_unreadable() => scan_keys(db, low, high),
                found => found,
            }
        }
        found => found,
    }
}

/// Item keys in a range, around unreadable pages.
fn scan_keys(db: &Db<'_>, low: i64, high: i64) -> Result<Vec<i64>> {
    let (mut all, mut keys) = (KeyScan::new("item", low, high, true), Vec::new());
    while keys.len() < MAX_CANDIDATES {
        match all.next(db)? {
            ScanStep::Key(key) => keys.push(key),
            ScanStep::Gap(..) => {}
            ScanStep::End => break,
        }
    }
    Ok(keys)
}

/// Parses the cursor of a page.
fn parse_cursor(after: &str) -> Result<(i64, i64)> {
    let bad = || Error::Invalid("invalid `after`: not a cursor of a search".to_owned());
    let (updated, key) = after.split_once('.').ok_or_else(bad)?;
    Ok((updated.parse().map_err(|_| bad())?, key.parse().map_err(|_| bad())?))
}

/// The sessions to search, with their update times.
fn sessions(db: &Db<'_>, query: &Query) -> Result<HashMap<i64, i64>> {
    let has = |name: Option<String>, part: &Option<String>| match part {
        Some(part) => fold_case(&name.unwrap_or_default()).contains(&fold_case(part)),
        None => true,
    };
    let sql = "SELECT key, updated, agent, project FROM session
         WHERE left_out = 0 AND (copy_of IS NULL OR key = ?1)";
    let one = |r: &Row<'_>| {
        let (key, updated): (i64, i64) = (r.get(0)?, r.get(1)?);
        let is_meant = query.since.is_none_or(|t| updated >= t)
            && query.until.is_none_or(|t| updated < t)
            && has(r.get(2)?, &query.agent)
            && has(r.get(3)?, &query.project);
        Ok(is_meant.then_some((key, updated)))
    };
    let mut all = Vec::new();
    let scanned = db.query_each(sql, &params![query.session], |r| {
        all.push(one(r)?);
        Ok(ControlFlow::Continue(()))
    });
    if skip_damaged_rows(db, scanned)? {
        all.clear();
        for key in session_keys(db)? {
            let sql = format!("{sql} AND key = {key}");
            // The list of sessions reports those that cannot be read.
            let found = db.query_opt(&sql, &params![query.session], one);
            all.push(found.ok().flatten().flatten());
        }
    }
    Ok(all.into_iter().flatten().collect())
}

/// An item to match.
struct Candidate {
    session_id: String,
    title: Option<String>,
    label: Option<String>,
    item_id: String,
    kind: String,
    body: String,
    tags: Vec<String>,
    fork: bool,
}

fn fetch(db: &Db<'_>, keys: impl Iterator<Item = i64>) -> Result<HashMap<i64, Candidate>> {
    // The item's columns come first, in the order of `items::COLUMNS`.
    const ITEM: &str = "i.key, i.seq, i.body, i.id, i.kind, i.open, i.parent, i.top, i.crc";
    let mut keys = keys.map(Value::Int).peekable();
    let first = keys.peek().cloned();
    let (which, value) = if db.is_postgres() {
        ("ANY(?1)", Value::List(keys.collect()))
    } else {
        ("?1", keys.next().unwrap_or(Value::Null))
    };
    let sql = format!("SELECT {ITEM}, {HIT_COLUMNS} WHERE i.key = {which}");
    let found = db.query_all(&sql, &[value], |r| Ok((r.get(0)?, Candidate::read(r)?)));
    let found = match (found, first) {
        (Err(error), Some(Value::Int(key))) if error.is_unreadable() && !db.is_postgres() => {
            items::report_damage(key >> 32, key, key);
            Vec::new()
        }
        (found, _) => found?,
    };
    let verified = |(key, found): (i64, Option<Candidate>)| {
        if found.is_none() {
            items::report_damage(key >> 32, key, key);
        }
        found.map(|found| (key, found))
    };
    Ok(found.into_iter().filter_map(verified).collect())
}

impl Candidate {
    /// Reads a candidate; `None` if its row is damaged.
    fn read(r: &Row<'_>) -> Result<Option<Candidate>> {
        let Some((_, body)) = items::verify_row(r) else { return Ok(None) };
        let tags = r.get::<Option<String>>(12)?;
        Ok(Some(Candidate {
            session_id: r.get(9)?,
            title: r.get(10)?,
            label: r.get(11)?,
            item_id: r.get(3)?,
            kind: r.get(4)?,
            body: compress::decode_text(body)?.into_owned(),
            tags: tags.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect(),
            fork: r.get::<Option<String>>(13)?.is_some(),
        }))
    }

    /// Matches the terms against the item.
    fn match_item(self, key: i64, terms: &[String], sight: &Sight) -> Option<Hit> {
        if !sight.sees(&self.session_id, &self.tags) {
            return None;
        }
        let value = serde_json::from_str::<serde_json::Value>(&self.body).ok()?;
        let timestamp = value["timestamp"].as_str().map(str::to_owned);
        let mut missing: Vec<&String> = terms.iter().collect();
        let (mut snippet_field, mut size) = (None, 0);
        visit_texts(value, |path, text| {
            if size >= MAX_INDEXED || (missing.is_empty() && snippet_field.is_some()) {
                return;
            }
            size += text.len();
            let lower: Vec<char> = text.chars().map(to_lower).collect();
            if snippet_field.is_none()
                && let Some(at) = find_chars(&lower, &terms[0])
            {
                snippet_field = Some((path.to_owned(), snippet(text, &lower, at, terms)));
            }
            missing.retain(|term| find_chars(&lower, term).is_none());
        });
        let (field, parts) = snippet_field.filter(|_| missing.is_empty())?;
        Some(Hit {
            session_id: self.session_id,
            title: self.title,
            label: self.label,
            item_id: self.item_id,
            r#type: self.kind,
            order: number(key),
            timestamp,
            field,
            parts,
            fork: self.fork,
        })
    }
}

fn find_chars(chars: &[char], term: &str) -> Option<usize> {
    let term: Vec<char> = term.chars().collect();
    chars.windows(term.len()).position(|w| w == term)
}

/// The snippet around a match, split into parts.
fn snippet(text: &str, lower: &[char], at: usize, terms: &[String]) -> Vec<Part> {
    let chars: Vec<char> = text.chars().collect();
    let from = at.saturating_sub(SNIPPET_CONTEXT_CHARS);
    let until = (at + terms[0].chars().count() + SNIPPET_CONTEXT_CHARS).min(chars.len());
    let mut hits = vec![false; until - from];
    for term in terms {
        let term: Vec<char> = term.chars().collect();
        for place in from..until.saturating_sub(term.len() - 1) {
            if lower[place..place + term.len()] == term[..] {
                hits[place - from..place - from + term.len()].fill(true);
            }
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    if from > 0 {
        parts.push(Part { text: "…".to_owned(), hit: false });
    }
    for (ch, hit) in chars[from..until].iter().zip(hits) {
        match parts.last_mut() {
            Some(part) if part.hit == hit => part.text.push(*ch),
            _ => parts.push(Part { text: ch.to_string(), hit }),
        }
    }
    if until < chars.len() {
        match parts.last_mut() {
            Some(part) if !part.hit => part.text.push('…'),
            _ => parts.push(Part { text: "…".to_owned(), hit: false }),
        }
    }
    parts
}
