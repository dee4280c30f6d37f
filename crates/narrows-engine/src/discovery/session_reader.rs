//! Ingests the files of one session from where they were last read.

use super::file_identity::{is_continuation, label_of, resume_at};
use super::job_queue::KeyedLocks;
use super::offloaded::OffloadedOutputs;
use super::scan::{age, fingerprint};
use super::source_file::{
    FIRST_ORPHAN_SOURCE, FIRST_OUTPUT_SOURCE, QUIESCENT_AFTER, SkipRange, SourceFile,
    find_predecessor, has_line,
};
use super::{DiscoveryProgress, SessionFiles, SessionSource, SourceOptions, list_once};
use crate::ingest::{ArrivalTime, Ingest, IngestOptions, IngestRequest};
use crate::live::Hub;
use narrows::event::Position;
use narrows::{Format, NOBODY};
use narrows_store::{Error, FileMark, Session, SourceMark, Store, now};
use std::collections::HashSet;
use std::fs::File;
use std::io;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// While a client uploads a session, its file waits this long in milliseconds: it has the same content.
const LIVE_GRACE_MS: i64 = 60_000;
/// Delay after another writer used the session.
const BUSY_RETRY: Duration = Duration::from_secs(5);
/// The result of reading a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum ReadOutcome {
    /// It was read; read it again after this time.
    Read(Option<Duration>),
    /// It is excluded or empty.
    LeftOut,
    /// It has to be read after this time.
    Later(Duration),
}

/// Reads sessions into a store.
#[derive(Debug, Clone)]
pub(super) struct SessionReader {
    pub(super) store: Store,
    pub(super) ingest: Ingest,
    pub(super) hub: Hub,
    pub(super) options: SourceOptions,
    pub(super) progress: Arc<DiscoveryProgress>,
    pub(super) locks: Arc<KeyedLocks>,
}

impl SessionReader {
    /// Reads what is new in a session.
    pub(super) async fn read(
        &self,
        agent: &dyn SessionSource,
        main: &Path,
    ) -> Result<ReadOutcome, Error> {
        match Box::pin(self.read_files(agent, main)).await {
            // The file disappeared meanwhile.
            Err(Error::Refused(_)) if !main.exists() => Ok(ReadOutcome::LeftOut),
            Err(Error::Busy) => Ok(ReadOutcome::Later(BUSY_RETRY)),
            done => done,
        }
    }

    async fn read_files(
        &self,
        agent: &dyn SessionSource,
        main: &Path,
    ) -> Result<ReadOutcome, Error> {
        if self.is_excluded(agent, main)? {
            return Ok(ReadOutcome::LeftOut);
        }
        let label = label_of(main);
        let _guard = self.locks.get(&label).lock().await;
        let outcome = self.read_session(agent, main, &label).await?;
        list_once(&self.store, &self.ingest, &self.hub, Some(&label)).await;
        Ok(outcome)
    }

    async fn read_session(
        &self,
        agent: &dyn SessionSource,
        main: &Path,
        label: &str,
    ) -> Result<ReadOutcome, Error> {
        let session_files = agent.files(main).map_err(read_error(main))?;
        if session_files.session.is_none() && !has_line(main).map_err(read_error(main))? {
            // No complete line has been written yet.
            return Ok(ReadOutcome::LeftOut);
        }
        let Some(session) = self.session(label).await? else {
            return Ok(ReadOutcome::LeftOut);
        };
        let session = self.reset_if_outdated(session, main).await?;
        let sources = self.store.sources(session.key).await?;
        let marks = self.store.files_of(session.key).await?;
        let is_uploaded =
            sources.iter().any(|s| s.number == 0) && !marks.iter().any(|m| m.number == 0);
        if is_uploaded && let Some(wait) = self.live_wait(&session, &sources).await? {
            return Ok(ReadOutcome::Later(wait));
        }
        let mut files =
            self.open_files(&session, &session_files, &sources, &marks, is_uploaded).await?;
        let newest = files.iter().map(|p| p.changed).max().unwrap_or(0);
        let silent = age(newest) > self.options.silence();
        let is_file = |source: &SourceMark| marks.iter().any(|m| m.number == source.number);
        let others = sources.iter().any(|s| s.number < FIRST_OUTPUT_SOURCE && !is_file(s));
        // A session that was ended stays ended until its agent writes again.
        let last_arrival_ms = self.store.session_row(&session.id).await?.heard_at;
        let over = session.ended && newest / 1000 < last_arrival_ms;
        let is_over = over || silent && !self.is_active(&session, others).await?;
        let options = IngestOptions {
            format: Format::ClaudeHistory,
            arrival: ArrivalTime::None,
            heard: Some(newest / 1000),
            placed: true,
            end: is_over,
            ..IngestOptions::default()
        };
        let request = self.ingest.open(&session, options).await?;
        let is_new = |source_file: &SourceFile| {
            !marks.iter().any(|m| m.number == source_file.number && m.size == source_file.size)
        };
        let has_new = files.iter().any(is_new);
        let read =
            self.ingest_files(request, &session, &session_files, &marks, &mut files, is_over).await;
        if read.is_err() {
            // The writer in memory may be ahead of the store.
            self.ingest.forget(session.key).await;
        }
        read?;
        self.progress.add(|s| s.fresh += u64::from(has_new));
        let awaits_line_end = files.iter().any(|p| p.awaits_line_end);
        let over = self.options.silence().saturating_sub(age(newest)) + BUSY_RETRY;
        Ok(ReadOutcome::Read(if silent {
            None
        } else {
            Some(if awaits_line_end { QUIESCENT_AFTER } else { over })
        }))
    }

