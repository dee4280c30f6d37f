//! `narrows run`: runs an agent for one turn in the terminal.

mod agent_request;
mod line_reader;
mod permission_prompt;

use super::agents::unknown_agent;
use super::live_transcript::LiveTranscript;
use crate::args::{RedactionArgs, RunArgs};
use crate::client::Client;
use crate::config::{RedactionSettings, data_dir, run_options};
use crate::error::{CliError, ErrorKind};
use crate::local_store::{resolve_session, store_error};
use crate::output::terminal_style;
use crate::runtime::runtime;
use narrows_server::{HiddenOptions, ServeConfig, Server};
use narrows_store::Store;
use permission_prompt::{PermissionPolicy, PermissionPrompter};
use serde::Deserialize;
use serde_json::{Value, json};
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often the log and the state of the run are polled.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The fields of a run's state that matter here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RunStatus {
    state: String,
    queue: Vec<Value>,
    turn: Option<Value>,
    requests: Vec<String>,
    #[serde(default)]
    deny_reasons: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AgentList {
    allow_run: bool,
    agents: Vec<AgentEntry>,
}

#[derive(Debug, Deserialize)]
struct AgentEntry {
    name: String,
    installed: bool,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct CreatedRun {
    id: String,
}

#[derive(Debug, PartialEq, Eq)]
enum TurnOutcome {
    Completed,
    Failed,
    Cancelled,
    /// The agent asked and nobody could answer; holds a message about it.
    Unanswered(String),
}

impl TurnOutcome {
    fn exit_code(&self) -> u8 {
        match self {
            TurnOutcome::Completed => 0,
            TurnOutcome::Failed => 1,
            TurnOutcome::Unanswered(_) => 4,
            // 128 + SIGINT, as in a shell.
            TurnOutcome::Cancelled => 130,
        }
    }
}

/// Runs one turn; the exit code says how it ended.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let error = match try_run(args) {
        Ok(outcome) => {
            if let TurnOutcome::Unanswered(message) = &outcome {
                let _ = writeln!(io::stderr(), "narrows: {message}");
            }
            return ExitCode::from(outcome.exit_code());
        }
        Err(error) if error.is(ErrorKind::BrokenPipe) => return error.exit_code(),
        Err(error) => error.to_string(),
    };
    if args.json {
        let line = json!({"type": "error", "code": "NOT_RUN", "message": error});
        let _ = writeln!(io::stdout(), "{line}");
    }
    let _ = writeln!(io::stderr(), "narrows: {error}");
    ExitCode::from(TurnOutcome::Failed.exit_code())
}

fn try_run(args: &RunArgs) -> Result<TurnOutcome, CliError> {
    let prompt = read_prompt(args)?;
    let data = data_dir(&args.data)?;
    with_server(&args.redaction, &data, async |client: &Client, server: Option<&Server>| {
        let store = match server {
            Some(server) => server.app().store.clone(),
            None => Store::open_read_only(&data).map_err(store_error)?,
        };
        run_turn(args, client, &store, &prompt, server.is_some()).await
    })
}

fn read_prompt(args: &RunArgs) -> Result<String, CliError> {
    if let Some(prompt) = &args.prompt {
        return Ok(prompt.clone());
    }
    if io::stdin().is_terminal() {
        return Err(CliError::new("no prompt given").hint("use narrows run \"…\""));
    }
    let mut text = String::new();
    io::stdin()
        .lock()
        .read_to_string(&mut text)
        .map_err(CliError::cannot("read standard input"))?;
    Ok(text)
}

/// Runs a task with the running server, else with a private one that lives as long as the task.
pub(super) fn with_server<T>(
    redaction: &RedactionArgs,
    data: &Path,
    task: impl AsyncFnOnce(&Client, Option<&Server>) -> Result<T, CliError>,
) -> Result<T, CliError> {
    runtime()?.block_on(async {
        if let Some(client) = Client::find(data)? {
            return task(&client, None).await;
        }
        let server = start_private_server(redaction, data).await?;
        let result = match Client::find(data) {
            Ok(Some(client)) => task(&client, Some(&server)).await,
            Ok(None) => Err(CliError::new("cannot reach the private server")),
            Err(error) => Err(error),
        };
        server.stop().await;
        result
    })
}

/// Starts a server on a free loopback port.
async fn start_private_server(redaction: &RedactionArgs, data: &Path) -> Result<Server, CliError> {
    let settings = RedactionSettings::load_for_this_machine(redaction)?;
    let config = ServeConfig {
        data: data.to_owned(),
        bind: ([127, 0, 0, 1], 0).into(),
        run: run_options(redaction, data, true, true)?,
        ..ServeConfig::default()
    };
    let hidden = HiddenOptions { paths: settings.paths, secrets: settings.secrets };
    Server::start(config, hidden).await.map_err(CliError::from)
}

