//! The recorder: splits captured bytes into messages, and writes them to the spool files of their
//! sessions.

use super::message_info;
use super::queue::{CaptureQueue, Captured, Peer};
use super::router::{RouteAction, SessionRouter};
use super::spool_file::SpoolFile;
use super::uploader::UploadQueue;
use crate::runtime::runtime;
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

/// What comes within this time is written at once.
const WRITE_DELAY: Duration = Duration::from_millis(20);
/// The longest line that is recorded: the server accepts 16 MiB including the envelope.
const MAX_LINE_BYTES: usize = (16 << 20) - 1024;
/// How much is recorded of a line that is not a message.
const MAX_TEXT_BYTES: usize = 16 << 10;
/// The longest label that the server accepts.
const MAX_LABEL_CHARS: usize = 200;

/// What is recorded, and where to.
#[derive(Debug, Clone)]
pub(super) struct RecordingInfo {
    pub(super) data: PathBuf,
    /// The file name of the agent's command.
    pub(super) agent: String,
    /// The agent's name in labels.
    pub(super) name: String,
    pub(super) cwd: String,
    /// A unique id of this process.
    pub(super) run: String,
}

impl RecordingInfo {
    /// The label of a session, which is the same for every process that records it.
    fn label(&self, session: &str) -> String {
        let label = format!("acp:{}:{session}", self.name);
        let fits = label.chars().count() <= MAX_LABEL_CHARS && !label.contains(char::is_control);
        if fits {
            return label;
        }
        let hash = Sha256::digest(&label);
        format!("acp:{}", hash.iter().map(|b| format!("{b:02x}")).collect::<String>())
    }

    /// Whether another process has recorded the session before.
    fn was_recorded(&self, session: &str) -> bool {
        let label = self.label(session);
        has_other(&self.data, &label, None) || self.is_in_store(&label).unwrap_or(false)
    }

    fn is_in_store(&self, label: &str) -> Option<bool> {
        let runtime = runtime().ok()?;
        runtime.block_on(async {
            let store = Store::open_read_only(&self.data).ok()?;
            let session = store.session_by_label(label).await.ok()?;
            let sources = store.sources(session.key).await.ok()?;
            Some(sources.iter().any(|s| s.read > 0))
        })
    }
}

/// The envelope of a recorded line, without its message.
#[derive(Serialize)]
struct LineEnvelope<'a> {
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

/// The line splitter of one side.
#[derive(Debug)]
struct LineState {
    lines: Lines,
    /// The start of the current line was dropped.
    is_truncated: bool,
}

#[derive(Debug)]
pub(super) struct Recorder {
    info: RecordingInfo,
    peers: [LineState; 2],
    router: SessionRouter,
    index: Index,
    actions: Vec<RouteAction>,
    sessions: HashMap<String, SpoolFile>,
    uploads: Arc<UploadQueue>,
}

impl Recorder {
    pub(super) fn new(info: RecordingInfo, uploads: Arc<UploadQueue>) -> Recorder {
        let peer = || LineState { lines: Lines::new(MAX_LINE_BYTES), is_truncated: false };
        Recorder {
            info,
            peers: [peer(), peer()],
            router: SessionRouter::default(),
            index: Index::default(),
            actions: Vec::new(),
            sessions: HashMap::new(),
            uploads,
        }
    }

    /// Records until the queue is closed.
    pub(super) fn run(mut self, queue: &CaptureQueue) {
        while queue.wait() {
            // Leaves the CPU to the pumps first, in case there are few cores.
            if !queue.is_closed() {
                std::thread::sleep(WRITE_DELAY);
            }
            for captured in queue.drain() {
                self.record(captured);
            }
            self.flush();
        }
        self.end();
        self.flush();
        self.uploads.close();
    }

    fn record(&mut self, captured: Captured) {
        match captured {
            Captured::Bytes { from, at, bytes } => self.push_bytes(from, at, Some(&bytes)),
            Captured::Dropped { from, at, length, ends_line } => {
                let lines = Lines::new(MAX_LINE_BYTES);
                self.peers[from as usize] = LineState { lines, is_truncated: !ends_line };
                let line = self.info.line(from, at, LineNote::Dropped(length));
                self.router.route_to_all(&line, &mut self.actions);
                self.run_actions();
            }
        }
    }

