//! Waits for a reason to end the agent, then ends all of its processes.

use super::parent_watch::ParentWatch;
use super::process_tree::ProcessTree;
use crate::args::SuperviseArgs;
use rustix::process::{Pid, Signal as ProcessSignal, WaitOptions, WaitStatus};
use std::collections::HashSet;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

/// How often limits are checked.
const LIMIT_CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// A check takes at most 1/100 of the time: slow checks are made less often.
const LIMIT_CHECK_DIVISOR: u32 = 100;
/// How often to check whether all processes have exited.
const EXIT_POLL_INTERVAL: Duration = Duration::from_millis(20);
/// How long to wait after SIGKILL: a process in an uninterruptible system call does not exit.
const KILL_TIMEOUT: Duration = Duration::from_secs(10);

/// The signals that end the agent, and SIGCHLD.
pub(super) struct ShutdownSignals {
    term: Signal,
    int: Signal,
    hup: Signal,
    child: Signal,
}

impl ShutdownSignals {
    pub(super) fn listen() -> io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }
}

/// Why the agent ends.
#[derive(Debug)]
pub(super) enum EndReason {
    Exited(WaitStatus),
    /// This process got a signal.
    Requested,
    ParentExited,
    /// A limit was exceeded; holds a message about it.
    OverLimit(String),
}

/// Waits for the first reason to end.
pub(super) async fn wait(
    agent: Pid,
    args: &SuperviseArgs,
    parent: &ParentWatch,
    signals: &mut ShutdownSignals,
) -> EndReason {
    let has_limits = args.memory.is_some() || args.processes.is_some();
    let mut tree = ProcessTree::new(agent);
    let mut interval = LIMIT_CHECK_INTERVAL;
    loop {
        if let Some(status) = reap(agent) {
            return EndReason::Exited(status);
        }
        tokio::select! {
            _ = signals.child.recv() => {}
            _ = signals.term.recv() => return EndReason::Requested,
            _ = signals.int.recv() => return EndReason::Requested,
            _ = signals.hup.recv() => return EndReason::Requested,
            () = parent.exited() => return EndReason::ParentExited,
            () = sleep(interval), if has_limits => {
                let started = Instant::now();
                if let Some(message) = exceeded_limit(args, &mut tree) {
                    return EndReason::OverLimit(message);
                }
                interval = LIMIT_CHECK_INTERVAL.max(started.elapsed() * LIMIT_CHECK_DIVISOR);
            }
        }
    }
}

/// Describes the limit that is exceeded; none if all are met.
fn exceeded_limit(args: &SuperviseArgs, tree: &mut ProcessTree) -> Option<String> {
    let processes = tree.processes();
    let memory: u64 = processes.iter().map(|process| process.memory).sum();
    // Resident memory counts shared pages once per process. The exact number is slow to get, so it is
    // read only if this one exceeds the limit.
    let memory = match args.memory {
        Some(limit) if memory > limit => {
            processes.iter().fold(0, |sum, process| sum + process.proportional_memory())
        }
        _ => memory,
    };
    if let Some(limit) = args.memory.filter(|limit| memory > *limit) {
        return Some(format!(
            "ended the agent: it used {memory} bytes of memory, more than {limit}"
        ));
    }
    let count = processes.len() as u64;
    let limit = args.processes.filter(|limit| count > *limit)?;
    Some(format!("ended the agent: it had {count} processes, more than {limit}"))
}

/// Ends all processes of the agent. Returns the exit code, and a message if there is something to
/// report.
pub(super) async fn terminate(
    agent: Pid,
    args: &SuperviseArgs,
    reason: EndReason,
    signals: &mut ShutdownSignals,
) -> (u8, Option<String>) {
    let (mut status, mut message, mut grace) = (None, None, Duration::from_millis(args.grace));
    match reason {
        EndReason::Exited(exited) => status = Some(exited),
        EndReason::OverLimit(text) => {
            // It is out of control: kill it without a grace period.
            (message, grace) = (Some(text), Duration::ZERO);
        }
        EndReason::Requested | EndReason::ParentExited => {}
    }
    let mut tree = ProcessTree::new(agent);
    let started = Instant::now();
    let mut terminated = HashSet::new();
    loop {
        status = reap(agent).or(status);
        let processes = tree.processes();
        if processes.is_empty() {
            break;
        }
        let grace_is_over = started.elapsed() >= grace;
        if started.elapsed() >= grace + KILL_TIMEOUT {
            message = Some(format!("cannot end {} processes of the agent", processes.len()));
            break;
        }
        for process in &processes {
            if grace_is_over {
                process.send(ProcessSignal::KILL);
            } else if terminated.insert(process.id()) {
                // Once per process, including those started meanwhile. A stopped process handles
                // SIGTERM only after SIGCONT.
                process.send(ProcessSignal::TERM);
                process.send(ProcessSignal::CONT);
            }
        }
        let grace_left = grace.saturating_sub(started.elapsed());
        let wait =
            if grace_is_over { EXIT_POLL_INTERVAL } else { EXIT_POLL_INTERVAL.min(grace_left) };
        let _ = timeout(wait, signals.child.recv()).await;
    }
    (exit_code(reap(agent).or(status)), message)
}

/// Reaps all exited children. Returns the status of the agent if it is among them.
fn reap(agent: Pid) -> Option<WaitStatus> {
    let mut agent_status = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == agent {
            agent_status = Some(status);
        }
    }
    agent_status
}

/// The exit code of the agent, as in a shell: 128 + signal if a signal ended it.
fn exit_code(status: Option<WaitStatus>) -> u8 {
    let Some(status) = status else {
        return u8::MAX;
    };
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|s| 128 + s));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
