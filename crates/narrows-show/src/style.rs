//! How a session is printed.

use jiff::tz::TimeZone;

/// Columns where no terminal tells.
const COLUMNS: usize = 80;

/// How a session is printed.
#[derive(Debug, Clone)]
pub struct Style {
    /// Columns.
    pub width: usize,
    /// Whether there are colours.
    pub colour: bool,
    /// Show what calls were given and what they gave.
    pub tools: bool,
    /// Show what the agent thought.
    pub thinking: bool,
    /// Longer outputs are cut in the middle to so many lines.
    pub lines: Option<usize>,
    /// Where the clock is read.
    pub zone: TimeZone,
}

impl Style {
    /// For a file: everything, without colours.
    pub fn of_file() -> Style {
        Style {
            width: COLUMNS,
            colour: false,
            tools: true,
            thinking: true,
            lines: None,
            zone: TimeZone::system(),
        }
    }
}
