//! Detects the exit of the parent process.

use rustix::process::{Pid, getppid};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// How often the parent is checked if there is no pidfd.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct ParentWatch {
    pid: Option<Pid>,
    exited: Arc<Notify>,
}

impl ParentWatch {
    /// Watches the parent, which must be `expected` if that is given.
    pub(super) fn new(expected: Option<i32>) -> std::io::Result<ParentWatch> {
        let pid = expected.map_or_else(getppid, Pid::from_raw);
        let exited = Arc::new(Notify::new());
        let notify = Arc::clone(&exited);
        let wait = exit_waiter(pid);
        thread::Builder::new().stack_size(64 << 10).spawn(move || {
            wait();
            notify.notify_one();
        })?;
        Ok(ParentWatch { pid, exited })
    }

    /// Whether the parent has exited: the kernel then assigns another one.
    pub(super) fn is_gone(&self) -> bool {
        is_gone(self.pid)
    }

    /// Waits for the exit of the parent.
    pub(super) async fn exited(&self) {
        self.exited.notified().await;
    }
}

fn is_gone(pid: Option<Pid>) -> bool {
    getppid() != pid
}

/// Makes a blocking function that returns when a process exits.
fn exit_waiter(pid: Option<Pid>) -> impl FnOnce() + Send {
    #[cfg(target_os = "linux")]
    let pidfd = pid.and_then(|pid| {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    });
    move || {
        #[cfg(target_os = "linux")]
        if let Some(pidfd) = pidfd {
            use rustix::event::{PollFd, PollFlags, poll};
            while !matches!(poll(&mut [PollFd::new(&pidfd, PollFlags::IN)], None), Ok(1)) {
                // Interrupted by a signal, or out of memory.
                thread::sleep(Duration::from_millis(1));
            }
            return;
        }
        // Old kernels and other systems have no pidfd.
        while !is_gone(pid) {
            thread::sleep(POLL_INTERVAL);
        }
    }
}
