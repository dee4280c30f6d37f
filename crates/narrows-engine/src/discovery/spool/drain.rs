//! Drains spool files into the store.

use super::super::DiscoveryTotals;
use super::super::scan::{age, fingerprint};
use super::super::session_lookup::list_once;
use super::{CHUNK_BYTES, SpoolFile, folder, hash_in_name, list};
use crate::ingest::{ArrivalTime, Ingest, IngestOptions};
use crate::live::Hub;
use narrows::Format;
use narrows_store::{Error, NewSession, Session, Store};
use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a server looks for abandoned spool files.
const POLL_INTERVAL: Duration = Duration::from_secs(2);
/// An empty file of this age has no recorder any more.
const STALE_AFTER: Duration = Duration::from_mins(1);

/// The result of draining a file.
enum DrainOutcome {
    /// The file is stored and deleted; the number of new events.
    Drained(u64),
    /// Its recorder is alive; the number of new events.
    Growing(u64),
    /// Another process handles it.
    Skipped,
}

/// Drains spool files into a store.
#[derive(Debug, Clone)]
pub struct SpoolDrainer {
    folder: PathBuf,
    store: Store,
    ingest: Ingest,
    hub: Hub,
    live: bool,
}

impl SpoolDrainer {
    /// A drainer for a data directory.
    pub fn new(data: &Path, store: Store, ingest: Ingest, hub: Hub) -> SpoolDrainer {
        SpoolDrainer { folder: folder(data), store, ingest, hub, live: false }
    }

    /// Also reads what a live recorder has written so far, for stores to which it cannot send.
    pub fn with_live(self, live: bool) -> SpoolDrainer {
        SpoolDrainer { live, ..self }
    }

    /// Drains all spool files.
    pub async fn read(&self) -> DiscoveryTotals {
        let (drainer, runtime) = (self.clone(), tokio::runtime::Handle::current());
        if list(&self.folder).is_empty() {
            return DiscoveryTotals::default();
        }
        let done = tokio::task::spawn_blocking(move || runtime.block_on(drainer.read_all()));
        done.await.unwrap_or_default()
    }

