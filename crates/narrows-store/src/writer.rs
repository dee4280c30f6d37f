//! The one thread that writes: what waits at the same time shares one commit.

use crate::error::{Error, Result};
use rusqlite::Connection;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Jobs that may wait; then callers do.
const MAX_JOBS: usize = 1024;
/// Bytes that may wait, in KiB.
const MAX_WAITING_KIB: u32 = 64 << 10;
/// What one commit takes at most.
const MAX_GROUP_JOBS: usize = 512;
const MAX_GROUP_BYTES: usize = 8 << 20;
/// When nothing comes for so long, there is time for housework.
const IDLE: Duration = Duration::from_millis(30);
/// After so long nobody is expected.
const LONG_IDLE: Duration = Duration::from_millis(500);
/// Under load, housework gets one part in so many of the time.
const LOAD_SHARE: u32 = 20;

/// Something to be done in a transaction.
trait Job: Send {
    fn run(&mut self, db: &Connection) -> Result<()>;
    /// The commit is done, or has failed.
    fn answer(self: Box<Self>, outcome: Result<()>);
}

struct Task<F, T> {
    work: Option<F>,
    made: Option<T>,
    reply: oneshot::Sender<Result<T>>,
    _room: OwnedSemaphorePermit,
}

impl<F, T> Job for Task<F, T>
where
    F: FnOnce(&Connection) -> Result<T> + Send,
    T: Send,
{
    fn run(&mut self, db: &Connection) -> Result<()> {
        let Some(work) = self.work.take() else { return Err(Error::Closed) };
        self.made = Some(work(db)?);
        Ok(())
    }

    fn answer(self: Box<Self>, outcome: Result<()>) {
        let Task { made, reply, .. } = *self;
        // Nobody may be waiting any more.
        let _ = reply.send(outcome.and_then(|()| made.ok_or(Error::Closed)));
    }
}

/// What waits: a job and its size.
struct Waiting {
    job: Box<dyn Job>,
    bytes: usize,
}

/// Counts of the writer, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) jobs: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) slowest_us: AtomicU64,
}

/// The way to the writing thread.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    pub(crate) counts: Arc<Counts>,
    thread: std::thread::Thread,
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Waiting({} bytes)", self.bytes)
    }
}

/// Work that can wait, done in small parts between commits, in larger ones when nobody has come for
/// a while. True when there is more of it.
pub(crate) type Housework = Box<dyn FnMut(&Connection, bool) -> Result<bool> + Send>;
/// What is looked at after a commit, outside of a transaction.
pub(crate) type AfterCommit = Box<dyn FnMut(&Connection) + Send>;

impl Writer {
    /// Starts the thread. It ends when every `Writer` is dropped, after all that waits is done;
    /// `end` comes when the connection is closed.
    pub(crate) fn start(
        db: Connection,
        housework: Housework,
        after: AfterCommit,
        end: impl FnOnce() + Send + 'static,
    ) -> Result<Writer> {
        let (queue, waiting) = mpsc::channel(MAX_JOBS);
        let counts = Arc::new(Counts::default());
        let room = Arc::new(Semaphore::new(MAX_WAITING_KIB as usize));
        let mut thread = Thread {
            db,
            waiting,
            housework,
            after,
            counts: Arc::clone(&counts),
            worked: Instant::now(),
            rested: Instant::now(),
            housework_took: IDLE,
            more_housework: true,
        };
        let running = std::thread::Builder::new()
            .name("narrows-writer".to_owned())
            .spawn(move || {
                thread.run();
                drop(thread);
                end();
            })
            .map_err(|e| Error::Io(e.to_string()))?;
        Ok(Writer { queue, room, counts, thread: running.thread().clone() })
    }

    /// Gives it up; a thread that waits sees at once that nobody comes any more.
    pub(crate) fn close(self) {
        let Writer { queue, thread, .. } = self;
        drop(queue);
        thread.unpark();
    }

    /// Does `work` in a transaction; waits until it is durable. `bytes` is its size in memory.
    pub(crate) async fn write<T, F>(&self, bytes: usize, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        self.send(bytes, work).await?.await.map_err(|_| Error::Closed)?
    }

    /// The same, but waits only until there is room; the receiver tells when it is durable.
    pub(crate) async fn send<T, F>(
        &self,
        bytes: usize,
        work: F,
    ) -> Result<oneshot::Receiver<Result<T>>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(MAX_WAITING_KIB);
        let room = Arc::clone(&self.room).acquire_many_owned(kib).await;
        let (reply, answer) = oneshot::channel();
        let room = room.map_err(|_| Error::Closed)?;
        let job = Box::new(Task { work: Some(work), made: None, reply, _room: room });
        self.queue.send(Waiting { job, bytes }).await.map_err(|_| Error::Closed)?;
        self.thread.unpark();
        Ok(answer)
    }
}

