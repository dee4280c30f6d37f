//! What is left of an agent whose keeper was killed: it becomes ours, and is ended.

#[cfg(target_os = "linux")]
pub(super) use linux::{end, forget, spawn};
#[cfg(not(target_os = "linux"))]
pub(super) use other::{end, forget, spawn};

#[cfg(target_os = "linux")]
mod linux {
    use rustix::process::{Pid, Signal, WaitOptions};
    use std::collections::{HashMap, HashSet};
    use std::io;
    use std::sync::{Mutex, PoisonError};
    use std::time::Duration;
    use tokio::process::{Child, Command};

    /// How often it is looked, and when it is given up: the kernel holds what does not end.
    const LOOKS: u32 = 200;
    const PAUSE: Duration = Duration::from_millis(20);

    /// The children that this process has started itself.
    static OWN: Mutex<Option<HashSet<i32>>> = Mutex::new(None);

    /// Starts a keeper, and remembers it. This process becomes the parent of what loses its own; whom
    /// it had before is no orphan.
    pub(in super::super) fn spawn(command: &mut Command) -> io::Result<Child> {
        let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// A keeper has left by itself.
    pub(in super::super) fn forget(keeper: Option<u32>) {
        if let Some(keeper) = keeper.and_then(|keeper| i32::try_from(keeper).ok())
            && let Some(own) = OWN.lock().unwrap_or_else(PoisonError::into_inner).as_mut()
        {
            own.remove(&keeper);
        }
    }

    /// Ends everything that became a child of this process after a keeper was killed. A child that
    /// this process started itself is none of them.
    pub(in super::super) async fn end(keeper: Option<u32>) {
        for _ in 0..LOOKS {
            let orphans = look();
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
            tokio::time::sleep(PAUSE).await;
        }
        forget(keeper);
    }

    /// The orphans, and what descends from them; whether each is a child of this process.
    fn look() -> Vec<(i32, bool)> {
        let me = rustix::process::getpid().as_raw_nonzero().get();
        // Nothing is started meanwhile: it would be taken for an orphan.
        let own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
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

    /// All processes, with their parents.
    fn parents() -> HashMap<i32, i32> {
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        pids.filter_map(|pid| parent(pid).map(|parent| (pid, parent))).collect()
    }

    /// The parent of a process.
    fn parent(pid: i32) -> Option<i32> {
        let text = std::fs::read(format!("/proc/{pid}/stat")).ok()?;
        let text = String::from_utf8_lossy(&text);
        // The name in brackets may hold anything, so the fields are counted from its end.
        text.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod other {
    use tokio::process::{Child, Command};

    /// Nobody adopts here: the group of the agent is all that is known.
    pub(in super::super) fn spawn(command: &mut Command) -> std::io::Result<Child> {
        command.spawn()
    }

    pub(in super::super) fn forget(_keeper: Option<u32>) {}

    pub(in super::super) async fn end(_keeper: Option<u32>) {}
}
