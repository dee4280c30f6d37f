//! The one thread that writes: what waits at the same time shares one commit. When nobody else writes,
//! whoever appends may do it in place of the thread, and waits for no other.

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

/// Jobs that may wait; then callers do.
const MAX_JOBS: usize = 1024;
/// Bytes that may wait, in KiB.
const MAX_WAITING_KIB: u32 = 64 << 10;
/// Less than this may be written by whoever appends it.
const LITTLE: usize = 32 << 10;
/// Jobs that one commit takes at most.
const MAX_GROUP_JOBS: usize = 512;

/// Counts of the writer, for metrics.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) commits: AtomicU64,
    pub(crate) jobs: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) slowest_us: AtomicU64,
    /// Bytes of an append that could not be written, less those that were written since.
    pub(crate) refused: AtomicUsize,
}

/// The way to the writing thread.
#[derive(Debug, Clone)]
pub(crate) struct Writer {
    queue: mpsc::Sender<Waiting>,
    room: Arc<Semaphore>,
    pub(crate) counts: Arc<Counts>,
    desk: Arc<Mutex<Option<Desk>>>,
    nudged: Arc<AtomicBool>,
    /// Whether whoever appends may write, and for which session somebody appended last.
    here: bool,
    last: Arc<AtomicI64>,
    /// The last to go: then nobody comes any more.
    bell: Arc<Bell>,
}

/// Wakes the thread, also when nobody is left who could.
#[derive(Debug)]
struct Bell(Thread);

impl Bell {
    fn ring(&self) {
        self.0.unpark();
    }
}

/// Takes the desk away when the thread ends, however it does: whoever waits is told.
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

/// Work that can wait, done in small parts between commits, in larger ones when nobody has come for
/// a while. True when there is more of it.
pub(crate) type Housework = Box<dyn FnMut(&Db<'_>, bool) -> Result<bool> + Send>;

/// How a writer works.
pub(crate) struct Plan {
    pub(crate) link: Link,
    pub(crate) housework: Option<Housework>,
    /// It looks for housework so often, also when nothing was written here.
    pub(crate) tick: Option<Duration>,
    /// Jobs of one commit.
    pub(crate) most: usize,
    /// With whom it takes turns.
    pub(crate) turn: Option<Arc<Turn>>,
    /// Who is told after a commit that there may be housework.
    pub(crate) nudge: Option<Nudge>,
    /// Whether whoever appends may write when nobody else does.
    pub(crate) here: bool,
}

/// Tells a writer that there may be housework.
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
    /// The one writer of a data directory.
    pub(crate) fn alone(link: Link, housework: Housework, here: bool) -> Plan {
        Plan { housework: Some(housework), here, ..Plan::shared(link) }
    }

    /// One of several.
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
    /// Starts the thread. It ends when every `Writer` is dropped, after all that waits is done;
    /// `end` comes when the connection is closed.
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

    /// For others that write, so that their housework is done.
    pub(crate) fn nudge(&self) -> Nudge {
        Nudge { nudged: Arc::clone(&self.nudged), thread: self.bell.0.clone() }
    }

    /// Gives it up; a thread that waits sees at once that nobody comes any more.
    pub(crate) fn close(self) {
        let Writer { queue, bell, .. } = self;
        drop(queue);
        bell.ring();
    }

    /// Does `work` in a transaction; waits only until there is room, and the receiver tells when it is
    /// durable. `bytes` is its size in memory.
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

    /// The same for an append, which may share a commit with others also where many write.
    pub(crate) async fn append(&self, ready: Ready) -> Result<oneshot::Receiver<Result<u64>>> {
        let (session, bytes) = (ready.append.session, ready.size);
        // Of many who write at the same time, none is to do the work of all.
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

    /// Writes what waits in place of the thread, if nobody is writing. Else whoever is, or the thread,
    /// takes it.
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
