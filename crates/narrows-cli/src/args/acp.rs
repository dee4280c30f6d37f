//! What was typed for `narrows acp`.

use crate::args::DataArgs;
use std::ffi::OsString;

pub(crate) const ACP_EXAMPLES: &str = "\
An editor starts this command instead of the agent. Every byte passes at once and as it is, whatever
happens to the recording; standard error, environment, folder, signals and exit code are the agent's
own. Each session is kept and can be watched while it happens: by the running server, else from a
file in the data directory that the next narrows command reads.

Examples:
  narrows acp -- opencode acp
      Records opencode
  narrows acp --label claude -- npx @zed-industries/claude-code-acp
      Records an agent whose command does not tell what it is
  narrows watch
      In another terminal: the session as it happens

In the settings of Zed:
  \"agent_servers\": {
    \"OpenCode\": {
      \"type\": \"custom\",
      \"command\": \"narrows\",
      \"args\": [\"acp\", \"--\", \"opencode\", \"acp\"]
    }
  }";

#[derive(Debug, clap::Args)]
pub(crate) struct AcpArgs {
    #[command(flatten)]
    pub(crate) data: DataArgs,
    /// What the agent is called in the labels of its sessions [default: its command]
    #[arg(long, value_name = "NAME")]
    pub(crate) label: Option<String>,
    /// The agent, and what is given to it
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "AGENT"
    )]
    pub(crate) command: Vec<OsString>,
}
