//! The one thread that writes: what waits at the same time shares one commit.

mod job;
mod turn;

pub(crate) use turn::Turn;

use crate::append::{self, Ready};
use crate::db::Db;
use crate::error::{Error, Result};
use crate::link::Link;
use job::{Appending, Group, Job, Task, Waiting};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot};

/// Jobs that may wait; then callers do.
const MAX_JOBS: usize = 1024;
/// Bytes that may wait, in KiB.
const MAX_WAITING_KIB: u32 = 64 << 10;
/// Jobs that one commit takes at most.
const MAX_GROUP_JOBS: usize = 512;
/// When nothing comes for so long, there is time for housework.
const IDLE: Duration = Duration::from_millis(30);
/// After so long nobody is expected.
const LONG_IDLE: Duration = Duration::from_millis(500);
/// Bytes of a commit that waits for nobody else's.
const MUCH: usize = 128 << 10;
/// Under load, housework gets one part in so many of the time.
const LOAD_SHARE: u32 = 20;

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
    nudged: Arc<AtomicBool>,
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
}

/// Tells a writer that there may be housework.
#[derive(Debug, Clone)]
pub(crate) struct Nudge {
    nudged: Arc<AtomicBool>,
    thread: std::thread::Thread,
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
    pub(crate) fn alone(link: Link, housework: Housework) -> Plan {
        Plan {
            link,
            housework: Some(housework),
            tick: None,
            most: MAX_GROUP_JOBS,
            turn: None,
            nudge: None,
        }
    }

    /// One of several.
    pub(crate) fn shared(link: Link) -> Plan {
        Plan { link, housework: None, tick: None, most: MAX_GROUP_JOBS, turn: None, nudge: None }
    }
}

impl Writer {
    /// Starts the thread. It ends when every `Writer` is dropped, after all that waits is done;
    /// `end` comes when the connection is closed.
    pub(crate) fn start(plan: Plan, end: impl FnOnce() + Send + 'static) -> Result<Writer> {
        let (queue, waiting) = mpsc::channel(MAX_JOBS);
        let counts = Arc::new(Counts::default());
        let room = Arc::new(Semaphore::new(MAX_WAITING_KIB as usize));
        let more_housework = plan.housework.is_some();
        let nudged = Arc::new(AtomicBool::new(false));
        let mut thread = Thread {
            plan,
            nudged: Arc::clone(&nudged),
            waiting,
            counts: Arc::clone(&counts),
            worked: Instant::now(),
            rested: Instant::now(),
            housework_took: IDLE,
            more_housework,
        };
        let running = std::thread::Builder::new()
            .name("narrows-writer".to_owned())
            .spawn(move || {
                thread.run();
                drop(thread);
                end();
            })
            .map_err(|e| Error::Io(e.to_string()))?;
        Ok(Writer { queue, room, counts, thread: running.thread().clone(), nudged })
    }

    /// For others that write, so that their housework is done.
    pub(crate) fn nudge(&self) -> Nudge {
        Nudge { nudged: Arc::clone(&self.nudged), thread: self.thread.clone() }
    }

    /// Gives it up; a thread that waits sees at once that nobody comes any more.
    pub(crate) fn close(self) {
        let Writer { queue, thread, .. } = self;
        drop(queue);
        thread.unpark();
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
        Ok(answer)
    }

    /// The same for an append, which may share a commit with others also where many write.
    pub(crate) async fn append(&self, ready: Ready) -> Result<oneshot::Receiver<Result<u64>>> {
        let (session, bytes) = (ready.append.session, ready.size);
        let room = self.room(bytes).await?;
        let (reply, answer) = oneshot::channel();
        let job = Box::new(Appending { ready, made: None, reply, room });
        self.queue(Waiting { job, session, bytes }).await?;
        Ok(answer)
    }

    async fn room(&self, bytes: usize) -> Result<OwnedSemaphorePermit> {
        let kib = u32::try_from(bytes / 1024 + 1).unwrap_or(u32::MAX).min(MAX_WAITING_KIB);
        Arc::clone(&self.room).acquire_many_owned(kib).await.map_err(|_| Error::Closed)
    }

    async fn queue(&self, waiting: Waiting) -> Result<()> {
        self.queue.send(waiting).await.map_err(|_| Error::Closed)?;
        self.thread.unpark();
        Ok(())
    }
}

