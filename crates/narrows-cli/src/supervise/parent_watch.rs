//! Whoever started this process, and whether it is still there.

use rustix::process::{Pid, getppid};
use std::sync::Arc;
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// How often the parent is looked for where nothing tells of its end.
const LOOK: Duration = Duration::from_millis(250);

#[derive(Debug)]
pub(super) struct Parent {
    pid: Option<Pid>,
    end: Arc<Notify>,
}

impl Parent {
    /// The parent, which must be the one that is given, if one is.
    pub(super) fn new(expected: Option<i32>) -> std::io::Result<Parent> {
        let pid = expected.map_or_else(getppid, Pid::from_raw);
        let end = Arc::new(Notify::new());
        let told = Arc::clone(&end);
        let wait = waiter(pid);
        thread::Builder::new().stack_size(64 << 10).spawn(move || {
            wait();
            told.notify_one();
        })?;
        Ok(Parent { pid, end })
    }

    /// A process whose parent ends gets another.
    pub(super) fn is_gone(&self) -> bool {
        is_gone(self.pid)
    }

    /// Waits for its end.
    pub(super) async fn gone(&self) {
        self.end.notified().await;
    }
}

fn is_gone(pid: Option<Pid>) -> bool {
    getppid() != pid
}

/// What waits for the end of a process.
fn waiter(pid: Option<Pid>) -> impl FnOnce() + Send {
    #[cfg(target_os = "linux")]
    let held = pid.and_then(|pid| {
        rustix::process::pidfd_open(pid, rustix::process::PidfdFlags::empty()).ok()
    });
    move || {
        #[cfg(target_os = "linux")]
        if let Some(held) = held {
            use rustix::event::{PollFd, PollFlags, poll};
            while !matches!(poll(&mut [PollFd::new(&held, PollFlags::IN)], None), Ok(1)) {
                // A signal came, or memory is short.
                thread::sleep(Duration::from_millis(1));
            }
            return;
        }
        // Old kernels and other systems tell nothing.
        while !is_gone(pid) {
            thread::sleep(LOOK);
        }
    }
}
