//! `narrows stats`: sums over the sessions of the store.

use super::session_index::{SessionIndex, or_dash, title};
use crate::args::{ColorChoice, GroupBy, StatsArgs};
use crate::error::CliError;
use crate::local_store::LocalStore;
use crate::output::{Cell, Clock, Column, Table, TerminalInfo, json_line};
use narrows_render::pen::{BOLD, CYAN, DIM};
use narrows_render::words::{amount, count, dollars, duration};
use narrows_store::{StatsBy, StatsFilter, StatsRow};
use std::cmp::Reverse;
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &StatsArgs) -> Result<(), CliError> {
    let clock = Clock::local();
    let (since, until) = clock.time_range(&args.filter)?;
    let local = LocalStore::open(&args.local)?;
    let filter = StatsFilter {
        by: match args.by {
            GroupBy::Day => StatsBy::Day,
            GroupBy::Project => StatsBy::Project,
            GroupBy::Model => StatsBy::Model,
            GroupBy::Agent => StatsBy::Agent,
            GroupBy::Tool => StatsBy::Tool,
            GroupBy::Session => StatsBy::Session,
        },
        since,
        until,
        agent: args.filter.agent.clone(),
        project: args.filter.project.clone(),
    };
    let mut rows = local.block_on(local.store.stats(filter.clone()))?;
    sort(&mut rows, args.by);
    if rows.is_empty() {
        return writeln!(io::stderr(), "narrows: no matching sessions")
            .map_err(CliError::cannot("write to standard error"));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        rows.iter().try_for_each(|row| json_line(&mut out, row))?;
        return out.flush().map_err(CliError::stdout);
    }
    let mut total = StatsRow::default();
    rows.iter().for_each(|row| add(&mut total, row));
    // A session can have several days and models but only one agent: count sessions by agent.
    let agents = StatsFilter { by: StatsBy::Agent, ..filter };
    for row in local.block_on(local.store.stats(agents))? {
        total.sessions += row.sessions;
        total.cost_sessions += row.cost_sessions;
    }
    let terminal = TerminalInfo::stdout(ColorChoice::Auto);
    let table = match args.by {
        GroupBy::Tool => tool_table(&rows, &total),
        GroupBy::Session => session_table(&local, &rows, &total)?,
        by => sum_table(by, &rows, &total),
    };
    table.print(&mut out, terminal)?;
    if let Some(note) = cost_coverage(&total).filter(|_| args.by != GroupBy::Tool) {
        writeln!(out, "{note}").map_err(CliError::stdout)?;
    }
    out.flush().map_err(CliError::stdout)
}

/// Says how many sessions report a cost, unless all do.
fn cost_coverage(total: &StatsRow) -> Option<String> {
    let cost = total.cost_usd.filter(|_| total.cost_sessions < total.sessions)?;
    let (some, all) = (total.cost_sessions, total.sessions);
    Some(format!("{} for {some} of {all} sessions; the others report no cost", dollars(cost)))
}

/// Sorts days newest first, tools by calls, and everything else by tokens. Rows without a name come
/// last.
fn sort(rows: &mut [StatsRow], by: GroupBy) {
    let tokens = |r: &StatsRow| r.input + r.output + r.cache_read + r.cache_write;
    match by {
        GroupBy::Day => rows.sort_by(|a, b| b.name.cmp(&a.name)),
        GroupBy::Tool => {
            rows.sort_by_key(|r| (r.name.is_empty(), Reverse(r.calls), r.name.clone()))
        }
        _ => rows.sort_by_key(|r| {
            (r.name.is_empty(), Reverse(tokens(r)), Reverse(r.calls), r.name.clone())
        }),
    }
}

fn add(total: &mut StatsRow, row: &StatsRow) {
    total.answers += row.answers;
    total.input += row.input;
    total.output += row.output;
    total.cache_read += row.cache_read;
    total.cache_write += row.cache_write;
    if let Some(cost) = row.cost_usd {
        *total.cost_usd.get_or_insert(0.0) += cost;
    }
    total.calls += row.calls;
    total.failed += row.failed;
    total.tool_ms += row.tool_ms;
    total.active_ms += row.active_ms;
}

/// The numeric columns, which [`number_cells`] fills.
fn number_columns() -> Vec<Column> {
    vec![
        Column::number("SESSIONS").priority(3),
        Column::number("RESPONSES").priority(1),
        Column::number("INPUT"),
        Column::number("OUTPUT"),
        Column::number("CACHE READ").priority(4),
        Column::number("CACHE WRITE").priority(2),
        Column::number("COST"),
        Column::number("CALLS").priority(5),
        Column::number("TIME"),
    ]
}

