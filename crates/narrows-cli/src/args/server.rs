//! Commands that start a server or use one.

use super::values::{format_parser, parse_seconds, parse_size};
use super::{DataArgs, RedactionArgs};
use clap::{Subcommand, ValueEnum};
use narrows::Format;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Address to listen on [default: 127.0.0.1:7878]
    #[arg(long, value_name = "ADDRESS", env = "NARROWS_BIND")]
    pub(crate) bind: Option<SocketAddr>,
    /// Host name to accept in the `Host` header (repeatable)
    #[arg(long, value_name = "NAME", env = "NARROWS_HOSTS", value_delimiter = ',')]
    pub(crate) host: Vec<String>,
    /// Origin whose pages may use the server (repeatable)
    #[arg(long, value_name = "ORIGIN", env = "NARROWS_ALLOW_ORIGINS", value_delimiter = ',')]
    pub(crate) allow_origin: Vec<String>,
    /// TLS certificate chain in PEM format
    #[arg(long, value_name = "FILE", env = "NARROWS_TLS_CERT", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// TLS private key in PEM format
    #[arg(long, value_name = "FILE", env = "NARROWS_TLS_KEY", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// Assume that a reverse proxy terminates TLS
    #[arg(long, env = "NARROWS_BEHIND_PROXY")]
    pub(crate) behind_proxy: bool,
    /// PostgreSQL database to use as the store, shared by all nodes
    #[arg(long, value_name = "URL", env = "NARROWS_STORE", hide_env_values = true)]
    pub(crate) store: Option<String>,
    /// NATS server through which nodes wake each other
    #[arg(long, value_name = "URL", env = "NARROWS_BUS", hide_env_values = true)]
    pub(crate) bus: Option<String>,
    #[command(flatten)]
    pub(crate) retention: RetentionArgs,
    /// Refuse writes when the store reaches this size, for example 50G
    #[arg(long, value_name = "BYTES", env = "NARROWS_MAX_STORE_BYTES", value_parser = parse_size)]
    pub(crate) max_store_bytes: Option<u64>,
    /// Maximum number of open streams per token
    #[arg(long, value_name = "N", env = "NARROWS_STREAMS_PER_TOKEN")]
    pub(crate) streams_per_token: Option<usize>,
    /// Do not import sessions of agents on this machine
    #[arg(long, env = "NARROWS_NO_FOLLOW")]
    pub(crate) no_follow: bool,
    /// Let tokens with scope `run` start agents, which can execute any code on this machine
    #[arg(long, env = "NARROWS_ALLOW_RUN")]
    pub(crate) allow_run: bool,
    /// Log format
    #[arg(long, value_enum, default_value = "text", env = "NARROWS_LOG_FORMAT")]
    pub(crate) log_format: LogFormat,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    Text,
    Json,
}

