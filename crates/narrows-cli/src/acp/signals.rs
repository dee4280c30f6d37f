//! Forwards signals to the agent: for the sender, this process is the agent.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

#[derive(Debug, Default)]
struct SignalTarget {
    pid: Option<Pid>,
    exited: bool,
    /// Signals that came before the agent started.
    early: Vec<Signal>,
}

/// Forwards SIGTERM, SIGINT and SIGHUP.
#[derive(Debug)]
pub(super) struct SignalForwarder {
    target: Arc<Mutex<SignalTarget>>,
}

impl SignalForwarder {
    /// Installs the handlers. From here on no signal is missed.
    pub(super) fn listen() -> io::Result<SignalForwarder> {
        let target = Arc::<Mutex<SignalTarget>>::default();
        let (sender, ready) = channel();
        let shared = Arc::clone(&target);
        std::thread::spawn(move || {
            let _ = sender.send(forward_all(&shared, || drop(sender.send(Ok(())))));
        });
        ready.recv().map_err(io::Error::other)??;
        Ok(SignalForwarder { target })
    }

    /// Sets the agent, and forwards the signals that came before it started.
    pub(super) fn set_target(&self, pid: u32) {
        let mut target = lock(&self.target);
        target.pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        for early in std::mem::take(&mut target.early) {
            forward(&mut target, early);
        }
    }

    /// Waits for the agent to exit.
    pub(super) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = lock(&self.target).pid;
        if let Some(pid) = pid {
            // Waits without reaping: until then the pid cannot be reused, so no signal can hit another
            // process.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(e) = waitid(WaitId::Pid(pid), options) {
                if e != rustix::io::Errno::INTR {
                    break;
                }
            }
        }
        lock(&self.target).exited = true;
        child.wait()
    }
}

fn lock(target: &Mutex<SignalTarget>) -> MutexGuard<'_, SignalTarget> {
    target.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Forwards signals forever; calls `ready` when the handlers are installed.
fn forward_all(target: &Mutex<SignalTarget>, ready: impl FnOnce()) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let mut hup = signal(SignalKind::hangup())?;
        ready();
        loop {
            let signal = tokio::select! {
                Some(()) = term.recv() => Signal::TERM,
                Some(()) = int.recv() => Signal::INT,
                Some(()) = hup.recv() => Signal::HUP,
                else => return Ok(()),
            };
            forward(&mut lock(target), signal);
        }
    })
}

fn forward(target: &mut SignalTarget, signal: Signal) {
    match target.pid {
        _ if target.exited => {}
        // Fails if the agent has exited or changed its user.
        Some(pid) => drop(kill_process(pid, signal)),
        None => target.early.push(signal),
    }
}