struct Thread {
    db: Connection,
    waiting: mpsc::Receiver<Waiting>,
    housework: Housework,
    after: AfterCommit,
    counts: Arc<Counts>,
    /// When the last job was done.
    worked: Instant,
    /// When the last housework was done, and how long it took.
    rested: Instant,
    housework_took: Duration,
    more_housework: bool,
}

enum Next {
    Job(Waiting),
    Nothing,
    Closed,
}

impl Thread {
    fn run(&mut self) {
        loop {
            match self.next() {
                Next::Job(first) => {
                    self.group(first);
                    // Whatever was written may have made some, also right after the last of it.
                    self.more_housework = true;
                }
                Next::Nothing => {
                    let idle = self.worked.elapsed() > LONG_IDLE;
                    self.more_housework = self.do_housework(idle);
                }
                Next::Closed => return,
            }
        }
    }

    /// Waits for a job; when none comes for a while, there is time for housework.
    fn next(&mut self) -> Next {
        use mpsc::error::TryRecvError;
        if !self.more_housework {
            return match self.waiting.blocking_recv() {
                Some(job) => Next::Job(job),
                None => Next::Closed,
            };
        }
        let until = self.worked + IDLE;
        loop {
            match self.waiting.try_recv() {
                Ok(job) => return Next::Job(job),
                Err(TryRecvError::Disconnected) => return Next::Closed,
                Err(TryRecvError::Empty) => {}
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            // Whoever sends a job wakes this thread.
            std::thread::park_timeout(left);
        }
    }

    /// One commit.
    fn group(&mut self, first: Waiting) {
        let began = Instant::now();
        let mut done: Vec<Box<dyn Job>> = Vec::new();
        let mut outcome = self.db.execute_batch("BEGIN IMMEDIATE").map_err(Error::from);
        let mut bytes = 0;
        let mut next = Some(first);
        while let Some(Waiting { mut job, bytes: more }) = next {
            if let Err(error) = &outcome {
                job.answer(Err(error.clone()));
            } else {
                match self.one(&mut *job) {
                    Ok(()) => done.push(job),
                    Err(error) => {
                        // A full disk takes the whole transaction with it.
                        if self.db.is_autocommit() {
                            outcome = Err(error.clone());
                        }
                        job.answer(Err(error));
                    }
                }
            }
            bytes += more;
            let full = done.len() >= MAX_GROUP_JOBS || bytes >= MAX_GROUP_BYTES || outcome.is_err();
            next = if full { None } else { self.waiting.try_recv().ok() };
        }
        if outcome.is_ok() {
            outcome = self.db.execute_batch("COMMIT").map_err(Error::from);
        }
        if outcome.is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            if !self.db.is_autocommit() {
                let _ = self.db.execute_batch("ROLLBACK");
            }
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.jobs.fetch_add(done.len() as u64, Ordering::Relaxed);
        for job in done {
            job.answer(outcome.clone());
        }
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.slowest_us.fetch_max(took, Ordering::Relaxed);
        (self.after)(&self.db);
        self.more_housework = true;
        // Under load it gets a small part of the time.
        if self.rested.elapsed() > self.housework_took * LOAD_SHARE {
            self.do_housework(false);
        }
        self.worked = Instant::now();
    }

    /// One job within the transaction: what fails leaves no trace of itself.
    fn one(&self, job: &mut dyn Job) -> Result<()> {
        self.db.prepare_cached("SAVEPOINT job")?.execute([])?;
        match job.run(&self.db) {
            Ok(()) => {
                self.db.prepare_cached("RELEASE job")?.execute([])?;
                Ok(())
            }
            Err(error) => {
                if !self.db.is_autocommit() {
                    self.db.execute_batch("ROLLBACK TO job; RELEASE job")?;
                }
                Err(error)
            }
        }
    }

    /// True when there is more of it.
    fn do_housework(&mut self, idle: bool) -> bool {
        let began = Instant::now();
        let done = self.db.execute_batch("BEGIN IMMEDIATE").map_err(Error::from);
        let done = done.and_then(|()| (self.housework)(&self.db, idle));
        let done = done.and_then(|more| {
            self.db.execute_batch("COMMIT")?;
            Ok(more)
        });
        let more = match done {
            Ok(more) => {
                (self.after)(&self.db);
                more
            }
            Err(error) => {
                if !self.db.is_autocommit() {
                    let _ = self.db.execute_batch("ROLLBACK");
                }
                // Tried again after the next commit.
                tracing::warn!(%error, "housework of the store failed");
                false
            }
        };
        (self.rested, self.housework_took) = (Instant::now(), began.elapsed());
        more
    }
}
