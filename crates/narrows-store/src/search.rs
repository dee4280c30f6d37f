//! Search: every term stands in the item, in any case, also within words.

use crate::clip::texts;
use crate::error::{Error, Result};
use crate::index::{MAX_INDEXED, fold_case, small};
use crate::log::number;
use crate::sessions::Sight;
use crate::store::Store;
use crate::threes::Threes;
use rusqlite::types::Value;
use rusqlite::{Connection, params_from_iter};
use serde::Serialize;
use std::collections::HashMap;

/// Items that are looked at for one page; then the page says that there may be more.
const MAX_LOOKED_AT: usize = 20_000;
/// Items that may have what is looked for; of more, those of sessions that came first are left out.
const MAX_CANDIDATES: usize = 500_000;
/// Letters around a hit.
const AROUND: usize = 60;
const MAX_TERMS: usize = 16;
const MAX_TERM: usize = 256;

/// What is looked for.
#[derive(Debug, Clone, Default)]
pub struct Query {
    /// Words, or phrases in quotes; all of them must be there.
    pub text: String,
    /// Only in this session.
    pub session: Option<i64>,
    /// Only in sessions of this agent.
    pub agent: Option<String>,
    /// Only in sessions of projects with this in their name.
    pub project: Option<String>,
    /// Only in sessions that changed at or after this time.
    pub since: Option<i64>,
    /// Only in sessions that changed before this time.
    pub until: Option<i64>,
    /// Only the first hit of each session.
    pub one_each: bool,
    /// What the caller may see.
    pub sight: Sight,
    /// Where the page before ended.
    pub after: Option<String>,
    /// How many.
    pub limit: usize,
}

/// A piece of a hit's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Part {
    /// The text.
    pub text: String,
    /// Whether it is what was looked for.
    pub hit: bool,
}

/// An item in which everything was found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Hit {
    /// The session's id.
    pub session_id: String,
    /// What the session is about.
    pub title: Option<String>,
    /// The caller's own name for the session.
    pub label: Option<String>,
    /// The item.
    pub item_id: String,
    /// Its type.
    pub r#type: String,
    /// Its place in the session.
    pub order: u64,
    /// When it was, where that is known.
    pub timestamp: Option<String>,
    /// The field in which the first term stands.
    pub field: String,
    /// What stands there.
    pub parts: Vec<Part>,
}

/// One page of hits, newest sessions first.
#[derive(Debug, Clone, Default)]
pub struct SearchPage {
    /// The hits.
    pub hits: Vec<Hit>,
    /// Where the next page begins, if there may be more.
    pub next: Option<String>,
}

/// The terms of a query, in small letters.
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

/// Each three letters of each term must be there; whether they stand together is seen in the item.
fn trigrams(terms: &[String]) -> Option<String> {
    let mut tokens = String::new();
    let mut threes = Threes::default();
    terms.iter().for_each(|term| threes.add(term));
    threes.tokens(&mut tokens);
    (!tokens.is_empty()).then(|| tokens.split(' ').collect::<Vec<_>>().join(" AND "))
}

impl Store {
    /// One page of hits.
    pub async fn search(&self, query: Query) -> Result<SearchPage> {
        self.read(move |db| search(db, &query)).await
    }
}

