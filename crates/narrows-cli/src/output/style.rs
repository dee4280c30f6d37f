//! How a session is printed on a terminal.

use crate::args::ColorChoice;
use jiff::tz::TimeZone;
use narrows_render::Style;
use std::io::IsTerminal;

const DEFAULT_COLUMNS: usize = 80;
const MIN_COLUMNS: usize = 20;
/// Longer lines are hard to read.
const MAX_COLUMNS: usize = 100;
/// Lines of one tool output that are printed.
const MAX_OUTPUT_LINES: usize = 24;

/// The style of standard output. `columns` overrides the width of the terminal.
pub(crate) fn terminal_style(columns: Option<usize>, color: ColorChoice) -> Style {
    let detected =
        || terminal_size::terminal_size().map(|(width, _)| usize::from(width.0).min(MAX_COLUMNS));
    Style {
        width: columns.or_else(detected).unwrap_or(DEFAULT_COLUMNS).max(MIN_COLUMNS),
        colour: use_color(color),
        tools: false,
        thinking: false,
        lines: Some(MAX_OUTPUT_LINES),
        zone: TimeZone::system(),
    }
}

/// Whether to print colors on standard output.
pub(super) fn use_color(choice: ColorChoice) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|t| t == "dumb");
    match choice {
        ColorChoice::Always => true,
        ColorChoice::Never => false,
        ColorChoice::Auto => std::io::stdout().is_terminal() && !is_set("NO_COLOR") && !is_dumb,
    }
}
