//! Reads the files of one session into the store, from where they were read last.

use super::identity::{goes_on, label_of, place};
use super::look::{age, facts};
use super::outputs::Outputs;
use super::part::{
    CHUNK, MAX_LINE, OUTPUTS, Part, STILL, Skip, UNASKED, continued, has_line, hole,
};
use super::queue::Turns;
use super::{Agent, Found, Progress, SourceOptions, list_once};
use crate::ingest::{Arrival, Intake, Reading, Take};
use crate::live::Hub;
use narrows::event::Position;
use narrows::{Beside, Format, Given, NOBODY, Packets};
use narrows_store::{Error, FileMark, Session, SourceMark, Store, now};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// While somebody sends a session, its file waits: it would tell the same.
const SENT_MS: i64 = 60_000;
/// Somebody is writing the session right now.
const SOON: Duration = Duration::from_secs(5);
/// What came of reading a session.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It was read; there is more to see after a while.
    Read(Option<Duration>),
    /// It is not to be read.
    LeftOut,
    /// Not now.
    Later(Duration),
}

/// Where to read to.
#[derive(Debug, Clone)]
pub(super) struct Reader {
    pub(super) store: Store,
    pub(super) intake: Intake,
    pub(super) hub: Hub,
    pub(super) options: SourceOptions,
    pub(super) progress: Arc<Progress>,
    pub(super) turns: Arc<Turns>,
}

impl Reader {
    /// Reads what is new of a session.
    pub(super) async fn read(&self, agent: &dyn Agent, main: &Path) -> Result<Outcome, Error> {
        match Box::pin(self.read_files(agent, main)).await {
            // It went away while we looked.
            Err(Error::Refused(_)) if !main.exists() => Ok(Outcome::LeftOut),
            Err(Error::Busy) => Ok(Outcome::Later(SOON)),
            done => done,
        }
    }

    async fn read_files(&self, agent: &dyn Agent, main: &Path) -> Result<Outcome, Error> {
        if self.leaves_out(agent, main)? {
            return Ok(Outcome::LeftOut);
        }
        let label = label_of(main);
        let _turn = self.turns.of(&label).lock().await;
        let outcome = self.read_session(agent, main, &label).await?;
        list_once(&self.store, &self.intake, &self.hub, Some(&label)).await;
        Ok(outcome)
    }

    async fn read_session(
        &self,
        agent: &dyn Agent,
        main: &Path,
        label: &str,
    ) -> Result<Outcome, Error> {
        let found = agent.files(main).map_err(failed(main))?;
        if found.session.is_none() && !has_line(main).map_err(failed(main))? {
            // Nothing whole has been written yet.
            return Ok(Outcome::LeftOut);
        }
        let Some(session) = self.session(label).await? else {
            return Ok(Outcome::LeftOut);
        };
        let session = self.up_to_date(session, main).await?;
        let sources = self.store.sources(session.key).await?;
        let marks = self.store.files_of(session.key).await?;
        let sent = sources.iter().any(|s| s.number == 0) && !marks.iter().any(|m| m.number == 0);
        if sent && let Some(wait) = self.is_sent(&session, &sources).await? {
            return Ok(Outcome::Later(wait));
        }
        let mut parts = self.parts(&session, &found, &sources, &marks, sent).await?;
        let newest = parts.iter().map(|p| p.changed).max().unwrap_or(0);
        let silent = age(newest) > self.options.silence();
        let is_file = |source: &SourceMark| marks.iter().any(|m| m.number == source.number);
        let others = sources.iter().any(|s| s.number < OUTPUTS && !is_file(s));
        // One that was said to be over is so until its agent writes again.
        let heard = self.store.session_row(&session.id).await?.heard_at;
        let over = session.ended && newest / 1000 < heard;
        let old = over || silent && !self.goes_on(&session, others).await?;
        let reading = Reading {
            format: Format::ClaudeHistory,
            arrival: Arrival::None,
            heard: Some(newest / 1000),
            placed: true,
            end: old,
            ..Reading::default()
        };
        let take = self.intake.open(&session, reading).await?;
        let is_new =
            |part: &Part| !marks.iter().any(|m| m.number == part.number && m.size == part.size);
        let news = parts.iter().any(is_new);
        let read = self.read_parts(take, &session, &found, &marks, &mut parts, old).await;
        if read.is_err() {
            // What was given may be ahead of what was kept.
            self.intake.forget(session.key).await;
        }
        read?;
        self.progress.add(|s| s.fresh += u64::from(news));
        let waits = parts.iter().any(|p| p.waits);
        let over = self.options.silence().saturating_sub(age(newest)) + SOON;
        Ok(Outcome::Read(if silent { None } else { Some(if waits { STILL } else { over }) }))
    }

