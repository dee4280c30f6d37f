//! What was typed.

use clap::{Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// One entry for the event streams of coding agents: cleaned, typed, the same live and stored.
#[derive(Debug, Parser)]
#[command(name = "narrows", version, arg_required_else_help = true)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Read packets of an agent, print the session as JSON lines
    #[command(after_help = PARSE_EXAMPLES)]
    Parse(ParseArgs),
    /// Compare two forms of one session: what was printed live and what was kept
    #[command(after_help = PARITY_EXAMPLES)]
    Parity(ParityArgs),
    /// Tell which kinds and fields of an agent's files the parser does not know
    #[command(after_help = DRIFT_EXAMPLES)]
    Drift(DriftArgs),
    /// Add up the tokens of sessions, each answer counted once
    #[command(after_help = USAGE_EXAMPLES)]
    Usage(UsageArgs),
    /// Clean text of host paths and secrets
    #[command(after_help = SANITIZE_EXAMPLES)]
    Sanitize(SanitizeArgs),
}

const PARSE_EXAMPLES: &str = "\
Input is one packet a line: JSON, the `data:` lines of server-sent events, or recorded lines
{\"ts\":…,\"dir\":…,\"msg\":{…}}. A line that cannot be read becomes a `malformed` event, and a count
on standard error; everything after it is read.

Examples:
  narrows parse session.jsonl
      The final items of a recorded session, one a line
  some-agent --acp | tee log.jsonl | narrows parse --view events
      Every event as it comes
  curl -sN http://localhost:3000/api/…/send-message | narrows parse --view items
      The items of a live turn
  narrows parse --root /workspace/run-7 --view activity session.jsonl
      Calls, results, output, files and progress, with paths relative to the root
  claude -p 'Fix it' --output-format stream-json --verbose | narrows parse --view events
      What Claude Code does, as it does it
  narrows parse ~/.claude/projects/-home-ada-app/0b5f….jsonl
      The same session from its file, with the files of its subagents beside it";

const PARITY_EXAMPLES: &str = "\
Prints `equal`, or the differences that are accepted since one form lacks a fact, and the first
real one. Exits with 0 when there is no real one, else with 1.

Examples:
  narrows parity live.jsonl ~/.claude/projects/-home-ada-app/0b5f….jsonl
      What `claude -p … --output-format stream-json --verbose | tee live.jsonl` printed, against
      what it kept";

const DRIFT_EXAMPLES: &str = "\
Names kinds and fields only, never what they hold. A folder stands for every .jsonl file below it.

Examples:
  narrows drift ~/.claude/projects
      What today's version of the agent writes that narrows has not been taught
  narrows drift --check session.jsonl && echo known
      Exits with 1 when something is not known";

const USAGE_EXAMPLES: &str = "\
Counts what the agent tells with each answer of the model, once by message and request, also where
a forked session keeps copies of another. Subagents are counted apart. A folder stands for every
session below it.

Examples:
  narrows usage ~/.claude/projects
      The tokens of every kept session
  narrows usage session.jsonl
      Those of one, with its subagents";

const SANITIZE_EXAMPLES: &str = "\
Examples:
  make 2>&1 | narrows sanitize --root \"$PWD\"
      Build output with paths relative to this directory
  git ls-files --full-name | sed \"s|^|$PWD/|\" | narrows sanitize --path --root \"$PWD\"
      One path a line
  narrows sanitize --report < session.log
      What would be removed: kinds and counts, no text

Secrets become [redacted:<kind>:<4 hex>], the same secret always the same mark. What is removed
is gone: there is no way back. Values of environment variables with names like GITHUB_TOKEN or
DB_PASSWORD are hidden wherever they stand (--no-env turns that off).

A config file adds rules, known values and exceptions. It is --config, else $NARROWS_CONFIG, else
narrows/config.toml in $XDG_CONFIG_HOME or ~/.config:
  [sanitize]
  roots = [\"/srv/run-7\"]            # shown as `.`
  home = \"/home/ada\"               # shown as `~`
  allow = [\"AKIAIOSFODNN7EXAMPLE\"]  # never hidden
  known = [\"correct horse battery\"] # always hidden, from 8 characters on
  [[sanitize.rule]]
  kind = \"acme-token\"              # stands in the mark
  keyword = \"acme_\"                # the regex runs only where this is
  regex = 'acme_[0-9a-f]{32}'        # hides group 1, or all of it; within one line";

#[derive(Debug, clap::Args)]
pub(crate) struct ParseArgs {
    /// The format of the packets
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) from: From,
    /// What to print
    #[arg(long, value_enum, default_value = "items")]
    pub(crate) view: View,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
    /// The session's id in the output
    #[arg(long, value_name = "ID", default_value = "session")]
    pub(crate) session: String,
    /// Seconds of the session's own time between two progress messages of the activity view
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) interval: u64,
    /// The packets, or the folder of a session; `-` or nothing is standard input
    pub(crate) file: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum From {
    /// Find out by looking
    Auto,
    /// The Agent Client Protocol: JSON-RPC lines, relayed packets, stored rows
    Acp,
    /// What Claude Code prints with --output-format stream-json
    ClaudeStream,
    /// A session file of Claude Code, with what lies beside it
    ClaudeHistory,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum View {
    /// What happened, one fact a line
    Events,
    /// What a person sees at the end
    Items,
    /// What the agent did, as messages for a dashboard
    Activity,
    /// Clean packets, in the shapes that front ends of the protocol speak
    Packets,
    /// The session as a whole: agent, model, title, tokens, cost
    Session,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParityArgs {
    #[command(flatten)]
    pub(crate) hide: HideArgs,
    /// What the agent printed
    pub(crate) live: PathBuf,
    /// What it kept: the session's file, or its folder
    pub(crate) history: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UsageArgs {
    /// Session files, or folders with .jsonl files below them
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DriftArgs {
    /// Exit with 1 when something is not known
    #[arg(long)]
    pub(crate) check: bool,
    /// Files, or folders with .jsonl files below them
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SanitizeArgs {
    /// Take each line as one path
    #[arg(long)]
    pub(crate) path: bool,
    /// Print only what was removed, by kind and count
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
    /// The text; `-` or nothing is standard input
    pub(crate) file: Option<PathBuf>,
}

/// What is hidden.
#[derive(Debug, clap::Args)]
pub(crate) struct HideArgs {
    /// The session's real root directory, shown as `.`; may be given several times
    #[arg(long, value_name = "PATH")]
    pub(crate) root: Vec<String>,
    /// A home directory, shown as `~` in text too
    #[arg(long, value_name = "PATH")]
    pub(crate) home: Option<String>,
    /// A config file with rules, known values and exceptions
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,
    /// Do not hide the values of secret-like environment variables
    #[arg(long)]
    pub(crate) no_env: bool,
}
