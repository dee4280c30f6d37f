//! What was typed: the commands that show the sessions of this machine.

use super::{DataArgs, HideArgs};
use clap::ValueEnum;
use std::path::PathBuf;

/// Where sessions are looked for.
#[derive(Debug, clap::Args)]
pub(crate) struct LibraryArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Show what is known, without looking for new sessions first
    #[arg(long)]
    pub(crate) no_scan: bool,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
}

/// Which sessions.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct WhichArgs {
    /// Of this agent, like claude
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Of projects with this in their name
    #[arg(long, value_name = "NAME")]
    pub(crate) project: Option<String>,
    /// Active since: a day (2026-11-01), `today`, `yesterday`, or so long ago (7d, 12h)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// Active before
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct LsArgs {
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// With this tag; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// How many at most; 0 is all
    #[arg(short = 'n', long, default_value_t = 30)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// With this in what was said, in any item
    pub(crate) text: Option<String>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ShowFormat {
    /// For a terminal
    Text,
    /// Markdown
    Md,
    /// One file for a browser
    Html,
    /// One JSON document: the session and its items
    Json,
    /// One item a line
    Jsonl,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum When {
    /// If a terminal is there
    Auto,
    Always,
    Never,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ShowArgs {
    /// The beginning of a session's id or label, or `latest`; with `#ITEM` from that item on
    #[arg(default_value = "latest")]
    pub(crate) session: String,
    /// In which form
    #[arg(long, value_enum, default_value = "text")]
    pub(crate) format: ShowFormat,
    /// Show what calls were given and what they gave
    #[arg(short, long)]
    pub(crate) tools: bool,
    /// Show what the agent thought
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Everything: tools and thinking
    #[arg(short, long)]
    pub(crate) all: bool,
    /// Only the last items
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) last: Option<usize>,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: When,
    /// Do not page
    #[arg(long)]
    pub(crate) no_pager: bool,
    /// Columns [default: those of the terminal, else 80]
    #[arg(long, value_name = "N")]
    pub(crate) width: Option<usize>,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SearchArgs {
    /// What to look for: words, or phrases in quotes; all of them must be there
    #[arg(required = true)]
    pub(crate) query: Vec<String>,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Only in this session
    #[arg(long, value_name = "SESSION")]
    pub(crate) session: Option<String>,
    /// How many hits at most
    #[arg(short = 'n', long, default_value_t = 20)]
    pub(crate) limit: usize,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: When,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct WatchArgs {
    /// The session; without one, always the newest
    pub(crate) session: Option<String>,
    /// Show what calls were given and what they gave
    #[arg(short, long)]
    pub(crate) tools: bool,
    /// Show what the agent thinks
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Begin with so many of the last items
    #[arg(short = 'n', long, value_name = "N", default_value_t = 10)]
    pub(crate) last: usize,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: When,
    /// End when the session does
    #[arg(long)]
    pub(crate) until_end: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ExportArgs {
    /// The beginning of a session's id or label, or `latest`
    pub(crate) session: String,
    /// The file to write; its ending (.md, .html, .json, .jsonl, .txt) tells the form. `-` is standard
    /// output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: PathBuf,
    /// In which form, where the ending does not tell [default for `-`: md]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ShowFormat>,
    /// Write over a file that is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum By {
    Day,
    Project,
    Model,
    Agent,
    Tool,
    Session,
}

#[derive(Debug, clap::Args)]
pub(crate) struct StatsArgs {
    /// What a line stands for
    #[arg(long, value_enum, default_value = "day")]
    pub(crate) by: By,
    #[command(flatten)]
    pub(crate) which: WhichArgs,
    /// Print one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RmArgs {
    /// Sessions, each by the beginning of its id or label
    #[arg(required = true)]
    pub(crate) sessions: Vec<String>,
    /// Do not ask
    #[arg(short, long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct IndexArgs {
    /// Go on: follow what is written until Ctrl-C
    #[arg(long)]
    pub(crate) follow: bool,
    /// Say nothing unless something fails
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServiceArgs {
    #[command(subcommand)]
    pub(crate) what: ServiceCommand,
}

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ServiceCommand {
    /// Keep narrows running in the background, also after the next login
    Install {
        #[command(flatten)]
        data: DataArgs,
        /// Only write the file, start nothing
        #[arg(long)]
        no_start: bool,
        /// Print the file instead
        #[arg(long)]
        print: bool,
    },
    /// Tell whether it runs
    Status,
    /// Stop it and remove its file; sessions stay
    Remove,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    /// Print one JSON document
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) library: LibraryArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub(crate) shell: clap_complete::Shell,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ManArgs {
    /// A folder for one page a command [default: the page of narrows itself, printed]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

pub(super) const LS_EXAMPLES: &str = "\
The newest first. Sessions of agents are found where the agents keep them, without configuration.

Examples:
  narrows ls
  narrows ls --project app --since 7d
  narrows ls 'race condition'
      Sessions in which that was said
  narrows ls --json -n 0 | jq -r .id
      All of them, for a program";

pub(super) const SHOW_EXAMPLES: &str = "\
Calls are one line each unless asked for. Sessions are named by the beginning of their id or label.

Examples:
  narrows show
      The latest session
  narrows show 7f3k -a
      With what calls gave and what the agent thought
  narrows show 7f3k#item
      From an item on, as search prints it
  narrows show latest --format md > session.md";

pub(super) const SEARCH_EXAMPLES: &str = "\
Finds what stands anywhere in an item, also within words, in code and in any script; upper and lower
case are the same.

Examples:
  narrows search parse_header
  narrows search '\"connection reset\"' --since 30d
  narrows search 漢字 --project app";

pub(super) const WATCH_EXAMPLES: &str = "\
Examples:
  narrows watch
      Whatever session is the newest, also when another begins
  narrows watch 7f3k --tools";

pub(super) const EXPORT_EXAMPLES: &str = "\
What is written is as clean as what is shown. HTML is one file that needs nothing else: no script, no
request.

Examples:
  narrows export latest -o session.html
  narrows export 7f3k -o notes.md
  narrows export latest -o - --format json | jq .";

pub(super) const STATS_EXAMPLES: &str = "\
Each answer of a model is counted once, also where a forked session keeps a copy of it. Cost is what
agents report; not all do.

Examples:
  narrows stats --since 30d
  narrows stats --by model
  narrows stats --by tool --project app";

pub(super) const INDEX_EXAMPLES: &str = "\
The other commands do this by themselves; this one is for the first time, and for scripts. What was
read is not read again.

Examples:
  narrows index
  narrows index --follow";

pub(super) const SERVICE_EXAMPLES: &str = "\
Agents delete their transcripts after a while (Claude Code after 30 days): what narrows has read
stays. The service is `narrows serve` under systemd (a user unit) or launchd.

Examples:
  narrows service install
  narrows service status
  narrows service remove";

pub(super) const COMPLETIONS_EXAMPLES: &str = "\
Examples:
  narrows completions bash > ~/.local/share/bash-completion/completions/narrows
  narrows completions zsh > ~/.zfunc/_narrows
  narrows completions fish > ~/.config/fish/completions/narrows.fish";
