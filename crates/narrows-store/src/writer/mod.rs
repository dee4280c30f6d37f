//! The writer: a thread that commits queued jobs in groups.
//!
//! When it is idle, the caller of an append may commit on its own thread instead. `commit_loop.rs`
//! has the loop, `write_conn.rs` the transactions.

mod baton;
mod commit_loop;
mod job;
pub(crate) mod write_conn;

pub(crate) use baton::Turn;

use crate::append::Ready;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::writer::write_conn::Link;
use commit_loop::Desk;
use job::{Appending, Task, Waiting};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Queued jobs at which callers wait.
const MAX_JOBS: usize = 1024;
/// Queued bytes at which callers wait, in KiB.
const MAX_WAITING_KIB: u32 = 64 << 10;
/// Smaller appends may be committed by their callers.
const LITTLE: usize = 32 << 10;
/// The maximum number of jobs in a commit.
const MAX_GROUP_JOBS: usize = 512;

/// Counters of a writer, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) jobs: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) slowest_us: AtomicU64,
    /// Bytes of the largest append that could not be written, less the bytes written since.
    pub(crate) refused: AtomicUsize,
}

/// A handle to the writer's thread.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    pub(crate) counts: Arc<Counts>,
    desk: Arc<Mutex<Option<Desk>>>,
    nudged: Arc<AtomicBool>,
    /// Whether callers may commit inline, and the session appended to last.
    here: bool,
    last: Arc<AtomicI64>,
    /// Dropped last: then all senders are gone.
    bell: Arc<Bell>,
}

/// Wakes the thread, also when the last handle is dropped.
#[derive(Debug)]
struct Bell(Thread);

impl Bell {
    fn ring(&self) {
        self.0.unpark();
    }
}

/// Removes the commit loop when the thread ends, even by a panic: waiting callers get an error.
struct Leave(Arc<Mutex<Option<Desk>>>);

impl Drop for Leave {
    fn drop(&mut self) {
        let desk = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(desk);
    }
}

impl Drop for Bell {
    fn drop(&mut self) {
        self.ring();
    }
}

/// A slice of maintenance, larger if the writer is idle. Returns whether work is left.
pub(crate) type Housework = Box<dyn FnMut(&Db<'_>, bool) -> Result<bool> + Send>;

/// The configuration of a writer.
pub(crate) struct Plan {
    pub(crate) link: Link,
    pub(crate) housework: Option<Housework>,
    /// Runs maintenance at least this often, even without own commits.
    pub(crate) tick: Option<Duration>,
    /// The maximum number of jobs in a commit.
    pub(crate) most: usize,
    /// The baton shared with other writers.
    pub(crate) turn: Option<Arc<Turn>>,
    /// Notified after each commit that there may be maintenance.
    pub(crate) nudge: Option<Nudge>,
    /// Whether callers may commit inline.
    pub(crate) here: bool,
}

/// Requests maintenance from a writer.
#[derive(Debug, Clone)]
pub(crate) struct Nudge {
    nudged: Arc<AtomicBool>,
    thread: Thread,
}

impl Nudge {
    fn give(&self) {
        if !self.nudged.swap(true, Ordering::Relaxed) {
            self.thread.unpark();
        }
    }
}

impl Plan {
    /// The only writer of a data directory.
    pub(crate) fn alone(link: Link, housework: Housework, here: bool) -> Plan {
        Plan { housework: Some(housework), here, ..Plan::shared(link) }
    }

    /// One of several writers.
    pub(crate) fn shared(link: Link) -> Plan {
        Plan {
            link,
            housework: None,
            tick: None,
            most: MAX_GROUP_JOBS,
            turn: None,
            nudge: None,
            here: false,
        }
    }
}

impl Writer {
    /// Starts the thread. It ends when every handle is dropped and the queue is empty; `end` runs
    /// after the connection is closed.
    pub(crate) fn start(plan: Plan, end: impl FnOnce() + Send + 'static) -> Result<Writer> {
        let (queue, waiting) = mpsc::channel(MAX_JOBS);
        let counts = Arc::new(Counts::default());
        let room = Arc::new(Semaphore::new(MAX_WAITING_KIB as usize));
        let (here, nudged) = (plan.here, Arc::new(AtomicBool::new(false)));
        let desk = Desk::new(plan, waiting, Arc::clone(&counts), Arc::clone(&nudged));
        let desk = Arc::new(Mutex::new(Some(desk)));
        let leave = Leave(Arc::clone(&desk));
        let running = std::thread::Builder::new()
            .name("narrows-writer".to_owned())
            .spawn(move || {
                commit_loop::sit(&leave.0);
                drop(leave);
                end();
            })
            .map_err(|e| Error::Io(e.to_string()))?;
        let bell = Arc::new(Bell(running.thread().clone()));
        Ok(Writer { queue, room, counts, desk, nudged, here, last: Arc::default(), bell })
    }

    /// A handle for other writers to request maintenance.
    pub(crate) fn nudge(&self) -> Nudge {
        Nudge { nudged: Arc::clone(&self.nudged), thread: self.bell.0.clone() }
    }

    /// Drops the handle and wakes the thread, so that it notices the last one.
    pub(crate) fn close(self) {
        let Writer { queue, bell, .. } = self;
        drop(queue);
        bell.ring();
    }

    /// Queues `work` for a transaction; waits for room in the queue. The receiver gets the result
    /// when it is durable. `bytes` is the size in memory.
    pub(crate) async fn send<T, F>(
        &self,
        session: i64,
        bytes: usize,
        work: F,
    ) -> Result<oneshot::Receiver<Result<T>>>
    where
        T: Send + 'static,
        F: FnOnce(&Db<'_>) -> Result<T> + Send + 'static,
    {
        let room = self.room(bytes).await?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Task { work: Some(work), made: None, reply, room });
        self.queue(Waiting { job, session, bytes }).await?;
        self.bell.ring();
        Ok(answer)
    }

    /// Queues an append, which can share a transaction with others on PostgreSQL too.
    pub(crate) async fn append(&self, ready: Ready) -> Result<oneshot::Receiver<Result<u64>>> {
        let (session, bytes) = (ready.append.session, ready.size);
        // With several concurrent callers, none should do the work of all.
        let is_alone = self.last.swap(session, Ordering::Relaxed) == session;
        let here = self.here && ready.append.waits && is_alone && bytes < LITTLE;
        let room = self.room(bytes).await?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Appending { ready, made: None, reply, room });
        self.queue(Waiting { job, session, bytes }).await?;
        if !here || !self.write_here() {
            self.bell.ring();
        }
        Ok(answer)
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(MAX_WAITING_KIB);
        Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| Error::Closed)
    }

    async fn queue(&self, waiting: Waiting) -> Result<()> {
        self.queue.send(waiting).await.map_err(|_| Error::Closed)
    }

    /// Commits queued jobs on this thread unless the loop is running: the thread that runs it will
    /// take them.
    fn write_here(&self) -> bool {
        let runtime = Handle::try_current().ok().map(|runtime| runtime.runtime_flavor());
        if runtime != Some(RuntimeFlavor::MultiThread) {
            return false;
        }
        let Ok(mut held) = self.desk.try_lock() else { return false };
        let Some(desk) = held.as_mut() else { return false };
        let thread_waits = tokio::task::block_in_place(|| desk.write_some());
        drop(held);
        !thread_waits
    }
}
