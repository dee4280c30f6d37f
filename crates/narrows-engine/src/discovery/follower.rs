//! Follows all sessions of this machine: reads the newest first, then every change.

use super::job_queue::{JobQueue, KeyedLocks, ReadJob};
use super::session_reader::{ReadOutcome, SessionReader};
use super::watcher::SourceWatcher;
use super::{
    DiscoveryProgress, DiscoveryTotals, SessionSource, SourceOptions, agents, apply_excludes,
    list_once, look,
};
use crate::ingest::Ingest;
use crate::live::Hub;
use narrows_store::{FileMark, Result, Store};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// Changes within this time are read together.
const DEBOUNCE: Duration = Duration::from_millis(100);
/// Sessions whose newest rows stay in memory while files are read.
const MAX_TAILS: usize = 256;
/// Time between full scans, with and without file notifications.
const FULL_SCAN_INTERVAL: Duration = Duration::from_mins(1);
const POLL_INTERVAL: Duration = Duration::from_secs(1);

/// Follows sessions until it is stopped.
#[derive(Debug)]
pub struct Follower {
    progress: Arc<DiscoveryProgress>,
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Follower {
    /// Starts with everything that is not in the store.
    pub fn start(store: Store, ingest: Ingest, hub: Hub, options: SourceOptions) -> Follower {
        let progress = Arc::<DiscoveryProgress>::default();
        let stop = watch::Sender::new(false);
        let discovery = Discovery::new(store, ingest, hub, options, Arc::clone(&progress), true);
        let mut tasks = discovery.workers(&stop);
        let mut stopped = stop.subscribe();
        tasks.push(tokio::spawn(async move {
            tokio::select! {
                () = discovery.run() => {}
                _ = stopped.wait_for(|stop| *stop) => {}
            }
        }));
        Follower { progress, stop, tasks }
    }

    /// The progress of reading.
    pub fn progress(&self) -> &Arc<DiscoveryProgress> {
        &self.progress
    }

    /// Stops after the sessions that are being read are stored.
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
    ingest: Ingest,
    hub: Hub,
    options: SourceOptions,
    progress: Arc<DiscoveryProgress>,
) -> Result<DiscoveryTotals> {
    let stop = watch::Sender::new(false);
    let discovery = Discovery::new(store, ingest, hub, options, Arc::clone(&progress), false);
    let tasks = discovery.workers(&stop);
    discovery.apply_excludes().await;
    discovery.scan().await?;
    discovery.queue.until_idle().await;
    stop.send_replace(true);
    for task in tasks {
        let _ = task.await;
    }
    Ok(progress.sums())
}

/// Sessions that are read again, and when.
type RetrySchedule = HashMap<PathBuf, (Instant, ReadJob)>;

/// The state that workers share.
#[derive(Debug, Clone)]
struct Discovery {
    reader: SessionReader,
    agents: Vec<Arc<dyn SessionSource>>,
    queue: Arc<JobQueue>,
    /// `None` if everything is read only once.
    later: Option<Arc<Mutex<RetrySchedule>>>,
}

impl Discovery {
    fn new(
        store: Store,
        ingest: Ingest,
        hub: Hub,
        options: SourceOptions,
        progress: Arc<DiscoveryProgress>,
        follow: bool,
    ) -> Discovery {
        let (agents, locks) = (agents(&options), Arc::<KeyedLocks>::default());
        Discovery {
            reader: SessionReader { store, ingest, hub, options, progress, locks },
            agents,
            queue: Arc::default(),
            later: follow.then(Arc::default),
        }
    }

    /// Spawns one worker per core.
    fn workers(&self, stop: &watch::Sender<bool>) -> Vec<JoinHandle<()>> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        (0..cores)
            .map(|_| {
                let (discovery, mut stopped) = (self.clone(), stop.subscribe());
                tokio::spawn(async move {
                    loop {
                        let job = tokio::select! {
                            job = discovery.queue.next() => job,
                            _ = stopped.wait_for(|stop| *stop) => return,
                        };
                        discovery.work(&job).await;
                        discovery.reader.hub.make_room(MAX_TAILS);
                        discovery.queue.done(&job);
                        if *stopped.borrow() {
                            return;
                        }
                    }
                })
            })
            .collect()
    }