struct Thread {
    plan: Plan,
    nudged: Arc<AtomicBool>,
    waiting: mpsc::Receiver<Waiting>,
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
                    self.more_housework = self.plan.housework.is_some();
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
        if !self.more_housework && self.plan.tick.is_none() {
            return match self.waiting.blocking_recv() {
                Some(job) => Next::Job(job),
                None => Next::Closed,
            };
        }
        loop {
            match self.waiting.try_recv() {
                Ok(job) => return Next::Job(job),
                Err(TryRecvError::Disconnected) => return Next::Closed,
                Err(TryRecvError::Empty) => {}
            }
            // Others have worked: there may be some.
            if self.nudged.swap(false, Ordering::Relaxed) {
                (self.worked, self.more_housework) = (Instant::now(), true);
            }
            let left = self.housework_at().saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            // Whoever sends a job wakes this thread.
            std::thread::park_timeout(left);
        }
    }

    /// When housework is done next, if no job comes.
    fn housework_at(&self) -> Instant {
        match (self.more_housework, self.plan.tick) {
            (true, None) => self.worked + IDLE,
            // Beside others that work it gets a small part of the time, as it does between jobs.
            (true, Some(_)) => {
                (self.worked + IDLE).min(self.rested + self.housework_took * LOAD_SHARE)
            }
            (false, tick) => self.rested + tick.unwrap_or(LONG_IDLE),
        }
    }

    /// One commit, or where many write as many as are needed.
    fn group(&mut self, first: Waiting) {
        let began = Instant::now();
        let group = Group::new(first, self.plan.most);
        if self.plan.link.is_shared() {
            let turn = self.plan.turn.as_ref().and_then(Turn::take);
            let (jobs, bytes) = group.all(&mut self.waiting);
            // What is large keeps a server busy for itself.
            let _turn = turn.filter(|_| bytes < MUCH);
            self.together(jobs);
        } else {
            self.one_by_one(group);
        }
        // Only now there is something to be seen.
        if let Some(nudge) = &self.plan.nudge {
            nudge.give();
        }
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.slowest_us.fetch_max(took, Ordering::Relaxed);
        self.plan.link.after_commit();
        // Under load it gets a small part of the time.
        if self.rested.elapsed() > self.housework_took * LOAD_SHARE {
            self.do_housework(false);
        }
        self.worked = Instant::now();
    }

    /// SQLite: jobs join while others are done, and what fails leaves no trace of itself.
    fn one_by_one(&mut self, mut group: Group) {
        let mut done: Vec<Box<dyn Job>> = Vec::new();
        let mut outcome = self.plan.link.begin();
        while let Some(mut job) = group.next(&mut self.waiting, outcome.is_ok()) {
            if let Err(error) = &outcome {
                job.answer(Err(error.clone()));
                continue;
            }
            match self.plan.link.step(|db| job.run(db)) {
                Ok(()) => done.push(job),
                Err(error) => {
                    // A full disk takes the whole transaction with it.
                    if self.plan.link.is_lost() {
                        outcome = Err(error.clone());
                    }
                    job.answer(Err(error));
                }
            }
        }
        outcome = outcome.and_then(|()| self.plan.link.commit());
        self.over(done, &outcome);
    }

    /// PostgreSQL: all at once. If something is wrong with one of them, each has a commit of its own.
    fn together(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let outcome = self.transaction(&mut jobs, true);
        let appends = jobs.iter().all(|job| job.append().is_some());
        if !appends || matches!(outcome, Ok(()) | Err(Error::Unavailable(_))) {
            self.over(jobs, &outcome);
            return;
        }
        self.plan.link.roll_back();
        for job in jobs {
            let mut alone = vec![job];
            let outcome = self.transaction(&mut alone, false);
            self.over(alone, &outcome);
        }
    }

    fn transaction(&mut self, jobs: &mut [Box<dyn Job>], trust: bool) -> Result<()> {
        self.plan.link.begin()?;
        self.plan.link.step(|db| {
            let appends: Vec<&Ready> = jobs.iter().filter_map(|job| job.append()).collect();
            if appends.len() == jobs.len() {
                let made = append::all(db, &appends, trust)?;
                jobs.iter_mut().zip(made).for_each(|(job, made)| job.done(made));
                return Ok(());
            }
            match jobs {
                [one] => one.run(db),
                // What is no append comes alone.
                _ => Err(Error::Closed),
            }
        })?;
        self.plan.link.commit()
    }

    /// A transaction is over: tells everybody.
    fn over(&mut self, jobs: Vec<Box<dyn Job>>, outcome: &Result<()>) {
        if outcome.is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            self.plan.link.roll_back();
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.jobs.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        for job in jobs {
            job.answer(outcome.clone());
        }
    }

    /// True when there is more of it.
    fn do_housework(&mut self, idle: bool) -> bool {
        let Plan { link, housework: Some(housework), .. } = &mut self.plan else { return false };
        let began = Instant::now();
        let done = link.begin().and_then(|()| {
            let more = housework(&link.db()?, idle)?;
            link.commit()?;
            Ok(more)
        });
        let more = match done {
            Ok(more) => {
                link.after_commit();
                more
            }
            Err(error) => {
                link.roll_back();
                // Tried again after the next commit. That a database is away is told by others.
                if !matches!(error, Error::Unavailable(_)) {
                    tracing::warn!(%error, "housework of the store failed");
                }
                false
            }
        };
        (self.rested, self.housework_took) = (Instant::now(), began.elapsed());
        more
    }
}
