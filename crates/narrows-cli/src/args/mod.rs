//! The command line: every command, its options and its help text.
//!
//! Knows nothing of what the commands do. Start with [`Command`].

#![expect(clippy::doc_markdown, reason = "doc comments are the help text, which has no Markdown")]

mod check;
mod help;
mod maintenance;
mod run;
mod server;
mod sessions;
mod values;

pub(crate) use check::*;
pub(crate) use help::{command, parse};
pub(crate) use maintenance::*;
pub(crate) use run::*;
pub(crate) use server::*;
pub(crate) use sessions::*;
pub(crate) use values::{TimeSpan, TimeUnit, parse_size};

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// narrows parses, redacts and stores the event streams of coding agents, and gives you the same
/// transcript live and replayed.
#[derive(Debug, Parser)]
#[command(name = "narrows", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// `help::GROUPS` assigns each command to a section of `narrows --help`.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// List sessions
    #[command(visible_alias = "list", after_help = sessions::LS_HELP)]
    Ls(LsArgs),
    /// Print a session
    #[command(after_help = sessions::SHOW_HELP)]
    Show(ShowArgs),
    /// Search the text of all sessions
    #[command(after_help = sessions::SEARCH_HELP)]
    Search(SearchArgs),
    /// Follow a session live
    #[command(after_help = sessions::WATCH_HELP)]
    Watch(WatchArgs),
    /// Write a session to a file
    #[command(after_help = sessions::EXPORT_HELP)]
    Export(ExportArgs),
    /// Sum up tokens, cost, tool calls and time
    #[command(after_help = sessions::STATS_HELP)]
    Stats(StatsArgs),
    /// Delete sessions from the store
    #[command(after_help = sessions::RM_HELP)]
    Rm(RmArgs),
    /// Import a sample session
    #[command(after_help = sessions::DEMO_HELP)]
    Demo(DataArgs),
    /// Serve sessions over REST, SSE and WebSocket
    #[command(after_help = server::SERVE_HELP)]
    Serve(Box<ServeArgs>),
    /// Print a one-time login URL for the web UI
    #[command(after_help = server::LOGIN_URL_HELP)]
    LoginUrl(DataArgs),
    /// Create, list and revoke access tokens
    #[command(after_help = server::TOKEN_HELP)]
    Token(TokenArgs),
    /// Store the packets of a session
    #[command(after_help = server::INGEST_HELP)]
    Ingest(IngestArgs),
    /// Print the OpenAPI document of the server
    #[command(after_help = server::OPENAPI_HELP)]
    Openapi,
    /// Run an agent for one turn in the terminal
    #[command(after_help = run::RUN_HELP)]
    Run(Box<RunArgs>),
    /// List the agents that can be run
    #[command(after_help = run::AGENTS_HELP)]
    Agents(AgentsArgs),
    /// Record the sessions of an ACP agent started by an editor
    #[command(after_help = run::ACP_HELP)]
    Acp(AcpArgs),
    /// Print a recorded session as JSON lines
    #[command(after_help = check::PARSE_HELP)]
    Parse(ParseArgs),
    /// Redact host paths and secrets in text
    #[command(after_help = check::SANITIZE_HELP)]
    Sanitize(SanitizeArgs),
    /// Check the parser against recorded sessions
    #[command(after_help = check::CHECK_HELP)]
    Check(CheckArgs),
    /// Sum up the tokens of session files
    #[command(after_help = check::USAGE_HELP)]
    Usage(UsageArgs),
    /// Import new sessions into the store
    #[command(after_help = maintenance::INDEX_HELP)]
    Index(IndexArgs),
    /// Run the server in the background
    #[command(after_help = maintenance::SERVICE_HELP)]
    Service(ServiceArgs),
    /// Check discovered sessions, upcoming deletions and store health
    #[command(after_help = maintenance::DOCTOR_HELP)]
    Doctor(DoctorArgs),
    /// Delete sessions by age, size or tag
    #[command(after_help = maintenance::PRUNE_HELP)]
    Prune(PruneArgs),
    /// Copy the store to a file, even while a server runs
    #[command(after_help = maintenance::BACKUP_HELP)]
    Backup(BackupArgs),
    /// Replace the store with a backup
    #[command(after_help = maintenance::BACKUP_HELP)]
    Restore(RestoreArgs),
    /// Rebuild a damaged store from what can still be read
    #[command(after_help = maintenance::REPAIR_HELP)]
    Repair(RepairArgs),
    /// Print shell completions
    #[command(after_help = maintenance::COMPLETIONS_HELP)]
    Completions(CompletionsArgs),
    /// Print the man page
    #[command(after_help = maintenance::MAN_HELP)]
    Man(ManArgs),
    /// Run an agent and end all of its processes with it
    #[command(name = "__supervise", hide = true)]
    Supervise(SuperviseArgs),
}

/// What to redact.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Redaction options")]
pub(crate) struct RedactionArgs {
    /// Root directory of the session, replaced with `.` (repeatable)
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Vec<String>,
    /// Home directory, replaced with `~`
    #[arg(long, value_name = "PATH")]
    pub(crate) home: Option<String>,
    /// Config file with redaction rules, known values and exceptions
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not redact the values of environment variables with names like GITHUB_TOKEN
    #[arg(long)]
    pub(crate) no_env: bool,
}

impl RedactionArgs {
    /// No options at all: not even the config file or the environment.
    pub(crate) fn none() -> RedactionArgs {
        RedactionArgs { no_env: true, ..RedactionArgs::default() }
    }
}

/// Where the store is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataArgs {
    /// Data directory [default: `narrows` in $XDG_DATA_HOME or ~/.local/share]
    #[arg(long, value_name = "DIR", env = "NARROWS_DATA")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorChoice {
    // Color if standard output is a terminal.
    Auto,
    Always,
    Never,
}
