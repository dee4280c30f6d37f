//! How a session is printed on a terminal.

use crate::args::When;
use jiff::tz::TimeZone;
use narrows_show::Style;
use std::io::IsTerminal;

/// Columns where no terminal tells.
const COLUMNS: usize = 80;
/// Wider lines are hard to read.
const MAX_TEXT: usize = 100;
/// Lines of an output that are shown.
const LINES: usize = 24;

/// For standard output.
pub(crate) fn of_terminal(columns: Option<usize>, colour: When) -> Style {
    let own = || terminal_size::terminal_size().map(|(w, _)| usize::from(w.0).min(MAX_TEXT));
    Style {
        width: columns.or_else(own).unwrap_or(COLUMNS).max(20),
        colour: is_coloured(colour),
        tools: false,
        thinking: false,
        lines: Some(LINES),
        zone: TimeZone::system(),
    }
}

/// Whether standard output gets colours.
pub(crate) fn is_coloured(when: When) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    match when {
        When::Always => true,
        When::Never => false,
        When::Auto => std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !dumb,
    }
}
