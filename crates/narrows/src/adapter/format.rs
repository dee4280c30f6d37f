//! The input formats. A new format is a variant here and a folder in this directory.

use std::fmt;
use std::str::FromStr;

/// A wire or file format of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The Agent Client Protocol: JSON-RPC lines, the packets of back ends that relay them, and
    /// database rows that store such packets.
    Acp,
    /// The output of Claude Code with `--output-format stream-json`.
    ClaudeStream,
    /// The session files of Claude Code.
    ClaudeHistory,
    /// Detected from the packets.
    #[default]
    Auto,
}

impl Format {
    /// Every format.
    pub const ALL: [Format; 4] =
        [Format::Acp, Format::ClaudeStream, Format::ClaudeHistory, Format::Auto];

    /// The name in options, queries and stored sources.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Acp => "acp",
            Format::ClaudeStream => "claude-stream",
            Format::ClaudeHistory => "claude-history",
            Format::Auto => "auto",
        }
    }

    /// One line for help texts.
    pub const fn description(self) -> &'static str {
        match self {
            Format::Acp => "Agent Client Protocol: JSON-RPC lines, relayed packets, stored rows",
            Format::ClaudeStream => "Output of Claude Code with --output-format stream-json",
            Format::ClaudeHistory => "Session file of Claude Code",
            Format::Auto => "Detect the format from the packets",
        }
    }

    /// Returns the format with this [name](Format::name).
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.into_iter().find(|format| format.name() == name)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Format, UnknownFormat> {
        Format::named(name).ok_or(UnknownFormat)
    }
}

/// The error for a name that no [`Format`] has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnknownFormat;

impl fmt::Display for UnknownFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = Format::ALL.map(Format::name).join(", ");
        write!(f, "unknown format; expected one of {names}")
    }
}

impl std::error::Error for UnknownFormat {}

#[cfg(test)]
mod tests {
    use super::Format;

    #[test]
    fn format_names_parse_back() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        let error = "codex".parse::<Format>().unwrap_err();
        assert!(error.to_string().ends_with("acp, claude-stream, claude-history, auto"));
    }
}
