//! Commands that run agents.

use super::{ColorChoice, DataArgs, RedactionArgs};
use clap::Args;
use std::ffi::OsString;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// Prompt [default: standard input]
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Agent name, as listed by `narrows agents` [default: the first installed one]
    #[arg(long, value_name = "NAME", env = "NARROWS_AGENT")]
    pub(crate) agent: Option<String>,
    /// Working directory of the agent [default: the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Additional directory that the agent may use (repeatable)
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Continue a session that narrows ran before
    #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "cwd", "add_dir", "mode", "model"])]
    pub(crate) session: Option<String>,
    /// Continue a session of the agent itself, as listed by `narrows agents NAME`
    #[arg(long, value_name = "ID", requires = "agent", conflicts_with = "session")]
    pub(crate) resume: Option<String>,
    /// Agent mode to start in, for example `plan`
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// Model to use
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Approve every permission request automatically
    #[arg(long)]
    pub(crate) yes: bool,
    /// Deny every permission request and decline every question automatically
    #[arg(long, conflicts_with = "yes")]
    pub(crate) no: bool,
    /// Print the events of the turn as JSON lines
    #[arg(long, conflicts_with_all = ["tool_output", "thinking"])]
    pub(crate) json: bool,
    /// Show tool inputs and outputs
    #[arg(long)]
    pub(crate) tool_output: bool,
    /// Show the agent's reasoning
    #[arg(long)]
    pub(crate) thinking: bool,
    /// When to use color
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto")]
    pub(crate) color: ColorChoice,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// List the sessions of this agent instead
    #[arg(value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Print a JSON array
    #[arg(long)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) redaction: RedactionArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Agent name in the labels of sessions [default: the file name of its command]
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
    /// Agent command and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

/// The hidden command with which narrows starts agents.
#[derive(Debug, Args)]
pub(crate) struct SuperviseArgs {
    /// Milliseconds between SIGTERM and SIGKILL
    #[arg(long, value_name = "MS", default_value_t = 3000)]
    pub(crate) grace: u64,
    /// Memory limit of all processes together, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// Maximum number of processes
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u64>,
    /// Parent process; when it exits, the agent is ended
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<i32>,
    /// Agent command and its arguments
    #[arg(last = true, required = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}

pub(super) const RUN_HELP: &str = "\
Stores the session like any other: `narrows show`, `narrows search` and the web UI have it. Uses
the running server, which needs --allow-run; if none runs, starts a private one for the turn.
Prompts for permission in the terminal; Ctrl-C cancels the turn, a second Ctrl-C ends the agent.
Without a terminal, a permission request cancels the turn unless --yes or --no is given.

JSON output:
  The first line is {\"type\":\"run\",\"sessionId\":…,\"messageId\":…}, followed by the events of the
  turn as in `narrows parse --view events`. The last event is `prompt_response` with its
  `stopReason`, or `error`. Requests that are still open follow, one line each:
  {\"type\":\"open_request\",\"sessionId\":…,\"requestId\":…,\"title\":…,\"answer\":…}, where
  `answer` is the path to POST an answer to, or null if no running server can take it.
  If the turn cannot be started, the only line is
  {\"type\":\"error\",\"code\":\"NOT_RUN\",\"message\":…}. Messages for people go to standard error.

Exit codes:
    0  the turn completed
    1  the turn failed or could not be started
    2  the command line is invalid
    4  a request of the agent could not be answered, or was open at the end of the turn
  130  the turn was cancelled

Examples:
  narrows run \"Why does the login test fail?\"
  narrows run --agent opencode --cwd ~/code/shop \"Add a dark mode\"
  git diff | narrows run --agent claude --mode plan
      Read the prompt from standard input
  narrows run --json --no \"What does this do?\" | jq -r 'select(.type == \"text_chunk\").text'
  narrows run --session k3f9 \"Now write the tests\"
      Continue a session
  narrows run --agent opencode --resume ses_1f4c \"Now write the tests\"
      Continue a session started in opencode; its earlier messages are imported";

pub(super) const AGENTS_HELP: &str = "\
Examples:
  narrows agents
  narrows agents opencode
      The sessions of opencode, to continue with `narrows run --agent opencode --resume ID`

Configuration:
  Agents are added in the config file:
    [[agent]]
    name = \"mine\"
    title = \"My agent\"
    argv = [\"my-agent\", \"--acp\"]
    protocol = \"acp\"              # or \"claude\"
    env = { MY_AGENT_KEY = \"…\" }  # or names of variables to pass on: [\"MY_AGENT_*\"]

    [run]
    allow = true                  # same as `narrows serve --allow-run`
    environment = \"minimal\"       # or \"shell\"
    memory = \"4G\"
    idle_minutes = 30

  Values of `env` are redacted if the name looks like a secret (…_KEY, …TOKEN, …PASSWORD) or the
  value does: at least 8 characters, letters and digits mixed, and not a word, a versioned name, a
  number, a path or an address. Add others to `known = [\"…\"]` in [sanitize].

  With environment = \"shell\", agents inherit the environment of narrows except NARROWS_*, variables
  that make programs load foreign code (LD_PRELOAD, BASH_ENV, NODE_OPTIONS and others) and variables
  that describe the starting shell only. With \"minimal\", they get what programs need to find their
  files and the variables of their `env`. The default is \"shell\" for `narrows run` and for servers
  that only this machine can reach, and \"minimal\" for servers with a non-loopback --bind, --host,
  --behind-proxy or --store.";

pub(super) const ACP_HELP: &str = "\
An editor starts this command instead of the agent. Bytes pass through unchanged and are never
delayed or lost because of the recording; standard error, environment, working directory, signals
and exit code are the agent's. Sessions go to the running server, or to a spool file in the data
directory that the next narrows command imports.

Examples:
  narrows acp -- opencode acp
  narrows acp --label claude -- npx @zed-industries/claude-code-acp
      Name the agent when its command does not
  narrows watch
      In another terminal: follow the session

In the settings of Zed:
  \"agent_servers\": {
    \"OpenCode\": {
      \"type\": \"custom\",
      \"command\": \"narrows\",
      \"args\": [\"acp\", \"--\", \"opencode\", \"acp\"]
    }
  }";