/// Creates a run and returns the id of its session.
fn create_run(args: &RunArgs, client: &Client) -> Result<String, CliError> {
    let list: AgentList = client.get("/api/agents")?;
    if !list.allow_run {
        return Err(CliError::new("cannot run an agent: the running server does not allow it")
            .hint("start it with `narrows serve --allow-run`, or stop it"));
    }
    let agent = match &args.agent {
        Some(name) => {
            list.agents.iter().find(|a| a.name == *name).ok_or_else(|| unknown_agent(name))
        }
        None => list.agents.iter().find(|a| a.installed).ok_or_else(|| {
            CliError::new("no known agent is installed").hint("`narrows agents` lists agents")
        }),
    }?;
    if let Some(problem) = &agent.problem {
        return Err(CliError::new(problem));
    }
    let cwd = match (&args.cwd, &args.resume) {
        (Some(cwd), _) => Some(cwd.clone()),
        // The agent knows where its own session works.
        (None, Some(_)) => None,
        (None, None) => {
            let cwd = std::env::current_dir();
            Some(cwd.map_err(CliError::cannot("find the current directory"))?)
        }
    };
    let canonical = |dir: &PathBuf| match dir.canonicalize() {
        Ok(dir) => Ok(dir.to_string_lossy().into_owned()),
        Err(error) => Err(CliError::cannot(format!("open {}", dir.display()))(error)),
    };
    let cwd = cwd.as_ref().map(canonical).transpose()?;
    let additional: Result<Vec<String>, CliError> = args.add_dir.iter().map(canonical).collect();
    let body = json!({
        "agent": agent.name, "cwd": cwd, "mode": args.mode, "model": args.model,
        "additionalDirectories": additional?, "nativeId": args.resume,
    });
    Ok(client.post::<CreatedRun>("/api/runs", &body)?.id)
}

/// Waits until an agent that resumes its own session has replayed its messages, which are not part
/// of the turn.
async fn wait_for_replay(client: &Client, id: &str) -> Result<(), CliError> {
    while client.get::<RunStatus>(&format!("/api/sessions/{id}/run"))?.state == "starting" {
        tokio::time::sleep(POLL_INTERVAL).await;
    }
    Ok(())
}

/// Runs the turn. A private server, and with it the agent, ends after the turn.
async fn run_turn(
    args: &RunArgs,
    client: &Client,
    store: &Store,
    prompt: &str,
    private_server: bool,
) -> Result<TurnOutcome, CliError> {
    let id = match &args.session {
        Some(name) => resolve_session(store, name).await?.id,
        None => create_run(args, client)?,
    };
    if args.resume.is_some() {
        wait_for_replay(client, &id).await?;
    }
    let mut style = terminal_style(None, args.color);
    (style.tools, style.thinking) = (args.tool_output, args.thinking);
    let style = Some(style).filter(|_| !args.json);
    let row = store.session_row(&id).await.map_err(store_error)?;
    let out = BufWriter::new(io::stdout());
    let mut transcript = LiveTranscript::from_now(store, row, out, style).await?;
    let mut interrupts =
        signal(SignalKind::interrupt()).map_err(CliError::cannot("listen for signals"))?;
    let sent: Value = client.post(
        &format!("/api/sessions/{id}/send-message?wait=false"),
        &json!({"content": prompt}),
    )?;
    let message = sent["id"].as_str().unwrap_or_default().to_owned();
    if args.json {
        let run = json!({"type": "run", "sessionId": id, "messageId": message});
        transcript.print_json_line(&run.to_string()).map_err(CliError::stdout)?;
    }
    let policy = match (args.yes, args.no) {
        (true, _) => PermissionPolicy::Allow,
        (_, true) => PermissionPolicy::Deny,
        _ => PermissionPolicy::Ask,
    };
    let mut prompter = PermissionPrompter::new(policy);
    transcript.hide_requests = prompter.prompts();
    let cancel = || -> Result<(), CliError> {
        client.post::<Value>(&format!("/api/sessions/{id}/cancel"), &json!({})).map(drop)
    };
    let (mut cancelled, mut unanswered) = (false, None);
    loop {
        if !args.json {
            transcript.print_new(store).await?;
        }
        let run: RunStatus = client.get(&format!("/api/sessions/{id}/run"))?;
        let is_ours = |entry: &Value| entry["id"].as_str() == Some(&message);
        if !run.queue.iter().any(is_ours) && !run.turn.as_ref().is_some_and(is_ours) {
            break;
        }
        transcript.print_new(store).await?;
        if let Some(problem) = prompter.poll(client, &id, &run, transcript.items())? {
            // The agent would wait forever.
            cancel()?;
            unanswered.get_or_insert(problem);
        }
        tokio::select! {
            line = prompter.next_line() => {
                let line = line.map_err(CliError::cannot("read standard input"))?;
                prompter.on_line(client, &id, line.as_deref())?;
            }
            _ = interrupts.recv() => {
                prompter.dismiss();
                if cancelled {
                    let _: Value = client.post(&format!("/api/sessions/{id}/stop"), &json!({}))?;
                } else {
                    let _ = writeln!(io::stderr(), "\ncancelling the turn; Ctrl-C again ends the agent");
                    cancel()?;
                    cancelled = true;
                }
            }
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
    if args.json {
        transcript.stop_after_message(store, message.parse().unwrap_or_default()).await?;
    }
    transcript.print_new(store).await?;
    let open = prompter.open_requests(client, &id, transcript.items(), private_server)?;
    for request in &open {
        transcript.print_json_line(&request.json.to_string()).map_err(CliError::stdout)?;
    }
    let messages = open.into_iter().map(|request| request.message);
    let open = messages.reduce(|all, more| all + "\nnarrows: " + &more);
    let _ = writeln!(io::stderr(), "\nnarrows show {id}  ·  narrows run --session {id} \"…\"");
    Ok(match unanswered {
        Some(problem) => TurnOutcome::Unanswered(problem),
        None if cancelled || transcript.was_cancelled() => TurnOutcome::Cancelled,
        None if transcript.has_failed() => TurnOutcome::Failed,
        None => open.map_or(TurnOutcome::Completed, TurnOutcome::Unanswered),
    })
}
