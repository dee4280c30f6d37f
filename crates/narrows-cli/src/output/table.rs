//! Tables on a terminal, and how output looks there.

use crate::Fault;
use crate::args::When;
use crate::show::style::is_coloured;
use narrows_show::escape;
use narrows_show::pen::{BOLD, PLAIN, Pen};
use narrows_show::wrap::{Line, cut, span, width, write_line};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// What stands between two columns.
const GAP: usize = 2;
/// Columns where no terminal tells how many it has.
pub(crate) const USUAL: usize = 80;

/// What standard output is.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Look {
    pub(crate) terminal: bool,
    pub(crate) colour: bool,
    columns: usize,
}

impl Look {
    pub(crate) fn new(colour: When) -> Look {
        let out = io::stdout();
        let terminal = out.is_terminal();
        let colour = is_coloured(colour);
        let size = terminal.then(|| terminal_size::terminal_size_of(&out)).flatten();
        let columns = size.map_or(USUAL, |(wide, _)| usize::from(wide.0));
        Look { terminal, colour, columns }
    }

    /// How many columns there are. What goes into a pipe or a file is made for the usual number.
    pub(crate) fn columns(&self) -> usize {
        if self.columns == 0 { USUAL } else { self.columns }
    }

    /// Writes a line.
    pub(crate) fn line(
        &self,
        out: &mut impl Write,
        line: &[narrows_show::wrap::Span],
    ) -> Result<(), Fault> {
        write_line(out, line, self.colour).map_err(unwritten)
    }
}

pub(crate) fn unwritten(error: io::Error) -> Fault {
    Fault::new("standard output")(error)
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    head: &'static str,
    right: bool,
    min: usize,
    max: usize,
    /// Columns with a lower rank go first when there is no room.
    rank: u8,
}

impl Column {
    /// Text, which may be cut: so wide at least, if it is that long, and so wide at most.
    pub(crate) const fn text(head: &'static str, min: usize, max: usize) -> Column {
        Column { head, right: false, min, max, rank: u8::MAX }
    }

    /// A number. It is never cut.
    pub(crate) const fn number(head: &'static str) -> Column {
        Column { head, right: true, min: usize::MAX, max: usize::MAX, rank: u8::MAX }
    }

    pub(crate) const fn rank(self, rank: u8) -> Column {
        Column { rank, ..self }
    }
}

/// What stands in one place of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    pen: Pen,
    /// Marks before and behind it, which are never cut.
    before: Option<(&'static str, Pen)>,
    behind: Option<(&'static str, Pen)>,
}

impl Cell {
    /// A text of whatever origin: nothing in it is a command to the terminal.
    pub(crate) fn new(text: &str) -> Cell {
        Cell { text: escape::line(text), ..Cell::default() }
    }

    pub(crate) fn pen(self, pen: Pen) -> Cell {
        Cell { pen, ..self }
    }

    pub(crate) fn before(self, mark: &'static str, pen: Pen) -> Cell {
        Cell { before: Some((mark, pen)), ..self }
    }

    pub(crate) fn behind(self, mark: &'static str, pen: Pen) -> Cell {
        Cell { behind: Some((mark, pen)), ..self }
    }

    fn marks(&self) -> usize {
        [self.before, self.behind].iter().flatten().map(|(mark, _)| width(mark) + 1).sum()
    }

    fn width(&self) -> usize {
        width(&self.text) + self.marks()
    }

    /// What is shown in so many columns.
    fn shown(&self, columns: usize) -> Line {
        let mut line = Line::new();
        if let Some((mark, pen)) = self.before {
            line.extend([span(pen, mark), span(PLAIN, " ")]);
        }
        line.push(span(self.pen, cut(&self.text, columns.saturating_sub(self.marks()))));
        if let Some((mark, pen)) = self.behind {
            line.extend([span(PLAIN, " "), span(pen, mark)]);
        }
        line
    }
}

/// A table.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row with a cell for each column.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    /// Prints the table.
    pub(crate) fn print(mut self, out: &mut impl Write, look: Look) -> Result<(), Fault> {
        let mut widths = self.widths();
        if look.terminal {
            while !fit(&self.columns, &mut widths, look.columns()) && self.drop_one() {
                widths = self.widths();
            }
        } else {
            // Whoever reads this has no width: all numbers stay, and the last text has its end.
            if let Some((last, column)) = widths.last_mut().zip(self.columns.last()) {
                *last = if column.right { *last } else { usize::MAX };
            }
        }
        let heads = self.columns.iter().map(|c| Cell::new(c.head).pen(BOLD)).collect();
        for row in std::iter::once(&heads).chain(&self.rows) {
            look.line(out, &line(&self.columns, &widths, row))?;
        }
        Ok(())
    }

    /// The widths that the columns would like to have.
    fn widths(&self) -> Vec<usize> {
        let of = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(Cell::width);
            cells.max().unwrap_or(0).max(width(column.head)).min(column.max)
        };
        self.columns.iter().enumerate().map(of).collect()
    }

    /// Leaves the column out that is missed the least; false when all are needed.
    fn drop_one(&mut self) -> bool {
        let least = self.columns.iter().enumerate().filter(|(_, c)| c.rank < u8::MAX);
        let Some((at, _)) = least.min_by_key(|(_, c)| c.rank) else { return false };
        self.columns.remove(at);
        self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| drop(row.remove(at)));
        true
    }
}

