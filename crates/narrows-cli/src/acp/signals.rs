//! Signals that this process gets go to the agent: for whoever sent them, this process is the agent.

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, waitid};
use std::io;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::signal::unix::{SignalKind, signal};

/// To whom signals go.
#[derive(Debug, Default)]
struct Agent {
    pid: Option<Pid>,
    gone: bool,
    /// What came before there was an agent.
    early: Vec<Signal>,
}

/// Listens to the signals of this process.
#[derive(Debug)]
pub(super) struct Signals {
    agent: Arc<Mutex<Agent>>,
}

impl Signals {
    /// From here on no signal is missed.
    pub(super) fn listen() -> io::Result<Signals> {
        let agent = Arc::<Mutex<Agent>>::default();
        let (listens, ready) = channel();
        let told = Arc::clone(&agent);
        std::thread::spawn(move || {
            let _ = listens.send(forward(&told, || drop(listens.send(Ok(())))));
        });
        ready.recv().map_err(io::Error::other)??;
        Ok(Signals { agent })
    }

    /// There is an agent.
    pub(super) fn pass_to(&self, pid: u32) {
        let mut agent = lock(&self.agent);
        agent.pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
        for early in std::mem::take(&mut agent.early) {
            pass(&mut agent, early);
        }
    }

    /// Waits for the agent's end.
    pub(super) fn wait(&self, child: &mut Child) -> io::Result<ExitStatus> {
        let pid = lock(&self.agent).pid;
        if let Some(pid) = pid {
            // It is waited for without being taken away: until then its number is no stranger's.
            let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while let Err(e) = waitid(WaitId::Pid(pid), options) {
                if e != rustix::io::Errno::INTR {
                    break;
                }
            }
        }
        lock(&self.agent).gone = true;
        child.wait()
    }
}

fn lock(agent: &Mutex<Agent>) -> MutexGuard<'_, Agent> {
    agent.lock().unwrap_or_else(PoisonError::into_inner)
}

fn forward(agent: &Mutex<Agent>, ready: impl FnOnce()) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut term = signal(SignalKind::terminate())?;
        let mut int = signal(SignalKind::interrupt())?;
        let mut hup = signal(SignalKind::hangup())?;
        ready();
        loop {
            let one = tokio::select! {
                Some(()) = term.recv() => Signal::TERM,
                Some(()) = int.recv() => Signal::INT,
                Some(()) = hup.recv() => Signal::HUP,
                else => return Ok(()),
            };
            pass(&mut lock(agent), one);
        }
    })
}

fn pass(agent: &mut Agent, signal: Signal) {
    match agent.pid {
        _ if agent.gone => {}
        // It is gone, then, or may not be asked: nothing is left to do.
        Some(pid) => drop(kill_process(pid, signal)),
        None => agent.early.push(signal),
    }
}
