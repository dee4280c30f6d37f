//! What an agent says and is told, into the session's log.

use super::patience::waits;
use crate::ingest::{Intake, OWN, Reading};
use narrows::{Body, Doing, Format, Raw};
use narrows_store::{Cursor, Error, Result, Session, Store};
use std::borrow::Cow;

/// Bytes of lines of which something may be held back.
const MAX_HELD: usize = 1 << 20;

/// The way into a session's log.
#[derive(Debug)]
pub(super) struct Feed {
    store: Store,
    intake: Intake,
    session: Session,
    roots: Vec<String>,
    /// The number by which this node runs the session, where others could.
    fence: Option<u64>,
    /// The place of the next line: a line that is tried again is known by it.
    next: u64,
    /// The log's last event, as far as this feed knows.
    pub(super) seq: u64,
    held: Held,
    /// What was held back of the lines before cannot be given again: the agent that said them is gone.
    lost: bool,
    /// Calls that were heard of since somebody looked.
    pub(super) calls: Vec<Doing>,
}

/// Lines of which something may be held back: if whoever holds it has to begin anew, because the store
/// was away, somebody else wrote or the session was let go of, they are given again.
#[derive(Debug, Default)]
struct Held {
    lines: Vec<u8>,
    /// The place of the first of them; none when there are too many.
    first: Option<u64>,
}

impl Held {
    fn add(&mut self, next: u64, lines: &[u8]) {
        if self.lines.is_empty() {
            self.first = Some(next);
        }
        if self.lines.len() + lines.len() > MAX_HELD {
            *self = Held { lines: vec![b'\n'], first: None };
        }
        if self.first.is_some() {
            self.lines.extend_from_slice(lines);
        }
    }

