//! Tables for a terminal, and JSON lines.

use super::style::use_color;
use crate::args::ColorChoice;
use crate::error::CliError;
use narrows_render::escape;
use narrows_render::pen::{BOLD, PLAIN, Pen};
use narrows_render::wrap::{Line, Span, cut, span, width, write_line};
use serde::Serialize;
use std::io::{self, IsTerminal, Write};

/// Blanks between two columns.
const COLUMN_GAP: usize = 2;
const DEFAULT_COLUMNS: usize = 80;

/// What standard output can show.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalInfo {
    pub(crate) is_terminal: bool,
    color: bool,
    columns: usize,
}

impl TerminalInfo {
    /// Detects it for standard output.
    pub(crate) fn stdout(color: ColorChoice) -> TerminalInfo {
        let out = io::stdout();
        let is_terminal = out.is_terminal();
        let size = is_terminal.then(|| terminal_size::terminal_size_of(&out)).flatten();
        let columns = size.map_or(DEFAULT_COLUMNS, |(width, _)| usize::from(width.0));
        TerminalInfo { is_terminal, color: use_color(color), columns }
    }

    /// The width of the terminal; a default for pipes and files.
    pub(crate) fn columns(&self) -> usize {
        if self.columns == 0 { DEFAULT_COLUMNS } else { self.columns }
    }

    pub(crate) fn write_line(&self, out: &mut impl Write, line: &[Span]) -> Result<(), CliError> {
        write_line(out, line, self.color).map_err(CliError::stdout)
    }
}

/// A column of a table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Column {
    title: &'static str,
    align_right: bool,
    /// Width bounds in terminal columns.
    min: usize,
    max: usize,
    /// When there is no room, the column with the lowest priority is dropped first.
    priority: u8,
}

impl Column {
    /// Text that is truncated between `min` and `max` terminal columns.
    pub(crate) const fn text(title: &'static str, min: usize, max: usize) -> Column {
        Column { title, align_right: false, min, max, priority: u8::MAX }
    }

    /// A number, which is never truncated.
    pub(crate) const fn number(title: &'static str) -> Column {
        Column { title, align_right: true, min: usize::MAX, max: usize::MAX, priority: u8::MAX }
    }

    /// Lets the column be dropped when there is no room.
    pub(crate) const fn priority(self, priority: u8) -> Column {
        Column { priority, ..self }
    }
}

/// One cell of a table.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cell {
    text: String,
    style: Pen,
    /// Decorations around the text, which are never truncated.
    prefix: Option<(&'static str, Pen)>,
    suffix: Option<(&'static str, Pen)>,
}

impl Cell {
    /// Escape sequences in the text are removed, so it may come from anywhere.
    pub(crate) fn new(text: &str) -> Cell {
        Cell { text: escape::line(text), ..Cell::default() }
    }

    pub(crate) fn style(self, style: Pen) -> Cell {
        Cell { style, ..self }
    }

    pub(crate) fn prefix(self, text: &'static str, style: Pen) -> Cell {
        Cell { prefix: Some((text, style)), ..self }
    }

    pub(crate) fn suffix(self, text: &'static str, style: Pen) -> Cell {
        Cell { suffix: Some((text, style)), ..self }
    }

    fn decoration_width(&self) -> usize {
        [self.prefix, self.suffix].iter().flatten().map(|(text, _)| width(text) + 1).sum()
    }

    fn width(&self) -> usize {
        width(&self.text) + self.decoration_width()
    }

    /// Truncates the text so that the cell is at most this wide.
    fn render(&self, columns: usize) -> Line {
        let mut line = Line::new();
        if let Some((text, style)) = self.prefix {
            line.extend([span(style, text), span(PLAIN, " ")]);
        }
        let room = columns.saturating_sub(self.decoration_width());
        line.push(span(self.style, cut(&self.text, room)));
        if let Some((text, style)) = self.suffix {
            line.extend([span(PLAIN, " "), span(style, text)]);
        }
        line
    }
}

/// A table with aligned columns.
#[derive(Debug)]
pub(crate) struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<Cell>>,
}

impl Table {
    pub(crate) fn new(columns: Vec<Column>) -> Table {
        Table { columns, rows: Vec::new() }
    }

    /// Adds a row; it has one cell per column.
    pub(crate) fn push(&mut self, row: Vec<Cell>) {
        self.rows.push(row);
    }

    pub(crate) fn print(
        mut self,
        out: &mut impl Write,
        terminal: TerminalInfo,
    ) -> Result<(), CliError> {
        let mut widths = self.natural_widths();
        if terminal.is_terminal {
            while !shrink(&self.columns, &mut widths, terminal.columns()) && self.drop_column() {
                widths = self.natural_widths();
            }
        } else {
            // A pipe has no width: no column is dropped, and the last text is not truncated.
            if let Some((last, column)) = widths.last_mut().zip(self.columns.last()) {
                *last = if column.align_right { *last } else { usize::MAX };
            }
        }
        let titles = self.columns.iter().map(|c| Cell::new(c.title).style(BOLD)).collect();
        for row in std::iter::once(&titles).chain(&self.rows) {
            terminal.write_line(out, &render_row(&self.columns, &widths, row))?;
        }
        Ok(())
    }

    /// The widths without truncation to the terminal.
    fn natural_widths(&self) -> Vec<usize> {
        let natural_width = |(at, column): (usize, &Column)| {
            let cells = self.rows.iter().filter_map(|row| row.get(at)).map(Cell::width);
            cells.max().unwrap_or(0).max(width(column.title)).min(column.max)
        };
        self.columns.iter().enumerate().map(natural_width).collect()
    }

