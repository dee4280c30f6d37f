//! How agents are run.

use super::file::{ConfigFile, invalid};
use crate::args::{RedactionArgs, parse_size};
use crate::error::CliError;
use narrows_engine::run::{AgentSpec, RunLimits, RunOptions, presets};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;

/// The `[run]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RunSection {
    allow: bool,
    agents: Option<usize>,
    queue: Option<usize>,
    start_seconds: Option<u64>,
    silence_seconds: Option<u64>,
    cancel_seconds: Option<u64>,
    idle_minutes: Option<u64>,
    memory: Option<String>,
    processes: Option<u64>,
    lease_seconds: Option<u64>,
    environment: Option<AgentEnvironment>,
}

/// Which environment variables agents inherit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AgentEnvironment {
    /// All but dangerous ones.
    Shell,
    /// What programs need, and what the agent's `env` names.
    Minimal,
}

/// Overrides `lease_seconds`: how long a silent node keeps its runs.
const LEASE_SECONDS_ENV: &str = "NARROWS_RUN_LEASE_SECONDS";

/// How agents are run. `allow` overrides the config file; `is_private` says that only the user of
/// this machine can reach the server, which decides the default environment of agents.
pub(crate) fn run_options(
    args: &RedactionArgs,
    data: &Path,
    allow: bool,
    is_private: bool,
) -> Result<RunOptions, CliError> {
    let file = ConfigFile::load(args)?;
    from_section(&file.run, file.agents, data, allow, is_private)
}

pub(super) fn from_section(
    section: &RunSection,
    configured: Vec<AgentSpec>,
    data: &Path,
    allow: bool,
    is_private: bool,
) -> Result<RunOptions, CliError> {
    let defaults = RunLimits::default();
    let memory = section.memory.as_deref().map(parse_size).transpose().map_err(invalid)?;
    let lease = lease_seconds(section)?;
    let seconds = |value: Option<u64>, default| value.map_or(default, Duration::from_secs);
    Ok(RunOptions {
        allow: allow || section.allow,
        agents: merge_agents(configured)?,
        keeper: std::env::current_exe().ok(),
        roots: data.join("runs"),
        env: std::env::vars_os().collect(),
        whole_env: section.environment.map_or(is_private, |env| env == AgentEnvironment::Shell),
        limits: RunLimits {
            agents: section.agents.unwrap_or(defaults.agents),
            queue: section.queue.unwrap_or(defaults.queue),
            start: seconds(section.start_seconds, defaults.start),
            silence: seconds(section.silence_seconds, defaults.silence),
            cancel: seconds(section.cancel_seconds, defaults.cancel),
            idle: seconds(section.idle_minutes.map(|m| m.saturating_mul(60)), defaults.idle),
            memory,
            processes: section.processes,
            lease: seconds(lease, defaults.lease),
        },
    })
}

fn lease_seconds(section: &RunSection) -> Result<Option<u64>, CliError> {
    let invalid_in = |name: &str| {
        CliError::new(format!("invalid {name} (expected a number of seconds, 1 or more)"))
    };
    let env = std::env::var(LEASE_SECONDS_ENV).ok().filter(|text| !text.is_empty());
    let env =
        env.map(|text| text.parse().map_err(|_| invalid_in(LEASE_SECONDS_ENV))).transpose()?;
    match env.or(section.lease_seconds) {
        Some(0) => Err(invalid_in("[run] lease_seconds")),
        seconds => Ok(seconds),
    }
}

/// The built-in agents; one from the config file replaces the built-in one with its name.
fn merge_agents(configured: Vec<AgentSpec>) -> Result<Vec<AgentSpec>, CliError> {
    let mut agents = presets();
    for agent in configured {
        let is_name = !agent.name.is_empty()
            && agent.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !is_name || agent.argv.is_empty() {
            return Err(invalid(
                "an [[agent]] needs an argv and a name of letters, digits, `-`, `_` and `.`",
            ));
        }
        agents.retain(|known| known.name != agent.name);
        agents.push(agent);
    }
    Ok(agents)
}
