//! `narrows run`: one turn of an agent, in the terminal.

mod asking;
mod question;
mod sessions;
mod terminal;

use crate::args::{HideArgs, RunArgs};
use crate::client::Client;
use crate::library::{failed, session};
use crate::running::run_options;
use crate::settings::data_dir;
use crate::show::style;
use crate::watch::Watched;
use crate::{Fault, fault, hide, serve};
use asking::{Asking, Policy};
use narrows_server::{HiddenOptions, ServeConfig, Server};
use narrows_store::Store;
use serde::Deserialize;
use serde_json::{Value, json};
pub(crate) use sessions::sessions;
use std::io::{self, BufWriter, IsTerminal, Read, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};

/// How often the log and the run are looked at.
const LOOK: Duration = Duration::from_millis(50);

/// How a run stands, as far as it matters here.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Run {
    state: String,
    queue: Vec<Value>,
    turn: Option<Value>,
    requests: Vec<String>,
    #[serde(default)]
    deny_reasons: bool,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Agents {
    allow_run: bool,
    agents: Vec<Agent>,
}

#[derive(Debug, Deserialize)]
struct Agent {
    name: String,
    installed: bool,
    problem: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Made {
    id: String,
}

/// How a turn ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    Done,
    Failed,
    Cancelled,
    /// The agent asked, and nobody could answer; what it asked.
    Unanswered(String),
}

impl End {
    fn code(&self) -> u8 {
        match self {
            End::Done => 0,
            End::Failed => 1,
            End::Unanswered(_) => 4,
            // As shells tell of a program that Ctrl-C ended.
            End::Cancelled => 130,
        }
    }
}

/// Runs one turn; the exit code says how it ended.
pub(crate) fn run(args: &RunArgs) -> ExitCode {
    let words = match try_run(args) {
        Ok(end) => {
            if let End::Unanswered(words) = &end {
                let _ = writeln!(io::stderr(), "narrows: {words}");
            }
            return ExitCode::from(end.code());
        }
        // Whoever read our output has had enough: that is no failure.
        Err(fault) if fault.error.kind() == io::ErrorKind::BrokenPipe => return ExitCode::SUCCESS,
        Err(fault) => fault.words(),
    };
    if args.json {
        let error = json!({"type": "error", "code": "NOT_RUN", "message": words});
        let _ = writeln!(io::stdout(), "{error}");
    }
    let _ = writeln!(io::stderr(), "narrows: {words}");
    ExitCode::from(End::Failed.code())
}

fn try_run(args: &RunArgs) -> Result<End, Fault> {
    let prompt = prompt(args)?;
    let data = data_dir(&args.data)?;
    let runtime = serve::runtime()?;
    runtime.block_on(async {
        let (client, own) = if let Some(client) = Client::find(&data)? {
            (client, None)
        } else {
            let server = own_server(&args.hide, &data).await?;
            let client = Client::find(&data)?.ok_or_else(|| fault("the server is not there"))?;
            (client, Some(server))
        };
        let store = match &own {
            Some(server) => server.app().store.clone(),
            None => Store::open_read_only(&data).map_err(failed)?,
        };
        let done = turn(args, &client, &store, &prompt).await;
        if let Some(server) = own {
            server.stop().await;
        }
        done
    })
}

fn prompt(args: &RunArgs) -> Result<String, Fault> {
    if let Some(prompt) = &args.prompt {
        return Ok(prompt.clone());
    }
    if io::stdin().is_terminal() {
        return Err(fault("say what the agent is to do: narrows run \"…\""));
    }
    let mut text = String::new();
    io::stdin().lock().read_to_string(&mut text).map_err(Fault::new("standard input"))?;
    Ok(text)
}

/// A server for as long as the turn takes, that only this machine reaches.
async fn own_server(hide: &HideArgs, data: &Path) -> Result<Server, Fault> {
    let hidden = hide::Hidden::at_home(hide)?;
    let config = ServeConfig {
        data: data.to_owned(),
        bind: ([127, 0, 0, 1], 0).into(),
        run: run_options(hide, data, true, true)?,
        ..ServeConfig::default()
    };
    let hidden = HiddenOptions { paths: hidden.paths, secrets: hidden.secrets };
    Server::start(config, hidden).await.map_err(Fault::new(""))
}

