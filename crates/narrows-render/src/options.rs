//! Options of every renderer.

use jiff::tz::TimeZone;

/// Columns where the width of the terminal is unknown.
const DEFAULT_COLUMNS: usize = 80;

/// Options of a rendered transcript.
#[derive(Debug, Clone)]
pub struct RenderOptions {
    /// The width in columns.
    pub width: usize,
    /// Whether to emit colors.
    pub colour: bool,
    /// Whether to show tool inputs and outputs.
    pub tools: bool,
    /// Whether to show the agent's thinking.
    pub thinking: bool,
    /// The maximum lines of an output; the middle of a longer one is hidden.
    pub lines: Option<usize>,
    /// The time zone of clock times.
    pub zone: TimeZone,
}

impl RenderOptions {
    /// Returns the options of a file: everything, without colors.
    pub fn of_file() -> RenderOptions {
        RenderOptions {
            width: DEFAULT_COLUMNS,
            colour: false,
            tools: true,
            thinking: true,
            lines: None,
            zone: TimeZone::system(),
        }
    }
}