    async fn work(&self, job: &ReadJob) {
        let (reader, read) = (self.reader.clone(), job.clone());
        let progress = &self.reader.progress;
        let runtime = tokio::runtime::Handle::current();
        // Reading uses a core and blocks on the disk.
        let done = tokio::task::spawn_blocking(move || {
            runtime.block_on(reader.read(read.agent.as_ref(), &read.main))
        });
        match done.await {
            Ok(Ok(ReadOutcome::Read(retry))) => {
                progress.add(|s| s.done += 1);
                self.schedule_retry(job, retry);
            }
            Ok(Ok(outcome)) => {
                progress.uncount(job.bytes);
                let retry = if let ReadOutcome::Later(wait) = outcome { Some(wait) } else { None };
                self.schedule_retry(job, retry);
            }
            Ok(Err(error)) => {
                let name = job.main.file_stem().unwrap_or_default().to_string_lossy();
                tracing::warn!(session = %name, %error, "cannot read a session");
                // An error that names the file needs no prefix.
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

    /// Schedules a session to be read again, or cancels that.
    fn schedule_retry(&self, job: &ReadJob, wait: Option<Duration>) {
        let Some(later) = &self.later else { return };
        let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
        match wait {
            Some(wait) => {
                let job = ReadJob { bytes: 0, ..job.clone() };
                later.insert(job.main.clone(), (Instant::now() + wait, job));
            }
            None => drop(later.remove(&job.main)),
        }
    }

    /// Enqueues the sessions whose retry is due.
    fn enqueue_due(&self) {
        let Some(later) = &self.later else { return };
        let now = Instant::now();
        let due: Vec<ReadJob> = {
            let mut later = later.lock().unwrap_or_else(PoisonError::into_inner);
            later.extract_if(|_, (at, _)| *at <= now).map(|(_, (_, job))| job).collect()
        };
        due.into_iter().for_each(|job| self.enqueue(job, false));
    }

    fn enqueue(&self, job: ReadJob, urgent: bool) {
        let (progress, bytes) = (&self.reader.progress, job.bytes);
        // Counted first: a worker may finish the job at once.
        progress.count(bytes);
        if !self.queue.push(job, urgent) {
            progress.uncount(bytes);
        }
    }

    /// Hides sessions of excluded projects that were read before.
    async fn apply_excludes(&self) {
        let SessionReader { store, hub, options, .. } = &self.reader;
        apply_excludes(store, hub, options).await;
    }

    /// Scans all files and enqueues sessions with changes.
    async fn scan(&self) -> Result<()> {
        // A recording may have arrived after its file was read.
        let SessionReader { store, ingest, hub, .. } = &self.reader;
        list_once(store, ingest, hub, None).await;
        let agents = self.agents.clone();
        let seen = tokio::task::spawn_blocking(move || look(&agents)).await.unwrap_or_default();
        let known = self.reader.store.files().await?;
        let by_path: HashMap<String, FileMark> =
            known.into_iter().map(|mark| (mark.path.clone(), mark)).collect();
        let mut gone = Vec::new();
        for agent in &seen {
            for (root, error) in &agent.refused {
                let name = root.file_name().unwrap_or_default().to_string_lossy();
                tracing::warn!(folder = %name, %error, "cannot read a session directory");
            }
            // Files that have disappeared from a directory that could be read.
            let present: HashSet<&str> =
                agent.sessions.values().flatten().filter_map(|f| f.path.to_str()).collect();
            let missing = by_path.values().filter(|m| {
                let path = Path::new(&m.path);
                !m.gone
                    && !present.contains(m.path.as_str())
                    && agent.covers(path)
                    && !path.exists()
            });
            gone.extend(missing.cloned());
        }
        if !gone.is_empty() {
            self.reader.store.lose_files(gone).await?;
            self.reader.hub.changed();
        }
        for agent in &seen {
            for (_, bytes, main) in agent.changed_sessions(&by_path, self.reader.options.silence())
            {
                self.enqueue(ReadJob { agent: Arc::clone(&agent.agent), main, bytes }, false);
            }
        }
        Ok(())
    }

    /// Scans, then waits for notifications.
    async fn run(&self) {
        self.apply_excludes().await;
        let mut watch = SourceWatcher::new(self.reader.options.poll);
        let dirty = watch.dirty();
        // Roots are watched before they are scanned, so that no change is missed.
        let mut is_watched = watch.watch_roots(&self.roots());
        let mut last_scan: Option<Instant> = None;
        loop {
            let (paths, mut full_scan) = dirty.take();
            let roots = self.roots();
            for root in roots.iter().filter(|root| paths.contains(*root)) {
                // The root has disappeared or was replaced.
                watch.unwatch(root);
                full_scan = true;
            }
            let every = if is_watched { FULL_SCAN_INTERVAL } else { POLL_INTERVAL };
            full_scan |=
                watch.roots_changed(&roots) || last_scan.is_none_or(|at| at.elapsed() >= every);
            // Something has disappeared or is a directory: only a full scan finds what it held.
            if self.enqueue_changed(paths.into_iter()) || full_scan {
                is_watched = watch.watch_roots(&roots);
                if let Err(error) = self.scan().await {
                    tracing::warn!(%error, "cannot scan for sessions");
                }
                last_scan = Some(Instant::now());
            }
            self.enqueue_due();
            tokio::select! {
                () = dirty.notify.notified() => tokio::time::sleep(DEBOUNCE).await,
                () = tokio::time::sleep(POLL_INTERVAL) => {}
            }
        }
    }

    /// The directories that may hold sessions.
    fn roots(&self) -> Vec<PathBuf> {
        self.agents.iter().flat_map(|a| a.places()).collect()
    }

    /// Enqueues changed sessions; returns whether a full scan is needed.
    fn enqueue_changed(&self, paths: impl Iterator<Item = PathBuf>) -> bool {
        let mut needs_scan = false;
        let mut mains = HashSet::new();
        for path in paths {
            for agent in &self.agents {
                let roots = agent.places();
                let Some(root) = roots.iter().find(|root| path.starts_with(root)) else {
                    continue;
                };
                let Some(main) = agent.session_of(root, &path) else {
                    // A directory may have been filled before it was watched; one that has disappeared took
                    // all its sessions with it.
                    let project = path.parent() == Some(root.as_path());
                    needs_scan |= path.is_dir() || (project && !path.exists());
                    continue;
                };
                needs_scan |= !path.exists();
                // Links are never followed.
                let is_file = main.symlink_metadata().is_ok_and(|m| m.is_file());
                if is_file && mains.insert(main.clone()) {
                    self.enqueue(ReadJob { agent: Arc::clone(agent), main, bytes: 0 }, true);
                }
            }
        }
        needs_scan
    }
}
