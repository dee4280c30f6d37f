//! The agent's process group, on systems where descendants cannot be listed.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io;

/// Does nothing: a process that leaves the group is not tracked.
pub(super) fn become_subreaper() -> io::Result<()> {
    Ok(())
}

/// The whole group as one process.
#[derive(Clone, Copy, Debug)]
pub(super) struct Process {
    group: Pid,
    /// Unknown, 0.
    pub(super) memory: u64,
}

impl Process {
    pub(super) fn id(&self) -> Pid {
        self.group
    }

    pub(super) fn proportional_memory(&self) -> u64 {
        self.memory
    }

    pub(super) fn send(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }
}

#[derive(Debug)]
pub(super) struct ProcessTree {
    agent: Pid,
}

impl ProcessTree {
    pub(super) fn new(agent: Pid) -> ProcessTree {
        ProcessTree { agent }
    }

    pub(super) fn processes(&mut self) -> Vec<Process> {
        let group = Process { group: self.agent, memory: 0 };
        if test_kill_process_group(self.agent).is_ok() { vec![group] } else { Vec::new() }
    }
}
