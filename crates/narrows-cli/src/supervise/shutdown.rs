//! Why an agent's life ends, and ending it.

use super::parent::Parent;
use super::tree::Tree;
use crate::args::KeeperArgs;
use rustix::process::{Pid, Signal as Sign, WaitOptions, WaitStatus};
use std::collections::HashSet;
use std::io;
use std::time::Duration;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{Instant, sleep, timeout};

/// How often a tree with limits is looked at.
const LOOK: Duration = Duration::from_secs(1);
/// A look takes at most this part of the time.
const PART: u32 = 100;
/// How long to wait before looking whether a tree has ended.
const SOON: Duration = Duration::from_millis(20);
/// When to give up on processes that do not end even when killed: the kernel holds them.
const ENOUGH: Duration = Duration::from_secs(10);

/// Signals that this process is told by.
pub(super) struct Told {
    term: Signal,
    int: Signal,
    hup: Signal,
    child: Signal,
}

impl Told {
    pub(super) fn new() -> io::Result<Told> {
        Ok(Told {
            term: signal(SignalKind::terminate())?,
            int: signal(SignalKind::interrupt())?,
            hup: signal(SignalKind::hangup())?,
            child: signal(SignalKind::child())?,
        })
    }
}

/// Why it ends.
#[derive(Debug)]
pub(super) enum Why {
    Exited(WaitStatus),
    Asked,
    Alone,
    /// It took more than it may, in words.
    Over(String),
}

/// Waits for the first reason to end.
pub(super) async fn wait(agent: Pid, args: &KeeperArgs, parent: &Parent, told: &mut Told) -> Why {
    let limited = args.memory.is_some() || args.processes.is_some();
    let mut tree = Tree::new(agent);
    let mut look = LOOK;
    loop {
        if let Some(status) = reap(agent) {
            return Why::Exited(status);
        }
        tokio::select! {
            _ = told.child.recv() => {}
            _ = told.term.recv() => return Why::Asked,
            _ = told.int.recv() => return Why::Asked,
            _ = told.hup.recv() => return Why::Asked,
            () = parent.gone() => return Why::Alone,
            () = sleep(look), if limited => {
                let began = Instant::now();
                if let Some(words) = over(args, &mut tree) {
                    return Why::Over(words);
                }
                look = LOOK.max(began.elapsed() * PART);
            }
        }
    }
}

/// What of the tree is over its limit.
fn over(args: &KeeperArgs, tree: &mut Tree) -> Option<String> {
    let members = tree.members();
    let memory: u64 = members.iter().map(|member| member.memory).sum();
    // Pages that processes share stand in each one's count: only when that is too much, they are
    // counted once, which takes longer.
    let memory = match args.memory {
        Some(limit) if memory > limit => {
            members.iter().fold(0, |sum, member| sum + member.own_memory())
        }
        _ => memory,
    };
    if let Some(limit) = args.memory.filter(|limit| memory > *limit) {
        return Some(format!("the agent used {memory} bytes of memory, more than {limit}: ended"));
    }
    let count = members.len() as u64;
    let limit = args.processes.filter(|limit| count > *limit)?;
    Some(format!("the agent had {count} processes, more than {limit}: ended"))
}

/// Ends the whole tree, and says with which code to leave and what there is to tell.
pub(super) async fn end(
    agent: Pid,
    args: &KeeperArgs,
    why: Why,
    told: &mut Told,
) -> (u8, Option<String>) {
    let (mut status, mut words, mut grace) = (None, None, Duration::from_millis(args.grace));
    match why {
        Why::Exited(known) => status = Some(known),
        Why::Over(said) => {
            // It has run away: it is not asked.
            (words, grace) = (Some(said), Duration::ZERO);
        }
        Why::Asked | Why::Alone => {}
    }
    let mut tree = Tree::new(agent);
    let began = Instant::now();
    let mut asked = HashSet::new();
    loop {
        status = reap(agent).or(status);
        let members = tree.members();
        if members.is_empty() {
            break;
        }
        let late = began.elapsed() >= grace;
        if began.elapsed() >= grace + ENOUGH {
            words = Some(format!("{} processes of the agent could not be ended", members.len()));
            break;
        }
        for member in &members {
            if late {
                member.send(Sign::KILL);
            } else if asked.insert(member.id()) {
                // Each is asked once, also those that come while others end. One that was stopped
                // must go on to hear it.
                member.send(Sign::TERM);
                member.send(Sign::CONT);
            }
        }
        let left = if late { SOON } else { SOON.min(grace.saturating_sub(began.elapsed())) };
        let _ = timeout(left, told.child.recv()).await;
    }
    (code(reap(agent).or(status)), words)
}

/// Takes up every child that has ended; the agent's end is told.
fn reap(agent: Pid) -> Option<WaitStatus> {
    let mut ended = None;
    while let Ok(Some((pid, status))) = rustix::process::wait(WaitOptions::NOHANG) {
        if pid == agent {
            ended = Some(status);
        }
    }
    ended
}

/// The code of the agent, as a shell tells it.
fn code(status: Option<WaitStatus>) -> u8 {
    let Some(status) = status else {
        return u8::MAX;
    };
    let code = status.exit_status().or_else(|| status.terminating_signal().map(|s| 128 + s));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