    /// Drops the column with the lowest priority; false if none may be dropped.
    fn drop_column(&mut self) -> bool {
        let optional = self.columns.iter().enumerate().filter(|(_, c)| c.priority < u8::MAX);
        let Some((at, _)) = optional.min_by_key(|(_, c)| c.priority) else { return false };
        self.columns.remove(at);
        self.rows.iter_mut().filter(|row| at < row.len()).for_each(|row| drop(row.remove(at)));
        true
    }
}

/// Narrows columns until the row fits; false if it cannot.
fn shrink(columns: &[Column], widths: &mut [usize], room: usize) -> bool {
    let gaps = COLUMN_GAP * widths.len().saturating_sub(1);
    loop {
        let all = widths.iter().sum::<usize>() + gaps;
        if all <= room {
            return true;
        }
        // Take it from the column that is the furthest above its minimum.
        let spare = |at: usize| widths[at].saturating_sub(columns[at].min);
        let Some(at) = (0..widths.len()).filter(|at| spare(*at) > 0).max_by_key(|at| spare(*at))
        else {
            return false;
        };
        widths[at] -= 1;
    }
}

fn render_row(columns: &[Column], widths: &[usize], row: &[Cell]) -> Line {
    let mut line = Line::new();
    for (at, ((column, width_limit), cell)) in columns.iter().zip(widths).zip(row).enumerate() {
        if at > 0 {
            line.push(span(PLAIN, " ".repeat(COLUMN_GAP)));
        }
        let rendered = cell.render(*width_limit);
        let used: usize = rendered.iter().map(|s| width(&s.text)).sum();
        // The last column gets no trailing blanks.
        let is_last = at + 1 == columns.len() && !column.align_right;
        let padding = if is_last { 0 } else { width_limit.saturating_sub(used) };
        let padding = span(PLAIN, " ".repeat(padding));
        if column.align_right {
            line.push(padding);
            line.extend(rendered);
        } else {
            line.extend(rendered);
            line.push(padding);
        }
    }
    line
}

/// Prints a value as one line of JSON. Control and bidi characters are written as `\u` escapes: equal
/// JSON, but harmless on a terminal.
pub(crate) fn json_line(out: &mut impl Write, value: &impl Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string(value).map_err(CliError::new)?;
    let is_unsafe = |c: char| matches!(c, '\u{7f}'..='\u{9f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let mut rest = text.as_str();
    while let Some(at) = rest.find(is_unsafe) {
        let (before, after) = rest.split_at(at);
        let Some(c) = after.chars().next() else { break };
        write!(out, "{before}\\u{:04x}", u32::from(c)).map_err(CliError::stdout)?;
        rest = &after[c.len_utf8()..];
    }
    writeln!(out, "{rest}").map_err(CliError::stdout)
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows_render::pen::{DIM, GREEN};

    fn terminal(is_terminal: bool, columns: usize) -> TerminalInfo {
        TerminalInfo { is_terminal, color: false, columns }
    }

    fn printed(table: Table, terminal: TerminalInfo) -> String {
        let mut out = Vec::new();
        table.print(&mut out, terminal).expect("print");
        String::from_utf8(out).expect("text")
    }

    fn table() -> Table {
        let mut table = Table::new(vec![
            Column::text("NAME", 4, 10),
            Column::number("N"),
            Column::number("MORE").priority(1),
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
    fn table_columns_are_aligned() {
        let is = "\
NAME             N  MORE  TITLE
a                1     7  short
漢字漢字…   12.3 k     7  Fix the race in it
";
        assert_eq!(printed(table(), terminal(true, 80)), is);
    }

    #[test]
    fn narrow_table_truncates_then_drops_columns() {
        for columns in 22..60 {
            for line in printed(table(), terminal(true, columns)).lines() {
                assert!(width(line) <= columns, "{columns}: {line}");
            }
        }
        let is = "\
NAME       N  TITLE
a          1  short
漢…   12.3 k  Fix the…
";
        assert_eq!(printed(table(), terminal(true, 22)), is);
    }

    #[test]
    fn piped_table_keeps_last_column_whole() {
        let piped = printed(table(), terminal(false, 20));
        assert!(piped.ends_with("7  Fix the race in it\n"), "{piped}");
    }

    #[test]
    fn cell_decorations_are_not_truncated_and_color_is_optional() {
        let row = || {
            let mut table = Table::new(vec![Column::text("TITLE", 5, usize::MAX)]);
            let cell = Cell::new("A rather long title");
            table.push(vec![cell.prefix("●", GREEN).suffix("archived", DIM)]);
            table
        };
        assert_eq!(printed(row(), terminal(true, 20)), "TITLE\n● A rather… archived\n");
        let color = TerminalInfo { color: true, ..terminal(true, 80) };
        let is =
            "\x1b[1mTITLE\x1b[0m\n\x1b[32m●\x1b[0m A rather long title \x1b[2marchived\x1b[0m\n";
        assert_eq!(printed(row(), color), is);
    }

    #[test]
    fn cell_and_json_line_emit_no_escape_sequences() {
        let mut table = Table::new(vec![Column::text("A", 1, 80)]);
        table.push(vec![Cell::new("a\x1b[2J\x1b]0;owned\x07\u{9b}31mb\nc")]);
        assert_eq!(printed(table, terminal(true, 80)), "A\nab c\n");
        let mut out = Vec::new();
        json_line(&mut out, &"a\u{9b}31m\x1b[1m\u{202e}b").expect("print");
        assert_eq!(String::from_utf8_lossy(&out), "\"a\\u009b31m\\u001b[1m\\u202eb\"\n");
    }
}
