//! How agents are run: command line, environment, config file. `narrows agents`.

use crate::Fault;
use crate::args::{AgentsArgs, HideArgs, size};
use crate::hide::run_file;
use narrows_server::run::{AgentSpec, Protocol, RunLimits, RunOptions, presets};
use serde::Deserialize;
use std::io::{Error, ErrorKind, Write};
use std::path::Path;
use std::time::Duration;

/// The `[run]` section of the config file.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunFile {
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
    environment: Option<Environment>,
}

/// What agents get of the environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Environment {
    /// All that narrows was started with, but what is dangerous.
    Shell,
    /// What programs need, and what the agent's list names.
    Minimal,
}

/// How long a node that is silent keeps its agents: goes before the config file.
const LEASE: &str = "NARROWS_RUN_LEASE_SECONDS";

fn bad(what: &str) -> Fault {
    Fault::new(what)(Error::new(ErrorKind::InvalidData, "a number of seconds, 1 or more"))
}

/// How agents are run; `allow` turns it on, `own` says that nobody but this machine's user asks.
pub(crate) fn run_options(
    hide: &HideArgs,
    data: &Path,
    allow: bool,
    own: bool,
) -> Result<RunOptions, Fault> {
    let (file, given) = run_file(hide)?;
    let usual = RunLimits::default();
    let memory = file.memory.as_deref().map(size).transpose();
    let memory =
        memory.map_err(|e| Fault::new("config file")(Error::new(ErrorKind::InvalidData, e)))?;
    let lease = std::env::var(LEASE).ok().filter(|text| !text.is_empty());
    let lease = lease.map(|text| text.parse().map_err(|_| bad(LEASE))).transpose()?;
    let lease = lease.or(file.lease_seconds);
    if lease == Some(0) {
        return Err(bad("[run] lease_seconds"));
    }
    let seconds = |given: Option<u64>, usual| given.map_or(usual, Duration::from_secs);
    Ok(RunOptions {
        allow: allow || file.allow,
        agents: agents(given)?,
        keeper: std::env::current_exe().ok(),
        roots: data.join("runs"),
        env: std::env::vars_os().collect(),
        whole_env: file.environment.map_or(own, |given| given == Environment::Shell),
        limits: RunLimits {
            agents: file.agents.unwrap_or(usual.agents),
            queue: file.queue.unwrap_or(usual.queue),
            start: seconds(file.start_seconds, usual.start),
            silence: seconds(file.silence_seconds, usual.silence),
            cancel: seconds(file.cancel_seconds, usual.cancel),
            idle: seconds(file.idle_minutes.map(|m| m.saturating_mul(60)), usual.idle),
            memory,
            processes: file.processes,
            lease: seconds(lease, usual.lease),
        },
    })
}

/// Those that are known; one of the config file takes the place of the one of its name.
fn agents(given: Vec<AgentSpec>) -> Result<Vec<AgentSpec>, Fault> {
    let mut agents = presets();
    for agent in given {
        let good = !agent.name.is_empty()
            && agent.name.chars().all(|c| c.is_ascii_alphanumeric() || "-_.".contains(c));
        if !good || agent.argv.is_empty() {
            let what =
                "an [[agent]] needs a name of letters, digits, `-`, `_` and `.`, and an argv";
            return Err(Fault::new("config file")(Error::new(ErrorKind::InvalidData, what)));
        }
        agents.retain(|known| known.name != agent.name);
        agents.push(agent);
    }
    Ok(agents)
}

/// `narrows agents`.
pub(crate) fn list(args: &AgentsArgs) -> Result<(), Fault> {
    if let Some(agent) = &args.agent {
        return crate::run::sessions(args, agent);
    }
    let options = run_options(&args.hide, Path::new(""), false, true)?;
    let path = std::env::var_os("PATH");
    let mut out = std::io::stdout().lock();
    let told = |e| Fault::new("standard output")(e);
    if args.json {
        let rows: Vec<serde_json::Value> = options
            .agents
            .iter()
            .map(|a| {
                let program = a.program(path.as_deref());
                let version = program.as_ref().ok().and_then(|p| version(p));
                serde_json::json!({
                    "name": a.name, "title": a.title(), "protocol": a.protocol, "argv": a.argv,
                    "installed": program.is_ok(), "version": version, "problem": program.err(),
                })
            })
            .collect();
        let text = serde_json::to_string_pretty(&rows).map_err(|e| told(e.into()))?;
        return writeln!(out, "{text}").map_err(told);
    }
    for agent in &options.agents {
        let (mark, words) = match agent.program(path.as_deref()) {
            Ok(program) => (
                "✓",
                version(&program).unwrap_or_else(|| "it does not tell its version".to_owned()),
            ),
            Err(problem) => ("·", problem),
        };
        let how = match agent.protocol {
            Protocol::Acp => "acp",
            Protocol::Claude => "claude",
        };
        writeln!(out, "{mark} {:<10} {:<8} {:<28} {words}", agent.name, how, agent.argv.join(" "))
            .map_err(told)?;
    }
    if !options.allow {
        writeln!(out, "\nA server runs them when it is started with --allow-run; `narrows run` does so by itself.").map_err(told)?;
    }
    Ok(())
}

/// What a program says of its version, in one line and within a few seconds.
fn version(program: &Path) -> Option<String> {
    use std::process::{Command, Stdio};
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let until = std::time::Instant::now() + Duration::from_secs(10);
    while child.try_wait().ok()?.is_none() {
        if std::time::Instant::now() > until {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let said = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    let line = text.lines().find(|l| !l.trim().is_empty())?.trim();
    Some(line.chars().filter(|c| !c.is_control()).take(60).collect())
}
