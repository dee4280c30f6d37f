//! What was typed.

mod keep;
mod library;
mod repair;
mod run;

pub(crate) use keep::*;
pub(crate) use library::*;
use library::{
    COMPLETIONS_EXAMPLES, EXPORT_EXAMPLES, INDEX_EXAMPLES, LS_EXAMPLES, SEARCH_EXAMPLES,
    SERVICE_EXAMPLES, SHOW_EXAMPLES, STATS_EXAMPLES, WATCH_EXAMPLES,
};
use repair::REPAIR_EXAMPLES;
pub(crate) use repair::RepairArgs;
pub(crate) use run::*;

use crate::acp::{ACP_EXAMPLES, AcpArgs};
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
    /// List the sessions of this machine
    #[command(visible_alias = "list", after_help = LS_EXAMPLES)]
    Ls(LsArgs),
    /// Read a session
    #[command(after_help = SHOW_EXAMPLES)]
    Show(ShowArgs),
    /// Find what was said in any session
    #[command(after_help = SEARCH_EXAMPLES)]
    Search(SearchArgs),
    /// See a session as it happens
    #[command(after_help = WATCH_EXAMPLES)]
    Watch(WatchArgs),
    /// Write a session into a file
    #[command(after_help = EXPORT_EXAMPLES)]
    Export(ExportArgs),
    /// Add up tokens, cost, calls and time
    #[command(after_help = STATS_EXAMPLES)]
    Stats(StatsArgs),
    /// Delete sessions from the store; the agent's own files stay
    Rm(RmArgs),
    /// Read every session of this machine into the store
    #[command(after_help = INDEX_EXAMPLES)]
    Index(IndexArgs),
    /// Keep following sessions in the background
    #[command(after_help = SERVICE_EXAMPLES)]
    Service(ServiceArgs),
    /// Tell what is found, what is at risk, and how the store is
    Doctor(DoctorArgs),
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
    /// Keep sessions and serve them by REST, SSE and WebSocket
    #[command(after_help = SERVE_EXAMPLES)]
    Serve(Box<ServeArgs>),
    /// Run an agent for one turn, in the terminal
    #[command(after_help = RUN_EXAMPLES)]
    Run(Box<RunArgs>),
    /// List the agents that can be run
    #[command(after_help = AGENTS_EXAMPLES)]
    Agents(AgentsArgs),
    /// Stand between an editor and its agent, and record every session
    #[command(after_help = ACP_EXAMPLES)]
    Acp(AcpArgs),
    /// Put a session's packets into the store
    #[command(after_help = INGEST_EXAMPLES)]
    Ingest(IngestArgs),
    /// Make, list and revoke tokens
    #[command(after_help = TOKEN_EXAMPLES)]
    Token(TokenArgs),
    /// Print an address that lets a browser in once
    Open(DataArgs),
    /// Delete sessions by age, size or tag
    #[command(after_help = PRUNE_EXAMPLES)]
    Prune(PruneArgs),
    /// Copy the store into a file, also while a server runs
    #[command(after_help = BACKUP_EXAMPLES)]
    Backup(BackupArgs),
    /// Put a copy in the place of the store
    #[command(after_help = BACKUP_EXAMPLES)]
    Restore(RestoreArgs),
    /// Make a damaged store anew, of all that can be read
    #[command(after_help = REPAIR_EXAMPLES)]
    Repair(RepairArgs),
    /// Put a sample session into the store, to see what narrows shows
    Sample(DataArgs),
    /// Print the OpenAPI document
    Openapi,
    /// Print completions for a shell
    #[command(after_help = COMPLETIONS_EXAMPLES)]
    Completions(CompletionsArgs),
    /// Print the manual page
    Man(ManArgs),
    /// Run an agent whose processes end with it
    #[command(hide = true)]
    Keep(KeeperArgs),
}

const SERVE_EXAMPLES: &str = "\
What it needs is in one data directory: the database, the owner's token, the address of the running
server. One server writes it at a time. Every request needs a token; the printed address lets a
browser in once.

Examples:
  narrows serve
      On http://127.0.0.1:7878, with the store in the usual place
  narrows serve --bind 127.0.0.1:9000 --data ./narrows-data
      Elsewhere
  narrows serve --allow-origin https://app.example.com
      Lets pages of your product use it from the browser, with tokens of their own
  narrows serve --bind 0.0.0.0:443 --host narrows.example.com --tls-cert cert.pem --tls-key key.pem
      For other machines. Without TLS, or a proxy that has it, this is refused
  narrows serve --allow-run
      Runs agents too, for whoever has a token with the scope `run`: that means running code
  narrows serve --keep-days 90 --keep-bytes 20G
      Deletes whole sessions that have not changed for 90 days, and the oldest beyond 20 GB
  narrows serve --store postgres://narrows@db/narrows --bus nats://nats:4222
      One of several nodes that share a PostgreSQL. NATS only tells them to look