    /// Nothing is held back of the lines up to this place, of those that were read.
    fn settle(&mut self, rest: u64, read: u64) {
        let Some(first) = self.first.filter(|_| rest < read) else {
            if rest >= read {
                *self = Held::default();
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

impl Feed {
    pub(super) async fn open(
        store: &Store,
        intake: &Intake,
        session: Session,
        roots: Vec<String>,
        fence: Option<u64>,
    ) -> Result<Feed> {
        let (store, intake) = (store.clone(), intake.clone());
        let seq = session.seq;
        let mut feed = Feed {
            store,
            intake,
            session,
            roots,
            fence,
            next: 1,
            seq,
            held: Held::default(),
            lost: false,
            calls: Vec::new(),
        };
        feed.find_place().await?;
        Ok(feed)
    }

    /// Where the next line stands: after those that were read.
    async fn find_place(&mut self) -> Result<()> {
        let sources = self.store.sources(self.session.key).await?;
        let main = sources.iter().find(|s| s.number == 0);
        self.next = main.map_or(0, |s| s.read) + 1;
        self.lost = main.is_some_and(|s| s.rest < s.read);
        // What another node has written meanwhile is not overlooked.
        self.session = self.store.session(&self.session.id).await?;
        self.seq = self.session.seq;
        Ok(())
    }

    fn reading(&self, format: Format, end: bool) -> Reading {
        let (roots, fence, lost) = (self.roots.clone(), self.fence, self.lost);
        Reading { format, end, gone: end, roots, fence, lost, ..Reading::default() }
    }

    /// Keeps lines; returns when they are durable. Meanwhile the agent waits.
    pub(super) async fn lines(&mut self, format: Format, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let (mut waits, mut first) = (waits(self.fence.is_some()), self.next);
        let mut lines = Cow::Borrowed(lines);
        self.held.add(first, &lines);
        loop {
            match self.try_lines(format, &lines, first).await {
                Err(Error::Resend { acknowledged, .. }) if !self.lost => {
                    // Without all of them, what follows is better than nothing.
                    self.lost = self.held.first.is_none_or(|held| held > acknowledged + 1);
                }
                Err(error) if is_passing(&error) => {
                    let Some(wait) = waits.next() else { return Err(error) };
                    tokio::time::sleep(wait).await;
                }
                Err(Error::Invalid(_) | Error::Busy) => {
                    // Somebody else has written the session: the places are others now.
                    self.find_place().await?;
                    self.held = Held::default();
                    return self.try_lines(format, &lines, self.next).await;
                }
                done => return done,
            }
            if let Some(held) = self.held.first {
                (lines, first) = (Cow::Owned(self.held.lines.clone()), held);
            }
        }
    }

    async fn try_lines(&mut self, format: Format, lines: &[u8], first: u64) -> Result<()> {
        let mut reading = self.reading(format, false);
        reading.first = Some(first);
        let mut take = self.intake.open(&self.session, reading).await?;
        take.push(lines).await?;
        self.calls.extend(take.calls());
        let answer = take.finish().await?;
        self.next = answer.read + 1;
        self.lost = false;
        self.held.settle(answer.acknowledged, answer.read);
        self.at(&answer.cursor);
        Ok(())
    }

    /// Keeps what narrows itself has to tell; with `end` nothing more comes for now.
    pub(super) async fn tell(
        &mut self,
        format: Format,
        bodies: Vec<Body<Raw>>,
        end: bool,
    ) -> Result<()> {
        let before = self.told().await?;
        let all = before + bodies.len() as u64;
        let mut waits = waits(self.fence.is_some());
        loop {
            let error = match self.try_tell(format, bodies.clone(), end).await {
                Ok(()) => return Ok(()),
                Err(Error::Resend { acknowledged, .. }) if !self.lost => {
                    match self.held.first.filter(|first| *first <= acknowledged + 1) {
                        Some(first) => {
                            let lines = self.held.lines.clone();
                            self.try_lines(format, &lines, first).await?;
                        }
                        None => self.lost = true,
                    }
                    continue;
                }
                Err(error) => error,
            };
            // Only a store that is shared is away for a while, or written by others.
            if self.fence.is_none() || !is_passing(&error) {
                return Err(error);
            }
            let Some(wait) = waits.next() else { return Err(error) };
            tokio::time::sleep(wait).await;
            // It may have been kept, though nobody could say so.
            if self.told().await.is_ok_and(|told| told >= all) {
                return self.find_place().await;
            }
        }
    }

    async fn try_tell(&mut self, format: Format, bodies: Vec<Body<Raw>>, end: bool) -> Result<()> {
        let mut take = self.intake.open(&self.session, self.reading(format, end)).await?;
        bodies.into_iter().for_each(|body| take.tell(body));
        let answer = take.finish().await?;
        self.lost = false;
        self.at(&answer.cursor);
        Ok(())
    }

    /// How much narrows itself has told of the session.
    async fn told(&self) -> Result<u64> {
        if self.fence.is_none() {
            return Ok(0);
        }
        let sources = self.store.sources(self.session.key).await?;
        Ok(sources.iter().find(|s| s.number == OWN).map_or(0, |s| s.read))
    }

    fn at(&mut self, cursor: &str) {
        if let Some(cursor) = Cursor::parse(cursor) {
            self.seq = cursor.place.seq;
        }
    }
}

/// Whether the same may work a little later.
fn is_passing(error: &Error) -> bool {
    !matches!(error, Error::NotFound(_) | Error::Invalid(_) | Error::Busy | Error::Fenced)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_held_until_nothing_of_them_is() {
        let mut held = Held::default();
        held.add(5, b"a\nb\n");
        held.add(7, b"c\n");
        held.settle(4, 7);
        assert_eq!((held.lines.as_slice(), held.first), (&b"a\nb\nc\n"[..], Some(5)));
        held.settle(6, 7);
        assert_eq!((held.lines.as_slice(), held.first), (&b"c\n"[..], Some(7)));
        held.settle(7, 7);
        assert_eq!((held.lines.as_slice(), held.first), (&b""[..], None));
        // Of too many nothing is kept, until there is a rest.
        held.add(8, &vec![b'x'; MAX_HELD]);
        held.add(9, b"y\n");
        held.settle(7, 9);
        assert_eq!(held.first, None);
        held.settle(9, 9);
        held.add(10, b"z\n");
        assert_eq!((held.lines.as_slice(), held.first), (&b"z\n"[..], Some(10)));
    }
}
