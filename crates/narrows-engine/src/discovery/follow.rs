//! Following every session of this machine: the newest first, then whatever changes.

use super::queue::{Job, Queue, Turns};
use super::reader::{Outcome, Reader};
use super::watch::Watch;
use super::{Agent, Progress, SourceOptions, Sums, agents, leave_out, list_once, look};
use crate::ingest::Intake;
use crate::live::Hub;
use narrows_store::{FileMark, Result, Store};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// What changes at the same time is read together.
const TOGETHER: Duration = Duration::from_millis(100);
/// Sessions whose newest rows stay in memory while files are read.
const MAX_TAILS: usize = 256;
/// How often everything is looked at, when changes are told and when they are not.
const RARELY: Duration = Duration::from_mins(1);
const OFTEN: Duration = Duration::from_secs(1);

/// Reads sessions as long as it lives.
#[derive(Debug)]
pub struct Follower {
    progress: Arc<Progress>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Follower {
    /// Begins with everything that is not in the store.
    pub fn start(store: Store, intake: Intake, hub: Hub, options: SourceOptions) -> Follower {
        let progress = Arc::<Progress>::default();
        let stop = watch::Sender::new(false);
        let all = All::new(store, intake, hub, options, Arc::clone(&progress), true);
        let mut tasks = all.workers(&stop);
        let mut stopped = stop.subscribe();
        tasks.push(tokio::spawn(async move {
            tokio::select! {
                () = all.follow() => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
        }));
        Follower { progress, stop, tasks }
    }

    /// How far it is.
    pub fn progress(&self) -> &Arc<Progress> {
        &self.progress
    }

    /// Ends when what is being read is kept.
    pub async fn stop(self) {
        self.stop.send_replace(true);
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// Reads everything that is not in the store, once.
pub async fn catch_up(
    store: Store,
    intake: Intake,
    hub: Hub,
    options: SourceOptions,
    progress: Arc<Progress>,
) -> Result<Sums> {
    let stop = watch::Sender::new(false);
    let all = All::new(store, intake, hub, options, Arc::clone(&progress), false);
    let tasks = all.workers(&stop);
    all.leave_out().await;
    all.scan().await?;
    all.queue.until_idle().await;
    stop.send_replace(true);
    for task in tasks {
        let _ = task.await;
    }
    Ok(progress.sums())
}

/// Sessions that are looked at again, and when.
type Later = HashMap<PathBuf, (Instant, Job)>;

/// What the tasks share.
#[derive(Debug, Clone)]
struct All {
    reader: Reader,
    agents: Vec<Arc<dyn Agent>>,
    queue: Arc<Queue>,
    /// None when everything is read only once.
    later: Option<Arc<Mutex<Later>>>,
}

impl All {
    fn new(
        store: Store,
        intake: Intake,
        hub: Hub,
        options: SourceOptions,
        progress: Arc<Progress>,
        follow: bool,
    ) -> All {
        let (agents, turns) = (agents(&options), Arc::<Turns>::default());
        All {
            reader: Reader { store, intake, hub, options, progress, turns },
            agents,
            queue: Arc::default(),
            later: follow.then(Arc::default),
        }
    }

    /// One for each core: a session is read on one of them.
    fn workers(&self, stop: &watch::Sender<bool>) -> Vec<JoinHandle<()>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores)
            .map(|_| {
                let (all, mut stopped) = (self.clone(), stop.subscribe());
                tokio::spawn(async move {
                    loop {
                        let job = tokio::select! {
                            job = all.queue.next() => job,
                            _ = stopped.wait_for(|stop| *stop) => return,
                        };
                        all.work(&job).await;
                        all.reader.hub.make_room(MAX_TAILS);
                        all.queue.done(&job);
                        if *stopped.borrow() {
                            return;
                        }
                    }
                })
            })
            .collect()
    }

    async fn work(&self, job: &Job) {
        let (reader, read) = (self.reader.clone(), job.clone());
        let progress = &self.reader.progress;
        let runtime = tokio::runtime::Handle::current();
        // Reading is work for a core, and waits for the disk.
        let done = tokio::task::spawn_blocking(move || {
            runtime.block_on(reader.read(read.agent.as_ref(), &read.main))
        });
        match done.await {
            Ok(Ok(Outcome::Read(again))) => {
                progress.add(|s| s.done += 1);
                self.look_again(job, again);
            }
            Ok(Ok(outcome)) => {
                progress.uncount(job.bytes);
                let again = if let Outcome::Later(wait) = outcome { Some(wait) } else { None };
                self.look_again(job, again);
            }
            Ok(Err(error)) => {
                let name = job.main.file_stem().unwrap_or_default().to_string_lossy();
                tracing::warn!(session = %name, %error, "a session could not be read");
                // What names its file need not be named again.
                let words = error.to_string();
                let named = words.contains(&*name);
                progress.failed(if named { words } else { format!("{name}: {words}") });
                progress.add(|s| s.done += 1);
            }
            Err(error) => {
                progress.failed(error.to_string());
                progress.add(|s| s.done += 1);
            }
        }
    }

    /// Looks at a session again after a while.
    fn look_again(&self, job: &Job, wait: Option<Duration>) {
        let Some(later) = &self.later else { return };
        let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
        match wait {
            Some(wait) => {
                let job = Job { bytes: 0, ..job.clone() };
                later.insert(job.main.clone(), (Instant::now() + wait, job));
            }
            None => drop(later.remove(&job.main)),
        }
    }

    /// Reads what is to be looked at again now.
    fn push_due(&self) {
        let Some(later) = &self.later else { return };
        let now = Instant::now();
        let due: Vec<Job> = {
            let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
            later.extract_if(|_, (at, _)| *at <= now).map(|(_, (_, job))| job).collect()
        };
        due.into_iter().for_each(|job| self.push(job, false));
    }

    fn push(&self, job: Job, urgent: bool) {
        let (progress, bytes) = (&self.reader.progress, job.bytes);
        // Counted before: it may be done at once.
        progress.count(bytes);
        if !self.queue.push(job, urgent) {
            progress.uncount(bytes);
        }
    }

    /// Hides what was read of projects that are left out by now.
    async fn leave_out(&self) {
        let Reader { store, hub, options, .. } = &self.reader;
        leave_out(store, hub, options).await;
    }

    /// Looks at everything; what is new waits to be read.
    async fn scan(&self) -> Result<()> {
        // A recording may have come after its file was read.
        let Reader { store, intake, hub, .. } = &self.reader;
        list_once(store, intake, hub, None).await;
        let agents = self.agents.clone();
        let seen = tokio::task::spawn_blocking(move || look(&agents)).await.unwrap_or_default();
        let known = self.reader.store.files().await?;
        let by_path: HashMap<String, FileMark> =
            known.into_iter().map(|mark| (mark.path.clone(), mark)).collect();
        let mut gone = Vec::new();
        for agent in &seen {
            for (place, error) in &agent.refused {
                let name = place.file_name().unwrap_or_default().to_string_lossy();
                tracing::warn!(folder = %name, %error, "a folder of sessions cannot be read");
            }
            // What was there and is there no more, in a place that could be looked at.
            let lies: HashSet<&str> =
                agent.sessions.values().flatten().filter_map(|f| f.path.to_str()).collect();
            let away = by_path.values().filter(|m| {
                let path = Path::new(&m.path);
                !m.gone
                    && !lies.contains(m.path.as_str())
                    && agent.has_place_of(path)
                    && !path.exists()
            });
            gone.extend(away.cloned());
        }
        if !gone.is_empty() {
            self.reader.store.lose_files(gone).await?;
            self.reader.hub.changed();
        }
        for agent in &seen {
            for (_, bytes, main) in agent.news(&by_path, self.reader.options.silence()) {
                self.push(Job { agent: Arc::clone(&agent.agent), main, bytes }, false);
            }
        }
        Ok(())
    }

    /// Looks, then waits to be told.
    async fn follow(&self) {
        self.leave_out().await;
        let mut watch = Watch::new(self.reader.options.poll);
        let dirty = watch.dirty();
        // Places are watched before they are looked at: nothing falls in between.
        let mut watched = watch.set(&self.places());
        let mut looked: Option<Instant> = None;
        loop {
            let (paths, mut all) = dirty.take();
            let places = self.places();
            for place in places.iter().filter(|place| paths.contains(*place)) {
                // It went away, or another one stands there.
                watch.forget(place);
                all = true;
            }
            let every = if watched { RARELY } else { OFTEN };
            all |= watch.has_news(&places) || looked.is_none_or(|at| at.elapsed() >= every);
            // Something went away or is a folder: what it was and holds is seen by looking at
            // everything.
            if self.changed(paths.into_iter()) || all {
                watched = watch.set(&places);
                if let Err(error) = self.scan().await {
                    tracing::warn!(%error, "sessions could not be looked for");
                }
                looked = Some(Instant::now());
            }
            self.push_due();
            tokio::select! {
                () = dirty.told.notified() => tokio::time::sleep(TOGETHER).await,
                () = tokio::time::sleep(OFTEN) => {}
            }
        }
    }

    /// Where sessions may lie.
    fn places(&self) -> Vec<PathBuf> {
        self.agents.iter().flat_map(|a| a.places()).collect()
    }

    /// Reads what has changed; true when everything must be looked at.
    fn changed(&self, paths: impl Iterator<Item = PathBuf>) -> bool {
        let mut look = false;
        let mut mains = HashSet::new();
        for path in paths {
            for agent in &self.agents {
                let places = agent.places();
                let Some(place) = places.iter().find(|place| path.starts_with(place)) else {
                    continue;
                };
                let Some(main) = agent.session_of(place, &path) else {
                    // A folder may have been filled before it was watched; one that is gone took
                    // all its sessions along.
                    let project = path.parent() == Some(place.as_path());
                    look |= path.is_dir() || (project && !path.exists());
                    continue;
                };
                look |= !path.exists();
                // Links are not followed, here as everywhere.
                let is_file = main.symlink_metadata().is_ok_and(|m| m.is_file());
                if is_file && mains.insert(main.clone()) {
                    self.push(Job { agent: Arc::clone(agent), main, bytes: 0 }, true);
                }
            }
        }
        look
    }
}
