//! Every process that came from the agent, wherever it went: Linux.
//!
//! This process is the reaper of its descendants: one whose parent ends becomes its child, so none
//! is ever lost, and no stranger ever becomes one.

use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::DirEntryExt;

/// Makes this process the parent of all descendants that lose theirs.
pub(super) fn adopt() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// One process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pid: Pid,
    parent: i32,
    /// In ticks since the system started: with the pid, nobody else has it. 0: the whole group.
    started: u64,
    /// Bytes that are in memory.
    pub(super) memory: u64,
}

impl Member {
    pub(super) fn id(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    /// Its part of the memory: pages that several processes share are divided among them.
    pub(super) fn own_memory(&self) -> u64 {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.pid.as_raw_nonzero())).ok()
        };
        let shared = read("smaps_rollup").and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kb| kb << 10)
        });
        // Where that may not be read: what is in memory and is no page of a file.
        let alone = || {
            let text = read("statm")?;
            let mut pages = text.split(' ').skip(1).map_while(|n| n.parse::<u64>().ok());
            let (all, files) = (pages.next()?, pages.next()?);
            Some(all.saturating_sub(files) * rustix::param::page_size() as u64)
        };
        shared.or_else(alone).unwrap_or(self.memory)
    }

    /// Sends a signal, to this process and to none that got its number later.
    pub(super) fn send(&self, signal: Signal) {
        if self.started == 0 {
            let _ = rustix::process::kill_process_group(self.pid, signal);
            return;
        }
        let held = rustix::process::pidfd_open(self.pid, PidfdFlags::empty());
        if matches!(held, Err(rustix::io::Errno::SRCH)) {
            return;
        }
        // What is held now may be another already.
        if read(self.pid).is_none_or(|now| now.started != self.started) {
            return;
        }
        let _ = match held {
            Ok(held) => rustix::process::pidfd_send_signal(held, signal),
            // An old kernel.
            Err(_) => rustix::process::kill_process(self.pid, signal),
        };
    }
}

/// The descendants of this process.
#[derive(Debug)]
pub(super) struct Tree {
    /// The one to end where there is no `/proc`.
    agent: Pid,
    /// Processes that are none of ours, and never will be: they are not read again. The number of
    /// the file tells a process from a later one with its pid.
    strangers: HashSet<(i32, u64)>,
}

impl Tree {
    pub(super) fn new(agent: Pid) -> Tree {
        Tree { agent, strangers: HashSet::new() }
    }

    /// All that are there now.
    pub(super) fn members(&mut self) -> Vec<Member> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return self.blind();
        };
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut strangers = HashSet::new();
        let mut read_now = HashMap::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let file = (pid, entry.ino());
            if self.strangers.contains(&file) {
                strangers.insert(file);
            } else if let Some(member) = Pid::from_raw(pid).and_then(read) {
                read_now.insert(pid, (member, file));
            }
        }
        let known: HashSet<i32> = strangers.iter().map(|(pid, _)| *pid).collect();
        let mut members = Vec::new();
        for (member, file) in read_now.values() {
            match came_from(own, member, &read_now, &known) {
                Some(true) => members.push(*member),
                Some(false) => {
                    strangers.insert(*file);
                }
                // Its parent came or went while we read: the next look knows.
                None => {}
            }
        }
        self.strangers = strangers;
        members
    }

    /// Without `/proc`, only the agent's group is seen.
    fn blind(&self) -> Vec<Member> {
        let there = rustix::process::test_kill_process_group(self.agent).is_ok();
        let group = Member { pid: self.agent, parent: 0, started: 0, memory: 0 };
        if there { vec![group] } else { Vec::new() }
    }
}

/// Whether a process descends from another; nothing where a parent is missing between them.
fn came_from(
    ancestor: i32,
    member: &Member,
    all: &HashMap<i32, (Member, (i32, u64))>,
    strangers: &HashSet<i32>,
) -> Option<bool> {
    let mut at = *member;
    // A chain is never longer than there are processes.
    for _ in 0..=all.len() {
        let parent = at.parent;
        if parent == ancestor {
            return Some(true);
        }
        // The ancestor itself is a stranger, too: its parents are none of ours.
        if at.pid.as_raw_nonzero().get() == ancestor || parent == 0 || strangers.contains(&parent) {
            return Some(false);
        }
        // A parent is never younger: that would be another one with its pid.
        at = all.get(&parent).map(|(m, _)| *m).filter(|m| m.started <= at.started)?;
    }
    None
}

/// What the kernel says of a process.
fn read(pid: Pid) -> Option<Member> {
    let text = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name in brackets may hold anything, so the fields are counted from its end.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    let pages: u64 = fields.nth(1)?.parse().ok()?;
    Some(Member { pid, parent, started, memory: pages * rustix::param::page_size() as u64 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may fail loudly")]
    use super::*;

    #[test]
    fn a_process_is_read() {
        let own = rustix::process::getpid();
        let member = read(own).expect("own process");
        let parent = rustix::process::getppid().expect("parent");
        assert_eq!(member.parent, parent.as_raw_nonzero().get());
        assert!(member.started > 0 && member.memory > 100_000, "{member:?}");
    }

    #[test]
    fn children_are_members_and_others_are_not() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let mut tree = Tree::new(Pid::from_child(&child));
        for _ in 0..3 {
            let members = tree.members();
            assert!(members.iter().any(|m| m.pid == Pid::from_child(&child)));
            assert!(members.iter().all(|m| Some(m.pid) != rustix::process::getppid()));
            assert!(tree.strangers.iter().any(|(pid, _)| *pid == 1));
        }
        let _ = child.kill();
        let _ = child.wait();
    }

    #[test]
    fn a_stranger_with_the_number_of_a_member_is_spared() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let mut member = read(Pid::from_child(&child)).expect("the child");
        member.started -= 1;
        member.send(Signal::KILL);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().expect("wait").is_none());
        member.started += 1;
        member.send(Signal::KILL);
        assert!(!child.wait().expect("wait").success());
    }
}
