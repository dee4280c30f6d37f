//! The queue of sessions to read.

use super::SessionSource;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::{Mutex as AsyncMutex, Notify};

/// A session to read.
#[derive(Debug, Clone)]
pub(super) struct ReadJob {
    pub(super) agent: Arc<dyn SessionSource>,
    pub(super) main: PathBuf,
    pub(super) bytes: u64,
}

/// The queue of sessions to read; recently changed ones come first.
#[derive(Debug, Default)]
pub(super) struct JobQueue {
    state: Mutex<JobQueueState>,
    ready: Notify,
    idle: Notify,
}

#[derive(Debug, Default)]
struct JobQueueState {
    urgent: VecDeque<ReadJob>,
    others: VecDeque<ReadJob>,
    names: HashSet<PathBuf>,
    busy: HashSet<PathBuf>,
    /// Changed again while they were being read.
    changed_again: HashMap<PathBuf, ReadJob>,
}

impl JobQueue {
    pub(super) fn push(&self, job: ReadJob, urgent: bool) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.busy.contains(&job.main) {
            return state.changed_again.insert(job.main.clone(), job).is_none();
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

    pub(super) async fn next(&self) -> ReadJob {
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

    pub(super) fn done(&self, job: &ReadJob) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.busy.remove(&job.main);
        let changed_again = state.changed_again.remove(&job.main);
        let idle = state.busy.is_empty() && state.names.is_empty() && changed_again.is_none();
        drop(state);
        if let Some(job) = changed_again {
            self.push(job, true);
        }
        if idle {
            self.idle.notify_waiters();
        }
    }

    pub(super) async fn until_idle(&self) {
        loop {
            let idle = self.idle.notified();
            tokio::pin!(idle);
            idle.as_mut().enable();
            {
                let state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.busy.is_empty() && state.names.is_empty() {
                    return;
                }
            }
            idle.await;
        }
    }
}

/// A session may have several main files, which are read one after the other.
#[derive(Debug, Default)]
pub(super) struct KeyedLocks([AsyncMutex<()>; 32]);

impl KeyedLocks {
    pub(super) fn get(&self, label: &str) -> &AsyncMutex<()> {
        let mut hash = DefaultHasher::new();
        label.hash(&mut hash);
        &self.0[hash.finish() as usize % self.0.len()]
    }
}
