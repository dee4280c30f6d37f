//! How sessions are named in lists: short ids, titles and headings.

use crate::error::CliError;
use crate::local_store::{LocalStore, NO_LIMIT};
use crate::output::{Clock, TerminalInfo};
use narrows_render::escape;
use narrows_render::pen::{BOLD, CYAN, DIM, PLAIN};
use narrows_render::wrap::{Line, cut, line_width, span};
use narrows_store::{ListFilter, SessionRow};
use serde::Deserialize;
use std::collections::HashMap;

/// The minimum length of a short id, in characters.
const MIN_SHORT_ID_CHARS: usize = 4;
/// The minimum width of a title in a heading, in columns.
const MIN_TITLE_COLUMNS: usize = 16;

pub(crate) fn or_dash(text: &str) -> &str {
    if text.trim().is_empty() { "-" } else { text }
}

/// The title of a session: that of the agent, else the first prompt, else the label.
pub(crate) fn title(row: &SessionRow) -> String {
    let own = HeaderFields::of(row).title.filter(|t| !t.trim().is_empty());
    let fallback = || row.prompt.clone().or_else(|| row.label.clone());
    own.or_else(fallback).unwrap_or_else(|| "-".to_owned())
}

/// The fields of a session header that lists show.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct HeaderFields {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) agent: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) version: String,
    title: Option<String>,
    pub(crate) turns: u64,
    pub(crate) cost_usd: Option<f64>,
    pub(crate) unknown: u64,
    pub(crate) malformed: u64,
}

/// Reads null as an empty string.
fn or_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl HeaderFields {
    pub(crate) fn of(row: &SessionRow) -> HeaderFields {
        serde_json::from_str(row.info.get()).unwrap_or_default()
    }
}

/// All sessions of the store, with the shortest unambiguous length of their ids.
#[derive(Debug)]
pub(crate) struct SessionIndex {
    pub(crate) rows: Vec<SessionRow>,
    by_id: HashMap<String, usize>,
    short_id_chars: usize,
}

impl SessionIndex {
    pub(crate) fn load(local: &LocalStore) -> Result<SessionIndex, CliError> {
        let all = ListFilter { limit: NO_LIMIT, ..ListFilter::default() };
        let rows = local.block_on(local.store.list(all))?.sessions;
        let names = |(at, row): (usize, &SessionRow)| {
            let others = [row.label.clone(), row.native_id.clone()].into_iter().flatten();
            let others = others.map(move |name| (name, at, false));
            others.chain([(row.id.clone(), at, true)]).collect::<Vec<_>>()
        };
        let short_id_chars = unambiguous_length(rows.iter().enumerate().flat_map(names).collect());
        let by_id = rows.iter().enumerate().map(|(at, row)| (row.id.clone(), at)).collect();
        Ok(SessionIndex { rows, by_id, short_id_chars })
    }

    /// The shortest prefix of an id that is not a prefix of another session's name.
    pub(crate) fn short_id<'a>(&self, id: &'a str) -> &'a str {
        id.char_indices().nth(self.short_id_chars).map_or(id, |(at, _)| &id[..at])
    }

    pub(crate) fn row(&self, id: &str) -> Option<&SessionRow> {
        self.rows.get(*self.by_id.get(id)?)
    }
}

/// The length in characters at which every id prefix is unambiguous among all names. Takes names,
/// the index of the session of each, and whether the name is an id.
fn unambiguous_length(mut names: Vec<(String, usize, bool)>) -> usize {
    names.sort_unstable();
    let mut length = MIN_SHORT_ID_CHARS;
    let common_prefix =
        |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    for (at, (name, session, is_id)) in names.iter().enumerate() {
        if !is_id {
            continue;
        }
        // Names with the longest common prefix are neighbors in sorted order.
        let before = names[..at].iter().rev().find(|(_, other, _)| other != session);
        let after = names[at + 1..].iter().find(|(_, other, _)| other != session);
        for (other, _, _) in before.into_iter().chain(after) {
            length = length.max(common_prefix(name, other) + 1);
        }
    }
    length
}

/// The heading of a session among search results; fits in one line of the terminal.
pub(crate) fn heading(
    index: &SessionIndex,
    id: &str,
    terminal: TerminalInfo,
    clock: &Clock,
) -> Line {
    let mut line = vec![span(CYAN.bold(), index.short_id(id).to_owned())];
    let Some(row) = index.row(id) else { return line };
    let project = escape::line(row.project.as_deref().unwrap_or_default());
    let mut details = Line::new();
    for text in [project, clock.format_short(row.updated_at)].into_iter().filter(|t| !t.is_empty())
    {
        details.extend([span(PLAIN, "  "), span(DIM, text)]);
    }
    let mut title = escape::line(&title(row));
    if terminal.is_terminal {
        let used = line_width(&line) + line_width(&details) + 2;
        let room = terminal.columns().saturating_sub(used);
        title = cut(&title, room.max(MIN_TITLE_COLUMNS));
    }
    line.extend([span(PLAIN, "  "), span(BOLD, title)]);
    line.extend(details);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_ids_are_unambiguous_among_all_names() {
        let length = |names: &[(&str, usize, bool)]| {
            unambiguous_length(names.iter().map(|(n, w, i)| ((*n).to_owned(), *w, *i)).collect())
        };
        assert_eq!(length(&[]), 4);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abxdefgh", 1, true)]), 4);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcdexgh", 1, true)]), 6);
        // Labels count too, except the session's own.
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcde", 1, false), ("x", 1, true)]), 6);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcde", 0, false)]), 4);
        // Its own label sorts between it and the other session.
        let own = [("abcdefgh", 0, true), ("abcdefz", 0, false), ("abcdeg", 1, true)];
        assert_eq!(length(&own), 6);
    }
}
