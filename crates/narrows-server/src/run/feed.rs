//! What an agent says and is told, into the session's log.

use crate::intake::{Intake, Reading};
use narrows::{Body, Format, Raw};
use narrows_store::{Cursor, Error, Result, Session, Store};
use std::time::Duration;

/// How long the log is tried when the store cannot write; meanwhile the agent waits.
const WAITS: [u64; 6] = [50, 200, 1000, 2000, 5000, 10_000];

/// The way into a session's log.
#[derive(Debug)]
pub(super) struct Feed {
    store: Store,
    intake: Intake,
    session: Session,
    roots: Vec<String>,
    /// The place of the next line: a line that is tried again is known by it.
    next: u64,
    /// The log's last event, as far as this feed knows.
    pub(super) seq: u64,
}

impl Feed {
    pub(super) async fn open(
        store: &Store,
        intake: &Intake,
        session: Session,
        roots: Vec<String>,
    ) -> Result<Feed> {
        let (store, intake) = (store.clone(), intake.clone());
        let seq = session.seq;
        let mut feed = Feed { store, intake, session, roots, next: 1, seq };
        feed.find_place().await?;
        Ok(feed)
    }

    /// Where the next line stands: after those that were read.
    async fn find_place(&mut self) -> Result<()> {
        let sources = self.store.sources(self.session.key).await?;
        self.next = sources.iter().find(|s| s.number == 0).map_or(0, |s| s.read) + 1;
        self.seq = self.store.session(&self.session.id).await?.seq;
        Ok(())
    }

    fn reading(&self, format: Format, end: bool) -> Reading {
        Reading {
            format,
            first: Some(self.next),
            end,
            roots: self.roots.clone(),
            ..Reading::default()
        }
    }

    /// Keeps lines; returns when they are durable.
    pub(super) async fn lines(&mut self, format: Format, lines: &[u8]) -> Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        let mut waits = WAITS.iter();
        loop {
            match self.try_lines(format, lines).await {
                Err(error) if is_passing(&error) => {
                    let Some(wait) = waits.next() else { return Err(error) };
                    tokio::time::sleep(Duration::from_millis(*wait)).await;
                }
                Err(Error::Invalid(_)) => {
                    // Somebody else has written the session: the places are others now.
                    self.find_place().await?;
                    return self.try_lines(format, lines).await;
                }
                done => return done,
            }
        }
    }

    async fn try_lines(&mut self, format: Format, lines: &[u8]) -> Result<()> {
        let mut take = self.intake.open(&self.session, self.reading(format, false)).await?;
        take.push(lines).await?;
        let answer = take.finish().await?;
        self.next = answer.read + 1;
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
        let mut reading = self.reading(format, end);
        reading.first = None;
        let mut take = self.intake.open(&self.session, reading).await?;
        bodies.into_iter().for_each(|body| take.tell(body));
        let answer = take.finish().await?;
        self.at(&answer.cursor);
        Ok(())
    }

    fn at(&mut self, cursor: &str) {
        if let Some(cursor) = Cursor::parse(cursor) {
            self.seq = cursor.place.seq;
        }
    }
}

/// Whether the same may work a little later.
fn is_passing(error: &Error) -> bool {
    !matches!(error, Error::NotFound(_) | Error::Invalid(_))
}
