//! `narrows stats`.

use crate::Fault;
use crate::args::{By, StatsArgs, When};
use crate::library::Library;
use crate::ls::{Known, or_dash, title};
use crate::table::{Cell, Column, Look, Table, json_line, unwritten};
use crate::when::Clock;
use narrows_show::pen::{BOLD, CYAN, DIM};
use narrows_show::words::{amount, count, dollars, duration};
use narrows_store::{StatsBy, StatsFilter, StatsRow};
use std::cmp::Reverse;
use std::io::{self, BufWriter, Write};

pub(crate) fn run(args: &StatsArgs) -> Result<(), Fault> {
    let clock = Clock::here();
    let (since, until) = clock.range(&args.which)?;
    let library = Library::open(&args.library)?;
    let filter = StatsFilter {
        by: match args.by {
            By::Day => StatsBy::Day,
            By::Project => StatsBy::Project,
            By::Model => StatsBy::Model,
            By::Agent => StatsBy::Agent,
            By::Tool => StatsBy::Tool,
            By::Session => StatsBy::Session,
        },
        since,
        until,
        agent: args.which.agent.clone(),
        project: args.which.project.clone(),
    };
    let mut rows = library.wait(library.store.stats(filter.clone()))?;
    sort(&mut rows, args.by);
    if rows.is_empty() {
        let told = "narrows: nothing to add up";
        return writeln!(io::stderr(), "{told}").map_err(Fault::new("standard error"));
    }
    let mut out = BufWriter::new(io::stdout().lock());
    if args.json {
        rows.iter().try_for_each(|row| json_line(&mut out, row))?;
        return out.flush().map_err(unwritten);
    }
    let mut total = StatsRow::default();
    rows.iter().for_each(|row| add(&mut total, row));
    // A session is of several days and models, but of one agent.
    let agents = StatsFilter { by: StatsBy::Agent, ..filter };
    for row in library.wait(library.store.stats(agents))? {
        total.sessions += row.sessions;
        total.cost_sessions += row.cost_sessions;
    }
    let look = Look::new(When::Auto);
    let table = match args.by {
        By::Tool => of_tools(&rows, &total),
        By::Session => of_sessions(&library, &rows, &total)?,
        by => of_sums(by, &rows, &total),
    };
    table.print(&mut out, look)?;
    if let Some(covered) = covered(&total).filter(|_| args.by != By::Tool) {
        writeln!(out, "{covered}").map_err(unwritten)?;
    }
    out.flush().map_err(unwritten)
}

/// Of which sessions the cost is, where it is not of all of them.
fn covered(total: &StatsRow) -> Option<String> {
    let cost = total.cost_usd.filter(|_| total.cost_sessions < total.sessions)?;
    let (some, all) = (total.cost_sessions, total.sessions);
    Some(format!("{} for {some} of {all} sessions: the others report no cost", dollars(cost)))
}

/// Days from the newest on, tools by calls, others by tokens. What has no name comes last.
fn sort(rows: &mut [StatsRow], by: By) {
    let tokens = |r: &StatsRow| r.input + r.output + r.cache_read + r.cache_write;
    match by {
        By::Day => rows.sort_by(|a, b| b.name.cmp(&a.name)),
        By::Tool => rows.sort_by_key(|r| (r.name.is_empty(), Reverse(r.calls), r.name.clone())),
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

/// The columns of numbers, with failed calls in brackets; those that are missed the least have the lowest rank.
fn sums() -> Vec<Column> {
    vec![
        Column::number("SESSIONS").rank(3),
        Column::number("ANSWERS").rank(1),
        Column::number("INPUT"),
        Column::number("OUTPUT"),
        Column::number("CACHE READ").rank(4),
        Column::number("CACHE WRITE").rank(2),
        Column::number("COST"),
        Column::number("CALLS").rank(5),
        Column::number("TIME"),
    ]
}

fn numbers(row: &StatsRow) -> Vec<Cell> {
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
    cells.into_iter().map(|c| c.pen(BOLD)).collect()
}

fn of_sums(by: By, rows: &[StatsRow], total: &StatsRow) -> Table {
    let head = match by {
        By::Day => "DAY",
        By::Project => "PROJECT",
        By::Model => "MODEL",
        _ => "AGENT",
    };
    let mut columns = vec![Column::text(head, 16, 40)];
    columns.extend(sums());
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![Cell::new(or_dash(&row.name))];
        cells.extend(numbers(row));
        table.push(cells);
    }
    let mut cells = vec![Cell::new("total")];
    cells.extend(numbers(total));
    table.push(bold(cells));
    table
}

fn of_sessions(library: &Library, rows: &[StatsRow], total: &StatsRow) -> Result<Table, Fault> {
    let known = Known::read(library)?;
    let mut columns = vec![Column::text("ID", usize::MAX, usize::MAX)];
    // Each row is one session.
    columns.extend(sums().into_iter().skip(1));
    columns.push(Column::text("TITLE", 20, usize::MAX));
    let mut table = Table::new(columns);
    for row in rows {
        let mut cells = vec![Cell::new(known.short(&row.name)).pen(CYAN)];
        cells.extend(numbers(row).into_iter().skip(1));
        let title = known.row(&row.name).map(title);
        cells.push(Cell::new(&title.unwrap_or_default()));
        table.push(cells);
    }
    let mut cells = vec![Cell::new("total")];
    cells.extend(numbers(total).into_iter().skip(1));
    let mut cells = bold(cells);
    cells.push(Cell::new(&count(rows.len(), "session")).pen(DIM));
    table.push(cells);
    Ok(table)
}

fn of_tools(rows: &[StatsRow], total: &StatsRow) -> Table {
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
    fn days_come_newest_first_and_others_by_their_size() {
        let names = |rows: &[StatsRow]| rows.iter().map(|r| r.name.clone()).collect::<Vec<_>>();
        let mut rows = vec![row("", 9, 9), row("2026-11-01", 1, 3), row("2026-11-02", 2, 1)];
        sort(&mut rows, By::Day);
        assert_eq!(names(&rows), ["2026-11-02", "2026-11-01", ""]);
        sort(&mut rows, By::Tool);
        assert_eq!(names(&rows), ["2026-11-01", "2026-11-02", ""]);
        sort(&mut rows, By::Model);
        assert_eq!(names(&rows), ["2026-11-02", "2026-11-01", ""]);
    }

    #[test]
    fn a_cost_that_nobody_reports_is_none() {
        let mut total = StatsRow::default();
        add(&mut total, &row("a", 1, 1));
        add(&mut total, &row("b", 2, 2));
        assert_eq!((total.input, total.calls, total.cost_usd), (3, 3, None));
        add(&mut total, &StatsRow { cost_usd: Some(0.5), ..row("c", 0, 0) });
        assert_eq!(total.cost_usd, Some(0.5));
    }
}