fn number_cells(row: &StatsRow) -> Vec<Cell> {
    let n = |n: u64| Cell::new(or_dash(&if n == 0 { String::new() } else { amount(n) }));
    let failed = if row.failed == 0 { String::new() } else { format!(" ({})", amount(row.failed)) };
    let calls = if row.calls == 0 { "-".to_owned() } else { amount(row.calls) + &failed };
    let time = if row.active_ms == 0 { "-".to_owned() } else { duration(row.active_ms) };
    let mut cost = row.cost_usd.filter(|c| *c > 0.0).map_or("-".to_owned(), dollars);
    if row.cost_usd.is_some() && row.cost_sessions < row.sessions {
        cost = format!("{cost} ({} of {})", row.cost_sessions, row.sessions);
    }
    vec![
        n(row.sessions),
        n(row.answers),
        n(row.input),
        n(row.output),
        n(row.cache_read),
        n(row.cache_write),
        Cell::new(&cost),
        Cell::new(&calls),
        Cell::new(&time),
    ]
}

fn bold(cells: Vec<Cell>) -> Vec<Cell> {
    cells.into_iter().map(|c| c.style(BOLD)).collect()
}

fn sum_table(by: GroupBy, rows: &[StatsRow], total: &StatsRow) -> Table {
    let title = match by {
        GroupBy::Day => "DAY",
        GroupBy::Project => "PROJECT",
        GroupBy::Model => "MODEL",
        _ => "AGENT",
    };
    let mut columns = vec![Column::text(title, 16, 40)];
    columns.extend(number_columns());
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![Cell::new(or_dash(&row.name))];
        cells.extend(number_cells(row));
        table.push(cells);
    }
    let mut cells = vec![Cell::new("total")];
    cells.extend(number_cells(total));
    table.push(bold(cells));
    table
}

fn session_table(
    local: &LocalStore,
    rows: &[StatsRow],
    total: &StatsRow,
) -> Result<Table, CliError> {
    let index = SessionIndex::load(local)?;
    let mut columns = vec![Column::text("ID", usize::MAX, usize::MAX)];
    // Without SESSIONS: each row is one session.
    columns.extend(number_columns().into_iter().skip(1));
    columns.push(Column::text("TITLE", 20, usize::MAX));
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![Cell::new(index.short_id(&row.name)).style(CYAN)];
        cells.extend(number_cells(row).into_iter().skip(1));
        let title = index.row(&row.name).map(title);
        cells.push(Cell::new(&title.unwrap_or_default()));
        table.push(cells);
    }
    let mut cells = vec![Cell::new("total")];
    cells.extend(number_cells(total).into_iter().skip(1));
    let mut cells = bold(cells);
    cells.push(Cell::new(&count(rows.len(), "session")).style(DIM));
    table.push(cells);
    Ok(table)
}

fn tool_table(rows: &[StatsRow], total: &StatsRow) -> Table {
    let mut table = Table::new(vec![
        Column::text("TOOL", 16, 40),
        Column::number("CALLS"),
        Column::number("FAILED"),
        Column::number("TIME"),
    ]);
    let cells = |name: &str, row: &StatsRow| {
        let failed = if row.failed == 0 { "-".to_owned() } else { amount(row.failed) };
        let time = if row.tool_ms == 0 { "-".to_owned() } else { duration(row.tool_ms) };
        vec![Cell::new(name), Cell::new(&amount(row.calls)), Cell::new(&failed), Cell::new(&time)]
    };
    for row in rows {
        table.push(cells(or_dash(&row.name), row));
    }
    table.push(bold(cells("total", total)));
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, input: u64, calls: u64) -> StatsRow {
        StatsRow { name: name.to_owned(), input, calls, ..StatsRow::default() }
    }

    #[test]
    fn rows_sort_by_day_calls_or_tokens() {
        let names = |rows: &[StatsRow]| rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        let mut rows = vec![row("", 9, 9), row("2026-11-01", 1, 3), row("2026-11-02", 2, 1)];
        sort(&mut rows, GroupBy::Day);
        assert_eq!(names(&rows), ["2026-11-02", "2026-11-01", ""]);
        sort(&mut rows, GroupBy::Tool);
        assert_eq!(names(&rows), ["2026-11-01", "2026-11-02", ""]);
        sort(&mut rows, GroupBy::Model);
        assert_eq!(names(&rows), ["2026-11-02", "2026-11-01", ""]);
    }

    #[test]
    fn unreported_cost_sums_to_none() {
        let mut total = StatsRow::default();
        add(&mut total, &row("a", 1, 1));
        add(&mut total, &row("b", 2, 2));
        assert_eq!((total.input, total.calls, total.cost_usd), (3, 3, None));
        add(&mut total, &StatsRow { cost_usd: Some(0.5), ..row("c", 0, 0) });
        assert_eq!(total.cost_usd, Some(0.5));
    }
}