    /// Drains repeatedly until it is stopped.
    pub async fn follow(self, stop: CancellationToken) {
        let mut every = tokio::time::interval(POLL_INTERVAL);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => {}
            }
            self.read().await;
        }
    }

    async fn read_all(&self) -> DiscoveryTotals {
        let mut sums = DiscoveryTotals::default();
        let mut left = HashSet::new();
        for path in list(&self.folder) {
            let key = hash_in_name(&path).unwrap_or_default().to_owned();
            // Later files of a session wait for earlier ones.
            if left.contains(&key) {
                continue;
            }
            let events = match self.read_one(&path).await {
                Ok(DrainOutcome::Drained(events)) => events,
                Ok(DrainOutcome::Growing(events)) => {
                    left.insert(key);
                    events
                }
                Ok(DrainOutcome::Skipped) => {
                    left.insert(key);
                    continue;
                }
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    tracing::warn!(file = %name, %error, "cannot drain a spool file");
                    left.insert(key);
                    sums.sessions += 1;
                    sums.failed += 1;
                    continue;
                }
            };
            if events > 0 {
                sums.sessions += 1;
                sums.done += 1;
                sums.events += events;
            }
        }
        if sums.events > 0 {
            list_once(&self.store, &self.ingest, &self.hub, None).await;
        }
        sums
    }

    async fn read_one(&self, path: &Path) -> Result<DrainOutcome, Error> {
        let found = match SpoolFile::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(DrainOutcome::Skipped),
            found => found.map_err(io_error)?,
        };
        let Some(spool) = found else {
            // The recorder ended before it wrote anything, or is about to write.
            if age(fingerprint(&fs::metadata(path).map_err(io_error)?).2) > STALE_AFTER {
                fs::remove_file(path).map_err(io_error)?;
            }
            return Ok(DrainOutcome::Skipped);
        };
        let is_recording = match spool.file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) if self.live => true,
            Err(TryLockError::WouldBlock) => return Ok(DrainOutcome::Skipped),
            Err(TryLockError::Error(e)) => return Err(io_error(e)),
        };
        // The previous lock holder may have deleted the file.
        let node = |m: &fs::Metadata| (m.dev(), m.ino());
        let own = spool.file.metadata().map_err(io_error)?;
        if !fs::symlink_metadata(path).is_ok_and(|m| node(&m) == node(&own)) {
            return Ok(DrainOutcome::Skipped);
        }
        let Some(session) = self.session(&spool).await? else {
            // The session was deleted here and must not come back.
            if !is_recording {
                fs::remove_file(path).map_err(io_error)?;
            }
            return Ok(if is_recording { DrainOutcome::Skipped } else { DrainOutcome::Drained(0) });
        };
        let events = match self.ingest_packets(&spool, &session, is_recording).await {
            Err(Error::Busy) => return Ok(DrainOutcome::Skipped),
            Err(error) => {
                // The writer in memory may be ahead of the store.
                self.ingest.forget(session.key).await;
                return Err(error);
            }
            Ok(events) => events,
        };
        if is_recording {
            return Ok(DrainOutcome::Growing(events));
        }
        fs::remove_file(path).map_err(io_error)?;
        Ok(DrainOutcome::Drained(events))
    }

    /// The session of a file; `None` if it was deleted.
    async fn session(&self, spool: &SpoolFile) -> Result<Option<Session>, Error> {
        let label = &spool.header.label;
        match self.store.session_by_label(label).await {
            Err(Error::NotFound(_)) => {}
            found => return found.map(Some),
        }
        if spool.first().map_err(io_error)? > 0 {
            return Ok(None);
        }
        let new = NewSession { label: Some(label.clone()), tags: Vec::new() };
        let (session, is_new) = self.store.create(new).await?;
        if is_new {
            // A session that is deleted before its first packet must not come back.
            spool.set_first(1).map_err(io_error)?;
        }
        self.hub.changed();
        Ok(Some(session))
    }

    /// Ingests the packets that are not in the store; returns when they are durable.
    async fn ingest_packets(
        &self,
        spool: &SpoolFile,
        session: &Session,
        is_recording: bool,
    ) -> Result<u64, Error> {
        let sources = self.store.sources(session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        let (read, rest) = main.map_or((0, 0), |m| (m.read, m.rest));
        let (first, known) = spool.goes_on(read, rest).map_err(io_error)?;
        let mut at = spool.after(known).map_err(io_error)?;
        let about = spool.file.metadata().map_err(io_error)?;
        let end = about.len();
        if is_recording && at >= end {
            return Ok(0);
        }
        let options = IngestOptions {
            format: Format::Acp,
            first: Some(first + known),
            arrival: ArrivalTime::None,
            heard: (!is_recording).then(|| fingerprint(&about).2 / 1000),
            // Packets continue at the checkpoint, so held-back text must not be flushed before them.
            placed: true,
            end: !is_recording,
            exited: !is_recording,
            roots: vec![spool.header.cwd.clone()],
            ..IngestOptions::default()
        };
        let mut request = self.ingest.open(session, options).await?;
        let mut file = &spool.file;
        file.seek(SeekFrom::Start(at)).map_err(io_error)?;
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut part = Vec::new();
        while at < end {
            let most = CHUNK_BYTES.min(usize::try_from(end - at).unwrap_or(CHUNK_BYTES));
            let n = file.read(&mut chunk[..most]).map_err(io_error)?;
            if n == 0 {
                break;
            }
            at += n as u64;
            // A line that is being written is read later.
            let whole = memchr::memrchr(b'\n', &chunk[..n]).map_or(0, |last| last + 1);
            if whole > 0 {
                part.extend_from_slice(&chunk[..whole]);
                request.push(&part).await?;
                part.clear();
            }
            part.extend_from_slice(&chunk[whole..n]);
        }
        if !is_recording && !part.is_empty() {
            request.push(&part).await?;
        }
        let receipt = request.finish().await?;
        if !is_recording {
            self.ingest.release(session.key).await;
        }
        Ok(receipt.events)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn io_error(error: io::Error) -> Error {
    Error::Io(error.to_string())
}