    /// Whether a session is not over though its files are silent: its agent runs here or waits for an
    /// answer, or something arrived lately by another way, where there are others.
    async fn goes_on(&self, session: &Session, others: bool) -> Result<bool, Error> {
        let row = self.store.session_row(&session.id).await?;
        let heard = Duration::from_millis(u64::try_from(now() - row.heard_at).unwrap_or(0));
        let lately = others && heard <= self.options.silence();
        Ok(row.waiting > 0 || lately || self.intake.is_attended(session.key))
    }

    /// Reads the files, and remembers what they are.
    async fn read_parts(
        &self,
        mut take: Take,
        session: &Session,
        found: &Found,
        marks: &[FileMark],
        parts: &mut [Part],
        old: bool,
    ) -> Result<(), Error> {
        let numbers: Vec<u32> = parts.iter().map(|p| p.number).collect();
        take.only(&numbers);
        // A file is known before its first line is kept, wherever reading is cut off.
        let mut new = Vec::new();
        for part in parts.iter_mut().filter(|p| !marks.iter().any(|m| m.number == p.number)) {
            new.push(FileMark {
                changed: 0,
                ..part.mark(session.key).map_err(failed(&found.main))?
            });
        }
        let mut outputs = Outputs::new(session.key, found, marks);
        let given = self.give(&mut take, parts, &mut outputs, old);
        let (known, given) = tokio::join!(self.store.keep_files(new), given);
        known.and(given)?;
        let answer = take.finish().await?;
        self.progress.add(|s| s.events += answer.events);
        if old {
            self.intake.release(session.key).await;
            self.hub.release(session.key);
        }
        let mut kept = outputs.kept;
        for part in parts.iter_mut() {
            kept.push(part.mark(session.key).map_err(failed(&found.main))?);
        }
        // The same file under another name, or another file under the same one.
        for mark in marks {
            let again = |k: &FileMark| k.path == mark.path && k.number != mark.number;
            if kept.iter().any(again) {
                kept.push(FileMark { gone: true, path: format!("{}~", mark.path), ..mark.clone() });
            }
        }
        self.store.keep_files(kept).await
    }

    /// Whether a session's project is left out.
    fn leaves_out(&self, agent: &dyn Agent, main: &Path) -> Result<bool, Error> {
        if self.options.exclude.is_empty() {
            return Ok(false);
        }
        if let Some(cwd) = agent.cwd(main) {
            return Ok(self.options.leaves_out(&cwd));
        }
        // Which one it is may still be told.
        let (_, _, changed) = facts(&main.metadata().map_err(failed(main))?);
        Ok(age(changed) <= self.options.silence())
    }

    /// How long to wait for somebody who sends the session.
    async fn is_sent(
        &self,
        session: &Session,
        sources: &[SourceMark],
    ) -> Result<Option<Duration>, Error> {
        // What was read last was its file: nobody sends it any more.
        if session.ended || sources.iter().max_by_key(|s| s.at).is_some_and(|s| s.number != 0) {
            return Ok(None);
        }
        if !self.intake.is_free(session.key) {
            return Ok(Some(SOON));
        }
        let waited = now() - self.store.session_row(&session.id).await?.heard_at;
        let left = u64::try_from(SENT_MS - waited).unwrap_or(0);
        Ok((left > 0).then(|| Duration::from_millis(left.clamp(1000, 60_000))))
    }

