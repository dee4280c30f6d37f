//! An agent's process: its pipes, the tail of its standard error, and its exit. The only module of the
//! server that spawns processes.

use super::RunOptions;
use super::agents::AgentSpec;
use super::orphans;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::process::{ChildStdin, Command};
use tokio::sync::mpsc;

/// Bytes of standard error that are kept.
const MAX_STDERR_BYTES: usize = 64 << 10;
/// Bytes read at once, and how many chunks may queue.
const READ_CHUNK_BYTES: usize = 64 << 10;
const MAX_QUEUED_CHUNKS: usize = 4;
/// Lines that may queue for the agent's standard input.
const MAX_UNSENT_LINES: usize = 64;
/// How long the supervisor waits before it kills, and narrows before it kills the supervisor.
const KILL_GRACE: Duration = Duration::from_secs(3);
const SUPERVISOR_TIMEOUT: Duration = Duration::from_secs(15);
/// How long the output of an exited process may take to arrive.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// A line of an agent's output.
#[derive(Debug)]
pub(super) enum AgentLine {
    Text(Vec<u8>),
    /// A line that exceeds the limit; its length in bytes.
    TooLong(u64),
}

/// A running agent.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    lines: mpsc::Receiver<Vec<AgentLine>>,
    input: Option<mpsc::Sender<Vec<u8>>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    supervised: bool,
    /// When the process exited: its remaining output is still read for a moment.
    exited_at: Option<tokio::time::Instant>,
}

impl Child {
    /// Starts an agent in a directory.
    pub(super) fn start(
        spec: &AgentSpec,
        more: &[String],
        cwd: &Path,
        options: &RunOptions,
    ) -> Result<Child, String> {
        let path =
            options.env.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.as_os_str());
        let program = spec.program(path)?;
        if !cwd.is_dir() {
            return Err("the working directory does not exist".to_owned());
        }
        let mut command = command(options, &program);
        command.args(spec.argv.iter().skip(1).chain(more)).current_dir(cwd);
        command.envs(environment(spec, options)).stdin(Stdio::piped());
        let process = spawn(&mut command, options);
        let mut process = process.map_err(|e| format!("it cannot be started: {e}"))?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("cannot open its pipes".to_owned());
        };
        let (sender, lines) = mpsc::channel(MAX_QUEUED_CHUNKS);
        tokio::spawn(read_lines(stdout, sender));
        let stderr_tail = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(read_stderr(stderr, Arc::clone(&stderr_tail)));
        let (input, waiting) = mpsc::channel(MAX_UNSENT_LINES);
        tokio::spawn(write_lines(stdin, waiting));
        let keeper = options.keeper.is_some();
        Ok(Child {
            process,
            lines,
            input: Some(input),
            stderr: stderr_tail,
            supervised: keeper,
            exited_at: None,
        })
    }

    /// Receives the next lines; `None` at the end of the output. Cancelling the future loses nothing.
    pub(super) async fn lines(&mut self) -> Option<Vec<AgentLine>> {
        loop {
            let after = self.exited_at.map(|exited_at| exited_at + DRAIN_TIMEOUT);
            let id = self.process.id();
            tokio::select! {
                biased;
                lines = self.lines.recv() => return lines,
                status = self.process.wait(), if self.exited_at.is_none() => {
                    self.exited_at = Some(tokio::time::Instant::now());
                    // A supervisor that was killed has stopped nothing.
                    if self.supervised && status.is_ok_and(|status| status.code().is_none()) {
                        tokio::spawn(orphans::reap(id));
                    } else {
                        orphans::unregister(id);
                    }
                }
                // Another process still holds the pipe open.
                () = sleep_until(after) => return None,
            }
        }
    }

    /// Queues a line for the agent; returns false if the agent does not read.
    pub(super) fn send(&self, line: &str) -> bool {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.input.as_ref().is_some_and(|input| input.try_send(bytes).is_ok())
    }

    /// The last lines of its standard error.
    pub(super) fn stderr_tail(&self, lines: usize) -> String {
        let bytes = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let lines_found: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        lines_found[lines_found.len().saturating_sub(lines)..].join("\n")
    }

    /// Waits for the exit and describes it.
    pub(super) async fn wait_exit(&mut self) -> String {
        match self.process.wait().await {
            Ok(status) => describe_exit(status),
            Err(error) => format!("its exit status is unknown ({error})"),
        }
    }

    /// Stops the process and all its descendants.
    pub(super) async fn stop(mut self) -> String {
        // An agent that reads its input to the end exits by itself.
        self.input = None;
        let id = self.process.id();
        terminate(&mut self.process, self.supervised);
        let waited = tokio::time::timeout(SUPERVISOR_TIMEOUT, self.process.wait()).await;
        match waited {
            Ok(Ok(status)) => {
                if self.supervised && status.code().is_none() {
                    orphans::reap(id).await;
                }
                orphans::unregister(id);
                describe_exit(status)
            }
            Ok(Err(error)) => format!("its exit status is unknown ({error})"),
            Err(_) => {
                let _ = self.process.kill().await;
                if self.supervised {
                    orphans::reap(id).await;
                }
                "it was killed after a timeout".to_owned()
            }
        }
    }
}