fn search(db: &Connection, query: &Query) -> Result<SearchPage> {
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
    let (low, high) = query.session.map_or((0, i64::MAX), crate::log::keys);
    // What is not in the index yet is looked at itself.
    let (from, mut values): (&str, Vec<Value>) = match trigrams(&terms) {
        Some(three) => (
            "SELECT rowid AS key FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?
             UNION SELECT key FROM fresh WHERE key BETWEEN ? AND ?",
            vec![three.into(), low.into(), high.into(), low.into(), high.into()],
        ),
        None => ("SELECT key FROM item WHERE key BETWEEN ? AND ?", vec![low.into(), high.into()]),
    };
    values.push(i64::try_from(MAX_CANDIDATES).unwrap_or(i64::MAX).into());
    let mut candidates = db.prepare_cached(&format!("{from} ORDER BY 1 DESC LIMIT ?"))?;
    let keys = candidates.query_map(params_from_iter(values), |r| r.get::<_, i64>(0))?;
    // The newest sessions first; the last items of each first.
    let mut places = Vec::new();
    for key in keys {
        let key = key?;
        if let Some(updated) = sessions.get(&(key >> 32))
            && after.is_none_or(|after| (*updated, key) < after)
        {
            places.push((*updated, key));
        }
    }
    places.sort_unstable_by(|a, b| b.cmp(a));
    let mut page = SearchPage::default();
    let (mut last, mut done) = (None, None);
    for (looked, (updated, key)) in places.into_iter().enumerate() {
        if page.hits.len() == query.limit || looked == MAX_LOOKED_AT {
            page.next = last.map(|(updated, key): (i64, i64)| format!("{updated}.{key}"));
            return Ok(page);
        }
        last = Some((updated, key));
        if done == Some(key >> 32) {
            continue;
        }
        if let Some(hit) = look(db, key, &terms, &query.sight)? {
            page.hits.push(hit);
            done = query.one_each.then_some(key >> 32);
        }
    }
    Ok(page)
}

/// The place at which a page ended.
fn place(after: &str) -> Result<(i64, i64)> {
    let bad = || Error::Invalid("`after` is not a place in a search".to_owned());
    let (updated, key) = after.split_once('.').ok_or_else(bad)?;
    Ok((updated.parse().map_err(|_| bad())?, key.parse().map_err(|_| bad())?))
}

/// The sessions that are searched, and when they changed.
fn sessions(db: &Connection, query: &Query) -> Result<HashMap<i64, i64>> {
    let mut rows = db.prepare_cached("SELECT key, updated, agent, project FROM session")?;
    let mut rows = rows.query([])?;
    let mut found = HashMap::new();
    let has = |name: Option<String>, part: &Option<String>| match part {
        Some(part) => fold_case(&name.unwrap_or_default()).contains(&fold_case(part)),
        None => true,
    };
    while let Some(r) = rows.next()? {
        let (key, updated): (i64, i64) = (r.get(0)?, r.get(1)?);
        if query.since.is_none_or(|t| updated >= t)
            && query.until.is_none_or(|t| updated < t)
            && has(r.get(2)?, &query.agent)
            && has(r.get(3)?, &query.project)
        {
            found.insert(key, updated);
        }
    }
    Ok(found)
}

/// Looks whether everything stands in an item.
fn look(db: &Connection, key: i64, terms: &[String], sight: &Sight) -> Result<Option<Hit>> {
    let mut query = db.prepare_cached(
        "SELECT s.id, s.title, s.label, i.id, i.kind, i.body,
         (SELECT group_concat(tag, char(10)) FROM tag WHERE session = s.key)
         FROM item i JOIN session s ON s.key = i.session WHERE i.key = ?1",
    )?;
    let mut rows = query.query([key])?;
    let Some(r) = rows.next()? else { return Ok(None) };
    let (session_id, title, label): (String, Option<String>, Option<String>) =
        (r.get(0)?, r.get(1)?, r.get(2)?);
    let (item_id, kind): (String, String) = (r.get(3)?, r.get(4)?);
    let (body, tags) = (crate::pack::text(r.get_ref(5)?)?, r.get::<_, Option<String>>(6)?);
    let tags: Vec<String> = tags.iter().flat_map(|t| t.split('\n')).map(str::to_owned).collect();
    if !sight.sees(&session_id, &tags) {
        return Ok(None);
    }
    let Ok(value) = serde_json::from_str::<serde_json::Value>(&body) else { return Ok(None) };
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
    let Some((field, parts)) = shown.filter(|_| missing.is_empty()) else { return Ok(None) };
    let order = number(key);
    Ok(Some(Hit {
        session_id,
        title,
        label,
        item_id,
        r#type: kind,
        order,
        timestamp,
        field,
        parts,
    }))
}

fn find(letters: &[char], term: &str) -> Option<usize> {
    let term: Vec<char> = term.chars().collect();
    letters.windows(term.len()).position(|w| w == term)
}

/// The text around a hit, in pieces.
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