    /// Returns whether a session continues although its files are silent: its agent runs here or waits for
    /// an answer, or packets arrived recently from another source, if there are others.
    async fn is_active(&self, session: &Session, others: bool) -> Result<bool, Error> {
        let row = self.store.session_row(&session.id).await?;
        let silent_for = Duration::from_millis(u64::try_from(now() - row.heard_at).unwrap_or(0));
        let lately = others && silent_for <= self.options.silence();
        Ok(row.waiting > 0 || lately || self.ingest.is_attended(session.key))
    }

    /// Ingests the files and stores their marks.
    async fn ingest_files(
        &self,
        mut request: IngestRequest,
        session: &Session,
        session_files: &SessionFiles,
        marks: &[FileMark],
        files: &mut [SourceFile],
        is_over: bool,
    ) -> Result<(), Error> {
        let numbers: Vec<u32> = files.iter().map(|p| p.number).collect();
        request.only(&numbers);
        // A file's mark is stored before its first line, so that an interrupted read can resume.
        let mut new = Vec::new();
        for source_file in files.iter_mut().filter(|p| !marks.iter().any(|m| m.number == p.number))
        {
            new.push(FileMark {
                changed: 0,
                ..source_file.file_mark(session.key).map_err(read_error(&session_files.main))?
            });
        }
        let mut outputs = OffloadedOutputs::new(session.key, session_files, marks);
        let pushed = self.push_files(&mut request, files, &mut outputs, is_over);
        let (known, pushed) = tokio::join!(self.store.keep_files(new), pushed);
        known.and(pushed)?;
        let answer = request.finish().await?;
        self.progress.add(|s| s.events += answer.events);
        if is_over {
            self.ingest.release(session.key).await;
            self.hub.release(session.key);
        }
        let mut stored_marks = outputs.marks;
        for source_file in files.iter_mut() {
            stored_marks
                .push(source_file.file_mark(session.key).map_err(read_error(&session_files.main))?);
        }
        // A renamed file, or another file under the same name.
        for mark in marks {
            let reread = |k: &FileMark| k.path == mark.path && k.number != mark.number;
            if stored_marks.iter().any(reread) {
                stored_marks.push(FileMark {
                    gone: true,
                    path: format!("{}~", mark.path),
                    ..mark.clone()
                });
            }
        }
        self.store.keep_files(stored_marks).await
    }

    /// Returns whether a session's project is excluded.
    fn is_excluded(&self, agent: &dyn SessionSource, main: &Path) -> Result<bool, Error> {
        if self.options.exclude.is_empty() {
            return Ok(false);
        }
        if let Some(cwd) = agent.cwd(main) {
            return Ok(self.options.leaves_out(&cwd));
        }
        // The working directory may still be written.
        let (_, _, changed) = fingerprint(&main.metadata().map_err(read_error(main))?);
        Ok(age(changed) <= self.options.silence())
    }

