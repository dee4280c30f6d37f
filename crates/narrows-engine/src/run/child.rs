//! An agent's process: its pipes, the end of its standard error, and its own end. The only place
//! of the server that spawns.

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

/// What is kept of standard error.
const MAX_STDERR: usize = 64 << 10;
/// What is read at once, and how many such pieces may wait.
const PIECE: usize = 64 << 10;
const PIECES: usize = 4;
/// Lines that may wait for the agent to read them.
const MAX_UNREAD: usize = 64;
/// How long the keeper waits before it kills, and narrows for the keeper.
const GRACE: Duration = Duration::from_secs(3);
const KEEPER: Duration = Duration::from_secs(15);
/// How long the last lines of an agent may take whose process has left.
const LAST_LINES: Duration = Duration::from_secs(2);

/// A line of an agent.
#[derive(Debug)]
pub(super) enum Line {
    Text(Vec<u8>),
    /// One that is too long to be kept.
    TooLong(u64),
}

/// A running agent.
#[derive(Debug)]
pub(super) struct Child {
    process: tokio::process::Child,
    lines: mpsc::Receiver<Vec<Line>>,
    input: Option<mpsc::Sender<Vec<u8>>>,
    stderr: Arc<Mutex<VecDeque<u8>>>,
    kept: bool,
    /// Its process has left, and when: what it said last is still read for a moment.
    left: Option<tokio::time::Instant>,
}

impl Child {
    /// Starts an agent in a folder.
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
            return Err("the folder of the session is not there any more".to_owned());
        }
        let mut command = command(options, &program);
        command.args(spec.argv.iter().skip(1).chain(more)).current_dir(cwd);
        command.envs(environment(spec, options)).stdin(Stdio::piped());
        let process = spawn(&mut command, options);
        let mut process = process.map_err(|e| format!("it cannot be started: {e}"))?;
        let pipes = (process.stdin.take(), process.stdout.take(), process.stderr.take());
        let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err("it has no pipes".to_owned());
        };
        let (tell, lines) = mpsc::channel(PIECES);
        tokio::spawn(read_lines(stdout, tell));
        let kept = Arc::new(Mutex::new(VecDeque::new()));
        tokio::spawn(read_end(stderr, Arc::clone(&kept)));
        let (input, waiting) = mpsc::channel(MAX_UNREAD);
        tokio::spawn(write_lines(stdin, waiting));
        let keeper = options.keeper.is_some();
        Ok(Child { process, lines, input: Some(input), stderr: kept, kept: keeper, left: None })
    }

    /// The next lines; none when the agent says nothing any more. Whoever stops waiting loses nothing.
    pub(super) async fn lines(&mut self) -> Option<Vec<Line>> {
        loop {
            let after = self.left.map(|left| left + LAST_LINES);
            let id = self.process.id();
            tokio::select! {
                biased;
                lines = self.lines.recv() => return lines,
                status = self.process.wait(), if self.left.is_none() => {
                    self.left = Some(tokio::time::Instant::now());
                    // A keeper that was killed has ended nothing.
                    if self.kept && status.is_ok_and(|status| status.code().is_none()) {
                        tokio::spawn(orphans::end(id));
                    } else {
                        orphans::forget(id);
                    }
                }
                // Something else has its output.
                () = until(after) => return None,
            }
        }
    }

    /// Gives a line to the agent; false when it reads none.
    pub(super) fn send(&self, line: &str) -> bool {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.input.as_ref().is_some_and(|input| input.try_send(bytes).is_ok())
    }

    /// The last lines of its standard error.
    pub(super) fn last_words(&self, lines: usize) -> String {
        let bytes = self.stderr.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = bytes.iter().copied().collect();
        let text = String::from_utf8_lossy(&bytes);
        let said: Vec<&str> = text.lines().filter(|l| !l.trim().is_empty()).collect();
        said[said.len().saturating_sub(lines)..].join("\n")
    }

    /// Waits for its end, in words.
    pub(super) async fn ended(&mut self) -> String {
        match self.process.wait().await {
            Ok(status) => words(status),
            Err(error) => format!("nobody knows how it ended ({error})"),
        }
    }

    /// Ends it and everything that it has started.
    pub(super) async fn stop(mut self) -> String {
        // An agent that reads its input to the end leaves by itself.
        self.input = None;
        let id = self.process.id();
        terminate(&mut self.process, self.kept);
        let waited = tokio::time::timeout(KEEPER, self.process.wait()).await;
        match waited {
            Ok(Ok(status)) => {
                if self.kept && status.code().is_none() {
                    orphans::end(id).await;
                }
                orphans::forget(id);
                words(status)
            }
            Ok(Err(error)) => format!("nobody knows how it ended ({error})"),
            Err(_) => {
                let _ = self.process.kill().await;
                if self.kept {
                    orphans::end(id).await;
                }
                "it had to be killed".to_owned()
            }
        }
    }
}

