//! Commands that list, print and delete sessions.

use super::{ColorChoice, DataArgs, RedactionArgs};
use clap::ValueEnum;
use std::path::PathBuf;

/// The store of this machine, and how it is brought up to date first.
#[derive(Debug, clap::Args)]
pub(crate) struct LocalStoreArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Do not look for new sessions first
    #[arg(long)]
    pub(crate) no_scan: bool,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

/// Which sessions.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct SessionFilterArgs {
    /// Only sessions whose agent name contains NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only sessions whose project name contains NAME
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Only sessions active since TIME: 2026-11-01, `today`, `yesterday`, 7d or 12h
    #[arg(long, value_name = "TIME")]
    pub(crate) since: Option<String>,
    /// Only sessions active before TIME
    #[arg(long, value_name = "TIME")]
    pub(crate) until: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    /// Only sessions that contain TEXT in an item or in the title
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) filter: SessionFilterArgs,
    /// Only sessions with this tag (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Maximum number of sessions; 0 means all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 30)]
    pub(crate) limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Text for a terminal
    Text,
    /// Markdown
    Md,
    /// A self-contained HTML page
    Html,
    /// One JSON document with the session and its items
    Json,
    /// One item per line
    Jsonl,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// Prefix of a session's id or label, or `latest`; `SESSION#ITEM` starts at that item
    #[arg(default_value = "latest")]
    pub(crate) session: String,
    /// Output format
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: OutputFormat,
    /// Show tool inputs and outputs
    #[arg(long)]
    pub(crate) tool_output: bool,
    /// Show the agent's reasoning
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Show everything: same as --tool-output --thinking
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Show only the last N items
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// When to use color
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Do not use a pager
    #[arg(long)]
    pub(crate) no_pager: bool,
    /// Line width in columns [default: the terminal's, or 80]
    #[arg(long, value_name = "N")]
    pub(crate) width: Option<usize>,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// Words or quoted phrases, all of which must occur in one item
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) filter: SessionFilterArgs,
    /// Search only this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// Maximum number of matches; 0 means all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    /// When to use color
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// Prefix of a session's id or label [default: always the newest session]
    pub(crate) session: Option<String>,
    /// Show tool inputs and outputs
    #[arg(long)]
    pub(crate) tool_output: bool,
    /// Show the agent's reasoning
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Start with the last N items
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) last: usize,
    /// When to use color
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
    /// Exit when the session ends
    #[arg(long)]
    pub(crate) exit_on_end: bool,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// Prefix of a session's id or label, or `latest`
    pub(crate) session: String,
    /// File to write, or `-` for standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// Output format [default: from the file extension; md for standard output]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// Overwrite an existing file
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GroupBy {
    Day,
    Project,
    Model,
    Agent,
    Tool,
    Session,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// What each row stands for
    #[arg(long, value_enum, default_value = "day")]
    pub(crate) by: GroupBy,
    #[command(flatten)]
    pub(crate) filter: SessionFilterArgs,
    /// Print one JSON object per line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) local: LocalStoreArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
    /// Prefixes of session ids or labels
    #[arg(required = true)]
    pub(crate) sessions: Vec<String>,
    /// Do not ask for confirmation
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

pub(super) const LS_HELP: &str = "\
Lists the newest sessions first. Sessions of installed agents are discovered without
configuration and imported before the list is printed.

Examples:
  narrows ls
  narrows ls --project app --since 7d
  narrows ls 'race condition'
      Sessions that contain this text
  narrows ls --json -n 0 | jq -r .id
      The ids of all sessions";

pub(super) const SHOW_HELP: &str = "\
Prints one line per tool call unless --tool-output is given. Output to a terminal goes through
$PAGER (default: less -FRX).

Examples:
  narrows show
      The latest session
  narrows show 7f3k --all
      With tool inputs, tool outputs and reasoning
  narrows show 7f3k#text-msg_01:0
      Starting at an item, in the form that `narrows search` prints
  narrows show latest --format md > session.md";

pub(super) const SEARCH_HELP: &str = "\
Matches substrings in any script, ignoring case. Exits with 1 if nothing matches.

Examples:
  narrows search parse_header
  narrows search '\"connection reset\"' --since 30d
  narrows search 漢字 --project app";

pub(super) const WATCH_HELP: &str = "\
Without SESSION, switches to each new session as it starts. Ctrl-C exits.

Examples:
  narrows watch
  narrows watch 7f3k --tool-output
  narrows watch latest --exit-on-end";

pub(super) const EXPORT_HELP: &str = "\
The format follows the file extension: .md, .html, .json, .jsonl or .txt. HTML is a single file
without scripts or external requests. The content is redacted, as everywhere in narrows.

Examples:
  narrows export latest -o session.html
  narrows export 7f3k -o notes.md
  narrows export latest -o - --format json | jq .";

pub(super) const STATS_HELP: &str = "\
Counts each model response once, even if a forked session has a copy of it. Cost is as reported
by the agent; some agents report none.

Examples:
  narrows stats --since 30d
  narrows stats --by model
  narrows stats --by tool --project app";

pub(super) const RM_HELP: &str = "\
The agent's own session files stay and are not imported again.

Examples:
  narrows rm 7f3k
  narrows rm -y 7f3k a2bq";

pub(super) const DEMO_HELP: &str = "\
The session has the label and the tag `demo`.

Examples:
  narrows demo && narrows show demo
  narrows rm demo
      Delete it again";
