//! Search: an item matches if it contains every term, in any case, also within words.

use crate::careful::{Careful, Next};
use crate::check;
use crate::compress;
use crate::damage::{self, Damage};
use crate::db::{Db, Row, Value, params};
use crate::error::{Error, Result};
use crate::fold_case::{fold_case, small};
use crate::items;
use crate::keys::number;
use crate::preview::texts;
use crate::search::index::MAX_INDEXED;
use crate::search::trigrams::{Threes, numbers};
use crate::sessions::list::around;
use crate::sessions::row::{OF_HIT, Sight};
use serde::Serialize;
use std::collections::HashMap;
use std::ops::ControlFlow;

/// Candidates scanned for one page; the page then has a cursor for more.
const MAX_LOOKED_AT: usize = 20_000;
/// Items fetched per query from PostgreSQL.
const AT_ONCE: usize = 32;
/// Candidates taken from the index, newest first.
const MAX_CANDIDATES: usize = 500_000;
/// Characters of context on each side of a match.
const AROUND: usize = 60;
const MAX_TERMS: usize = 16;
const MAX_TERM: usize = 256;

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
    let mut threes = Threes::default();
    terms.iter().for_each(|term| threes.add(term));
    threes.tokens(&mut tokens);
    (!tokens.is_empty()).then_some(tokens)
}

