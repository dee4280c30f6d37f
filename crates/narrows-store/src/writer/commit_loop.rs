//! The commit loop: groups queued jobs into commits, and runs maintenance between them.

use super::job::{CommitGroup, Job, QueuedJob};
use super::{CommitBaton, WriterConfig, WriterCounters};
use crate::append::{self, EncodedAppend};
use crate::deadline;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Without jobs for this long, maintenance runs.
const IDLE_DELAY: Duration = Duration::from_millis(30);
/// Without jobs for this long, maintenance may run larger slices.
const LONG_IDLE_DELAY: Duration = Duration::from_millis(500);
/// Larger commits release the baton: they keep a server busy alone.
const MAX_SHARED_COMMIT_BYTES: usize = 128 << 10;
/// Under load, maintenance gets one part in this many of the time.
const MAINTENANCE_SHARE: u32 = 20;
/// The maximum duration of a slice: on damaged pages it could loop.
const MAINTENANCE_TIMEOUT: Duration = Duration::from_secs(30);
/// The minimum pause between slices.
const MIN_MAINTENANCE_GAP: Duration = Duration::from_millis(10);

/// The state of the writer. The thread that holds its lock commits.
pub(super) struct CommitLoop {
    config: WriterConfig,
    maintenance_requested: Arc<AtomicBool>,
    queue: mpsc::Receiver<QueuedJob>,
    counts: Arc<WriterCounters>,
    /// When the last commit ended.
    last_commit: Instant,
    /// When the last maintenance ended, and how long it took.
    last_maintenance: Instant,
    maintenance_took: Duration,
    maintenance_pending: bool,
    /// Commits since the commit hook ran.
    commits_since_hook: u32,
    /// Whether the thread is parked without a timeout.
    parked: bool,
}

enum NextAction {
    Job(QueuedJob),
    MaintenanceFn,
    /// Nothing to do for this long unless a job arrives.
    Wait(Option<Duration>),
    Closed,
}

impl std::fmt::Debug for CommitLoop {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Runs the writer's thread until all handles are dropped.
pub(super) fn run(commit_loop: &Mutex<Option<CommitLoop>>) {
    loop {
        let mut guard = commit_loop.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(commit_loop) = guard.as_mut() else { return };
        let timeout = match commit_loop.next() {
            NextAction::Job(first) => {
                commit_loop.commit_group(first);
                continue;
            }
            NextAction::MaintenanceFn => {
                let idle = commit_loop.last_commit.elapsed() > LONG_IDLE_DELAY;
                commit_loop.maintenance_pending = commit_loop.run_maintenance(idle);
                continue;
            }
            NextAction::Wait(timeout) => timeout,
            NextAction::Closed => return,
        };
        commit_loop.parked = timeout.is_none();
        drop(guard);
        // A sender unparks this thread or commits inline.
        match timeout {
            Some(time) => std::thread::park_timeout(time),
            None => std::thread::park(),
        }
    }
}

impl CommitLoop {
    pub(super) fn new(
        config: WriterConfig,
        queue: mpsc::Receiver<QueuedJob>,
        counts: Arc<WriterCounters>,
        maintenance_requested: Arc<AtomicBool>,
    ) -> CommitLoop {
        let now = Instant::now();
        CommitLoop {
            maintenance_pending: config.maintenance.is_some(),
            config,
            maintenance_requested,
            queue,
            counts,
            last_commit: now,
            last_maintenance: now,
            maintenance_took: IDLE_DELAY,
            commits_since_hook: 0,
            parked: false,
        }
    }

    /// Commits the queued jobs on the caller's thread. True if the writer's thread must be woken
    /// for later work.
    pub(super) fn commit_queued(&mut self) -> bool {
        if let Ok(first) = self.queue.try_recv() {
            self.commit_group(first);
        }
        std::mem::take(&mut self.parked)
    }

