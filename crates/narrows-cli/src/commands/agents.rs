//! `narrows agents`: lists agents, or the sessions of one.

use super::run::with_server;
use crate::args::AgentsArgs;
use crate::config::{data_dir, run_options};
use crate::error::CliError;
use crate::output::Clock;
use narrows_engine::run::{AgentSpec, Protocol};
use narrows_render::escape;
use serde_json::Value;
use std::ffi::OsStr;
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
const VERSION_POLL_INTERVAL: Duration = Duration::from_millis(20);
const MAX_VERSION_CHARS: usize = 60;
const MAX_TITLE_CHARS: usize = 200;

pub(crate) fn run(args: &AgentsArgs) -> Result<(), CliError> {
    if let Some(agent) = &args.agent {
        return list_sessions(args, agent);
    }
    let options = run_options(&args.redaction, Path::new(""), false, true)?;
    let path = std::env::var_os("PATH");
    if args.json {
        let rows = options.agents.iter().map(|agent| to_json(agent, path.as_deref()));
        return print_json(&rows.collect());
    }
    let mut out = io::stdout().lock();
    for agent in &options.agents {
        let (mark, details) = match agent.program(path.as_deref()) {
            Ok(program) => ("✓", version(&program).unwrap_or_else(|| "unknown version".to_owned())),
            Err(problem) => ("·", problem),
        };
        let protocol = match agent.protocol {
            Protocol::Acp => "acp",
            Protocol::Claude => "claude",
        };
        let command_line = agent.argv.join(" ");
        writeln!(out, "{mark} {:<10} {protocol:<8} {command_line:<28} {details}", agent.name)
            .map_err(CliError::stdout)?;
    }
    if !options.allow {
        writeln!(out, "\n`narrows run` can start these agents; a server can with --allow-run.")
            .map_err(CliError::stdout)?;
    }
    Ok(())
}

fn to_json(agent: &AgentSpec, path: Option<&OsStr>) -> Value {
    let program = agent.program(path);
    let version = program.as_ref().ok().and_then(|p| version(p));
    serde_json::json!({
        "name": agent.name, "title": agent.title(), "protocol": agent.protocol,
        "argv": agent.argv, "installed": program.is_ok(), "version": version,
        "problem": program.err(),
    })
}

fn print_json(value: &Value) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(CliError::new)?;
    writeln!(io::stdout().lock(), "{text}").map_err(CliError::stdout)
}

/// The first line of `--version`; none if the program does not print one in time.
fn version(program: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.arg("--version").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = command.spawn().ok()?;
    let deadline = Instant::now() + VERSION_TIMEOUT;
    while child.try_wait().ok()?.is_none() {
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            return None;
        }
        std::thread::sleep(VERSION_POLL_INTERVAL);
    }
    let output = child.wait_with_output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let line = text.lines().find(|l| !l.trim().is_empty())?.trim();
    Some(line.chars().filter(|c| !c.is_control()).take(MAX_VERSION_CHARS).collect())
}

/// Lists the sessions that an agent has stored itself.
fn list_sessions(args: &AgentsArgs, agent: &str) -> Result<(), CliError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    if agent.is_empty() || !agent.chars().all(is_plain) {
        return Err(unknown_agent(agent));
    }
    let data = data_dir(&args.data)?;
    let path = format!("/api/agents/{agent}/sessions");
    let list: Value = with_server(&args.redaction, &data, async |client, _| client.get(&path))?;
    if args.json {
        return print_json(&list["sessions"]);
    }
    let mut out = io::stdout().lock();
    let clock = Clock::local();
    let text = |value: &Value| escape::line(value.as_str().unwrap_or_default());
    for session in list["sessions"].as_array().into_iter().flatten() {
        let (id, project) = (text(&session["id"]), text(&session["project"]));
        let (at, title) = (text(&session["updatedAt"]), text(&session["title"]));
        let at = clock.format_timestamp(&at).unwrap_or_default();
        let title: String = title.chars().take(MAX_TITLE_CHARS).collect();
        let line = format!("{id}  {at:<12}  {project:<16}  {title}");
        writeln!(out, "{}", line.trim_end()).map_err(CliError::stdout)?;
    }
    Ok(())
}

pub(super) fn unknown_agent(name: &str) -> CliError {
    CliError::new(format!("unknown agent `{name}`")).hint("`narrows agents` lists agents")
}
