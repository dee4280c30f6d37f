//! Reaps the descendants of an agent whose supervisor was killed: they become children of this process.

#[cfg(target_os = "linux")]
pub(super) use linux::{reap, spawn, unregister};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{reap, spawn, unregister};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Pid, Signal, WaitOptions};
    use std::collections::{HashMap, HashSet};
    use std::io;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;
    use tokio::process::{Child, Command};

    /// Rounds until reaping is given up: the kernel holds processes that do not end.
    const MAX_REAP_ROUNDS: u32 = 200;
    const REAP_INTERVAL: Duration = Duration::from_millis(20);

    /// Children that this process spawned itself.
    static HOST_SOURCE: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

    /// Spawns and registers a supervisor. This process becomes a subreaper; children that it had before are
    /// no orphans.
    pub(in super::super) fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut own = HOST_SOURCE.lock().unwrap_or_else(PoisonError::into_inner);
        let own = own.get_or_insert_with(|| {
            let me = rustix::process::getpid();
            let before = parents().into_iter().filter(|(_, p)| *p == me.as_raw_nonzero().get());
            let before = before.map(|(pid, _)| pid).collect();
            let _ = rustix::process::set_child_subreaper(Some(me));
            before
        });
        let child = command.spawn()?;
        own.extend(child.id().and_then(|id| i32::try_from(id).ok()));
        Ok(child)
    }

    /// Unregisters a supervisor that has exited by itself.
    pub(in super::super) fn unregister(supervisor: Option<u32>) {
        if let Some(supervisor) = supervisor.and_then(|supervisor| i32::try_from(supervisor).ok())
            && let Some(own) = HOST_SOURCE.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            own.remove(&supervisor);
        }
    }

    /// Kills all processes that became children of this process after a supervisor was killed, but not
    /// children that this process spawned itself.
    pub(in super::super) async fn reap(supervisor: Option<u32>) {
        for _ in 0..MAX_REAP_ROUNDS {
            let orphans = find_orphans();
            if orphans.is_empty() {
                break;
            }
            for (pid, is_child) in orphans {
                let Some(pid) = Pid::from_raw(pid) else { continue };
                let _ = rustix::process::kill_process(pid, Signal::KILL);
                if is_child {
                    let _ = rustix::process::waitpid(Some(pid), WaitOptions::NOHANG);
                }
            }
            tokio::time::sleep(REAP_INTERVAL).await;
        }
        unregister(supervisor);
    }

    /// The orphans and their descendants, each with whether it is a child of this process.
    fn find_orphans() -> Vec<(i32, bool)> {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        // The lock keeps new children from being taken for orphans.
        let own = HOST_SOURCE.lock().unwrap_or_else(PoisonError::into_inner);
        let parents = parents();
        let own = own.as_ref();
        let is_orphan =
            |pid: i32| parents.get(&pid) == Some(&me) && own.is_some_and(|own| !own.contains(&pid));
        let descends = |pid: i32| {
            let mut at = pid;
            for _ in 0..parents.len() {
                if is_orphan(at) {
                    return true;
                }
                match parents.get(&at) {
                    Some(&parent) if parent != me && parent > 1 => at = parent,
                    _ => return false,
                }
            }
            false
        };
        let mut found: Vec<(i32, bool)> = parents
            .keys()
            .filter(|pid| descends(**pid))
            .map(|pid| (*pid, is_orphan(*pid)))
            .collect();
        found.sort_unstable();
        found
    }

    /// All processes with their parents.
    fn parents() -> HashMap<i32, i32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| parent(pid).map(|parent| (pid, parent))).collect()
    }

    /// The parent of a process.
    fn parent(pid: i32) -> Option<i32> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name in parentheses may contain anything, so fields are counted from its end.
        text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use tokio::process::{Child, Command};

    /// No subreaper on this platform: only the process group of the agent is known.
    pub(in super::super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
        command.spawn()
    }

    pub(in super::super) fn unregister(_keeper: Option<u32>) {}

    pub(in super::super) async fn reap(_keeper: Option<u32>) {}
}