/// A program below a keeper, which lets nothing of it live on; with an empty environment.
pub(super) fn command(options: &RunOptions, program: &Path) -> Command {
    let mut command = match &options.keeper {
        Some(keeper) => {
            let mut command = Command::new(keeper);
            command.args(["__supervise", "--grace", &GRACE.as_millis().to_string()]);
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
    // What is kept is ended by its keeper, which has to live for that.
    command.kill_on_drop(options.keeper.is_none());
    command
}

/// Starts what [`command`] has made.
pub(super) fn spawn(
    command: &mut Command,
    options: &RunOptions,
) -> io::Result<tokio::process::Child> {
    if options.keeper.is_some() { orphans::spawn(command) } else { command.spawn() }
}

/// The variables that an agent gets.
pub(super) fn environment<'a>(
    spec: &'a AgentSpec,
    options: &'a RunOptions,
) -> impl Iterator<Item = (&'a OsStr, &'a OsStr)> {
    let given = |name: &OsString| name.to_str().is_some_and(|n| spec.gets(n, options.whole_env));
    let own = spec.values().map(|(name, value)| (OsStr::new(name), OsStr::new(value)));
    let all = options.env.iter().filter(move |(name, _)| given(name));
    all.map(|(name, value)| (name.as_os_str(), value.as_os_str())).chain(own)
}

/// Asks whoever keeps a process to end it.
pub(super) fn terminate(process: &mut tokio::process::Child, kept: bool) {
    #[cfg(unix)]
    if let Some(pid) = process.id().and_then(|id| i32::try_from(id).ok())
        && let Some(pid) = rustix::process::Pid::from_raw(pid)
    {
        let _ = if kept {
            rustix::process::kill_process(pid, rustix::process::Signal::TERM)
        } else {
            rustix::process::kill_process_group(pid, rustix::process::Signal::KILL)
        };
    }
    #[cfg(not(unix))]
    {
        let _ = (kept, process.start_kill());
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        terminate(&mut self.process, self.kept);
    }
}

/// Waits for a moment that may never come.
async fn until(moment: Option<tokio::time::Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}

fn words(status: std::process::ExitStatus) -> String {
    match status.code() {
        Some(0) => "it ended by itself".to_owned(),
        Some(code) if code > 128 => format!("it was ended by signal {}", code - 128),
        Some(code) => format!("it ended with code {code}"),
        None => "it was killed".to_owned(),
    }
}

/// Cuts what the agent writes into lines. Whoever takes them sets the pace.
async fn read_lines(mut from: impl AsyncRead + Unpin, tell: mpsc::Sender<Vec<Line>>) {
    let max = crate::ingest::MAX_LINE;
    let (mut piece, mut held, mut lost) = (vec![0; PIECE], Vec::new(), 0_u64);
    loop {
        let n = match from.read(&mut piece).await {
            Ok(0) | Err(_) => break,
            Ok(n) => n,
        };
        let mut lines = Vec::new();
        for part in piece[..n].split_inclusive(|b| *b == b'\n') {
            let (text, whole) = part.strip_suffix(b"\n").map_or((part, false), |text| (text, true));
            if lost > 0 || held.len() + text.len() > max {
                lost += (held.len() + text.len()) as u64;
                held = Vec::new();
            } else {
                held.extend_from_slice(text);
            }
            if whole {
                let line = std::mem::take(&mut held);
                lines.push(if lost > 0 { Line::TooLong(lost) } else { Line::Text(line) });
                lost = 0;
            }
        }
        if !lines.is_empty() && tell.send(lines).await.is_err() {
            return;
        }
    }
    if !held.is_empty() || lost > 0 {
        let line = if lost > 0 { Line::TooLong(lost) } else { Line::Text(held) };
        let _ = tell.send(vec![line]).await;
    }
}

/// Reads to the end, and keeps the last of it.
async fn read_end(mut from: impl AsyncRead + Unpin, kept: Arc<Mutex<VecDeque<u8>>>) {
    let mut piece = vec![0; 8 << 10];
    while let Ok(n @ 1..) = from.read(&mut piece).await {
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&piece[..n]);
        let over = kept.len().saturating_sub(MAX_STDERR);
        kept.drain(..over);
    }
}

async fn write_lines(mut to: ChildStdin, mut waiting: mpsc::Receiver<Vec<u8>>) -> io::Result<()> {
    while let Some(line) = waiting.recv().await {
        to.write_all(&line).await?;
        to.flush().await?;
    }
    to.shutdown().await
}
