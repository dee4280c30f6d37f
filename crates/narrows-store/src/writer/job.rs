//! Jobs of the writer, and their grouping into commits.

use crate::append::{self, Ready};
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
    fn answer(self: Box<Self>, outcome: Result<()>);
    /// The append, if the job is one: several appends can be written together.
    fn append(&self) -> Option<&Ready> {
        None
    }
    /// Receives the result of an append that was written together with others.
    fn done(&mut self, _made: Result<u64>) {}
}

pub(super) struct Task<F, T> {
    pub(super) work: Option<F>,
    pub(super) made: Option<T>,
    pub(super) reply: oneshot::Sender<Result<T>>,
    pub(super) room: OwnedSemaphorePermit,
}

impl<F, T> Job for Task<F, T>
where
    F: FnOnce(&Db<'_>) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, db: &Db<'_>) -> Result<()> {
        let Some(work) = self.work.take() else { return Err(Error::Closed) };
        self.made = Some(work(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Task { made, reply, room, .. } = *self;
        drop(room);
        // The caller may be gone.
        let _ = reply.send(outcome.and_then(|()| made.ok_or(Error::Closed)));
    }
}

/// An append. It can be rejected without failing the transaction.
pub(super) struct Appending {
    pub(super) ready: Ready,
    pub(super) made: Option<Result<u64>>,
    pub(super) reply: oneshot::Sender<Result<u64>>,
    pub(super) room: OwnedSemaphorePermit,
}

impl Job for Appending {
    fn run(&mut self, db: &Db<'_>) -> Result<()> {
        let mut made = append::all(db, &[&self.ready], false)?;
        self.made = made.pop();
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Appending { made, reply, room, .. } = *self;
        drop(room);
        let _ = reply.send(outcome.and_then(|()| made.unwrap_or(Err(Error::Closed))));
    }

    fn append(&self) -> Option<&Ready> {
        Some(&self.ready)
    }

    fn done(&mut self, made: Result<u64>) {
        self.made = Some(made);
    }
}

/// A queued job with its session and size.
pub(super) struct Waiting {
    pub(super) job: Box<dyn Job>,
    pub(super) session: i64,
    pub(super) bytes: usize,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({} bytes)", self.bytes)
    }
}

/// The jobs of one commit.
pub(super) struct Group {
    waiting: VecDeque<Waiting>,
    taken: usize,
    bytes: usize,
    most: usize,
}

impl Group {
    pub(super) fn new(first: Waiting, most: usize) -> Group {
        Group { waiting: VecDeque::from([first]), taken: 0, bytes: 0, most }
    }

    fn is_full(&self) -> bool {
        self.taken + self.waiting.len() >= self.most || self.bytes >= MAX_GROUP_BYTES
    }

    /// All queued jobs, ordered by session: every node locks rows in the same order, so that no two
    /// wait for each other. Jobs of one session keep their order. Also returns their size in bytes.
    pub(super) fn all(mut self, more: &mut mpsc::Receiver<Waiting>) -> (Vec<Box<dyn Job>>, usize) {
        self.bytes = self.waiting.iter().map(|job| job.bytes).sum();
        while !self.is_full()
            && let Ok(job) = more.try_recv()
        {
            self.bytes += job.bytes;
            self.waiting.push_back(job);
        }
        self.waiting.make_contiguous().sort_by_key(|job| job.session);
        (self.waiting.into_iter().map(|waiting| waiting.job).collect(), self.bytes)
    }

    /// The next job; after an error, no more jobs join.
    pub(super) fn next(
        &mut self,
        more: &mut mpsc::Receiver<Waiting>,
        well: bool,
    ) -> Option<Box<dyn Job>> {
        if self.waiting.is_empty()
            && well
            && !self.is_full()
            && let Ok(job) = more.try_recv()
        {
            self.waiting.push_back(job);
        }
        let Waiting { job, bytes, .. } = self.waiting.pop_front()?;
        self.taken += 1;
        self.bytes += bytes;
        Some(job)
    }
}