Then:
  TOKEN=$(cat ~/.local/share/narrows/token)
  curl -H \"authorization: Bearer $TOKEN\" http://127.0.0.1:7878/api/sessions

The same settings stand in the config file (--config, else $NARROWS_CONFIG, else
narrows/config.toml in $XDG_CONFIG_HOME or ~/.config), and in the environment as NARROWS_BIND,
NARROWS_DATA and so on. The command line beats the environment, which beats the file:
  [serve]
  bind = \"127.0.0.1:7878\"
  data = \"/var/lib/narrows\"
  hosts = [\"narrows.example.com\"]
  allow_origins = [\"https://app.example.com\"]
  keep_days = 90
  store = \"postgres://narrows@db/narrows\"    # else in the data directory
  bus = \"nats://nats:4222\"
  [serve.limits]
  streams_per_token = 1000
  [sources]
  exclude = [\"~/work/secret\"]    # projects whose sessions are left out
  claude_dirs = [\"~/.claude\"]    # where Claude Code keeps its own; else $CLAUDE_CONFIG_DIR
  follow = true

Logs go to standard error, without what sessions say; NARROWS_LOG=debug tells more. SIGTERM or
Ctrl-C ends it: streams are told, what was held back is kept.";

const INGEST_EXAMPLES: &str = "\
Uses the running server, or the store itself when none runs. The same file again changes nothing; a
file that has grown adds what is new. Exits with 3 when nothing of it was understood.

Examples:
  narrows ingest ~/.claude/projects/-home-ada-app/0b5f….jsonl
      A kept session of Claude Code, with the files of its subagents
  claude -p 'Fix it' --output-format stream-json --verbose | narrows ingest --label fix-42 -
      A session as it happens: followers see it live
  narrows ingest --tag nightly --root \"$PWD\" run.jsonl
      With a tag, and with paths relative to this directory";

const TOKEN_EXAMPLES: &str = "\
Examples:
  narrows token make ci --scopes read,write
      Prints the secret, this once
  narrows token make viewer --scopes read --session 7f3k… --ttl 1h
      For one session and one hour: fit for a browser
  narrows token list
  narrows token revoke 4k2j…
      Its streams are closed at once";

const PRUNE_EXAMPLES: &str = "\
Examples:
  narrows prune --keep-days 30 --dry-run
      What would go
  narrows prune --keep-bytes 5G --keep-tag important
      The oldest first, until the rest fits; never those with the tag
  narrows prune --keep-days 0 --tag scratch
      Everything with this tag";

const BACKUP_EXAMPLES: &str = "\
A copy is of one moment, whatever is written meanwhile. After a restore every session's log begins
a new life, so that whoever follows one is told to read it anew; the store that was there is kept
beside it as narrows.db.before-….

Examples:
  narrows backup narrows-2026-11-16.db
  narrows restore narrows-2026-11-16.db
      Stop the server first";

const PARSE_EXAMPLES: &str = "\
Input is one packet a line: JSON, the `data:` lines of server-sent events, or recorded lines
{\"ts\":…,\"dir\":…,\"msg\":{…}}. A line that cannot be read becomes a `malformed` event, and a count
on standard error; everything after it is read. Exits with 3 when nothing of it was understood, and
says what it looks like.

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
real one. Exits with 0 when there is no real one, else with 1; with 3 when
the input is not understood.

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
      Exits with 1 when something is not known or cannot be read, with 3 when there is nothing
      of an agent in it";

const USAGE_EXAMPLES: &str = "\
Counts what the agent tells with each answer of the model, once by message and request, also where
a forked session keeps copies of another. Subagents are counted apart. A folder stands for every
session below it. Exits with 3 when nothing of it was understood.

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

/// Where the store is.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct DataArgs {
    /// The data directory
    ///
    /// If none is given: `narrows` in `$XDG_DATA_HOME`, or in `~/.local/share`.
    #[arg(long, value_name = "DIR", env = "NARROWS_DATA")]
    pub(crate) data: Option<PathBuf>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Keep sessions in this PostgreSQL, which other nodes may use too, like `postgres://user@host/name`
    #[arg(long, value_name = "URL", env = "NARROWS_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// The NATS by which nodes wake each other, like `nats://host:4222`
    #[arg(long, value_name = "URL", env = "NARROWS_BUS", hide_env_values = true)]
    pub(crate) bus: Option<String>,
    /// Where to listen [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDRESS", env = "NARROWS_BIND")]
    pub(crate) bind: Option<std::net::SocketAddr>,
    /// A name by which the server is called; may be given several times
    #[arg(long, value_name = "NAME", env = "NARROWS_HOSTS", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// An origin whose pages may use the server; may be given several times
    #[arg(long, value_name = "ORIGIN", env = "NARROWS_ALLOW_ORIGINS", value_delimiter = ',')]
    pub(crate) allow_origin: Vec<String>,
    /// The certificate, in PEM
    #[arg(long, value_name = "FILE", env = "NARROWS_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Its key, in PEM
    #[arg(long, value_name = "FILE", env = "NARROWS_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// A proxy with TLS stands in front of the server
    #[arg(long, env = "NARROWS_BEHIND_PROXY")]
    pub(crate) behind_proxy: bool,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// The store grows no further, like 50G; writing is refused then
    #[arg(long, value_name = "BYTES", env = "NARROWS_MAX_STORE", value_parser = size)]
    pub(crate) max_store: Option<u64>,
    /// Do not look for the sessions of agents on this machine
    #[arg(long, env = "NARROWS_NO_FOLLOW")]
    pub(crate) no_follow: bool,
    /// Let whoever has a token with the scope `run` start agents here: it means running code
    #[arg(long, env = "NARROWS_ALLOW_RUN")]
    pub(crate) allow_run: bool,
    /// Streams that one token may have open
    #[arg(long, value_name = "N", env = "NARROWS_STREAMS_PER_TOKEN")]
    pub(crate) streams_per_token: Option<usize>,
    /// How logs are written
    #[arg(long, value_enum, default_value = "text", env = "NARROWS_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people
    Text,
    /// One object a line
    Json,
}

/// What is kept.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct KeepArgs {
    /// Delete sessions that have not changed for so many days
    #[arg(long, value_name = "DAYS", env = "NARROWS_KEEP_DAYS")]
    pub(crate) keep_days: Option<u32>,
    /// Delete the oldest sessions beyond so many bytes of logs, like 20G
    #[arg(long, value_name = "BYTES", env = "NARROWS_KEEP_BYTES", value_parser = size)]
    pub(crate) keep_bytes: Option<u64>,
    /// Never delete sessions with this tag; may be given several times
    #[arg(long, value_name = "TAG", env = "NARROWS_KEEP_TAGS", value_delimiter = ',')]
    pub(crate) keep_tag: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct IngestArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The format of the packets
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) from: From,
    /// Your own name for the session [default: the file's path, hashed]
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// A word to find it by; may be given several times
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// The place of the first packet of standard input in the session, from 1, to send some again
    /// [default: after those that were read]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) first: Option<u64>,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
    /// The packets, or the folder of a session; `-` is standard input
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    pub(crate) what: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Make a token and print its secret
    Make(TokenMakeArgs),
    /// List the tokens
    List,
    /// Revoke a token
    Revoke {
        /// Its id
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokenMakeArgs {
    /// What it is called
    pub(crate) name: String,
    /// What it allows: read, write, run, approve, admin
    #[arg(long, default_value = "read", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Only this session; may be given several times
    #[arg(long, value_name = "ID")]
    pub(crate) session: Vec<String>,
    /// Only sessions with this tag; may be given several times
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// How long it lasts, like 30m, 12h or 7d
    #[arg(long, value_name = "TIME", value_parser = seconds)]
    pub(crate) ttl: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct PruneArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) keep: KeepArgs,
    /// Only sessions with this tag
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Option<String>,
    /// Only tell what would go
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, clap::Args)]
pub(crate) struct BackupArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The new file
    pub(crate) file: PathBuf,
}

#[derive(Debug, clap::Args)]
pub(crate) struct RestoreArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The copy
    pub(crate) file: PathBuf,
}

