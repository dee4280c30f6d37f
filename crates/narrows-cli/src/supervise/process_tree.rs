//! All descendants of this process, on Linux.
//!
//! This process is a subreaper: a descendant whose parent exits becomes its child. So no descendant
//! is lost, and no unrelated process becomes one.

use rustix::process::{Pid, PidfdFlags, Signal};
use std::collections::{HashMap, HashSet};
use std::io;
use std::os::unix::fs::DirEntryExt;

/// Makes this process the parent of descendants whose parent exits.
pub(super) fn become_subreaper() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    pid: Pid,
    parent: i32,
    /// Start time in clock ticks since boot. With the pid it identifies a process, because pids are
    /// reused. 0 stands for a whole process group.
    started: u64,
    /// Resident memory in bytes.
    pub(super) memory: u64,
}

impl Process {
    pub(super) fn id(&self) -> (Pid, u64) {
        (self.pid, self.started)
    }

    /// Resident memory in bytes, with shared pages divided among the processes that share them.
    pub(super) fn proportional_memory(&self) -> u64 {
        let read = |name: &str| {
            std::fs::read_to_string(format!("/proc/{}/{name}", self.pid.as_raw_nonzero())).ok()
        };
        let proportional = read("smaps_rollup").and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("Pss:"))?;
            line.trim().strip_suffix(" kB")?.parse::<u64>().ok().map(|kb| kb << 10)
        });
        // Fallback without permission: resident memory that is not backed by files.
        let anonymous = || {
            let text = read("statm")?;
            let mut pages = text.split(' ').skip(1).map_while(|n| n.parse::<u64>().ok());
            let (all, files) = (pages.next()?, pages.next()?);
            Some(all.saturating_sub(files) * rustix::param::page_size() as u64)
        };
        proportional.or_else(anonymous).unwrap_or(self.memory)
    }

    /// Sends a signal to this process, and never to another one that reuses its pid.
    pub(super) fn send(&self, signal: Signal) {
        if self.started == 0 {
            let _ = rustix::process::kill_process_group(self.pid, signal);
            return;
        }
        let pidfd = rustix::process::pidfd_open(self.pid, PidfdFlags::empty());
        if matches!(pidfd, Err(rustix::io::Errno::SRCH)) {
            return;
        }
        // The pid may have been reused before the pidfd was opened.
        if read(self.pid).is_none_or(|now| now.started != self.started) {
            return;
        }
        let _ = match pidfd {
            Ok(pidfd) => rustix::process::pidfd_send_signal(pidfd, signal),
            // Old kernels have no pidfd.
            Err(_) => rustix::process::kill_process(self.pid, signal),
        };
    }
}

/// The descendants of this process.
#[derive(Debug)]
pub(super) struct ProcessTree {
    /// Its process group is used if there is no `/proc`.
    agent: Pid,
    /// Unrelated processes, by pid and inode of `/proc/<pid>`. They can never become descendants, so
    /// they are not read again. A reused pid has another inode.
    unrelated: HashSet<(i32, u64)>,
}

impl ProcessTree {
    pub(super) fn new(agent: Pid) -> ProcessTree {
        ProcessTree { agent, unrelated: HashSet::new() }
    }

    /// Lists the descendants that run now.
    pub(super) fn processes(&mut self) -> Vec<Process> {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return self.process_group();
        };
        let own = rustix::process::getpid().as_raw_nonzero().get();
        let mut unrelated = HashSet::new();
        let mut candidates = HashMap::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let Some(pid) = name.to_str().and_then(|name| name.parse::<i32>().ok()) else {
                continue;
            };
            let file = (pid, entry.ino());
            if self.unrelated.contains(&file) {
                unrelated.insert(file);
            } else if let Some(process) = Pid::from_raw(pid).and_then(read) {
                candidates.insert(pid, (process, file));
            }
        }
        let unrelated_pids: HashSet<i32> = unrelated.iter().map(|(pid, _)| *pid).collect();
        let mut descendants = Vec::new();
        for (process, file) in candidates.values() {
            match is_descendant(own, process, &candidates, &unrelated_pids) {
                Some(true) => descendants.push(*process),
                Some(false) => {
                    unrelated.insert(*file);
                }
                // Its parent started or exited while /proc was read: the next call decides.
                None => {}
            }
        }
        self.unrelated = unrelated;
        descendants
    }

    /// The agent's process group as one process.
    fn process_group(&self) -> Vec<Process> {
        let exists = rustix::process::test_kill_process_group(self.agent).is_ok();
        let group = Process { pid: self.agent, parent: 0, started: 0, memory: 0 };
        if exists { vec![group] } else { Vec::new() }
    }
}

/// Whether a process descends from `ancestor`; none if a process between them is missing.
fn is_descendant(
    ancestor: i32,
    process: &Process,
    all: &HashMap<i32, (Process, (i32, u64))>,
    unrelated: &HashSet<i32>,
) -> Option<bool> {
    let mut at = *process;
    // Bounds the walk in case of a cycle.
    for _ in 0..=all.len() {
        let parent = at.parent;
        if parent == ancestor {
            return Some(true);
        }
        // The ancestor and its own parents are unrelated too.
        if at.pid.as_raw_nonzero().get() == ancestor || parent == 0 || unrelated.contains(&parent) {
            return Some(false);
        }
        // A younger parent is another process that reuses the pid.
        at = all.get(&parent).map(|(p, _)| *p).filter(|p| p.started <= at.started)?;
    }
    None
}

/// Reads `/proc/<pid>/stat`.
fn read(pid: Pid) -> Option<Process> {
    let text = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let text = String::from_utf8_lossy(&text);
    // The name in parentheses may contain anything, so fields are counted after its end.
    let (_, fields) = text.rsplit_once(") ")?;
    let mut fields = fields.split(' ');
    let parent = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    let pages: u64 = fields.nth(1)?.parse().ok()?;
    Some(Process { pid, parent, started, memory: pages * rustix::param::page_size() as u64 })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test may fail loudly")]
    use super::*;

    #[test]
    fn read_returns_parent_and_memory() {
        let own = rustix::process::getpid();
        let process = read(own).expect("own process");
        let parent = rustix::process::getppid().expect("parent");
        assert_eq!(process.parent, parent.as_raw_nonzero().get());
        assert!(process.started > 0 && process.memory > 100_000, "{process:?}");
    }

    #[test]
    fn processes_lists_children_only() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let mut tree = ProcessTree::new(Pid::from_child(&child));
        for _ in 0..3 {
            let processes = tree.processes();
            assert!(processes.iter().any(|p| p.pid == Pid::from_child(&child)));
            assert!(processes.iter().all(|p| Some(p.pid) != rustix::process::getppid()));
            assert!(tree.unrelated.iter().any(|(pid, _)| *pid == 1));
        }
        let _ = child.kill();
        let _ = child.wait();
    }

    #[test]
    fn send_spares_a_process_with_a_reused_pid() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().expect("a child");
        let mut process = read(Pid::from_child(&child)).expect("the child");
        process.started -= 1;
        process.send(Signal::KILL);
        std::thread::sleep(std::time::Duration::from_millis(50));
        assert!(child.try_wait().expect("wait").is_none());
        process.started += 1;
        process.send(Signal::KILL);
        assert!(!child.wait().expect("wait").success());
    }
}
