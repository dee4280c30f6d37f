//! The commit loop: groups queued jobs into commits, and runs maintenance between them.

use super::job::{Group, Job, Waiting};
use super::{Counts, Plan, Turn};
use crate::append::{self, Ready};
use crate::deadline;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// Without jobs for this long, maintenance runs.
const IDLE: Duration = Duration::from_millis(30);
/// Without jobs for this long, maintenance may run larger slices.
const LONG_IDLE: Duration = Duration::from_millis(500);
/// Larger commits release the baton: they keep a server busy alone.
const MUCH: usize = 128 << 10;
/// Under load, maintenance gets one part in this many of the time.
const LOAD_SHARE: u32 = 20;
/// The maximum duration of a slice: on damaged pages it could loop.
const HOUSEWORK: Duration = Duration::from_secs(30);
/// The minimum pause between slices.
const LEAST: Duration = Duration::from_millis(10);

/// The state of the writer. The thread that holds its lock commits.
pub(super) struct Desk {
    plan: Plan,
    nudged: Arc<AtomicBool>,
    waiting: mpsc::Receiver<Waiting>,
    counts: Arc<Counts>,
    /// When the last commit ended.
    worked: Instant,
    /// When the last maintenance ended, and how long it took.
    rested: Instant,
    housework_took: Duration,
    more_housework: bool,
    /// Commits since the commit hook ran.
    unseen: u32,
    /// Whether the thread is parked without a timeout.
    asleep: bool,
}

enum Next {
    Job(Waiting),
    Housework,
    /// Nothing to do for this long unless a job arrives.
    Wait(Option<Duration>),
    Closed,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// Runs the writer's thread until all handles are dropped.
pub(super) fn sit(desk: &Mutex<Option<Desk>>) {
    loop {
        let mut held = desk.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(desk) = held.as_mut() else { return };
        let wait = match desk.next() {
            Next::Job(first) => {
                desk.group(first);
                continue;
            }
            Next::Housework => {
                let idle = desk.worked.elapsed() > LONG_IDLE;
                desk.more_housework = desk.do_housework(idle);
                continue;
            }
            Next::Wait(wait) => wait,
            Next::Closed => return,
        };
        desk.asleep = wait.is_none();
        drop(held);
        // A sender unparks this thread or commits inline.
        match wait {
            Some(time) => std::thread::park_timeout(time),
            None => std::thread::park(),
        }
    }
}

impl Desk {
    pub(super) fn new(
        plan: Plan,
        waiting: mpsc::Receiver<Waiting>,
        counts: Arc<Counts>,
        nudged: Arc<AtomicBool>,
    ) -> Desk {
        let now = Instant::now();
        Desk {
            more_housework: plan.housework.is_some(),
            plan,
            nudged,
            waiting,
            counts,
            worked: now,
            rested: now,
            housework_took: IDLE,
            unseen: 0,
            asleep: false,
        }
    }

    /// Commits the queued jobs on the caller's thread. True if the writer's thread must be woken
    /// for later work.
    pub(super) fn write_some(&mut self) -> bool {
        if let Ok(first) = self.waiting.try_recv() {
            self.group(first);
        }
        std::mem::take(&mut self.asleep)
    }

    /// Decides what to do next.
    fn next(&mut self) -> Next {
        use mpsc::error::TryRecvError;
        if self.unseen > 0 {
            self.plan.link.after_commits(std::mem::take(&mut self.unseen));
        }
        // Under load, maintenance gets a small share of the time.
        if self.more_housework && self.share_at() <= Instant::now() {
            return Next::Housework;
        }
        match self.waiting.try_recv() {
            Ok(job) => return Next::Job(job),
            Err(TryRecvError::Disconnected) => return Next::Closed,
            Err(TryRecvError::Empty) => {}
        }
        // Another writer committed: there may be maintenance to do.
        if self.nudged.swap(false, Ordering::Relaxed) {
            (self.worked, self.more_housework) = (Instant::now(), true);
        }
        let at = match (self.more_housework, self.plan.tick) {
            (true, _) => self.share_at().min(self.worked + IDLE),
            (false, Some(tick)) => self.rested + tick,
            (false, None) => return Next::Wait(None),
        };
        let left = at.saturating_duration_since(Instant::now());
        if left.is_zero() { Next::Housework } else { Next::Wait(Some(left)) }
    }