/// A command under a supervisor, which lets no descendant survive; the environment is empty.
pub(super) fn command(options: &RunOptions, program: &Path) -> Command {
    let mut command = match &options.keeper {
        Some(keeper) => {
            let mut command = Command::new(keeper);
            command.args(["__supervise", "--grace", &KILL_GRACE.as_millis().to_string()]);
            command.args(["--parent", &std::process::id().to_string()]);
            if let Some(bytes) = options.limits.memory {
                command.args(["--memory", &bytes.to_string()]);
            }
            if let Some(count) = options.limits.processes {
                command.args(["--processes", &count.to_string()]);
            }
            command.arg("--").arg(program);
            command
        }
        None => Command::new(program),
    };
    command.env_clear().stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    #[cfg(unix)]
    command.process_group(0);
    // The supervisor must live to stop its processes.
    command.kill_on_drop(options.keeper.is_none());
    command
}

/// Spawns a command made by [`command`].
pub(super) fn spawn(
    command: &mut Command,
    options: &RunOptions,
) -> io::Result<tokio::process::Child> {
    if options.keeper.is_some() { orphans::spawn(command) } else { command.spawn() }
}

/// The environment of an agent.
pub(super) fn environment<'a>(
    spec: &'a AgentSpec,
    options: &'a RunOptions,
) -> impl Iterator<Item = (&'a OsStr, &'a OsStr)> {
    let given =
        |name: &OsString| name.to_str().is_some_and(|n| spec.env_allows(n, options.whole_env));
    let own = spec.values().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let all = options.env.iter().filter(move |(name, _)| given(name));
    all.map(|(name, value)| (name.as_os_str(), value.as_os_str())).chain(own)
}

/// Asks the supervisor of a process to stop it.
pub(super) fn terminate(process: &mut tokio::process::Child, supervised: bool) {
    #[cfg(unix)]
    if let Some(pid) = process.id().and_then(|id| i32::try_from(id).ok())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = if supervised {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        } else {
            rustix::process::kill_process_group(pid, rustix::process::Signal::KILL)
        };
    }
    #[cfg(not(unix))]
    {
        let _ = (supervised, process.start_kill());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        terminate(&mut self.process, self.supervised);
    }
}

/// Sleeps until a deadline, or forever.
async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

fn describe_exit(status: std::process::ExitStatus) -> String {
    match status.code() {
        Some(0) => "it ended by itself".to_owned(),
        Some(code) if code > 128 => format!("it was ended by signal {}", code - 128),
        Some(code) => format!("it ended with code {code}"),
        None => "it was killed".to_owned(),
    }
}

/// Splits the agent's output into lines. The bounded channel sets the pace.
async fn read_lines(mut from: impl AsyncRead + Unpin, sender: mpsc::Sender<Vec<AgentLine>>) {
    let max = crate::ingest::MAX_PACKET_BYTES;
    let (mut chunk, mut held, mut lost) = (vec![0; READ_CHUNK_BYTES], Vec::new(), 0_u64);
    loop {
        let n = match from.read(&mut chunk).await {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        let mut lines = Vec::new();
        for part in chunk[..n].split_inclusive(|b| *b == b'\n') {
            let (text, whole) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            if lost > 0 || held.len() + text.len() > max {
                lost += (held.len() + text.len()) as u64;
                held = Vec::new();
            } else {
                held.extend_from_slice(text);
            }
            if whole {
                let line = std::mem::take(&mut held);
                lines.push(if lost > 0 { AgentLine::TooLong(lost) } else { AgentLine::Text(line) });
                lost = 0;
            }
        }
        if !lines.is_empty() && sender.send(lines).await.is_err() {
            return;
        }
    }
    if !held.is_empty() || lost > 0 {
        let line = if lost > 0 { AgentLine::TooLong(lost) } else { AgentLine::Text(held) };
        let _ = sender.send(vec![line]).await;
    }
}

/// Reads standard error to its end and keeps the tail.
async fn read_stderr(mut from: impl AsyncRead + Unpin, tail: Arc<Mutex<VecDeque<u8>>>) {
    let mut chunk = vec![0; 8 << 10];
    while let Ok(n @ 1..) = from.read(&mut chunk).await {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend(&chunk[..n]);
        let excess = tail.len().saturating_sub(MAX_STDERR_BYTES);
        tail.drain(..excess);
    }
}

async fn write_lines(mut to: ChildStdin, mut waiting: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = waiting.recv().await {
        to.write_all(&line).await?;
        to.flush().await?;
    }
    to.shutdown().await
}