/// Makes columns smaller until they fit; false when they do not.
fn fit(columns: &[Column], widths: &mut [usize], room: usize) -> bool {
    let gaps = GAP * widths.len().saturating_sub(1);
    loop {
        let all = widths.iter().sum::<usize>() + gaps;
        if all <= room {
            return true;
        }
        // The one that has the most to give.
        let spare = |at: usize| widths[at].saturating_sub(columns[at].min);
        let Some(at) = (0..widths.len()).filter(|at| spare(*at) > 0).max_by_key(|at| spare(*at))
        else {
            return false;
        };
        widths[at] -= 1;
    }
}

fn line(columns: &[Column], widths: &[usize], row: &[Cell]) -> Line {
    let mut line = Line::new();
    for (at, ((column, wide), cell)) in columns.iter().zip(widths).zip(row).enumerate() {
        if at > 0 {
            line.push(span(PLAIN, " ".repeat(GAP)));
        }
        let shown = cell.shown(*wide);
        let used: usize = shown.iter().map(|s| width(&s.text)).sum();
        // Nothing stands behind the last column.
        let last = at + 1 == columns.len() && !column.right;
        let blanks = if last { 0 } else { wide.saturating_sub(used) };
        let blanks = span(PLAIN, " ".repeat(blanks));
        if column.right {
            line.push(blanks);
            line.extend(shown);
        } else {
            line.extend(shown);
            line.push(blanks);
        }
    }
    line
}

/// Prints a value as one line of JSON. What could be a command to a terminal is written by its
/// number: that is the same text for whoever reads JSON.
pub(crate) fn json_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), Fault> {
    let text = serde_json::to_string(value).map_err(|e| Fault::new("JSON")(e.into()))?;
    let odd = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut rest = text.as_str();
    while let Some(at) = rest.find(odd) {
        let (before, after) = rest.split_at(at);
        let Some(c) = after.chars().next() else { break };
        write!(out, "{before}\\u{:04x}", u32::from(c)).map_err(unwritten)?;
        rest = &after[c.len_utf8()..];
    }
    writeln!(out, "{rest}").map_err(unwritten)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_show::pen::{DIM, GREEN};

    fn look(terminal: bool, columns: usize) -> Look {
        Look { terminal, colour: false, columns }
    }

    fn printed(table: Table, look: Look) -> String {
        let mut out = Vec::new();
        table.print(&mut out, look).expect("print");
        String::from_utf8(out).expect("text")
    }

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::text("NAME", 4, 10),
            Column::number("N"),
            Column::number("MORE").rank(1),
            Column::text("TITLE", 8, usize::MAX),
        ]);
        for (name, n, title) in
            [("a", "1", "short"), ("漢字漢字漢字", "12.3 k", "Fix the race in it")]
        {
            let cells = [name, n, "7", title];
            table.push(cells.iter().map(|c| Cell::new(c)).collect());
        }
        table
    }

    #[test]
    fn columns_stand_below_each_other() {
        let is = "\
NAME             N  MORE  TITLE
a                1     7  short
漢字漢字…   12.3 k     7  Fix the race in it
";
        assert_eq!(printed(table(), look(true, 80)), is);
    }

    #[test]
    fn what_does_not_fit_is_cut_then_left_out() {
        for columns in 22..60 {
            for line in printed(table(), look(true, columns)).lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
        let is = "\
NAME       N  TITLE
a          1  short
漢…   12.3 k  Fix the…
";
        assert_eq!(printed(table(), look(true, 22)), is);
    }

    #[test]
    fn a_pipe_gets_the_whole_last_column() {
        let piped = printed(table(), look(false, 20));
        assert!(piped.ends_with("7  Fix the race in it\n"), "{piped}");
    }

    #[test]
    fn marks_are_never_cut_and_colours_only_where_asked_for() {
        let row = || {
            let mut table = Table::new(vec![Column::text("TITLE", 5, usize::MAX)]);
            let cell = Cell::new("A rather long title");
            table.push(vec![cell.before("●", GREEN).behind("archived", DIM)]);
            table
        };
        assert_eq!(printed(row(), look(true, 20)), "TITLE\n● A rather… archived\n");
        let colour = Look { colour: true, ..look(true, 80) };
        let is =
            "\x1b[1mTITLE\x1b[0m\n\x1b[32m●\x1b[0m A rather long title \x1b[2marchived\x1b[0m\n";
        assert_eq!(printed(row(), colour), is);
    }

    #[test]
    fn no_command_comes_through() {
        let mut table = Table::new(vec![Column::text("A", 1, 80)]);
        table.push(vec![Cell::new("a\x1b[2J\x1b]0;owned\x07\u{9b}31mb\nc")]);
        assert_eq!(printed(table, look(true, 80)), "A\nab c\n");
        let mut out = Vec::new();
        json_line(&mut out, &"a\u{9b}31m\x1b[1m\u{202e}b").expect("print");
        assert_eq!(String::from_utf8_lossy(&out), "\"a\\u009b31m\\u001b[1m\\u202eb\"\n");
    }
}