    /// When maintenance runs even if jobs are queued.
    fn share_at(&self) -> Instant {
        self.rested + (self.housework_took * LOAD_SHARE).max(LEAST)
    }

    /// Commits a group of jobs.
    fn group(&mut self, first: Waiting) {
        let began = Instant::now();
        let group = Group::new(first, self.plan.most);
        if self.plan.link.is_shared() {
            let turn = self.plan.turn.as_ref().and_then(Turn::take);
            let (jobs, bytes) = group.all(&mut self.waiting);
            // A large commit keeps the server busy alone.
            let _turn = turn.filter(|_| bytes < MUCH);
            self.together(jobs);
        } else {
            self.one_by_one(group);
        }
        // Only now is there something to maintain.
        if let Some(nudge) = &self.plan.nudge {
            nudge.give();
        }
        let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        self.counts.slowest_us.fetch_max(took, Ordering::Relaxed);
        self.unseen += 1;
        self.worked = Instant::now();
        // The commit may have left work for maintenance.
        self.more_housework = self.plan.housework.is_some();
    }

    /// Commits on SQLite: jobs join while others run, and a failed job rolls back to its savepoint.
    fn one_by_one(&mut self, mut group: Group) {
        let mut done: Vec<Box<dyn Job>> = Vec::new();
        let mut outcome = self.plan.link.begin();
        while let Some(mut job) = group.next(&mut self.waiting, outcome.is_ok()) {
            if let Err(error) = &outcome {
                self.note(job.append(), Some(error));
                job.answer(Err(error.clone()));
                continue;
            }
            match self.plan.link.step(|db| job.run(db)) {
                Ok(()) => done.push(job),
                Err(error) => {
                    // A full disk aborts the whole transaction.
                    if self.plan.link.is_lost() {
                        outcome = Err(error.clone());
                    }
                    self.note(job.append(), Some(&error));
                    job.answer(Err(error));
                }
            }
        }
        outcome = outcome.and_then(|()| self.plan.link.commit());
        self.over(done, &outcome);
    }

    /// Commits on PostgreSQL: all jobs at once. If one fails, each is committed separately.
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
                // A job that is no append has a transaction of its own.
                _ => Err(Error::Closed),
            }
        })?;
        self.plan.link.commit()
    }

    /// Ends a transaction and replies to all jobs.
    fn over(&mut self, jobs: Vec<Box<dyn Job>>, outcome: &Result<()>) {
        if outcome.is_err() {
            self.counts.failed.fetch_add(1, Ordering::Relaxed);
            self.plan.link.roll_back();
        }
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.counts.jobs.fetch_add(jobs.len() as u64, Ordering::Relaxed);
        for job in jobs {
            self.note(job.append(), outcome.as_ref().err());
            job.answer(outcome.clone());
        }
    }

    /// Tracks the largest append that could not be written, until as much has been written again.
    fn note(&self, append: Option<&Ready>, error: Option<&Error>) {
        let Some(size) = append.map(|ready| ready.size) else { return };
        match error {
            Some(Error::Full | Error::Io(_) | Error::ReadOnly) => {
                self.counts.refused.fetch_max(size.max(1), Ordering::Relaxed);
            }
            Some(_) => {}
            None => {
                let less = |refused: usize| Some(refused.saturating_sub(size));
                let (of, now) = (Ordering::Relaxed, Ordering::Relaxed);
                let _ = self.counts.refused.fetch_update(of, now, less);
            }
        }
    }

    /// Runs a slice of maintenance; returns whether work is left.
    fn do_housework(&mut self, idle: bool) -> bool {
        let Plan { link, housework: Some(housework), .. } = &mut self.plan else { return false };
        let began = Instant::now();
        let _limited = deadline::limit(HOUSEWORK);
        let done = link.begin().and_then(|()| {
            let more = housework(&link.db()?, idle)?;
            link.commit()?;
            Ok(more)
        });
        let more = match done {
            Ok(more) => {
                self.unseen += 1;
                more
            }
            Err(error) => {
                link.roll_back();
                // Retried after the next commit. The loss of the database is reported elsewhere.
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
