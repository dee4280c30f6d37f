//! `narrows acp`: a proxy between an editor and its agent that records their sessions.
//!
//! The recording never delays or changes the bytes that pass. Bytes go `pump` → `queue` → `record`
//! → spool file → `uploader` → server.

mod message_info;
mod pump;
mod queue;
mod record;
mod router;
mod signals;
mod spool_file;
mod uploader;

use crate::args::AcpArgs;
use crate::config::data_dir;
use pump::{PumpProgress, pump};
use queue::{CaptureQueue, Peer};
use record::{Recorder, RecordingInfo};
use signals::SignalForwarder;
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
use uploader::{UploadQueue, Uploader};

/// The exit codes of a shell for a program that cannot be started, and for one that does not exist.
const CANNOT_START: u8 = 126;
const NOT_FOUND: u8 = 127;
/// After the agent exits, the rest of its output is passed on until nothing comes for this long:
/// another process may hold its output open.
const DRAIN_IDLE_TIMEOUT: Duration = Duration::from_millis(250);
/// How long an editor may block the rest of the output.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(10);
/// How long the recording may take to end. What is not uploaded by then stays in its spool file.
const UPLOAD_TIMEOUT: Duration = Duration::from_secs(3);

/// Runs the agent; returns its exit code.
pub(crate) fn run(args: &AcpArgs) -> ExitCode {
    match proxy(args) {
        Ok(status) => {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            ExitCode::from(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1))
        }
        Err((code, message)) => {
            let _ = writeln!(io::stderr(), "narrows: {message}");
            ExitCode::from(code)
        }
    }
}

fn proxy(args: &AcpArgs) -> Result<ExitStatus, (u8, String)> {
    let cannot = |e: io::Error| (CANNOT_START, format!("cannot start the proxy: {e}"));
    // Before the agent starts, so that no signal is missed.
    let signals = SignalForwarder::listen().map_err(cannot)?;
    let (input, output) = take_stdio().map_err(cannot)?;
    let mut agent = spawn_agent(args)?;
    signals.set_target(agent.id());
    let queue = Arc::<CaptureQueue>::default();
    let recording = start_recording(args, &queue);
    let progress = Arc::<PumpProgress>::default();
    if let Some(to_agent) = agent.stdin.take() {
        let queue = Arc::clone(&queue);
        let to_agent = File::from(std::os::fd::OwnedFd::from(to_agent));
        thread::spawn(move || {
            pump(input, to_agent, Peer::Client, &queue, &PumpProgress::default());
        });
    }
    if let Some(from_agent) = agent.stdout.take() {
        let (queue, progress) = (Arc::clone(&queue), Arc::clone(&progress));
        let from_agent = File::from(std::os::fd::OwnedFd::from(from_agent));
        thread::spawn(move || pump(from_agent, output, Peer::Agent, &queue, &progress));
    }
    let status = signals.wait(&mut agent).map_err(cannot)?;
    progress.wait_drained(DRAIN_IDLE_TIMEOUT, DRAIN_TIMEOUT);
    queue.close();
    let deadline = Instant::now() + UPLOAD_TIMEOUT;
    for thread in recording {
        let _ = thread.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
    Ok(status)
}

/// Moves standard input and output out of this process, so that dropping them closes them for the
/// editor.
fn take_stdio() -> io::Result<(File, File)> {
    let input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let output = File::from(io::stdout().as_fd().try_clone_to_owned()?);
    rustix::stdio::dup2_stdin(File::open("/dev/null")?)?;
    rustix::stdio::dup2_stdout(File::options().write(true).open("/dev/null")?)?;
    Ok((input, output))
}

fn spawn_agent(args: &AcpArgs) -> Result<Child, (u8, String)> {
    let (program, arguments) =
        args.command.split_first().ok_or((2, "no agent command given".to_owned()))?;
    let spawned =
        Command::new(program).args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
    spawned.map_err(|e| {
        let code = if e.kind() == ErrorKind::NotFound { NOT_FOUND } else { CANNOT_START };
        (code, format!("cannot start {}: {e}", program.display()))
    })
}

/// Starts the recorder and the uploader; each receiver gets a message when its thread ends.
fn start_recording(args: &AcpArgs, queue: &Arc<CaptureQueue>) -> Vec<Receiver<()>> {
    let data = match data_dir(&args.data) {
        Ok(data) => std::path::absolute(&data).unwrap_or(data),
        Err(error) => {
            let _ = writeln!(io::stderr(), "narrows: not recording: {error}");
            return Vec::new();
        }
    };
    let program = args.command.first().map(Path::new).and_then(Path::file_name);
    let agent = program.unwrap_or_default().to_string_lossy().into_owned();
    let name = args.label.clone().unwrap_or_else(|| agent.clone());
    let cwd = std::env::current_dir().unwrap_or_default().to_string_lossy().into_owned();
    let run = format!("{:x}-{:x}", narrows_store::now(), std::process::id());
    let uploads = Arc::<UploadQueue>::default();
    let info = RecordingInfo { data: data.clone(), agent, name, cwd, run };
    let recorder = Recorder::new(info, Arc::clone(&uploads));
    let queue = Arc::clone(queue);
    vec![spawn(move || recorder.run(&queue)), spawn(move || Uploader::new(&data).run(&uploads))]
}

/// Runs a thread; the receiver gets a message when it ends.
fn spawn(work: impl FnOnce() + Send + 'static) -> Receiver<()> {
    let (ended, receiver) = channel();
    thread::spawn(move || {
        work();
        let _ = ended.send(());
    });
    receiver
}
