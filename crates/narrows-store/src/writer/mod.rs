//! The writer: a thread that commits queued jobs in groups.
//!
//! When it is idle, the caller of an append may commit on its own thread instead. `commit_loop.rs`
//! has the loop, `write_conn.rs` the transactions.

mod baton;
mod commit_loop;
mod job;
pub(crate) mod write_conn;

pub(crate) use baton::CommitBaton;

use crate::append::EncodedAppend;
use crate::db::Db;
use crate::error::{Error, Result};
use crate::writer::write_conn::WriteConn;
use commit_loop::CommitLoop;
use job::{AppendJob, ClosureJob, QueuedJob};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Thread;
use std::time::Duration;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Queued jobs at which callers wait.
const MAX_QUEUED_JOBS: usize = 1024;
/// Queued bytes at which callers wait, in KiB.
const MAX_QUEUED_KIB: u32 = 64 << 10;
/// Smaller appends may be committed by their callers.
const MAX_INLINE_COMMIT_BYTES: usize = 32 << 10;
/// The maximum number of jobs in a commit.
const MAX_GROUP_JOBS: usize = 512;

/// Counters of a writer, for metrics.
#[derive(Debug, Default)]
pub(crate) struct WriterCounters {
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
    queue: mpsc::Sender<QueuedJob>,
    byte_permits: Arc<Semaphore>,
    pub(crate) counts: Arc<WriterCounters>,
    commit_loop: Arc<Mutex<Option<CommitLoop>>>,
    maintenance_requested: Arc<AtomicBool>,
    /// Whether callers may commit inline, and the session appended to last.
    inline_commit: bool,
    last_session: Arc<AtomicI64>,
    /// Dropped last: then all senders are gone.
    waker: Arc<ThreadWaker>,
}

/// Wakes the thread, also when the last handle is dropped.
#[derive(Debug)]
struct ThreadWaker(Thread);

impl ThreadWaker {
    fn wake(&self) {
        self.0.unpark();
    }
}

/// Removes the commit loop when the thread ends, even by a panic: waiting callers get an error.
struct CloseOnDrop(Arc<Mutex<Option<CommitLoop>>>);

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        let commit_loop = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        drop(commit_loop);
    }
}

impl Drop for ThreadWaker {
    fn drop(&mut self) {
        self.wake();
    }
}