/// A number of bytes: `500`, `20M`, `1.5G`.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    let units = [("K", 10), ("M", 20), ("G", 30), ("T", 40)];
    let plain = text.trim().trim_end_matches(['B', 'b', 'i']).to_uppercase();
    let (number, shift) = match units.into_iter().find(|(unit, _)| plain.ends_with(unit)) {
        Some((unit, shift)) => (plain.trim_end_matches(unit).to_owned(), shift),
        None => (plain, 0),
    };
    let number: f64 =
        number.trim().parse().map_err(|_| format!("`{text}` is no size: write 500M or 20G"))?;
    if !(0.0..1e9).contains(&number) && shift > 0 || number < 0.0 {
        return Err(format!("`{text}` is no size: write 500M or 20G"));
    }
    #[expect(clippy::cast_sign_loss, reason = "checked above")]
    Ok((number
        * f64::from(1_u32 << (shift % 30))
        * f64::from(if shift >= 30 { 1_u32 << 30 } else { 1 })) as u64)
}

/// A time in seconds: `90s`, `30m`, `12h`, `7d`.
fn seconds(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no time: write 30m, 12h or 7d");
    let split = text.len() - text.chars().last().map_or(0, char::len_utf8);
    let (number, unit) = text.split_at(split);
    let times = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86400,
        _ => return Err(bad()),
    };
    let number: u64 = number.parse().map_err(|_| bad())?;
    number.checked_mul(times).filter(|n| *n > 0).ok_or_else(bad)
}
