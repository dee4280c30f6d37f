//! Appends an agent's lines and narrows' own events to the session's log.

use super::retry::backoff;
use crate::ingest::{HOST_SOURCE, Ingest, IngestOptions};
use narrows::{Body, Doing, Format, Raw};
use narrows_store::{Cursor, Error, Result, Session, Store};
use std::borrow::Cow;

/// Bytes of lines that are kept for a replay.
const MAX_REPLAY_BYTES: usize = 1 << 20;

/// The writer of one run's log.
#[derive(Debug)]
pub(super) struct RunLog {
    store: Store,
    ingest: Ingest,
    session: Session,
    roots: Vec<String>,
    /// The fencing token of the run, if the store is shared.
    fence: Option<u64>,
    /// The position of the next line, which identifies it when it is sent again.
    next: u64,
    /// The last event of the log, as far as this writer knows.
    pub(super) seq: u64,
    replay: ReplayBuffer,
    /// Held-back text of earlier lines cannot be sent again: the agent that wrote them is gone.
    lost: bool,
    /// Tool calls that were mentioned since they were last taken.
    pub(super) calls: Vec<Doing>,
}

/// Lines after the checkpoint. They are ingested again when the session writer had to be reloaded: the
/// store was away, another writer wrote, or the session was evicted.
#[derive(Debug, Default)]
struct ReplayBuffer {
    lines: Vec<u8>,
    /// The position of the first line; `None` if there were too many.
    first: Option<u64>,
}

impl ReplayBuffer {
    fn add(&mut self, next: u64, lines: &[u8]) {
        if self.lines.is_empty() {
            self.first = Some(next);
        }
        if self.lines.len() + lines.len() > MAX_REPLAY_BYTES {
            *self = ReplayBuffer { lines: vec![b'\n'], first: None };
        }
        if self.first.is_some() {
            self.lines.extend_from_slice(lines);
        }
    }

    /// Drops the lines up to the checkpoint `rest`; `read` is the last line that was read.
    fn acknowledge(&mut self, rest: u64, read: u64) {
        let Some(first) = self.first.filter(|_| rest < read) else {
            if rest >= read {
                *self = ReplayBuffer::default();
            }
            return;
        };
        let over = usize::try_from((rest + 1).saturating_sub(first)).unwrap_or(usize::MAX);
        let mut ends = self.lines.iter().enumerate().filter(|(_, b)| **b == b'\n');
        if let Some((end, _)) = over.checked_sub(1).and_then(|n| ends.nth(n)) {
            self.lines.drain(..=end);
            self.first = Some(rest + 1);
        }
    }
}

impl RunLog {
    pub(super) async fn open(
        store: &Store,
        ingest: &Ingest,
        session: Session,
        roots: Vec<String>,
        fence: Option<u64>,
    ) -> Result<RunLog> {
        let (store, ingest) = (store.clone(), ingest.clone());
        let seq = session.seq;
        let mut log = RunLog {
            store,
            ingest,
            session,
            roots,
            fence,
            next: 1,
            seq,
            replay: ReplayBuffer::default(),
            lost: false,
            calls: Vec::new(),
        };
        log.load_position().await?;
        Ok(log)
    }

