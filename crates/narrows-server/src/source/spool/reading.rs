//! Spool files into the store.

use super::super::Sums;
use super::super::look::{age, facts};
use super::super::session::list_once;
use super::{CHUNK, Spool, folder, key_of, list};
use crate::hub::Hub;
use crate::intake::{Arrival, BUSY, Intake, Reading};
use narrows::Format;
use narrows_store::{Error, NewSession, Session, Store};
use std::collections::HashSet;
use std::fs::{self, TryLockError};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often a server looks for files that somebody left.
const EVERY: Duration = Duration::from_secs(2);
/// An empty file that is older has no recorder any more.
const FORSAKEN: Duration = Duration::from_mins(1);

/// What came of a file.
enum Outcome {
    /// It is in the store, with so many new events, and gone.
    Taken(u64),
    /// Its recorder lives; so many new events were read.
    Lives(u64),
    /// Somebody else sees to it.
    Left,
}

/// Reads spool files into a store.
#[derive(Debug, Clone)]
pub struct Spools {
    folder: PathBuf,
    store: Store,
    intake: Intake,
    hub: Hub,
    live: bool,
}

impl Spools {
    /// Those of a data directory.
    pub fn new(data: &Path, store: Store, intake: Intake, hub: Hub) -> Spools {
        Spools { folder: folder(data), store, intake, hub, live: false }
    }

    /// Reads also what a living recorder wrote so far: for whoever it cannot send to.
    pub fn with_live(self, live: bool) -> Spools {
        Spools { live, ..self }
    }

    /// Reads everything that lies there.
    pub async fn read(&self) -> Sums {
        let (spools, runtime) = (self.clone(), tokio::runtime::Handle::current());
        if list(&self.folder).is_empty() {
            return Sums::default();
        }
        let done = tokio::task::spawn_blocking(move || runtime.block_on(spools.read_all()));
        done.await.unwrap_or_default()
    }

    /// Looks again and again, until it is told to stop.
    pub async fn follow(self, stop: CancellationToken) {
        let mut every = tokio::time::interval(EVERY);
        every.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = every.tick() => {}
            }
            self.read().await;
        }
    }

    async fn read_all(&self) -> Sums {
        let mut sums = Sums::default();
        let mut left = HashSet::new();
        for path in list(&self.folder) {
            let key = key_of(&path).unwrap_or_default().to_owned();
            // What came later waits for what came before.
            if left.contains(&key) {
                continue;
            }
            let events = match self.read_one(&path).await {
                Ok(Outcome::Taken(events)) => events,
                Ok(Outcome::Lives(events)) => {
                    left.insert(key);
                    events
                }
                Ok(Outcome::Left) => {
                    left.insert(key);
                    continue;
                }
                Err(error) => {
                    let name = path.file_name().unwrap_or_default().to_string_lossy();
                    tracing::warn!(file = %name, %error, "a recorded session could not be read");
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
            list_once(&self.store, &self.intake, &self.hub, None).await;
        }
        sums
    }

    async fn read_one(&self, path: &Path) -> Result<Outcome, Error> {
        let found = match Spool::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Outcome::Left),
            found => found.map_err(failed)?,
        };
        let Some(spool) = found else {
            // Its recorder was ended before it wrote anything, or is just about to.
            if age(facts(&fs::metadata(path).map_err(failed)?).2) > FORSAKEN {
                fs::remove_file(path).map_err(failed)?;
            }
            return Ok(Outcome::Left);
        };
        let lives = match spool.file.try_lock() {
            Ok(()) => false,
            Err(TryLockError::WouldBlock) if self.live => true,
            Err(TryLockError::WouldBlock) => return Ok(Outcome::Left),
            Err(TryLockError::Error(e)) => return Err(failed(e)),
        };
        // Whoever had the lock may have deleted it meanwhile.
        let node = |m: &fs::Metadata| (m.dev(), m.ino());
        let own = spool.file.metadata().map_err(failed)?;
        if !fs::symlink_metadata(path).is_ok_and(|m| node(&m) == node(&own)) {
            return Ok(Outcome::Left);
        }
        let Some(session) = self.session(&spool).await? else {
            // It was deleted here, and stays so.
            if !lives {
                fs::remove_file(path).map_err(failed)?;
            }
            return Ok(if lives { Outcome::Left } else { Outcome::Taken(0) });
        };
        let events = match self.give(&spool, &session, lives).await {
            Err(Error::Invalid(why)) if why == BUSY => return Ok(Outcome::Left),
            Err(error) => {
                // What was given may be ahead of what was kept.
                self.intake.forget(session.key).await;
                return Err(error);
            }
            Ok(events) => events,
        };
        if lives {
            return Ok(Outcome::Lives(events));
        }
        fs::remove_file(path).map_err(failed)?;
        Ok(Outcome::Taken(events))
    }

    /// The session of a file; none when it was deleted since.
    async fn session(&self, spool: &Spool) -> Result<Option<Session>, Error> {
        let label = &spool.header.label;
        match self.store.session_by_label(label).await {
            Err(Error::NotFound(_)) => {}
            found => return found.map(Some),
        }
        if spool.first().map_err(failed)? > 0 {
            return Ok(None);
        }
        let new = NewSession { label: Some(label.clone()), tags: Vec::new() };
        let (session, is_new) = self.store.create(new).await?;
        if is_new {
            // Deleted before its first packet is there, it does not come back.
            spool.set_first(1).map_err(failed)?;
        }
        self.hub.changed();
        Ok(Some(session))
    }

    /// Gives what is not known; returns when it is durable.
    async fn give(&self, spool: &Spool, session: &Session, lives: bool) -> Result<u64, Error> {
        let sources = self.store.sources(session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        let (read, rest) = main.map_or((0, 0), |m| (m.read, m.rest));
        let (first, known) = spool.goes_on(read, rest).map_err(failed)?;
        let mut at = spool.after(known).map_err(failed)?;
        let about = spool.file.metadata().map_err(failed)?;
        let end = about.len();
        if lives && at >= end {
            return Ok(0);
        }
        let reading = Reading {
            format: Format::Acp,
            first: Some(first + known),
            arrival: Arrival::None,
            heard: (!lives).then(|| facts(&about).2 / 1000),
            // It goes on where it was left: nothing that is held back must come out before.
            placed: true,
            end: !lives,
            exited: !lives,
            roots: vec![spool.header.cwd.clone()],
            ..Reading::default()
        };
        let mut take = self.intake.open(session, reading).await?;
        let mut file = &spool.file;
        file.seek(SeekFrom::Start(at)).map_err(failed)?;
        let mut chunk = vec![0; CHUNK];
        let mut part = Vec::new();
        while at < end {
            let most = CHUNK.min(usize::try_from(end - at).unwrap_or(CHUNK));
            let n = file.read(&mut chunk[..most]).map_err(failed)?;
            if n == 0 {
                break;
            }
            at += n as u64;
            // The end of a line that is just being written comes later.
            let whole = memchr::memrchr(b'\n', &chunk[..n]).map_or(0, |last| last + 1);
            if whole > 0 {
                part.extend_from_slice(&chunk[..whole]);
                take.push(&part).await?;
                part.clear();
            }
            part.extend_from_slice(&chunk[whole..n]);
        }
        if !lives && !part.is_empty() {
            take.push(&part).await?;
        }
        let answer = take.finish().await?;
        if !lives {
            self.intake.release(session.key).await;
        }
        Ok(answer.events)
    }
}

#[expect(clippy::needless_pass_by_value, reason = "as `map_err` gives it")]
fn failed(error: io::Error) -> Error {
    Error::Io(error.to_string())
}
