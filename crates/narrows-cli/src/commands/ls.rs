//! `narrows ls`, and how sessions are named wherever they are listed.

use crate::Fault;
use crate::args::{LsArgs, When};
use crate::library::Library;
use crate::table::{Cell, Column, Look, Table, json_line, unwritten};
use crate::when::Clock;
use narrows_show::escape;
use narrows_show::pen::{BOLD, CYAN, DIM, GREEN, PLAIN};
use narrows_show::words::dollars;
use narrows_show::wrap::{Line, cut, line_width, span};
use narrows_store::{ListFilter, Query, SessionRow};
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};

/// From so many columns on there is room for turns and cost.
const WIDE: usize = 110;
/// Letters of an id that are shown at least.
const SHORTEST: usize = 4;
/// More than there are: a page is one longer than its limit.
pub(crate) const ALL: usize = usize::MAX >> 1;

pub(crate) fn run(args: &LsArgs) -> Result<(), Fault> {
    let clock = Clock::here();
    let (since, until) = clock.range(&args.which)?;
    let library = Library::open(&args.library)?;
    let known = Known::read(&library)?;
    let filter = ListFilter {
        tags: args.tags.clone(),
        project: args.which.project.clone(),
        since,
        until,
        limit: ALL,
        ..ListFilter::default()
    };
    let mut rows = library.wait(library.store.list(filter.clone()))?.sessions;
    if let Some(agent) = &args.which.agent {
        let agent = agent.to_lowercase();
        rows.retain(|row| About::of(row).agent.to_lowercase().contains(&agent));
    }
    let most = if args.limit == 0 { ALL } else { args.limit };
    let mut all_found = true;
    if let Some(text) = &args.text {
        all_found = only_said(&library, text, &filter, &mut rows, most)?;
    }
    let total = rows.len();
    rows.truncate(most);
    if rows.is_empty() {
        return nothing(args, known.rows.is_empty());
    }
    let look = Look::new(When::Auto);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        rows.iter().try_for_each(|row| json_line(&mut out, row))?;
        return out.flush().map_err(unwritten);
    }
    print(&known, &rows, look, &clock, &mut out)?;
    if look.terminal && (rows.len() < total || !all_found) {
        let of = if all_found { format!(" of {total}") } else { String::new() };
        let told = format!("{}{of} sessions; -n 0 shows all", rows.len());
        look.line(&mut out, &[span(DIM, told)])?;
    }
    out.flush().map_err(unwritten)
}

fn print(
    known: &Known,
    rows: &[SessionRow],
    look: Look,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<(), Fault> {
    let wide = look.columns() >= WIDE;
    let mut columns = vec![
        Column::text("ID", usize::MAX, usize::MAX),
        Column::number("WHEN"),
        Column::text("AGENT", 6, 14),
        Column::text("PROJECT", 8, if wide { 28 } else { 16 }),
    ];
    if wide {
        columns.extend([Column::number("TURNS"), Column::number("COST")]);
    }
    columns.push(Column::text("TITLE", 16, usize::MAX));
    let mut table = Table::new(columns);
    for row in rows {
        let about = About::of(row);
        let mut title = Cell::new(&title(row));
        if row.live {
            title = title.before("●", GREEN);
        }
        if row.file_exists == Some(false) {
            title = title.behind("archived", DIM);
        }
        let mut cells = vec![
            Cell::new(known.short(&row.id)).pen(CYAN),
            Cell::new(&clock.short(row.updated_at)),
            Cell::new(or_dash(&about.agent)),
            Cell::new(or_dash(row.project.as_deref().unwrap_or_default())),
        ];
        if wide {
            // An agent that reports no cost is not one that costs nothing.
            let cost = about.cost_usd.filter(|c| *c > 0.0).map(dollars);
            cells.push(Cell::new(&about.turns.to_string()));
            cells.push(Cell::new(or_dash(&cost.unwrap_or_default())));
        }
        cells.push(title);
        table.push(cells);
    }
    table.print(out, look)
}

/// Leaves only sessions in which a text was said, or that are called so. False when there may be
/// more than `most` of them.
fn only_said(
    library: &Library,
    text: &str,
    filter: &ListFilter,
    rows: &mut Vec<SessionRow>,
    most: usize,
) -> Result<bool, Fault> {
    let called = ListFilter { text: Some(text.to_owned()), ..filter.clone() };
    let called = library.wait(library.store.list(called))?.sessions;
    let mut found: HashSet<String> = HashSet::new();
    let mut query = Query {
        text: text.to_owned(),
        project: filter.project.clone(),
        since: filter.since,
        until: filter.until,
        one_each: true,
        limit: most.saturating_add(1),
        ..Query::default()
    };
    loop {
        let page = library.wait(library.store.search(query.clone()))?;
        found.extend(page.hits.into_iter().map(|hit| hit.session_id));
        query.after = page.next;
        // The newest come first: those that are not found yet are older than all of these.
        let enough = rows.iter().filter(|row| found.contains(&row.id)).count() > most;
        if query.after.is_none() || enough {
            break;
        }
    }
    found.extend(called.into_iter().map(|row| row.id));
    rows.retain(|row| found.contains(&row.id));
    Ok(query.after.is_none())
}

/// Says that nothing was found, and what was asked for.
fn nothing(args: &LsArgs, empty: bool) -> Result<(), Fault> {
    let mut asked = Vec::new();
    for (flag, value) in [
        ("--agent", &args.which.agent),
        ("--project", &args.which.project),
        ("--since", &args.which.since),
        ("--until", &args.which.until),
    ] {
        asked.extend(value.iter().map(|v| format!("{flag} {v}")));
    }
    asked.extend(args.tags.iter().map(|t| format!("--tag {t}")));
    asked.extend(args.text.iter().map(|t| format!("`{t}`")));
    let told = if empty || asked.is_empty() {
        crate::library::NOTHING.to_owned()
    } else {
        format!("no session matches {}", escape::line(&asked.join(" ")))
    };
    writeln!(io::stderr(), "narrows: {told}").map_err(Fault::new("standard error"))
}

pub(crate) fn or_dash(text: &str) -> &str {
    if text.trim().is_empty() { "-" } else { text }
}

/// What the title of a session is: the agent's, else what was first asked for, else its label.
pub(crate) fn title(row: &SessionRow) -> String {
    let own = About::of(row).title.filter(|t| !t.trim().is_empty());
    let others = || row.prompt.clone().or_else(|| row.label.clone());
    own.or_else(others).unwrap_or_else(|| "-".to_owned())
}

/// What is read of a session's header.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct About {
    #[serde(deserialize_with = "or_empty")]
    pub(crate) agent: String,
    #[serde(deserialize_with = "or_empty")]
    pub(crate) version: String,
    title: Option<String>,
    turns: u64,
    cost_usd: Option<f64>,
    pub(crate) unknown: u64,
    pub(crate) malformed: u64,
}

