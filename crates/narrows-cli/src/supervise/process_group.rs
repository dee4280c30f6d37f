//! The agent's process group, where no more can be seen.

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
use std::io;

/// Nobody adopts here: what leaves the group is lost.
pub(super) fn adopt() -> io::Result<()> {
    Ok(())
}

/// The whole group, as one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    group: Pid,
    /// Not known.
    pub(super) memory: u64,
}

impl Member {
    pub(super) fn id(&self) -> Pid {
        self.group
    }

    pub(super) fn own_memory(&self) -> u64 {
        self.memory
    }

    pub(super) fn send(&self, signal: Signal) {
        let _ = kill_process_group(self.group, signal);
    }
}

#[derive(Debug)]
pub(super) struct Tree {
    agent: Pid,
}

impl Tree {
    pub(super) fn new(agent: Pid) -> Tree {
        Tree { agent }
    }

    pub(super) fn members(&mut self) -> Vec<Member> {
        let member = Member { group: self.agent, memory: 0 };
        if test_kill_process_group(self.agent).is_ok() { vec![member] } else { Vec::new() }
    }
}