    /// How long to wait for a client that uploads the session; `None` if none does.
    async fn live_wait(
        &self,
        session: &Session,
        sources: &[SourceMark],
    ) -> Result<Option<Duration>, Error> {
        // The file was read last: no client uploads the session any more.
        if session.ended || sources.iter().max_by_key(|s| s.at).is_some_and(|s| s.number != 0) {
            return Ok(None);
        }
        if !self.ingest.is_free(session.key) {
            return Ok(Some(BUSY_RETRY));
        }
        let waited = now() - self.store.session_row(&session.id).await?.heard_at;
        let left = u64::try_from(LIVE_GRACE_MS - waited).unwrap_or(0);
        Ok((left > 0).then(|| Duration::from_millis(left.clamp(1000, 60_000))))
    }

    /// Opens the files and finds where to resume in each.
    async fn open_files(
        &self,
        session: &Session,
        session_files: &SessionFiles,
        sources: &[SourceMark],
        marks: &[FileMark],
        is_uploaded: bool,
    ) -> Result<Vec<SourceFile>, Error> {
        let numbers = || sources.iter().map(|s| s.number).chain(marks.iter().map(|m| m.number));
        let after = |from: u32, until: u32| {
            numbers().filter(|n| (from..until).contains(n)).max().map_or(from, |n| n + 1)
        };
        let (mut next, mut next_orphan) =
            (after(0, FIRST_ORPHAN_SOURCE), after(FIRST_ORPHAN_SOURCE, FIRST_OUTPUT_SOURCE));
        let main = std::iter::once((&session_files.main, None));
        let agents = session_files.agents.iter().map(|(path, call)| (path, Some(call.clone())));
        let mut known: Option<Rc<HashSet<u64>>> = None;
        let mut files = Vec::new();
        for (path, parent) in main.chain(agents) {
            let mut file = match File::open(path) {
                Ok(file) => file,
                // The file disappeared meanwhile.
                Err(e) if e.kind() == io::ErrorKind::NotFound && parent.is_some() => continue,
                Err(e) => return Err(read_error(path)(e)),
            };
            let (node, size, changed) = fingerprint(&file.metadata().map_err(read_error(path))?);
            let name = path.to_string_lossy().into_owned();
            // A subagent whose call has become known is read again as that of its call.
            let named = |m: &FileMark| m.parent.as_deref() == Some(NOBODY) && m.parent != parent;
            let marks = || marks.iter().filter(|m| m.number < FIRST_OUTPUT_SOURCE && !named(m));
            let own = marks().find(|m| m.path == name);
            let mark = own.or_else(|| {
                let moved = |m: &&FileMark| {
                    m.node == node && m.parent == parent && !Path::new(&m.path).exists()
                };
                marks().find(moved)
            });
            let mark = match mark {
                Some(mark) if is_continuation(&mut file, mark).map_err(read_error(path))? => {
                    Some(mark)
                }
                // The same session in another directory: a copy that has grown, or a file that moved to
                // another disk.
                _ => find_predecessor(&mut file, marks(), parent.as_ref())
                    .map_err(read_error(path))?,
            };
            let mut source_file = SourceFile {
                number: if parent.as_deref() == Some(NOBODY) { next_orphan } else { next },
                path: path.clone(),
                file,
                node,
                size,
                changed,
                from: Position::default(),
                read: 0,
                parent,
                skip: None,
                end: Position::default(),
                awaits_line_end: false,
            };
            if let Some(mark) = mark {
                source_file.number = mark.number;
                let source = sources.iter().find(|s| s.number == mark.number);
                source_file.from =
                    resume_at(&mut source_file.file, source).map_err(read_error(path))?;
                source_file.read = source.map_or(0, |s| s.read);
            } else {
                *(if source_file.number == next_orphan { &mut next_orphan } else { &mut next }) +=
                    1;
                // The file was replaced or the session was uploaded: known records are skipped.
                let replaced = source_file.parent.is_none() || is_uploaded || own.is_some();
                if !sources.is_empty() && replaced {
                    if known.is_none() {
                        let (seen, loose) = self.store.seen(session.key).await?;
                        known = Some(Rc::new(seen.into_iter().chain(loose).collect()));
                    }
                    let known = known.clone().unwrap_or_default();
                    let last = source_file.last_known_line(&known).map_err(read_error(path))?;
                    source_file.skip =
                        Some(SkipRange { last, known: (!is_uploaded).then_some(known) });
                }
            }
            source_file.end = source_file.from;
            files.push(source_file);
        }
        Ok(files)
    }
}

/// Converts an error of an agent's file, as opposed to one of the store.
pub(super) fn read_error(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Refused(format!("{}: {error}", path.display()))
}