pub(crate) fn search(db: &Db<'_>, query: &Query) -> Result<SearchPage> {
    let terms = terms(&query.text);
    if terms.is_empty() {
        return Err(Error::Invalid("nothing to search for".to_owned()));
    }
    if terms.len() > MAX_TERMS || terms.iter().any(|t| t.chars().count() > MAX_TERM) {
        return Err(Error::Invalid(format!(
            "a search has at most {MAX_TERMS} terms of {MAX_TERM} characters"
        )));
    }
    let after = query.after.as_deref().map(place).transpose()?;
    let sessions = sessions(db, query)?;
    // Newest sessions first; within a session, the last items first.
    let mut places = Vec::new();
    for key in candidates(db, &terms, query.session)? {
        if let Some(updated) = sessions.get(&(key >> 32))
            && after.is_none_or(|after| (*updated, key) < after)
        {
            places.push((*updated, key));
        }
    }
    places.sort_unstable_by(|a, b| b.cmp(a));
    let mut page = SearchPage::default();
    let (mut last, mut done, mut looked) = (None, None, 0);
    for places in places.chunks(if db.is_postgres() { AT_ONCE } else { 1 }) {
        let mut items = None;
        for (updated, key) in places.iter().copied() {
            if page.hits.len() == query.limit || looked == MAX_LOOKED_AT {
                page.next = last.map(|(updated, key): (i64, i64)| format!("{updated}.{key}"));
                return Ok(page);
            }
            looked += 1;
            last = Some((updated, key));
            if done == Some(key >> 32) {
                continue;
            }
            let items = match &mut items {
                Some(items) => items,
                None => items.insert(fetch(db, places.iter().map(|(_, key)| *key))?),
            };
            let item = items.remove(&key);
            if let Some(hit) = item.and_then(|item| item.look(key, &terms, &query.sight)) {
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
    let threes = trigrams(terms);
    let all = threes.as_ref().map(|threes| threes.replace(' ', " AND "));
    let mut values = params![low, high, MAX_CANDIDATES].to_vec();
    let from = match (&threes, &all) {
        (Some(threes), _) if db.is_postgres() => {
            values.push(numbers(threes));
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
    match db.all(&format!("{from} {order}"), &values, |r| r.get(0)) {
        // Without a readable index, every item is a candidate.
        Err(error) if error.is_unreadable() && !db.is_postgres() => {
            damage::found(Damage::database(format!("the index of search: {error}")));
            let all =
                format!("SELECT key FROM item NOT INDEXED WHERE key BETWEEN ?1 AND ?2 {order}");
            match db.all(&all, &values[..3], |r| r.get(0)) {
                Err(error) if error.is_unreadable() => careful(db, low, high),
                found => found,
            }
        }
        found => found,
    }
}

/// Item keys in a range, around unreadable pages.
fn careful(db: &Db<'_>, low: i64, high: i64) -> Result<Vec<i64>> {
    let (mut all, mut keys) = (Careful::new("item", low, high, true), Vec::new());
    while keys.len() < MAX_CANDIDATES {
        match all.next(db)? {
            Next::Key(key) => keys.push(key),
            Next::Gap(..) => {}
            Next::End => break,
        }
    }
    Ok(keys)
}

/// Parses the cursor of a page.
fn place(after: &str) -> Result<(i64, i64)> {
    let bad = || Error::Invalid("`after` is not a place in a search".to_owned());
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
    let walked = db.each(sql, &params![query.session], |r| {
        all.push(one(r)?);
        Ok(ControlFlow::Continue(()))
    });
    if around(db, walked)? {
        all.clear();
        for key in check::sessions(db)? {
            let sql = format!("{sql} AND key = {key}");
            // The list of sessions reports those that cannot be read.
            let found = db.optional(&sql, &params![query.session], one);
            all.push(found.ok().flatten().flatten());
        }
    }
    Ok(all.into_iter().flatten().collect())
}

/// An item to match.
struct Found {
    session_id: String,
    title: Option<String>,
    label: Option<String>,
    item_id: String,
    kind: String,
    body: String,
    tags: Vec<String>,
    fork: bool,
}

fn fetch(db: &Db<'_>, keys: impl Iterator<Item = i64>) -> Result<HashMap<i64, Found>> {
    // The item's columns come first, in the order of `items::COLUMNS`.
    const ITEM: &str = "i.key, i.seq, i.body, i.id, i.kind, i.open, i.parent, i.top, i.crc";
    let mut keys = keys.map(Value::Int).peekable();
    let first = keys.peek().cloned();
    let (which, value) = if db.is_postgres() {
        ("ANY(?1)", Value::List(keys.collect()))
    } else {
        ("?1", keys.next().unwrap_or(Value::Null))
    };
    let sql = format!("SELECT {ITEM}, {OF_HIT} WHERE i.key = {which}");
    let found = db.all(&sql, &[value], |r| Ok((r.get(0)?, Found::read(r)?)));
    let found = match (found, first) {
        (Err(error), Some(Value::Int(key))) if error.is_unreadable() && !db.is_postgres() => {
            items::lost(key >> 32, key, key);
            Vec::new()
        }
        (found, _) => found?,
    };
    let sound = |(key, found): (i64, Option<Found>)| {
        if found.is_none() {
            items::lost(key >> 32, key, key);
        }
        found.map(|found| (key, found))
    };
    Ok(found.into_iter().filter_map(sound).collect())
}

impl Found {
    /// Reads a candidate; `None` if its row is damaged.
    fn read(r: &Row<'_>) -> Result<Option<Found>> {
        let Some((_, body)) = items::sound(r) else { return Ok(None) };
        let tags = r.get::<Option<String>>(12)?;
        Ok(Some(Found {
            session_id: r.get(9)?,
            title: r.get(10)?,
            label: r.get(11)?,
            item_id: r.get(3)?,
            kind: r.get(4)?,
            body: compress::text(body)?.into_owned(),
            tags: tags.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect(),
            fork: r.get::<Option<String>>(13)?.is_some(),
        }))
    }

    /// Matches the terms against the item.
    fn look(self, key: i64, terms: &[String], sight: &Sight) -> Option<Hit> {
        if !sight.sees(&self.session_id, &self.tags) {
            return None;
        }
        let value = serde_json::from_str::<serde_json::Value>(&self.body).ok()?;
        let timestamp = value["timestamp"].as_str().map(str::to_owned);
        let mut missing: Vec<&String> = terms.iter().collect();
        let (mut shown, mut size) = (None, 0);
        texts(value, |path, text| {
            if size >= MAX_INDEXED || (missing.is_empty() && shown.is_some()) {
                return;
            }
            size += text.len();
            let small: Vec<char> = text.chars().map(small).collect();
            if shown.is_none()
                && let Some(at) = find(&small, &terms[0])
            {
                shown = Some((path.to_owned(), parts(text, &small, at, terms)));
            }
            missing.retain(|term| find(&small, term).is_none());
        });
        let (field, parts) = shown.filter(|_| missing.is_empty())?;
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

fn find(letters: &[char], term: &str) -> Option<usize> {
    let term: Vec<char> = term.chars().collect();
    letters.windows(term.len()).position(|w| w == term)
}

/// The snippet around a match, split into parts.
fn parts(text: &str, small: &[char], at: usize, terms: &[String]) -> Vec<Part> {
    let letters: Vec<char> = text.chars().collect();
    let from = at.saturating_sub(AROUND);
    let until = (at + terms[0].chars().count() + AROUND).min(letters.len());
    let mut hits = vec![false; until - from];
    for term in terms {
        let term: Vec<char> = term.chars().collect();
        for place in from..until.saturating_sub(term.len() - 1) {
            if small[place..place + term.len()] == term[..] {
                hits[place - from..place - from + term.len()].fill(true);
            }
        }
    }
    let mut parts: Vec<Part> = Vec::new();
    if from > 0 {
        parts.push(Part { text: "…".to_owned(), hit: false });
    }
    for (letter, hit) in letters[from..until].iter().zip(hits) {
        match parts.last_mut() {
            Some(part) if part.hit == hit => part.text.push(*letter),
            _ => parts.push(Part { text: letter.to_string(), hit }),
        }
    }
    if until < letters.len() {
        match parts.last_mut() {
            Some(part) if !part.hit => part.text.push('…'),
            _ => parts.push(Part { text: "…".to_owned(), hit: false }),
        }
    }
    parts
}