    /// The files, and where each is read from.
    async fn parts(
        &self,
        session: &Session,
        found: &Found,
        sources: &[SourceMark],
        marks: &[FileMark],
        sent: bool,
    ) -> Result<Vec<Part>, Error> {
        let numbers = || sources.iter().map(|s| s.number).chain(marks.iter().map(|m| m.number));
        let after = |from: u32, until: u32| {
            numbers().filter(|n| (from..until).contains(n)).max().map_or(from, |n| n + 1)
        };
        let (mut next, mut unasked) = (after(0, UNASKED), after(UNASKED, OUTPUTS));
        let files = std::iter::once((&found.main, None));
        let agents = found.agents.iter().map(|(path, call)| (path, Some(call.clone())));
        let mut known: Option<Rc<HashSet<u64>>> = None;
        let mut parts = Vec::new();
        for (path, parent) in files.chain(agents) {
            let mut file = match File::open(path) {
                Ok(file) => file,
                // A file that went away while we looked.
                Err(e) if e.kind() == io::ErrorKind::NotFound && parent.is_some() => continue,
                Err(e) => return Err(failed(path)(e)),
            };
            let (node, size, changed) = facts(&file.metadata().map_err(failed(path))?);
            let name = path.to_string_lossy().into_owned();
            // A subagent that was nobody's, and is named by now, is read again as that of its call.
            let named = |m: &FileMark| m.parent.as_deref() == Some(NOBODY) && m.parent != parent;
            let marks = || marks.iter().filter(|m| m.number < OUTPUTS && !named(m));
            let own = marks().find(|m| m.path == name);
            let mark = own.or_else(|| {
                let moved = |m: &&FileMark| {
                    m.node == node && m.parent == parent && !Path::new(&m.path).exists()
                };
                marks().find(moved)
            });
            let mark = match mark {
                Some(mark) if goes_on(&mut file, mark).map_err(failed(path))? => Some(mark),
                // The same session in another folder: a copy that has grown, or the file that moved
                // from one disk to another.
                _ => continued(&mut file, marks(), parent.as_ref()).map_err(failed(path))?,
            };
            let mut part = Part {
                number: if parent.as_deref() == Some(NOBODY) { unasked } else { next },
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
                waits: false,
            };
            if let Some(mark) = mark {
                part.number = mark.number;
                let source = sources.iter().find(|s| s.number == mark.number);
                part.from = place(&mut part.file, source).map_err(failed(path))?;
                part.read = source.map_or(0, |s| s.read);
            } else {
                *(if part.number == unasked { &mut unasked } else { &mut next }) += 1;
                // Something else stands where the session was read from, or somebody sent it: what
                // is known already is passed over.
                let replaced = part.parent.is_none() || sent || own.is_some();
                if !sources.is_empty() && replaced {
                    if known.is_none() {
                        let (seen, loose) = self.store.seen(session.key).await?;
                        known = Some(Rc::new(seen.into_iter().chain(loose).collect()));
                    }
                    let known = known.clone().unwrap_or_default();
                    let last = part.last_known(&known).map_err(failed(path))?;
                    part.skip = Some(Skip { last, known: (!sent).then_some(known) });
                }
            }
            part.end = part.from;
            parts.push(part);
        }
        Ok(parts)
    }

