//! Sessions that wait to be read.

use super::Agent;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as Gate, Notify};

/// A session to be read.
#[derive(Debug, Clone)]
pub(super) struct Job {
    pub(super) agent: Arc<dyn Agent>,
    pub(super) main: PathBuf,
    pub(super) bytes: u64,
}

/// Sessions that wait to be read: what has just changed goes first.
#[derive(Debug, Default)]
pub(super) struct Queue {
    state: Mutex<Waiting>,
    ready: Notify,
    idle: Notify,
}

#[derive(Debug, Default)]
struct Waiting {
    urgent: VecDeque<Job>,
    others: VecDeque<Job>,
    names: HashSet<PathBuf>,
    busy: HashSet<PathBuf>,
    /// Changed again while they were being read.
    again: HashMap<PathBuf, Job>,
}

impl Queue {
    pub(super) fn push(&self, job: Job, urgent: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.busy.contains(&job.main) {
            return state.again.insert(job.main.clone(), job).is_none();
        }
        if !state.names.insert(job.main.clone()) {
            return false;
        }
        if urgent {
            state.urgent.push_back(job)
        } else {
            state.others.push_back(job)
        }
        drop(state);
        self.ready.notify_one();
        true
    }

    pub(super) async fn next(&self) -> Job {
        loop {
            {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let job = state.urgent.pop_front().or_else(|| state.others.pop_front());
                if let Some(job) = job {
                    state.names.remove(&job.main);
                    state.busy.insert(job.main.clone());
                    if !state.names.is_empty() {
                        self.ready.notify_one();
                    }
                    return job;
                }
            }
            self.ready.notified().await;
        }
    }

    pub(super) fn done(&self, job: &Job) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy.remove(&job.main);
        let again = state.again.remove(&job.main);
        let idle = state.busy.is_empty() && state.names.is_empty() && again.is_none();
        drop(state);
        if let Some(job) = again {
            self.push(job, true);
        }
        if idle {
            self.idle.notify_waiters();
        }
    }

    pub(super) async fn until_idle(&self) {
        loop {
            let told = self.idle.notified();
            tokio::pin!(told);
            told.as_mut().enable();
            {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.busy.is_empty() && state.names.is_empty() {
                    return;
                }
            }
            told.await;
        }
    }
}

/// A session may have several files of its own: one after the other is read.
#[derive(Debug, Default)]
pub(super) struct Turns([Gate<()>; 32]);

impl Turns {
    pub(super) fn of(&self, label: &str) -> &Gate<()> {
        let mut hash = DefaultHasher::new();
        label.hash(&mut hash);
        &self.0[hash.finish() as usize % self.0.len()]
    }
}