/// A slice of maintenance, larger if the writer is idle. Returns whether work is left.
pub(crate) type MaintenanceFn = Box<dyn FnMut(&Db<'_>, bool) -> Result<bool> + Send>;

/// The configuration of a writer.
pub(crate) struct WriterConfig {
    pub(crate) conn: WriteConn,
    pub(crate) maintenance: Option<MaintenanceFn>,
    /// Runs maintenance at least this often, even without own commits.
    pub(crate) maintenance_interval: Option<Duration>,
    /// The maximum number of jobs in a commit.
    pub(crate) max_jobs: usize,
    /// The baton shared with other writers.
    pub(crate) baton: Option<Arc<CommitBaton>>,
    /// Notified after each commit that there may be maintenance.
    pub(crate) signal: Option<MaintenanceSignal>,
    /// Whether callers may commit inline.
    pub(crate) inline_commit: bool,
}

/// Requests maintenance from a writer.
#[derive(Debug, Clone)]
pub(crate) struct MaintenanceSignal {
    maintenance_requested: Arc<AtomicBool>,
    thread: Thread,
}

impl MaintenanceSignal {
    fn notify(&self) {
        if !self.maintenance_requested.swap(true, Ordering::Relaxed) {
            self.thread.unpark();
        }
    }
}

impl WriterConfig {
    /// The only writer of a data directory.
    pub(crate) fn exclusive(
        conn: WriteConn,
        maintenance: MaintenanceFn,
        inline_commit: bool,
    ) -> WriterConfig {
        WriterConfig { maintenance: Some(maintenance), inline_commit, ..WriterConfig::shared(conn) }
    }

    /// One of several writers.
    pub(crate) fn shared(conn: WriteConn) -> WriterConfig {
        WriterConfig {
            conn,
            maintenance: None,
            maintenance_interval: None,
            max_jobs: MAX_GROUP_JOBS,
            baton: None,
            signal: None,
            inline_commit: false,
        }
    }
}

impl Writer {
    /// Starts the thread. It ends when every handle is dropped and the queue is empty; `end` runs
    /// after the connection is closed.
    pub(crate) fn start(
        config: WriterConfig,
        end: impl FnOnce() + Send + 'static,
    ) -> Result<Writer> {
        let (queue, queued) = mpsc::channel(MAX_QUEUED_JOBS);
        let counts = Arc::new(WriterCounters::default());
        let byte_permits = Arc::new(Semaphore::new(MAX_QUEUED_KIB as usize));
        let (inline_commit, maintenance_requested) =
            (config.inline_commit, Arc::new(AtomicBool::new(false)));
        let commit_loop = CommitLoop::new(
            config,
            queued,
            Arc::clone(&counts),
            Arc::clone(&maintenance_requested),
        );
        let commit_loop = Arc::new(Mutex::new(Some(commit_loop)));
        let close_on_drop = CloseOnDrop(Arc::clone(&commit_loop));
        let thread = std::thread::Builder::new()
            .name("narrows-writer".to_owned())
            .spawn(move || {
                commit_loop::run(&close_on_drop.0);
                drop(close_on_drop);
                end();
            })
            .map_err(|e| Error::Io(e.to_string()))?;
        let waker = Arc::new(ThreadWaker(thread.thread().clone()));
        Ok(Writer {
            queue,
            byte_permits,
            counts,
            commit_loop,
            maintenance_requested,
            inline_commit,
            last_session: Arc::default(),
            waker,
        })
    }

    /// A handle for other writers to request maintenance.
    pub(crate) fn maintenance_signal(&self) -> MaintenanceSignal {
        MaintenanceSignal {
            maintenance_requested: Arc::clone(&self.maintenance_requested),
            thread: self.waker.0.clone(),
        }
    }

    /// Drops the handle and wakes the thread, so that it notices the last one.
    pub(crate) fn close(self) {
        let Writer { queue, waker, .. } = self;
        drop(queue);
        waker.wake();
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
        let permit = self.reserve(bytes).await?;
        let (reply_tx, response) = oneshot::channel();
        let job = Box::new(ClosureJob { work: Some(work), result: None, reply_tx, permit });
        self.queue(QueuedJob { job, session, bytes }).await?;
        self.waker.wake();
        Ok(response)
    }

    /// Queues an append, which can share a transaction with others on PostgreSQL too.
    pub(crate) async fn append(
        &self,
        encoded: EncodedAppend,
    ) -> Result<oneshot::Receiver<Result<u64>>> {
        let (session, bytes) = (encoded.append.session, encoded.size);
        // With several concurrent callers, none should do the work of all.
        let is_only_session = self.last_session.swap(session, Ordering::Relaxed) == session;
        let inline_commit = self.inline_commit
            && encoded.append.waits
            && is_only_session
            && bytes < MAX_INLINE_COMMIT_BYTES;
        let permit = self.reserve(bytes).await?;
        let (reply_tx, response) = oneshot::channel();
        let job = Box::new(AppendJob { encoded, result: None, reply_tx, permit });
        self.queue(QueuedJob { job, session, bytes }).await?;
        if !inline_commit || !self.try_commit_inline() {
            self.waker.wake();
        }
        Ok(response)
    }

    async fn reserve(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(MAX_QUEUED_KIB);
        Arc::clone(&self.byte_permits).acquire_many_owned(kib).await.map_err(|_| Error::Closed)
    }

    async fn queue(&self, queued: QueuedJob) -> Result<()> {
        self.queue.send(queued).await.map_err(|_| Error::Closed)
    }

    /// Commits queued jobs on this thread unless the loop is running: the thread that runs it will
    /// take them.
    fn try_commit_inline(&self) -> bool {
        let runtime = Handle::try_current().ok().map(|runtime| runtime.runtime_flavor());
        if runtime != Some(RuntimeFlavor::MultiThread) {
            return false;
        }
        let Ok(mut guard) = self.commit_loop.try_lock() else { return false };
        let Some(commit_loop) = guard.as_mut() else { return false };
        let thread_is_parked = tokio::task::block_in_place(|| commit_loop.commit_queued());
        drop(guard);
        !thread_is_parked
    }
}
