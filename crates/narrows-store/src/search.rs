//! Search: every term stands in the item, in any case, also within words.

use crate::clip::texts;
use crate::error::{Error, Result};
use crate::index::{MAX_INDEXED, fold_case, small};
use crate::log::number;
use crate::sessions::Sight;
use crate::store::Store;
use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, params_from_iter};
use serde::Serialize;
use std::collections::BTreeSet;

/// Items that are looked at for one page; then the page says that there may be more.
const MAX_LOOKED_AT: usize = 20_000;
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
    let mut all = BTreeSet::new();
    for term in terms {
        let letters: Vec<char> = term.chars().collect();
        for three in letters.windows(3) {
            let three: String = three.iter().collect();
            all.insert(format!("\"{}\"", three.replace('"', "\"\"")));
        }
    }
    (!all.is_empty()).then(|| all.into_iter().collect::<Vec<_>>().join(" AND "))
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
    let before = match &query.after {
        Some(after) => after
            .parse::<i64>()
            .map_err(|_| Error::Invalid("`after` is not a place in a search".to_owned()))?,
        None => i64::MAX,
    };
    let (low, high) = query.session.map_or((0, i64::MAX), crate::log::keys);
    let high = high.min(before.saturating_sub(1));
    // What is not in the index yet is looked at itself.
    let (from, mut values): (&str, Vec<Value>) = match trigrams(&terms) {
        Some(three) => (
            "SELECT rowid AS key FROM search WHERE search MATCH ? AND rowid BETWEEN ? AND ?
             UNION SELECT key FROM item WHERE indexed = 0 AND key BETWEEN ? AND ?",
            vec![three.into(), low.into(), high.into(), low.into(), high.into()],
        ),
        None => ("SELECT key FROM item WHERE key BETWEEN ? AND ?", vec![low.into(), high.into()]),
    };
    values.push(i64::try_from(MAX_LOOKED_AT).unwrap_or(i64::MAX).into());
    let mut candidates = db.prepare_cached(&format!("{from} ORDER BY 1 DESC LIMIT ?"))?;
    let mut rows = candidates.query(params_from_iter(values))?;
    let mut page = SearchPage::default();
    let (mut looked, mut last) = (0, None);
    while let Some(row) = rows.next()? {
        let key: i64 = row.get(0)?;
        looked += 1;
        if page.hits.len() == query.limit {
            page.next = last.map(|key: i64| key.to_string());
            return Ok(page);
        }
        last = Some(key);
        if let Some(hit) = look(db, key, &terms, &query.sight)? {
            page.hits.push(hit);
        }
    }
    if looked == MAX_LOOKED_AT {
        page.next = last.map(|key| key.to_string());
    }
    Ok(page)
}

/// Looks whether everything stands in an item.
fn look(db: &Connection, key: i64, terms: &[String], sight: &Sight) -> Result<Option<Hit>> {
    let mut query = db.prepare_cached(
        "SELECT s.id, s.title, s.label, i.id, i.kind, i.body,
         (SELECT group_concat(tag, char(10)) FROM tag WHERE session = s.key)
         FROM item i JOIN session s ON s.key = i.session WHERE i.key = ?1",
    )?;
    let found = query.query_row([key], |r| {
        let row: (String, Option<String>, Option<String>, String, String, String) =
            (r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?, r.get(5)?);
        Ok((row, r.get::<_, Option<String>>(6)?))
    });
    let Some(((session_id, title, label, item_id, kind, body), tags)) = found.optional()? else {
        return Ok(None);
    };
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