/// What to retain.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct RetentionArgs {
    /// Delete sessions unchanged for DAYS days
    #[arg(long, value_name = "DAYS", env = "NARROWS_RETAIN_DAYS")]
    pub(crate) retain_days: Option<u32>,
    /// Delete the oldest sessions while all logs exceed this size, for example 20G
    #[arg(long, value_name = "BYTES", env = "NARROWS_RETAIN_BYTES", value_parser = parse_size)]
    pub(crate) retain_bytes: Option<u64>,
    /// Never delete sessions with this tag (repeatable)
    #[arg(long, value_name = "TAG", env = "NARROWS_RETAIN_TAGS", value_delimiter = ',')]
    pub(crate) retain_tag: Vec<String>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokenArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(subcommand)]
    pub(crate) command: TokenCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TokenCommand {
    /// Create a token and print its secret
    #[command(after_help = TOKEN_CREATE_HELP)]
    Create(TokenCreateArgs),
    /// List tokens
    List,
    /// Revoke a token and close its streams
    Revoke {
        /// Token id, as printed by `narrows token list`
        id: String,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct TokenCreateArgs {
    /// Name of the token in lists and in the audit log
    pub(crate) name: String,
    /// Scopes: read, write, run, approve, admin (comma-separated)
    #[arg(long, default_value = "read", value_delimiter = ',')]
    pub(crate) scopes: Vec<String>,
    /// Restrict the token to this session (repeatable)
    #[arg(long, value_name = "ID")]
    pub(crate) session: Vec<String>,
    /// Restrict the token to sessions with this tag (repeatable)
    #[arg(long, value_name = "TAG")]
    pub(crate) tag: Vec<String>,
    /// Lifetime, for example 30m, 12h or 7d [default: unlimited]
    #[arg(long, value_name = "DURATION", value_parser = parse_seconds)]
    pub(crate) ttl: Option<u64>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct IngestArgs {
    /// File with packets, or directory of a session; `-` is standard input
    pub(crate) file: PathBuf,
    /// Input format
    #[arg(long, default_value = "auto", value_parser = format_parser())]
    pub(crate) format: Format,
    /// Label of the session [default: a hash of the file path]
    #[arg(long)]
    pub(crate) label: Option<String>,
    /// Tag of the session (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    pub(crate) tags: Vec<String>,
    /// Number of the first packet on standard input, to resend from there [default: after the last]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) first: Option<u64>,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

pub(super) const SERVE_HELP: &str = "\
Every request needs a token, including from localhost. At startup the server prints a one-time
login URL for the web UI; the owner's token is in the file `token` of the data directory. Only
one server can write a data directory.

Examples:
  narrows serve
      Listen on http://127.0.0.1:7878 with the default store
  narrows serve --bind 127.0.0.1:9000 --data ./narrows-data
  narrows serve --allow-origin https://app.example.com
      Let pages of this origin use the API with their own tokens
  narrows serve --bind 0.0.0.0:443 --host n.example.com --tls-cert cert.pem --tls-key key.pem
      Accept other machines; requires TLS or --behind-proxy
  narrows serve --allow-run
      Start agents for tokens with scope `run`
  narrows serve --retain-days 90 --retain-bytes 20G
      Delete sessions unchanged for 90 days, and the oldest beyond 20 GiB of logs
  narrows serve --store postgres://narrows@db/narrows --bus nats://nats:4222
      One of several nodes that share a PostgreSQL database
  TOKEN=$(cat ~/.local/share/narrows/token)
  curl -H \"authorization: Bearer $TOKEN\" http://127.0.0.1:7878/api/sessions
      Use the API as the owner

Configuration:
  Most options can also be set in the environment, as shown above, and in the config file:
  --config, else $NARROWS_CONFIG, else narrows/config.toml in $XDG_CONFIG_HOME or ~/.config.
  Options override the environment, which overrides the file.
    [serve]
    bind = \"127.0.0.1:7878\"
    data = \"/var/lib/narrows\"
    hosts = [\"narrows.example.com\"]
    allow_origins = [\"https://app.example.com\"]
    retain_days = 90
    store = \"postgres://narrows@db/narrows\"
    bus = \"nats://nats:4222\"
    [serve.limits]
    streams_per_token = 1000
    [sources]
    exclude = [\"~/work/secret\"]    # projects whose sessions are not imported
    claude_dirs = [\"~/.claude\"]    # default: $CLAUDE_CONFIG_DIR, else ~/.claude
    follow = true

Logs go to standard error and never contain session text. NARROWS_LOG=debug logs more. SIGTERM
and Ctrl-C shut the server down cleanly.";

pub(super) const LOGIN_URL_HELP: &str = "\
Requires a running server. The URL works once and expires after 10 minutes.

Examples:
  narrows login-url
  xdg-open \"$(narrows login-url)\"";

pub(super) const TOKEN_HELP: &str = "\
Examples:
  narrows token create ci --scopes read,write
  narrows token list
  narrows token revoke 4k2j…";

const TOKEN_CREATE_HELP: &str = "\
The secret goes to standard output and cannot be printed again.

Examples:
  narrows token create ci --scopes read,write
  narrows token create viewer --scopes read --session 7f3k… --ttl 1h
      One session for one hour, suitable for a browser";

pub(super) const INGEST_HELP: &str = "\
Sends packets to the running server, or writes the store directly if no server runs. Ingesting a
file again adds only what is new. Exits with 3 if the input is in no known format.

Examples:
  narrows ingest ~/.claude/projects/-home-ada-app/0b5f….jsonl
      A session file of Claude Code, including its subagents
  claude -p 'Fix it' --output-format stream-json --verbose | narrows ingest --label fix-42 -
      A live session
  narrows ingest --tag nightly --root \"$PWD\" run.jsonl
      With a tag, and with paths relative to the current directory";

pub(super) const OPENAPI_HELP: &str = "\
Examples:
  narrows openapi > openapi.json";