/// A new session.
fn begin(args: &RunArgs, client: &Client) -> Result<String, Fault> {
    let known: Agents = client.get("/api/agents")?;
    if !known.allow_run {
        let what = "the running server does not run agents: start it with `narrows serve --allow-run`, or stop it";
        return Err(fault(what));
    }
    let agent = match &args.agent {
        Some(name) => known.agents.iter().find(|a| a.name == *name),
        None => known.agents.iter().find(|a| a.installed),
    };
    let Some(agent) = agent else {
        let what =
            "none of the agents that narrows knows is installed: `narrows agents` lists them";
        return Err(fault(args.agent.as_ref().map_or(what.to_owned(), |name| {
            format!("there is no agent `{name}`: `narrows agents` lists them")
        })));
    };
    if let Some(problem) = &agent.problem {
        return Err(fault(problem.clone()));
    }
    let cwd = match (&args.cwd, &args.resume) {
        (Some(cwd), _) => Some(cwd.clone()),
        // It works where its agent says.
        (None, Some(_)) => None,
        (None, None) => Some(std::env::current_dir().map_err(Fault::new("this folder"))?),
    };
    let whole = |cwd: PathBuf| cwd.canonicalize().map_err(Fault::new(cwd.display().to_string()));
    let cwd = cwd.map(whole).transpose()?;
    let mut beside = Vec::new();
    for dir in &args.add_dir {
        let real = dir.canonicalize().map_err(Fault::new(dir.display().to_string()))?;
        beside.push(real.to_string_lossy().into_owned());
    }
    let body = json!({
        "agent": agent.name, "cwd": cwd.map(|cwd| cwd.to_string_lossy().into_owned()),
        "mode": args.mode, "model": args.model, "additionalDirectories": beside,
        "nativeId": args.resume,
    });
    Ok(client.post::<Made>("/api/runs", &body)?.id)
}

/// Waits until an agent that takes a session up has told what was said before: that is no part of
/// the turn.
async fn told(client: &Client, id: &str) -> Result<(), Fault> {
    while client.get::<Run>(&format!("/api/sessions/{id}/run"))?.state == "starting" {
        tokio::time::sleep(LOOK).await;
    }
    Ok(())
}

async fn turn(args: &RunArgs, client: &Client, store: &Store, prompt: &str) -> Result<End, Fault> {
    let id = match &args.session {
        Some(name) => session(store, name).await?.id,
        None => begin(args, client)?,
    };
    if args.resume.is_some() {
        told(client, &id).await?;
    }
    let mut style = style::of_terminal(None, args.color);
    (style.tools, style.thinking) = (args.tools, args.thinking);
    let style = Some(style).filter(|_| !args.json);
    let row = store.session_row(&id).await.map_err(failed)?;
    let out = BufWriter::new(io::stdout());
    let mut watched = Watched::after(store, row, out, style).await?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(Fault::new("signals"))?;
    let sent: Value = client.post(
        &format!("/api/sessions/{id}/send-message?wait=false"),
        &json!({"content": prompt}),
    )?;
    let message = sent["id"].as_str().unwrap_or_default().to_owned();
    if args.json {
        let run = json!({"type": "run", "sessionId": id, "messageId": message});
        watched.line(&run.to_string()).map_err(Fault::new("standard output"))?;
    }
    let policy = match (args.yes, args.no) {
        (true, _) => Policy::Allow,
        (_, true) => Policy::Deny,
        _ => Policy::Ask,
    };
    let mut asking = Asking::new(policy);
    watched.hide_asks = asking.shows();
    let (mut cancelled, mut unanswered) = (false, None);
    loop {
        if !args.json {
            watched.go_on(store).await?;
        }
        let run: Run = client.get(&format!("/api/sessions/{id}/run"))?;
        let is = |one: &Value| one["id"].as_str() == Some(&message);
        if !run.queue.iter().any(is) && !run.turn.as_ref().is_some_and(is) {
            break;
        }
        watched.go_on(store).await?;
        if let Some(words) = asking.look(client, &id, &run, watched.items())? {
            // The agent would wait for ever.
            let _: Value = client.post(&format!("/api/sessions/{id}/cancel"), &json!({}))?;
            unanswered.get_or_insert(words);
        }
        tokio::select! {
            line = asking.line() => {
                let line = line.map_err(Fault::new("standard input"))?;
                asking.take(client, &id, line.as_deref())?;
            }
            _ = interrupted.recv() => {
                asking.drop_open();
                if cancelled {
                    let _: Value = client.post(&format!("/api/sessions/{id}/stop"), &json!({}))?;
                } else {
                    let _ = writeln!(io::stderr(), "\ncancelling; once more ends the agent");
                    let _: Value = client.post(&format!("/api/sessions/{id}/cancel"), &json!({}))?;
                    cancelled = true;
                }
            }
            () = tokio::time::sleep(LOOK) => {}
        }
    }
    if args.json {
        watched.ends_with(store, message.parse().unwrap_or_default()).await?;
    }
    watched.go_on(store).await?;
    let _ = writeln!(io::stderr(), "\nnarrows show {id}  ·  narrows run --session {id} \"…\"");
    Ok(match unanswered {
        Some(words) => End::Unanswered(words),
        None if cancelled || watched.was_cancelled() => End::Cancelled,
        None if watched.has_failed() => End::Failed,
        None => End::Done,
    })
}
