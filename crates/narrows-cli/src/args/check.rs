//! Commands that work on files and need no store.

use super::RedactionArgs;
use super::values::format_parser;
use clap::{Subcommand, ValueEnum};
use narrows::Format;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ParseArgs {
    /// File with packets, or directory of a session [default: standard input, same as `-`]
    pub(crate) file: Option<PathBuf>,
    /// Input format
    #[arg(long, default_value = "auto", value_parser = format_parser())]
    pub(crate) format: Format,
    /// What to print
    #[arg(long, value_enum, default_value = "items")]
    pub(crate) view: ParseView,
    /// Session id in the output
    #[arg(long, value_name = "ID", default_value = "session")]
    pub(crate) session: String,
    /// Seconds of session time between progress messages of the activity view
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    pub(crate) interval: u64,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum ParseView {
    /// Every event, one per line
    Events,
    /// The final transcript, one item per line
    Items,
    /// Messages about the agent's progress, for a dashboard
    Activity,
    /// Redacted packets, as ACP front ends read them
    Packets,
    /// The session header: agent, model, title, tokens, cost
    Session,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SanitizeArgs {
    /// Text file [default: standard input, same as `-`]
    pub(crate) file: Option<PathBuf>,
    /// Treat each line as one path
    #[arg(long)]
    pub(crate) path: bool,
    /// Print only what would be redacted, by kind and count
    #[arg(long)]
    pub(crate) report: bool,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct CheckArgs {
    #[command(subcommand)]
    pub(crate) command: CheckCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CheckCommand {
    /// Compare the transcripts of two formats of one session
    #[command(after_help = PARITY_HELP)]
    Parity(ParityArgs),
    /// List kinds and fields of packets that the parser does not know
    #[command(after_help = DRIFT_HELP)]
    Drift(DriftArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct ParityArgs {
    /// Recorded live output of the agent
    pub(crate) live: PathBuf,
    /// Session file that the agent wrote, or its directory
    pub(crate) history: PathBuf,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct DriftArgs {
    /// Session files, or directories with .jsonl files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
    /// Exit with 1 if something is unknown or unreadable
    #[arg(long)]
    pub(crate) exit_code: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct UsageArgs {
    /// Session files, or directories with .jsonl files
    #[arg(required = true)]
    pub(crate) files: Vec<PathBuf>,
}

pub(super) const PARSE_HELP: &str = "\
Input is newline-delimited: JSON, `data:` lines of server-sent events, or recorded lines
{\"ts\":…,\"dir\":…,\"msg\":{…}}. A line that cannot be parsed becomes a `malformed` event and is
counted on standard error. Exits with 3 if the input is in no known format.

Examples:
  narrows parse session.jsonl
      The final transcript of a recorded session
  some-agent --acp | tee log.jsonl | narrows parse --view events
      Every event as it arrives
  curl -sN http://localhost:3000/api/…/send-message | narrows parse --view items
      The transcript of a live turn
  narrows parse --root /workspace/run-7 --view activity session.jsonl
      Progress messages, with paths relative to /workspace/run-7
  claude -p 'Fix it' --output-format stream-json --verbose | narrows parse --view events
  narrows parse ~/.claude/projects/-home-ada-app/0b5f….jsonl
      A session file of Claude Code, including its subagents";

pub(super) const SANITIZE_HELP: &str = "\
Replaces secrets with [redacted:<kind>:<4 hex digits>]; equal secrets get equal placeholders.
This cannot be undone.

Examples:
  make 2>&1 | narrows sanitize --root \"$PWD\"
      Build output with paths relative to the current directory
  git ls-files --full-name | sed \"s|^|$PWD/|\" | narrows sanitize --path --root \"$PWD\"
      One path per line
  narrows sanitize --report < session.log
      Kinds and counts only

Configuration:
  The config file is --config, else $NARROWS_CONFIG, else narrows/config.toml in $XDG_CONFIG_HOME
  or ~/.config:
    [sanitize]
    roots = [\"/srv/run-7\"]            # replaced with `.`
    home = \"/home/ada\"               # replaced with `~`
    allow = [\"AKIAIOSFODNN7EXAMPLE\"]  # never redacted
    known = [\"correct horse battery\"] # always redacted; at least 8 characters
    [[sanitize.rule]]
    kind = \"acme-token\"              # kind in the placeholder
    keyword = \"acme_\"                # the regex runs only where this text occurs
    regex = 'acme_[0-9a-f]{32}'        # redacts group 1, or the whole match; within one line";

pub(super) const CHECK_HELP: &str = "\
Examples:
  narrows check parity live.jsonl ~/.claude/projects/-home-ada-app/0b5f….jsonl
  narrows check drift ~/.claude/projects";

const PARITY_HELP: &str = "\
Prints accepted differences, which exist because one format lacks a fact, and the first
unexpected one. Exits with 1 if there is an unexpected difference, with 3 if an input is in no
known format.

Examples:
  claude -p 'Fix it' --output-format stream-json --verbose | tee live.jsonl
  narrows check parity live.jsonl ~/.claude/projects/-home-ada-app/0b5f….jsonl";

const DRIFT_HELP: &str = "\
Prints names and counts only, never content. Exits with 3 if the input holds no packet of a known
agent.

Examples:
  narrows check drift ~/.claude/projects
      What the installed version of the agent writes that narrows does not know
  narrows check drift --exit-code session.jsonl && echo known";

pub(super) const USAGE_HELP: &str = "\
Reads the token counts that the agent reports with each model response, and counts each response
once, even if a forked session has a copy of it. Lists subagents separately. Exits with 3 if a
named file is in no known format. For sessions in the store, use `narrows stats`.

Examples:
  narrows usage ~/.claude/projects
      All sessions of Claude Code
  narrows usage session.jsonl
      One session with its subagents";
