//! Jobs of the writer, and their grouping into commits.

use crate::append::{self, EncodedAppend};
use crate::db::Db;
use crate::error::{Error, Result};
use std::collections::VecDeque;
use tokio::sync::{OwnedSemaphorePermit, mpsc, oneshot};

/// The size at which a commit takes no more jobs.
const MAX_GROUP_BYTES: usize = 8 << 20;

/// A unit of work within a transaction.
pub(super) trait Job: Send {
    fn run(&mut self, db: &Db<'_>) -> Result<()>;
    /// Replies to the caller after the commit or its failure.
    fn reply(self: Box<Self>, outcome: Result<()>);
    /// The append, if the job is one: several appends can be written together.
    fn append(&self) -> Option<&EncodedAppend> {
        None
    }
    /// Receives the result of an append that was written together with others.
    fn set_result(&mut self, _result: Result<u64>) {}
}

pub(super) struct ClosureJob<F, T> {
    pub(super) work: Option<F>,
    pub(super) result: Option<T>,
    pub(super) reply_tx: oneshot::Sender<Result<T>>,
    pub(super) permit: OwnedSemaphorePermit,
}

impl<F, T> Job for ClosureJob<F, T>
where
    F: FnOnce(&Db<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, db: &Db<'_>) -> Result<()> {
        let Some(work) = self.work.take() else { return Err(Error::Closed) };
        self.result = Some(work(db)?);
        Ok(())
    }

    fn reply(self: Box<Self>, outcome: Result<()>) {
        let ClosureJob { result, reply_tx, permit, .. } = *self;
        drop(permit);
        // The caller may be gone.
        let _ = reply_tx.send(outcome.and_then(|()| result.ok_or(Error::Closed)));
    }
}

/// An append. It can be rejected without failing the transaction.
pub(super) struct AppendJob {
    pub(super) encoded: EncodedAppend,
    pub(super) result: Option<Result<u64>>,
    pub(super) reply_tx: oneshot::Sender<Result<u64>>,
    pub(super) permit: OwnedSemaphorePermit,
}

impl Job for AppendJob {
    fn run(&mut self, db: &Db<'_>) -> Result<()> {
        let mut result = append::write_all(db, &[&self.encoded], false)?;
        self.result = result.pop();
        Ok(())
    }

    fn reply(self: Box<Self>, outcome: Result<()>) {
        let AppendJob { result, reply_tx, permit, .. } = *self;
        drop(permit);
        let _ = reply_tx.send(outcome.and_then(|()| result.unwrap_or(Err(Error::Closed))));
    }

    fn append(&self) -> Option<&EncodedAppend> {
        Some(&self.encoded)
    }

    fn set_result(&mut self, result: Result<u64>) {
        self.result = Some(result);
    }
}

/// A queued job with its session and size.
pub(super) struct QueuedJob {
    pub(super) job: Box<dyn Job>,
    pub(super) session: i64,
    pub(super) bytes: usize,
}

impl std::fmt::Debug for QueuedJob {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({} bytes)", self.bytes)
    }
}

/// The jobs of one commit.
pub(super) struct CommitGroup {
    jobs: VecDeque<QueuedJob>,
    started: usize,
    bytes: usize,
    max_jobs: usize,
}

impl CommitGroup {
    pub(super) fn new(first: QueuedJob, max_jobs: usize) -> CommitGroup {
        CommitGroup { jobs: VecDeque::from([first]), started: 0, bytes: 0, max_jobs }
    }

    fn is_full(&self) -> bool {
        self.started + self.jobs.len() >= self.max_jobs || self.bytes >= MAX_GROUP_BYTES
    }

    /// All queued jobs, ordered by session: every node locks rows in the same order, so that no two
    /// wait for each other. Jobs of one session keep their order. Also returns their size in bytes.
    pub(super) fn take_all(
        mut self,
        queue: &mut mpsc::Receiver<QueuedJob>,
    ) -> (Vec<Box<dyn Job>>, usize) {
        self.bytes = self.jobs.iter().map(|job| job.bytes).sum();
        while !self.is_full()
            && let Ok(job) = queue.try_recv()
        {
            self.bytes += job.bytes;
            self.jobs.push_back(job);
        }
        self.jobs.make_contiguous().sort_by_key(|job| job.session);
        (self.jobs.into_iter().map(|jobs| jobs.job).collect(), self.bytes)
    }

    /// The next job; after an error, no more jobs join.
    pub(super) fn next(
        &mut self,
        queue: &mut mpsc::Receiver<QueuedJob>,
        can_join: bool,
    ) -> Option<Box<dyn Job>> {
        if self.jobs.is_empty()
            && can_join
            && !self.is_full()
            && let Ok(job) = queue.try_recv()
        {
            self.jobs.push_back(job);
        }
        let QueuedJob { job, bytes, .. } = self.jobs.pop_front()?;
        self.started += 1;
        self.bytes += bytes;
        Some(job)
    }
}