fn or_empty<'de, D: serde::Deserializer<'de>>(from: D) -> Result<String, D::Error> {
    Ok(Option::deserialize(from)?.unwrap_or_default())
}

impl About {
    pub(crate) fn of(row: &SessionRow) -> About {
        serde_json::from_str(row.info.get()).unwrap_or_default()
    }
}

/// All sessions, to name them shortly.
#[derive(Debug)]
pub(crate) struct Known {
    pub(crate) rows: Vec<SessionRow>,
    by_id: HashMap<String, usize>,
    length: usize,
}

impl Known {
    pub(crate) fn read(library: &Library) -> Result<Known, Fault> {
        let all = ListFilter { limit: ALL, ..ListFilter::default() };
        let rows = library.wait(library.store.list(all))?.sessions;
        let names = |(at, row): (usize, &SessionRow)| {
            let others = [row.label.clone(), row.native_id.clone()].into_iter().flatten();
            let others = others.map(move |name| (name, at, false));
            others.chain([(row.id.clone(), at, true)]).collect::<Vec<_>>()
        };
        let length = unambiguous(rows.iter().enumerate().flat_map(names).collect());
        let by_id = rows.iter().enumerate().map(|(at, row)| (row.id.clone(), at)).collect();
        Ok(Known { rows, by_id, length })
    }

    /// The beginning of an id, as long as it must be to mean one session only.
    pub(crate) fn short<'a>(&self, id: &'a str) -> &'a str {
        id.char_indices().nth(self.length).map_or(id, |(at, _)| &id[..at])
    }

    pub(crate) fn row(&self, id: &str) -> Option<&SessionRow> {
        self.rows.get(*self.by_id.get(id)?)
    }
}

/// How long the beginnings of ids must be so that none of them begins another session's name.
/// Given are names, whose they are, and which of them are ids.
fn unambiguous(mut names: Vec<(String, usize, bool)>) -> usize {
    names.sort_unstable();
    let mut length = SHORTEST;
    let common = |a: &str, b: &str| a.chars().zip(b.chars()).take_while(|(a, b)| a == b).count();
    for (at, (name, whose, is_id)) in names.iter().enumerate() {
        if !is_id {
            continue;
        }
        // In this order, the names that have the most in common are the nearest.
        let before = names[..at].iter().rev().find(|(_, other, _)| other != whose);
        let after = names[at + 1..].iter().find(|(_, other, _)| other != whose);
        for (other, _, _) in before.into_iter().chain(after) {
            length = length.max(common(name, other) + 1);
        }
    }
    length
}

/// The heading of a session in a longer output. It takes one line of a terminal.
pub(crate) fn heading(known: &Known, id: &str, (look, clock): (Look, &Clock)) -> Line {
    let mut line = vec![span(CYAN.bold(), known.short(id).to_owned())];
    let Some(row) = known.row(id) else { return line };
    let project = escape::line(row.project.as_deref().unwrap_or_default());
    let mut more = Line::new();
    for text in [project, clock.short(row.updated_at)].into_iter().filter(|t| !t.is_empty()) {
        more.extend([span(PLAIN, "  "), span(DIM, text)]);
    }
    let mut title = escape::line(&title(row));
    if look.terminal {
        let room = look.columns().saturating_sub(line_width(&line) + line_width(&more) + 2);
        title = cut(&title, room.max(16));
    }
    line.extend([span(PLAIN, "  "), span(BOLD, title)]);
    line.extend(more);
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_as_short_as_they_can_be() {
        let length = |names: &[(&str, usize, bool)]| {
            unambiguous(names.iter().map(|(n, w, i)| ((*n).to_owned(), *w, *i)).collect())
        };
        assert_eq!(length(&[]), 4);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abxdefgh", 1, true)]), 4);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcdexgh", 1, true)]), 6);
        // A label counts as well, unless it is the session's own.
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcde", 1, false), ("x", 1, true)]), 6);
        assert_eq!(length(&[("abcdefgh", 0, true), ("abcde", 0, false)]), 4);
        // Its own label stands between it and the other.
        let own = [("abcdefgh", 0, true), ("abcdefz", 0, false), ("abcdeg", 1, true)];
        assert_eq!(length(&own), 6);
    }
}