    /// Loads the position of the next line: after those that were read.
    async fn load_position(&mut self) -> Result<()> {
        let sources = self.store.sources(self.session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        self.next = main.map_or(0, |s| s.read) + 1;
        self.lost = main.is_some_and(|s| s.rest < s.read);
        // Events that another node has written meanwhile are counted.
        self.session = self.store.session(&self.session.id).await?;
        self.seq = self.session.seq;
        Ok(())
    }

    fn ingest_options(&self, format: Format, end: bool) -> IngestOptions {
        let (roots, fence, lost) = (self.roots.clone(), self.fence, self.lost);
        IngestOptions { format, end, gone: end, roots, fence, lost, ..IngestOptions::default() }
    }

    /// Appends lines; returns when they are durable. The agent is not read meanwhile.
    pub(super) async fn append_lines(&mut self, format: Format, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (mut pauses, mut first) = (backoff(self.fence.is_some()), self.next);
        let mut lines = Cow::Borrowed(lines);
        self.replay.add(first, &lines);
        loop {
            match self.try_append_lines(format, &lines, first).await {
                Err(Error::Resend { acknowledged, .. }) if !self.lost => {
                    // If some lines are missing, the following ones are still stored.
                    self.lost = self.replay.first.is_none_or(|replay| replay > acknowledged + 1);
                }
                Err(error) if is_transient(&error) => {
                    let Some(wait) = pauses.next() else { return Err(error) };
                    tokio::time::sleep(wait).await;
                }
                Err(Error::Invalid(_) | Error::Busy) => {
                    // Another writer has advanced the session: load the new positions.
                    self.load_position().await?;
                    self.replay = ReplayBuffer::default();
                    return self.try_append_lines(format, &lines, self.next).await;
                }
                done => return done,
            }
            if let Some(replay) = self.replay.first {
                (lines, first) = (Cow::Owned(self.replay.lines.clone()), replay);
            }
        }
    }

    async fn try_append_lines(&mut self, format: Format, lines: &[u8], first: u64) -> Result<()> {
        let mut options = self.ingest_options(format, false);
        options.first = Some(first);
        let mut request = self.ingest.open(&self.session, options).await?;
        request.push(lines).await?;
        self.calls.extend(request.calls());
        let receipt = request.finish().await?;
        self.next = receipt.read + 1;
        self.lost = false;
        self.replay.acknowledge(receipt.acknowledged, receipt.read);
        self.set_seq(&receipt.cursor);
        Ok(())
    }

    /// Appends events of narrows itself; `end` ends the source.
    pub(super) async fn append_events(
        &mut self,
        format: Format,
        bodies: Vec<Body<Raw>>,
        end: bool,
    ) -> Result<()> {
        let before = self.host_events_stored().await?;
        let all = before + bodies.len() as u64;
        let mut pauses = backoff(self.fence.is_some());
        loop {
            let error = match self.try_append_events(format, bodies.clone(), end).await {
                Ok(()) => return Ok(()),
                Err(Error::Resend { acknowledged, .. }) if !self.lost => {
                    match self.replay.first.filter(|first| *first <= acknowledged + 1) {
                        Some(first) => {
                            let lines = self.replay.lines.clone();
                            self.try_append_lines(format, &lines, first).await?;
                        }
                        None => self.lost = true,
                    }
                    continue;
                }
                Err(error) => error,
            };
            // Only a shared store is unavailable for a while or has other writers.
            if self.fence.is_none() || !is_transient(&error) {
                return Err(error);
            }
            let Some(wait) = pauses.next() else { return Err(error) };
            tokio::time::sleep(wait).await;
            // It may have been stored although the error was reported.
            if self.host_events_stored().await.is_ok_and(|stored| stored >= all) {
                return self.load_position().await;
            }
        }
    }

    async fn try_append_events(
        &mut self,
        format: Format,
        bodies: Vec<Body<Raw>>,
        end: bool,
    ) -> Result<()> {
        let mut request = self.ingest.open(&self.session, self.ingest_options(format, end)).await?;
        bodies.into_iter().for_each(|body| request.tell(body));
        let receipt = request.finish().await?;
        self.lost = false;
        self.set_seq(&receipt.cursor);
        Ok(())
    }

    /// The number of narrows' own events in the log.
    async fn host_events_stored(&self) -> Result<u64> {
        if self.fence.is_none() {
            return Ok(0);
        }
        let sources = self.store.sources(self.session.key).await?;
        Ok(sources.iter().find(|s| s.number == HOST_SOURCE).map_or(0, |s| s.read))
    }

    fn set_seq(&mut self, cursor: &str) {
        if let Some(cursor) = Cursor::parse(cursor) {
            self.seq = cursor.place.seq;
        }
    }
}

/// Returns whether a retry may succeed.
fn is_transient(error: &Error) -> bool {
    !matches!(error, Error::NotFound(_) | Error::Invalid(_) | Error::Busy | Error::Fenced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_kept_until_checkpoint() {
        let mut replay = ReplayBuffer::default();
        replay.add(5, b"a\nb\n");
        replay.add(7, b"c\n");
        replay.acknowledge(4, 7);
        assert_eq!((replay.lines.as_slice(), replay.first), (&b"a\nb\nc\n"[..], Some(5)));
        replay.acknowledge(6, 7);
        assert_eq!((replay.lines.as_slice(), replay.first), (&b"c\n"[..], Some(7)));
        replay.acknowledge(7, 7);
        assert_eq!((replay.lines.as_slice(), replay.first), (&b""[..], None));
        // Too many lines are not kept, until there is a checkpoint.
        replay.add(8, &vec![b'x'; MAX_REPLAY_BYTES]);
        replay.add(9, b"y\n");
        replay.acknowledge(7, 9);
        assert_eq!(replay.first, None);
        replay.acknowledge(9, 9);
        replay.add(10, b"z\n");
        assert_eq!((replay.lines.as_slice(), replay.first), (&b"z\n"[..], Some(10)));
    }
}
