//! Spool files to the running server, while they grow.

use super::spooled::Growing;
use crate::client::Client;
use crate::ingest::escaped;
use crate::{Fault, fault};
use narrows_server::api::{PacketAnswer, PacketState, Session, SessionPage};
use narrows_server::source::spool::Spool;
use narrows_store::ADDRESS_FILE;
use serde_json::json;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What comes within this time is sent together.
const TOGETHER: Duration = Duration::from_millis(30);
/// How often a server is looked for, or tried again.
const TRY: Duration = Duration::from_secs(1);
/// Bytes of one request, unless a line is longer.
const MAX_PIECE: usize = 1 << 20;

/// The files that are to be sent.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    state: Mutex<State>,
    told: Condvar,
}

#[derive(Debug, Default)]
struct State {
    new: Vec<Arc<Growing>>,
    grown: bool,
    closed: bool,
}

impl Outbox {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A file is there.
    pub(super) fn add(&self, file: Arc<Growing>) {
        self.state().new.push(file);
    }

    /// Some file has grown.
    pub(super) fn wake(&self) {
        self.state().grown = true;
        self.told.notify_one();
    }

    /// No file grows any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.told.notify_one();
    }

    /// Waits for news: new files, and whether these are the last. Who is behind has news enough, and
    /// waits for a while.
    fn wait(&self, behind: bool) -> (Vec<Arc<Growing>>, bool) {
        let state = self.state();
        let mut state = if behind {
            let waited = self.told.wait_timeout_while(state, TRY, |state| !state.closed);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.told.wait_while(state, |state| !state.grown && !state.closed);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        state.grown = false;
        (std::mem::take(&mut state.new), state.closed)
    }
}

/// How far a file was sent.
#[derive(Debug)]
struct Sent {
    file: Arc<Growing>,
    /// The session there, once that is known.
    session: Option<String>,
    /// It was there once: where it is missing, it was deleted.
    was_there: bool,
    /// The place of the next packet, and where it begins in the file.
    next: u64,
    at: u64,
    /// The server has all of it and knows that it is over, or somebody deleted it there.
    done: bool,
}

/// Sends what grows, until nothing grows any more.
#[derive(Debug)]
pub(super) struct Sender<'a> {
    data: &'a Path,
    files: Vec<Sent>,
    client: Option<Client>,
}

impl<'a> Sender<'a> {
    pub(super) fn new(data: &'a Path) -> Self {
        Sender { data, files: Vec::new(), client: None }
    }

    pub(super) fn run(mut self, outbox: &Outbox) {
        let mut behind = false;
        loop {
            let (new, last) = outbox.wait(behind);
            self.files.extend(new.into_iter().map(|file| {
                let at = file.spool.begins;
                Sent { file, session: None, was_there: false, next: 0, at, done: false }
            }));
            behind = self.send_all(last).is_err();
            if behind {
                // Whatever it was: the next time everything is asked anew.
                self.client = None;
                self.files.iter_mut().for_each(|sent| sent.session = None);
                if last {
                    // Nobody tries again later: a session that was deleted meanwhile is found out now.
                    let _ = self.send_all(last);
                }
            }
            if last {
                return;
            }
            if !behind {
                std::thread::sleep(TOGETHER);
            }
        }
    }

    /// An error when something could not be sent now.
    fn send_all(&mut self, last: bool) -> Result<(), Fault> {
        if !self.files.iter().any(|sent| sent.is_behind(last)) {
            return Ok(());
        }
        // The file is there while a server runs: without it, there is no need to touch the lock.
        if self.client.is_none() && self.data.join(ADDRESS_FILE).exists() {
            self.client = Client::find(self.data)?;
        }
        let client = self.client.as_ref().ok_or_else(|| fault("no server runs"))?;
        let mut waits = false;
        for sent in self.files.iter_mut().filter(|sent| sent.is_behind(last)) {
            waits |= !sent.send(client, last)?;
        }
        if waits { Err(fault("an older file must be sent first")) } else { Ok(()) }
    }
}

impl Sent {
    fn is_behind(&self, last: bool) -> bool {
        !self.done && (last || self.at < self.file.written.load(Ordering::Acquire))
    }

    /// Sends what is new; false when it must wait.
    fn send(&mut self, client: &Client, last: bool) -> Result<bool, Fault> {
        let id = match &self.session {
            Some(id) => id.clone(),
            None if self.file.spool.has_older() => return Ok(false),
            None => {
                let Some(id) = self.begin(client)? else {
                    // It was deleted there, and stays so.
                    self.done = true;
                    let _ = fs::remove_file(&self.file.spool.path);
                    return Ok(true);
                };
                id
            }
        };
        loop {
            let written = self.file.written.load(Ordering::Acquire);
            let spool = &self.file.spool;
            let piece = piece(spool, self.at, written).map_err(Fault::new("spool"))?;
            let end = last && self.at + piece.len() as u64 >= written;
            if piece.is_empty() && !end {
                return Ok(true);
            }
            let root = escaped(&spool.header.cwd);
            let path = format!(
                "/api/sessions/{id}/packets?format=acp&arrived=none&first={}&end={end}&root={root}",
                self.next
            );
            let answer: PacketAnswer = client.stream(&path, piece.as_slice())?;
            self.at += piece.len() as u64;
            // Each line has its end.
            self.next += piece.split(|b| *b == b'\n').skip(1).count() as u64;
            if end && answer.read + 1 >= self.next {
                self.done = true;
                let _ = fs::remove_file(&spool.path);
                return Ok(true);
            }
        }
    }

    /// Finds the session, or makes it, and where to go on; none when it was deleted there.
    fn begin(&mut self, client: &Client) -> Result<Option<String>, Fault> {
        let spool = &self.file.spool;
        let label = &spool.header.label;
        let bad = || Fault::new("spool");
        let id = if !self.was_there && spool.first().map_err(bad())? == 0 {
            let session: Session = client.post("/api/sessions", &json!({ "label": label }))?;
            self.was_there = true;
            session.id
        } else {
            let path = format!("/api/sessions?limit=1&label={}", escaped(label));
            let page: SessionPage = client.get(&path)?;
            match page.sessions.into_iter().next() {
                Some(session) => session.id,
                None => return Ok(None),
            }
        };
        let state: PacketState = client.get(&format!("/api/sessions/{id}/packets"))?;
        let main = state.sources.iter().find(|s| s.number == 0);
        let (read, rest) = main.map_or((0, 0), |m| (m.read, m.acknowledged));
        let (first, known) = spool.goes_on(read, rest).map_err(bad())?;
        self.at = spool.after(known).map_err(bad())?;
        self.next = first + known;
        self.session = Some(id.clone());
        Ok(Some(id))
    }
}

/// The next whole lines of a file.
fn piece(spool: &Spool, at: u64, written: u64) -> std::io::Result<Vec<u8>> {
    let left = usize::try_from(written.saturating_sub(at)).unwrap_or(usize::MAX);
    let mut most = MAX_PIECE.min(left);
    loop {
        let mut bytes = vec![0; most];
        spool.file.read_exact_at(&mut bytes, at)?;
        if let Some(end) = bytes.iter().rposition(|b| *b == b'\n') {
            bytes.truncate(end + 1);
            return Ok(bytes);
        }
        if most == left {
            return Ok(Vec::new());
        }
        most = (most * 4).min(left);
    }
}
