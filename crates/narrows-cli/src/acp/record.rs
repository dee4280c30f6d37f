//! The recorder: what has passed, as lines of sessions, into spool files.

use super::facts;
use super::queue::{From, Piece, Queue};
use super::send::Outbox;
use super::sort::{Act, Sorter};
use super::spooled::Spooled;
use narrows::json::Index;
use narrows::lines::Lines;
use narrows::time::Time;
use narrows_engine::discovery::spool::{Header, has_other};
use narrows_store::Store;
use serde::Serialize;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// What comes within this time is written together.
const TOGETHER: Duration = Duration::from_millis(20);
/// Longest line that is kept: the server takes 16 MiB, with what is wrapped around it.
const MAX_LINE: usize = (16 << 20) - 1024;
/// How much is kept of a line that is no message.
const MAX_TEXT: usize = 16 << 10;
/// Longest label that the server takes, in characters.
const MAX_LABEL: usize = 200;

/// Who is recorded, and where.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub(super) data: PathBuf,
    /// The agent's command, without its path.
    pub(super) agent: String,
    /// What it is called in labels.
    pub(super) name: String,
    pub(super) cwd: String,
    /// This process.
    pub(super) run: String,
}

impl About {
    /// The label of a session: the same for every process that runs it.
    fn label(&self, session: &str) -> String {
        let label = format!("acp:{}:{session}", self.name);
        let fits = label.chars().count() <= MAX_LABEL && !label.contains(char::is_control);
        if fits {
            return label;
        }
        let hash = Sha256::digest(&label);
        format!("acp:{}", hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
    }

    /// Whether a session was recorded before, by another process.
    fn knows(&self, session: &str) -> bool {
        let label = self.label(session);
        has_other(&self.data, &label, None) || self.store_knows(&label).unwrap_or(false)
    }

    fn store_knows(&self, label: &str) -> Option<bool> {
        let runtime = crate::serve::runtime().ok()?;
        runtime.block_on(async {
            let store = Store::open_read_only(&self.data).ok()?;
            let session = store.session_by_label(label).await.ok()?;
            let sources = store.sources(session.key).await.ok()?;
            Some(sources.iter().any(|s| s.read > 0))
        })
    }
}

/// A line as it is kept.
#[derive(Serialize)]
struct Kept<'a> {
    ts: &'a Time,
    dir: &'static str,
    run: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    long: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<u64>,
}

/// The lines of one side.
#[derive(Debug)]
struct Side {
    lines: Lines,
    /// The line that is being read has lost its beginning.
    torn: bool,
}

/// Records until the queue is closed.
#[derive(Debug)]
pub(super) struct Recorder {
    about: About,
    sides: [Side; 2],
    sorter: Sorter,
    index: Index,
    acts: Vec<Act>,
    sessions: HashMap<String, Spooled>,
    outbox: Arc<Outbox>,
}

impl Recorder {
    pub(super) fn new(about: About, outbox: Arc<Outbox>) -> Recorder {
        let side = || Side { lines: Lines::new(MAX_LINE), torn: false };
        Recorder {
            about,
            sides: [side(), side()],
            sorter: Sorter::default(),
            index: Index::default(),
            acts: Vec::new(),
            sessions: HashMap::new(),
            outbox,
        }
    }

    /// Records what passes, until nothing more comes.
    pub(super) fn run(mut self, queue: &Queue) {
        while queue.wait() {
            // What is said goes its way first: there may be few cores.
            if !queue.is_closed() {
                std::thread::sleep(TOGETHER);
            }
            for piece in queue.take() {
                self.take(piece);
            }
            self.flush();
        }
        self.end();
        self.flush();
        self.outbox.close();
    }

    fn take(&mut self, piece: Piece) {
        match piece {
            Piece::Bytes { from, at, bytes } => self.bytes(from, at, Some(&bytes)),
            Piece::Lost { from, at, length, ended } => {
                self.sides[from as usize] = Side { lines: Lines::new(MAX_LINE), torn: !ended };
                let lost = self.about.kept(from, at, None, None, Some(length));
                self.sorter.all(&lost, &mut self.acts);
                self.act();
            }
        }
    }

    /// A last line may lack its end.
    fn end(&mut self) {
        for from in [From::Client, From::Agent] {
            self.bytes(from, narrows_store::now(), None);
        }
    }

    /// The next bytes of a side, or its end.
    fn bytes(&mut self, from: From, at: i64, bytes: Option<&[u8]>) {
        let Recorder { about, sides, sorter, index, acts, sessions, .. } = self;
        let Side { lines, torn } = &mut sides[from as usize];
        let mut line = |line: narrows::lines::Line<'_>| {
            if std::mem::take(torn) || (line.bytes.trim_ascii().is_empty() && !line.cut) {
                return;
            }
            if line.cut {
                return sorter.loose(about.kept(from, at, None, Some(line.length), None), acts);
            }
            let text = line.bytes.trim_ascii();
            let Some(facts) = facts::read(index, text) else {
                let end = text.len().min(MAX_TEXT);
                let shown = String::from_utf8_lossy(&text[..end]);
                return sorter.loose(about.kept(from, at, Some(&shown), None, None), acts);
            };
            let known = |session: &str| sessions.contains_key(session) || about.knows(session);
            sorter.message(from, &facts, about.wrap(from, at, text), known, acts);
        };
        match bytes {
            Some(bytes) => lines.push(bytes, &mut line),
            None => lines.finish(&mut line),
        }
        self.act();
    }

    fn act(&mut self) {
        for act in self.acts.drain(..) {
            match act {
                Act::Open { session, cwd } => {
                    let label = self.about.label(&session);
                    let cwd = cwd.unwrap_or_else(|| self.about.cwd.clone());
                    let header = Header::new(label, self.about.agent.clone(), session.clone(), cwd);
                    self.sessions.insert(session, Spooled::new(&self.about.data, header));
                }
                Act::Tells { session } => {
                    if let Some(spooled) = self.sessions.get_mut(&session) {
                        spooled.tells();
                    }
                }
                Act::Write { session, line } => {
                    if let Some(spooled) = self.sessions.get_mut(&session) {
                        spooled.push(&line);
                    }
                }
            }
        }
    }

    fn flush(&mut self) {
        let about = &self.about;
        let lost = |n| about.kept(From::Agent, narrows_store::now(), None, None, Some(n));
        let mut grown = false;
        for spooled in self.sessions.values_mut() {
            grown |= spooled.flush(lost, &self.outbox);
        }
        if grown {
            self.outbox.wake();
        }
    }
}

impl About {
    /// A message as it is kept: byte for byte, in an envelope.
    fn wrap(&self, from: From, at: i64, message: &[u8]) -> Vec<u8> {
        let mut line = self.kept(from, at, None, None, None);
        line.truncate(line.len() - 2);
        line.reserve(message.len() + 10);
        line.extend_from_slice(b",\"msg\":");
        line.extend_from_slice(message);
        line.extend_from_slice(b"}\n");
        line
    }

    /// What is kept of something that is no message.
    fn kept(
        &self,
        from: From,
        at: i64,
        text: Option<&str>,
        long: Option<u64>,
        lost: Option<u64>,
    ) -> Vec<u8> {
        let ts = &Time::from_millis(at);
        let kept = Kept { ts, dir: from.dir(), run: &self.run, text, long, lost };
        // Plain fields can always be printed.
        let mut line = serde_json::to_vec(&kept).unwrap_or_else(|_| b"{}".to_vec());
        line.push(b'\n');
        line
    }
}
