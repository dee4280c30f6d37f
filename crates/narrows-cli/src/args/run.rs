//! What is typed to run agents.

use super::{DataArgs, HideArgs, When};
use clap::Args;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// The agent; `narrows agents` lists them [default: the first one that is installed]
    #[arg(long, value_name = "NAME", env = "NARROWS_AGENT")]
    pub(crate) agent: Option<String>,
    /// The folder in which it works [default: this one]
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Another folder in which it may work; may be given several times
    #[arg(long, value_name = "DIR")]
    pub(crate) add_dir: Vec<PathBuf>,
    /// Go on with a session that was run before
    #[arg(long, value_name = "ID", conflicts_with_all = ["agent", "cwd", "add_dir", "mode", "model"])]
    pub(crate) session: Option<String>,
    /// Go on with a session that the agent keeps by itself, by its own id of it: `narrows agents NAME`
    /// lists them
    #[arg(long, value_name = "ID", requires = "agent", conflicts_with = "session")]
    pub(crate) resume: Option<String>,
    /// The mode to begin with, as `plan`
    #[arg(long)]
    pub(crate) mode: Option<String>,
    /// The model
    #[arg(long)]
    pub(crate) model: Option<String>,
    /// Give leave to everything without asking
    #[arg(long)]
    pub(crate) yes: bool,
    /// Refuse everything that needs leave, and answer no question
    #[arg(long, conflicts_with = "yes")]
    pub(crate) no: bool,
    /// Print the turn as JSON lines: first its session, then its events, last its end (see below)
    #[arg(long, conflicts_with_all = ["tools", "thinking"])]
    pub(crate) json: bool,
    /// Show what tools were given and what came of it
    #[arg(long)]
    pub(crate) tools: bool,
    /// Show the agent's thoughts
    #[arg(long)]
    pub(crate) thinking: bool,
    /// Colours
    #[arg(long, value_enum, default_value = "auto")]
    pub(crate) color: When,
    /// What to say [default: standard input]
    #[arg(value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
}

#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// List the sessions that this agent keeps by itself, where it can tell them
    #[arg(value_name = "NAME")]
    pub(crate) agent: Option<String>,
    #[command(flatten)]
    pub(crate) hide: HideArgs,
}

pub(crate) const RUN_EXAMPLES: &str = "\
The session is kept like every other one: `narrows show`, `narrows search` and the page have it. A
running server does the work if it was started with --allow-run; else this command does it by itself.
Ctrl-C cancels the turn; a second one ends the agent. Where nobody can be asked (standard input is no
terminal), --yes or --no answers; without them a question ends the turn.

With --json every line is one object. The first is {\"type\":\"run\",\"sessionId\":…,\"messageId\":…}; then come
the events of the turn as `narrows parse --view events` and the API's view `events` have them; the last one
is the turn's end: `prompt_response` with its `stopReason`, or `error`. What the agent still asks then
follows, one line each: {\"type\":\"open_request\",\"sessionId\":…,\"requestId\":…,\"title\":…,\"answer\":…}, where
`answer` is the path to POST an answer to, or null when no server runs that could take it. What could not be started is one
line {\"type\":\"error\",\"code\":\"NOT_RUN\",\"message\":…}. Words for people go to standard error.

Exit codes: 0 the turn came to its end; 1 it failed, or could not be started; 2 the command line is wrong;
4 the agent asked and nobody could answer, or had not when the turn was over; 130 the turn was cancelled.

Examples:
  narrows run \"Why does the login test fail?\"
      In this folder, with the first agent that is installed
  narrows run --agent opencode --cwd ~/code/shop \"Add a dark mode\"
      Elsewhere, with another one
  git diff | narrows run --agent claude --mode plan
      The prompt comes from standard input
  narrows run --json --no \"What does this do?\" | jq -r 'select(.type == \"text_chunk\").text'
      One event a line, for programs
  narrows run --session k3f9 \"Now write the tests\"
      The next turn of a session
  narrows run --agent opencode --resume ses_1f4c \"Now write the tests\"
      The next turn of one that was begun in opencode itself; what was said before is kept, too";

pub(crate) const AGENTS_EXAMPLES: &str = "\
  narrows agents opencode
      The sessions that opencode keeps by itself: `narrows run --agent opencode --resume ID` goes on with one

Others are added in the config file:
  [[agent]]
  name = \"mine\"
  title = \"My agent\"
  argv = [\"my-agent\", \"--acp\"]
  protocol = \"acp\"              # or \"claude\"
  env = { MY_AGENT_KEY = \"…\" }  # variables of its own; or names: [\"MY_AGENT_*\"]

  [run]
  allow = true                  # as `narrows serve --allow-run`
  environment = \"minimal\"       # or \"shell\": see below
  memory = \"4G\"
  idle_minutes = 30

Values of `env` are hidden in all that is kept where the name looks like a secret (…_KEY, …TOKEN, …PASSWORD)
or the value does: eight characters or more, letters and digits mixed, and no words, names with versions,
numbers, paths or addresses. Any other is hidden by `known = [\"…\"]` below [sanitize].

With environment = \"shell\" an agent gets the variables that narrows was started with, but not those of
narrows itself (NARROWS_*), those that make programs load foreign code (LD_PRELOAD, BASH_ENV, NODE_OPTIONS
and the like) and those that are true of the starting shell only. With \"minimal\" it gets what programs need
to find their files, and what its list names. `narrows run` and a server that only this machine reaches
begin with \"shell\"; one with another --bind, --host, --behind-proxy or --store with \"minimal\".";