    /// Records last lines without a line feed.
    fn end(&mut self) {
        for from in [Peer::Client, Peer::Agent] {
            self.push_bytes(from, narrows_store::now(), None);
        }
    }

    /// Takes the next bytes of one side, or none at its end.
    fn push_bytes(&mut self, from: Peer, at: i64, bytes: Option<&[u8]>) {
        let Recorder { info, peers, router, index, actions, sessions, .. } = self;
        let LineState { lines, is_truncated } = &mut peers[from as usize];
        let mut on_line = |line: narrows::lines::Line<'_>| {
            if std::mem::take(is_truncated) || (line.bytes.trim_ascii().is_empty() && !line.cut) {
                return;
            }
            if line.cut {
                let note = LineNote::TooLong(line.length);
                return router.route_other(info.line(from, at, note), actions);
            }
            let text = line.bytes.trim_ascii();
            let Some(message) = message_info::parse(index, text) else {
                let end = text.len().min(MAX_TEXT_BYTES);
                let text = String::from_utf8_lossy(&text[..end]);
                return router.route_other(info.line(from, at, LineNote::Text(&text)), actions);
            };
            let was_recorded =
                |session: &str| sessions.contains_key(session) || info.was_recorded(session);
            let line = info.message_line(from, at, text);
            router.route_message(from, &message, line, was_recorded, actions);
        };
        match bytes {
            Some(bytes) => lines.push(bytes, &mut on_line),
            None => lines.finish(&mut on_line),
        }
        self.run_actions();
    }

    fn run_actions(&mut self) {
        for action in self.actions.drain(..) {
            match action {
                RouteAction::Open { session, cwd } => {
                    let label = self.info.label(&session);
                    let cwd = cwd.unwrap_or_else(|| self.info.cwd.clone());
                    let header = Header::new(label, self.info.agent.clone(), session.clone(), cwd);
                    self.sessions.insert(session, SpoolFile::new(&self.info.data, header));
                }
                RouteAction::HasContent { session } => {
                    if let Some(spool) = self.sessions.get_mut(&session) {
                        spool.set_has_content();
                    }
                }
                RouteAction::Write { session, line } => {
                    if let Some(spool) = self.sessions.get_mut(&session) {
                        spool.push(&line);
                    }
                }
            }
        }
    }

    fn flush(&mut self) {
        let info = &self.info;
        let dropped_line = |n| info.line(Peer::Agent, narrows_store::now(), LineNote::Dropped(n));
        let mut grown = false;
        for spool in self.sessions.values_mut() {
            grown |= spool.flush(dropped_line, &self.uploads);
        }
        if grown {
            self.uploads.notify();
        }
    }
}

/// What is recorded of a line that is not a message.
#[derive(Clone, Copy)]
enum LineNote<'a> {
    /// A message follows.
    None,
    /// The start of its text.
    Text(&'a str),
    /// Its length in bytes.
    TooLong(u64),
    /// This many bytes were dropped here.
    Dropped(u64),
}

impl RecordingInfo {
    /// A message in its envelope, byte for byte.
    fn message_line(&self, from: Peer, at: i64, message: &[u8]) -> Vec<u8> {
        let mut line = self.line(from, at, LineNote::None);
        // Without the closing brace and the line feed.
        line.truncate(line.len() - 2);
        line.reserve(message.len() + 10);
        line.extend_from_slice(b",\"msg\":");
        line.extend_from_slice(message);
        line.extend_from_slice(b"}\n");
        line
    }

    /// An envelope without a message.
    fn line(&self, from: Peer, at: i64, note: LineNote<'_>) -> Vec<u8> {
        let ts = &Time::from_millis(at);
        let (dir, run) = (from.direction(), self.run.as_str());
        let mut envelope = LineEnvelope { ts, dir, run, text: None, long: None, lost: None };
        match note {
            LineNote::None => {}
            LineNote::Text(text) => envelope.text = Some(text),
            LineNote::TooLong(length) => envelope.long = Some(length),
            LineNote::Dropped(length) => envelope.lost = Some(length),
        }
        // These fields always serialize.
        let mut line = serde_json::to_vec(&envelope).unwrap_or_else(|_| b"{}".to_vec());
        line.push(b'\n');
        line
    }
}
