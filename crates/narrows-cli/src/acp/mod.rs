//! `narrows acp`: stands between an editor and its agent, and records what they say. Nothing that
//! happens to the recording is felt by either side.

mod args;
mod facts;
mod pump;
mod queue;
mod record;
mod send;
mod signals;
mod sort;
mod spooled;

pub(crate) use args::{ACP_EXAMPLES, AcpArgs};

use crate::settings::data_dir;
use pump::{Progress, pump};
use queue::{From, Queue};
use record::{About, Recorder};
use send::{Outbox, Sender};
use signals::Signals;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitCode, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

/// What a shell says of a program that it could not start, and of one that is not there.
const NOT_STARTED: u8 = 126;
const NOT_FOUND: u8 = 127;
/// When the agent is gone, what it said last is passed on: until nothing comes for so long (some
/// other process may hold its output open), and as long as the editor takes it.
const QUIET: Duration = Duration::from_millis(250);
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the recording may take to end; what is not sent by then stays in its file.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// Runs the agent and leaves with its code.
pub(crate) fn run(args: &AcpArgs) -> ExitCode {
    match proxy(args) {
        Ok(status) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err((code, words)) => {
            let _ = writeln!(io::stderr(), "narrows: {words}");
            ExitCode::from(code)
        }
    }
}

fn proxy(args: &AcpArgs) -> Result<ExitStatus, (u8, String)> {
    let cannot = |e: io::Error| (NOT_STARTED, format!("cannot stand before an agent: {e}"));
    // Before there is an agent: no signal falls in between.
    let signals = Signals::listen().map_err(cannot)?;
    let (input, output) = sides().map_err(cannot)?;
    let mut agent = start(args)?;
    signals.pass_to(agent.id());
    let queue = Arc::<Queue>::default();
    let ended = record(args, &queue);
    let said = Arc::<Progress>::default();
    if let Some(to_agent) = agent.stdin.take() {
        let queue = Arc::clone(&queue);
        let to_agent = File::from(std::os::fd::OwnedFd::from(to_agent));
        thread::spawn(move || {
            pump(input, to_agent, From::Client, &queue, &Progress::default());
        });
    }
    if let Some(from_agent) = agent.stdout.take() {
        let (queue, said) = (Arc::clone(&queue), Arc::clone(&said));
        let from_agent = File::from(std::os::fd::OwnedFd::from(from_agent));
        thread::spawn(move || pump(from_agent, output, From::Agent, &queue, &said));
    }
    let status = signals.wait(&mut agent).map_err(cannot)?;
    said.drain(QUIET, PATIENCE);
    queue.close();
    let until = Instant::now() + LAST_WORDS;
    for end in ended {
        let _ = end.recv_timeout(until.saturating_duration_since(Instant::now()));
    }
    Ok(status)
}

/// Standard input and output, taken from this process: when they are dropped they are closed, and
/// the editor sees that.
fn sides() -> io::Result<(File, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok((input, output))
}

fn start(args: &AcpArgs) -> Result<Child, (u8, String)> {
    let (program, rest) = args.command.split_first().ok_or((2, "name an agent".to_owned()))?;
    let started =
        Command::new(program).args(rest).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    started.map_err(|e| {
        let code = if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { NOT_STARTED };
        (code, format!("{}: {e}", program.display()))
    })
}

/// Starts the recording; what is returned tells when its parts have ended.
fn record(args: &AcpArgs, queue: &Arc<Queue>) -> Vec<Receiver<()>> {
    let data = match data_dir(&args.data) {
        Ok(data) => std::path::absolute(&data).unwrap_or(data),
        Err(fault) => {
            let _ = writeln!(io::stderr(), "narrows: nothing is recorded: {}", fault.error);
            return Vec::new();
        }
    };
    let program = args.command.first().map(Path::new).and_then(Path::file_name);
    let agent = program.unwrap_or_default().to_string_lossy().into_owned();
    let name = args.label.clone().unwrap_or_else(|| agent.clone());
    let cwd = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    let run = format!("{:x}-{:x}", narrows_store::now(), std::process::id());
    let outbox = Arc::<Outbox>::default();
    let about = About { data: data.clone(), agent, name, cwd, run };
    let recorder = Recorder::new(about, Arc::clone(&outbox));
    let queue = Arc::clone(queue);
    vec![
        background(move || recorder.run(&queue)),
        background(move || Sender::new(&data).run(&outbox)),
    ]
}

/// Runs something beside; the receiver is told when it has ended.
fn background(work: impl FnOnce() + Send + 'static) -> Receiver<()> {
    let (ended, told) = channel();
    thread::spawn(move || {
        work();
        let _ = ended.send(());
    });
    told
}
