//! Jobs that are done, one commit after the other, and housework in between.

use super::job::{Group, Job, Waiting};
use super::{Counts, Plan, Turn};
use crate::append::{self, Ready};
use crate::deadline;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// When nothing comes for so long, there is time for housework.
const IDLE: Duration = Duration::from_millis(30);
/// After so long nobody is expected.
const LONG_IDLE: Duration = Duration::from_millis(500);
/// Bytes of a commit that waits for nobody else's.
const MUCH: usize = 128 << 10;
/// Under load, housework gets one part in so many of the time.
const LOAD_SHARE: u32 = 20;
/// One part of it takes no longer than this: on damaged pages it could go in circles.
const HOUSEWORK: Duration = Duration::from_secs(30);
/// No sooner than so long after the last.
const LEAST: Duration = Duration::from_millis(10);

/// Where jobs are done. Whoever has it writes.
pub(super) struct Desk {
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
    /// Commits after which nobody has looked at the database yet.
    unseen: u32,
    /// The thread sleeps until somebody wakes it.
    asleep: bool,
}

enum Next {
    Job(Waiting),
    Housework,
    /// Nothing is to be done for so long, if nobody comes.
    Wait(Option<Duration>),
    Closed,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

/// What the thread does until nobody comes any more.
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
        // Whoever sends a job wakes this thread, or does it.
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

    /// Does the jobs that wait, in place of the thread. True when the thread must be woken for what
    /// is to be done later.
    pub(super) fn write_some(&mut self) -> bool {
        if let Ok(first) = self.waiting.try_recv() {
            self.group(first);
        }
        std::mem::take(&mut self.asleep)
    }

    /// What is to be done next.
    fn next(&mut self) -> Next {
        use mpsc::error::TryRecvError;
        if self.unseen > 0 {
            self.plan.link.after_commits(std::mem::take(&mut self.unseen));
        }
        // Under load it gets a small part of the time.
        if self.more_housework && self.share_at() <= Instant::now() {
            return Next::Housework;
        }
        match self.waiting.try_recv() {
            Ok(job) => return Next::Job(job),
            Err(TryRecvError::Disconnected) => return Next::Closed,
            Err(TryRecvError::Empty) => {}
        }
        // Others have worked: there may be some.
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

    /// When housework is done though others come.
    fn share_at(&self) -> Instant {
        self.rested + (self.housework_took * LOAD_SHARE).max(LEAST)
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
        self.unseen += 1;
        self.worked = Instant::now();
        // Whatever was written may have made some.
        self.more_housework = self.plan.housework.is_some();
    }

    /// SQLite: jobs join while others are done, and what fails leaves no trace of itself.
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
                    // A full disk takes the whole transaction with it.
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
            self.note(job.append(), outcome.as_ref().err());
            job.answer(outcome.clone());
        }
    }

    /// Remembers that something could not be written, until as much can be.
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

    /// True when there is more of it.
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
