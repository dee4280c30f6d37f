//! What narrows types itself when it starts an agent.

use clap::Args;
use std::ffi::OsString;

#[derive(Debug, Args)]
pub(crate) struct KeeperArgs {
    /// How long the processes of the agent have to end by themselves, in milliseconds
    #[arg(long, value_name = "MS", default_value_t = 3000)]
    pub(crate) grace: u64,
    /// How much memory they may use together, in bytes
    #[arg(long, value_name = "BYTES")]
    pub(crate) memory: Option<u64>,
    /// How many of them there may be
    #[arg(long, value_name = "N")]
    pub(crate) processes: Option<u64>,
    /// The process that starts this one: when it is gone, so is the agent
    #[arg(long, value_name = "PID")]
    pub(crate) parent: Option<i32>,
    /// The agent and its arguments
    #[arg(last = true, required = true, value_name = "ARGV")]
    pub(crate) argv: Vec<OsString>,
}