    /// Gives the lines of all files in the order of time.
    async fn give(
        &self,
        take: &mut Take,
        parts: &mut [Part],
        outputs: &mut Outputs,
        old: bool,
    ) -> Result<(), Error> {
        let Some((main, agents)) = parts.split_first_mut() else { return Ok(()) };
        // What was read before comes again first: only then is it known what is new.
        let (mut again, mut beside) = (Beside::default(), Beside::default());
        for part in agents.iter_mut() {
            let rest = part.rest(old);
            let (before, new) = rest.map_err(failed(&part.path))?;
            self.progress.add(|s| s.read += (before.len() + new.len()) as u64);
            let call = part.parent.clone().unwrap_or_default();
            let lines = memchr::memchr_iter(b'\n', &before).count() as u64;
            let (line, offset) = (part.from.line + lines, part.from.offset + before.len() as u64);
            if !before.is_empty() {
                again.add_rest(call.clone(), part.number, part.from, before);
            }
            beside.add_rest(call, part.number, Position { line, column: 0, offset }, new);
        }
        let (number, read_before) = (main.number, main.read);
        let skips: HashMap<u32, Skip> = std::iter::once((number, main.skip.take()))
            .chain(agents.iter_mut().map(|a| (a.number, a.skip.take())))
            .filter_map(|(number, skip)| Some((number, skip?)))
            .collect();
        let pass = |take: &mut Take, given: Given<'_>| {
            if let Given::Packet(packet) = &given
                && let Some(skip) = skips.get(&packet.source)
                && skip.skips(packet.position.line, packet.bytes)
            {
                take.skip(packet);
            } else {
                take.give(given);
            }
        };
        let path = main.path.clone();
        let mut packets = Packets::after(MAX_LINE, main.from);
        let mut chunk = vec![0; CHUNK.min(main.size as usize + 1)];
        main.file.seek(SeekFrom::Start(main.from.offset)).map_err(failed(&path))?;
        let mut read = main.from.offset;
        let caught_up = Cell::new(false);
        let mut numbered = |mut given: Given<'_>, take: &mut Take, beside: &mut Beside| {
            let (source, line) = match &mut given {
                Given::Packet(packet) => (&mut packet.source, packet.position.line),
                Given::Fault(fault) => (&mut fault.source, fault.position.line),
            };
            *source = number;
            let is_new = line > read_before;
            if is_new {
                again.rest(|given| pass(take, given));
                caught_up.set(true);
            }
            if let Given::Packet(packet) = &given {
                let beside = if is_new { beside } else { &mut again };
                beside.before(packet.bytes, |given| pass(take, given));
            }
            pass(take, given);
        };
        // What is written from here on is read the next time.
        while read < main.size {
            let most = chunk.len().min((main.size - read) as usize);
            let n = main.file.read(&mut chunk[..most]).map_err(failed(&path))?;
            if n == 0 {
                break;
            }
            read += n as u64;
            let hole = hole(&main.file, &chunk[..n], read, main.size).map_err(failed(&path))?;
            packets.push(&chunk[..n], |given| numbered(given, take, &mut beside));
            take.ends_at(number, packets.ended());
            outputs.look(&chunk[..n]);
            if caught_up.get() {
                outputs.give(take, false).map_err(failed(&path))?;
            }
            if hole > 0 {
                packets.pass_zeros(hole);
                read += hole;
            }
            self.progress.add(|s| s.read += n as u64 + hole);
            take.flush().await?;
        }
        let ended = packets.ended();
        if ended.offset < read {
            let last = main.last_line(ended.offset, read).map_err(failed(&path))?;
            if main.takes_last(&last, old) {
                packets.finish(|given| numbered(given, take, &mut beside));
            }
        }
        main.end = packets.ended();
        again.rest(|given| pass(take, given));
        beside.rest(|given| pass(take, given));
        for part in std::iter::once(&*main).chain(agents.iter()) {
            take.ends_at(part.number, part.end);
        }
        outputs.give(take, true).map_err(failed(&path))?;
        take.flush().await
    }
}

/// A file of the agent's, not one of the store's, could not be read.
fn failed(path: &Path) -> impl FnOnce(io::Error) -> Error {
    move |error| Error::Refused(format!("{}: {error}", path.display()))
}