    /// Decides what to do next.
    fn next(&mut self) -> NextAction {
        use mpsc::error::TryRecvError;
        if self.commits_since_hook > 0 {
            self.config.conn.run_commit_hook(std::mem::take(&mut self.commits_since_hook));
        }
        // Under load, maintenance gets a small share of the time.
        if self.maintenance_pending && self.maintenance_due() <= Instant::now() {
            return NextAction::MaintenanceFn;
        }
        match self.queue.try_recv() {
            Ok(job) => return NextAction::Job(job),
            Err(TryRecvError::Disconnected) => return NextAction::Closed,
            Err(TryRecvError::Empty) => {}
        }
        // Another writer committed: there may be maintenance to do.
        if self.maintenance_requested.swap(false, Ordering::Relaxed) {
            (self.last_commit, self.maintenance_pending) = (Instant::now(), true);
        }
        let at = match (self.maintenance_pending, self.config.maintenance_interval) {
            (true, _) => self.maintenance_due().min(self.last_commit + IDLE_DELAY),
            (false, Some(interval)) => self.last_maintenance + interval,
            (false, None) => return NextAction::Wait(None),
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() { NextAction::MaintenanceFn } else { NextAction::Wait(Some(left)) }
    }

    /// When maintenance runs even if jobs are queued.
    fn maintenance_due(&self) -> Instant {
        self.last_maintenance + (self.maintenance_took * MAINTENANCE_SHARE).max(MIN_MAINTENANCE_GAP)
    }

    /// Commits a group of jobs.
    fn commit_group(&mut self, first: QueuedJob) {
        let started = Instant::now();
        let group = CommitGroup::new(first, self.config.max_jobs);
        if self.config.conn.is_shared() {
            let baton = self.config.baton.as_ref().and_then(CommitBaton::acquire);
            let (jobs, bytes) = group.take_all(&mut self.queue);
            // A large commit keeps the server busy alone.
            let _turn = baton.filter(|_| bytes < MAX_SHARED_COMMIT_BYTES);
            self.commit_postgres(jobs);
        } else {
            self.commit_sqlite(group);
        }
        // Only now is there something to maintain.
        if let Some(signal) = &self.config.signal {
            signal.notify();
        }
        let elapsed = u64::try_from(started.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.slowest_us.fetch_max(elapsed, Ordering::Relaxed);
        self.commits_since_hook += 1;
        self.last_commit = Instant::now();
        // The commit may have left work for maintenance.
        self.maintenance_pending = self.config.maintenance.is_some();
    }

    /// Commits on SQLite: jobs join while others run, and a failed job rolls back to its savepoint.
    fn commit_sqlite(&mut self, mut group: CommitGroup) {
        let mut finished: Vec<Box<dyn Job>> = Vec::new();
        let mut outcome = self.config.conn.begin();
        while let Some(mut job) = group.next(&mut self.queue, outcome.is_ok()) {
            if let Err(error) = &outcome {
                self.track_refused(job.append(), Some(error));
                job.reply(Err(error.clone()));
                continue;
            }
            match self.config.conn.savepoint(|db| job.run(db)) {
                Ok(()) => finished.push(job),
                Err(error) => {
                    // A full disk aborts the whole transaction.
                    if self.config.conn.is_aborted() {
                        outcome = Err(error.clone());
                    }
                    self.track_refused(job.append(), Some(&error));
                    job.reply(Err(error));
                }
            }
        }
        outcome = outcome.and_then(|()| self.config.conn.commit());
        self.finish(finished, &outcome);
    }

    /// Commits on PostgreSQL: all jobs at once. If one fails, each is committed separately.
    fn commit_postgres(&mut self, mut jobs: Vec<Box<dyn Job>>) {
        let outcome = self.transaction(&mut jobs, true);
        let appends = jobs.iter().all(|job| job.append().is_some());
        if !appends || matches!(outcome, Ok(()) | Err(Error::Unavailable(_))) {
            self.finish(jobs, &outcome);
            return;
        }
        self.config.conn.roll_back();
        for job in jobs {
            let mut single = vec![job];
            let outcome = self.transaction(&mut single, false);
            self.finish(single, &outcome);
        }
    }

    fn transaction(&mut self, jobs: &mut [Box<dyn Job>], optimistic: bool) -> Result<()> {
        self.config.conn.begin()?;
        self.config.conn.savepoint(|db| {
            let appends: Vec<&EncodedAppend> = jobs.iter().filter_map(|job| job.append()).collect();
            if appends.len() == jobs.len() {
                let results = append::write_all(db, &appends, optimistic)?;
                jobs.iter_mut().zip(results).for_each(|(job, results)| job.set_result(results));
                return Ok(());
            }
            match jobs {
                [one] => one.run(db),
                // A job that is no append has a transaction of its own.
                _ => Err(Error::Closed),
            }
        })?;
        self.config.conn.commit()
    }

    /// Ends a transaction and replies to all jobs.
    fn finish(&mut self, jobs: Vec<Box<dyn Job>>, outcome: &Result<()>) {
        if outcome.is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            self.config.conn.roll_back();
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.jobs.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        for job in jobs {
            self.track_refused(job.append(), outcome.as_ref().err());
            job.reply(outcome.clone());
        }
    }

    /// Tracks the largest append that could not be written, until as much has been written again.
    fn track_refused(&self, append: Option<&EncodedAppend>, error: Option<&Error>) {
        let Some(size) = append.map(|ready| ready.size) else { return };
        match error {
            Some(Error::Full | Error::Io(_) | Error::ReadOnly) => {
                self.counts.refused.fetch_max(size.max(1), Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                let subtract = |refused: usize| Some(refused.saturating_sub(size));
                let (of, now) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = self.counts.refused.fetch_update(of, now, subtract);
            }
        }
    }

    /// Runs a slice of maintenance; returns whether work is left.
    fn run_maintenance(&mut self, idle: bool) -> bool {
        let WriterConfig { conn, maintenance: Some(maintenance), .. } = &mut self.config else {
            return false;
        };
        let started = Instant::now();
        let _limited = deadline::limit(MAINTENANCE_TIMEOUT);
        let finished = conn.begin().and_then(|()| {
            let more = maintenance(&conn.db()?, idle)?;
            conn.commit()?;
            Ok(more)
        });
        let more = match finished {
            Ok(more) => {
                self.commits_since_hook += 1;
                more
            }
            Err(error) => {
                conn.roll_back();
                // Retried after the next commit. The loss of the database is reported elsewhere.
                if !matches!(error, Error::Unavailable(_)) {
                    tracing::warn!(%error, "store maintenance failed");
                }
                false
            }
        };
        (self.last_maintenance, self.maintenance_took) = (Instant::now(), started.elapsed());
        more
    }
}
