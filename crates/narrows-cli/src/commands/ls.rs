//! `narrows ls`: lists sessions.

use super::session_index::{HeaderFields, SessionIndex, or_dash, title};
use crate::args::{ColorChoice, LsArgs};
use crate::error::CliError;
use crate::local_store::{LocalStore, NO_LIMIT, no_sessions};
use crate::output::{Cell, Clock, Column, Table, TerminalInfo, json_line};
use narrows_render::escape;
use narrows_render::pen::{CYAN, DIM, GREEN};
use narrows_render::words::dollars;
use narrows_render::wrap::span;
use narrows_store::{ListFilter, Query, SessionRow};
use std::collections::HashSet;
use std::io::{self, BufWriter, Write};

/// The minimum terminal width for the columns TURNS and COST.
const WIDE_COLUMNS: usize = 110;

pub(crate) fn run(args: &LsArgs) -> Result<(), CliError> {
    let clock = Clock::local();
    let (since, until) = clock.time_range(&args.filter)?;
    let local = LocalStore::open(&args.local)?;
    let index = SessionIndex::load(&local)?;
    let filter = ListFilter {
        tags: args.tags.clone(),
        project: args.filter.project.clone(),
        since,
        until,
        limit: NO_LIMIT,
        ..ListFilter::default()
    };
    let mut rows = local.block_on(local.store.list(filter.clone()))?.sessions;
    if let Some(agent) = &args.filter.agent {
        let agent = agent.to_lowercase();
        rows.retain(|row| HeaderFields::of(row).agent.to_lowercase().contains(&agent));
    }
    let limit = if args.limit == 0 { NO_LIMIT } else { args.limit };
    let mut is_complete = true;
    if let Some(text) = &args.text {
        is_complete = retain_containing(&local, text, &filter, &mut rows, limit)?;
    }
    let total = rows.len();
    rows.truncate(limit);
    if rows.is_empty() {
        return report_no_match(args, index.rows.is_empty());
    }
    let terminal = TerminalInfo::stdout(ColorChoice::Auto);
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        rows.iter().try_for_each(|row| json_line(&mut out, row))?;
        return out.flush().map_err(CliError::stdout);
    }
    print(&index, &rows, terminal, &clock, &mut out)?;
    if terminal.is_terminal && (rows.len() < total || !is_complete) {
        let of = if is_complete { format!(" of {total}") } else { String::new() };
        let note = format!("{}{of} sessions; -n 0 lists all", rows.len());
        terminal.write_line(&mut out, &[span(DIM, note)])?;
    }
    out.flush().map_err(CliError::stdout)
}

fn print(
    index: &SessionIndex,
    rows: &[SessionRow],
    terminal: TerminalInfo,
    clock: &Clock,
    out: &mut impl Write,
) -> Result<(), CliError> {
    let is_wide = terminal.columns() >= WIDE_COLUMNS;
    let mut columns = vec![
        Column::text("ID", usize::MAX, usize::MAX),
        Column::number("WHEN"),
        Column::text("AGENT", 6, 14),
        Column::text("PROJECT", 8, if is_wide { 28 } else { 16 }),
    ];
    if is_wide {
        columns.extend([Column::number("TURNS"), Column::number("COST")]);
    }
    columns.push(Column::text("TITLE", 16, usize::MAX));
    let mut table = Table::new(columns);
    for row in rows {
        let header = HeaderFields::of(row);
        let mut title = Cell::new(&title(row));
        if row.live {
            title = title.prefix("●", GREEN);
        }
        if row.file_exists == Some(false) {
            title = title.suffix("archived", DIM);
        }
        let mut cells = vec![
            Cell::new(index.short_id(&row.id)).style(CYAN),
            Cell::new(&clock.format_short(row.updated_at)),
            Cell::new(or_dash(&header.agent)),
            Cell::new(or_dash(row.project.as_deref().unwrap_or_default())),
        ];
        if is_wide {
            // An agent that reports no cost is not free.
            let cost = header.cost_usd.filter(|c| *c > 0.0).map(dollars);
            cells.push(Cell::new(&header.turns.to_string()));
            cells.push(Cell::new(or_dash(&cost.unwrap_or_default())));
        }
        cells.push(title);
        table.push(cells);
    }
    table.print(out, terminal)
}

/// Keeps only sessions that contain a text in an item or in their name. False if the search stopped
/// at `limit` sessions.
fn retain_containing(
    local: &LocalStore,
    text: &str,
    filter: &ListFilter,
    rows: &mut Vec<SessionRow>,
    limit: usize,
) -> Result<bool, CliError> {
    let named = ListFilter { text: Some(text.to_owned()), ..filter.clone() };
    let named = local.block_on(local.store.list(named))?.sessions;
    let mut found: HashSet<String> = HashSet::new();
    let mut query = Query {
        text: text.to_owned(),
        project: filter.project.clone(),
        since: filter.since,
        until: filter.until,
        one_each: true,
        limit: limit.saturating_add(1),
        ..Query::default()
    };
    loop {
        let page = local.block_on(local.store.search(query.clone()))?;
        found.extend(page.hits.into_iter().map(|hit| hit.session_id));
        query.after = page.next;
        // Pages come newest first: sessions on later pages are older than all of these.
        let has_enough = rows.iter().filter(|row| found.contains(&row.id)).count() > limit;
        if query.after.is_none() || has_enough {
            break;
        }
    }
    found.extend(named.into_iter().map(|row| row.id));
    rows.retain(|row| found.contains(&row.id));
    Ok(query.after.is_none())
}

/// Prints that nothing matches the filter. This is not an error.
fn report_no_match(args: &LsArgs, store_is_empty: bool) -> Result<(), CliError> {
    let mut filters = Vec::new();
    for (flag, value) in [
        ("--agent", &args.filter.agent),
        ("--project", &args.filter.project),
        ("--since", &args.filter.since),
        ("--until", &args.filter.until),
    ] {
        filters.extend(value.iter().map(|v| format!("{flag} {v}")));
    }
    filters.extend(args.tags.iter().map(|t| format!("--tag {t}")));
    filters.extend(args.text.iter().map(|t| format!("`{t}`")));
    let message = if store_is_empty || filters.is_empty() {
        no_sessions().to_string()
    } else {
        format!("no session matches {}", escape::line(&filters.join(" ")))
    };
    writeln!(io::stderr(), "narrows: {message}")
        .map_err(CliError::cannot("write to standard error"))
}
