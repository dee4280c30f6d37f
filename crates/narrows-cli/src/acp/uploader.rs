//! Uploads spool files to the running server while they grow.

use super::spool_file::OpenSpool;
use crate::client::{Client, encode_query};
use crate::error::CliError;
use narrows_engine::discovery::spool::Spool;
use narrows_server::api::{PacketAnswer, PacketState, Session, SessionPage};
use narrows_store::ADDRESS_FILE;
use serde_json::json;
use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What is written within this time is sent at once.
const FLUSH_DELAY: Duration = Duration::from_millis(30);
/// The delay before a server is looked for again.
const RETRY_DELAY: Duration = Duration::from_secs(1);
/// Bytes of one request, unless a line is longer.
const MAX_BODY_BYTES: usize = 1 << 20;

/// The files to upload.
#[derive(Debug, Default)]
pub(super) struct UploadQueue {
    state: Mutex<UploadQueueState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct UploadQueueState {
    new: Vec<Arc<OpenSpool>>,
    grown: bool,
    closed: bool,
}

impl UploadQueue {
    fn state(&self) -> MutexGuard<'_, UploadQueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a new file.
    pub(super) fn add(&self, file: Arc<OpenSpool>) {
        self.state().new.push(file);
    }

    /// Wakes the uploader: a file has grown.
    pub(super) fn notify(&self) {
        self.state().grown = true;
        self.changed.notify_one();
    }

    /// Ends the queue: no file grows any more.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.changed.notify_one();
    }

    /// Waits for new or grown files. Returns the new files, and whether the queue is closed. After a
    /// failed upload, waits only for the retry delay.
    fn wait(&self, is_retry: bool) -> (Vec<Arc<OpenSpool>>, bool) {
        let state = self.state();
        let mut state = if is_retry {
            let waited = self.changed.wait_timeout_while(state, RETRY_DELAY, |state| !state.closed);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            let waited = self.changed.wait_while(state, |state| !state.grown && !state.closed);
            waited.unwrap_or_else(PoisonError::into_inner)
        };
        state.grown = false;
        (std::mem::take(&mut state.new), state.closed)
    }
}

/// How far a file is uploaded.
#[derive(Debug)]
struct UploadState {
    file: Arc<OpenSpool>,
    /// The id of the session on the server, if it is known.
    session: Option<String>,
    /// The session existed on the server: if it is missing, a user has deleted it.
    has_existed: bool,
    /// The number of the next packet.
    next_packet: u64,
    /// Its offset in the file.
    offset: u64,
    /// The server has all of it, or a user has deleted the session there.
    done: bool,
}

#[derive(Debug)]
pub(super) struct Uploader<'a> {
    data: &'a Path,
    uploads: Vec<UploadState>,
    client: Option<Client>,
}

impl<'a> Uploader<'a> {
    pub(super) fn new(data: &'a Path) -> Self {
        Uploader { data, uploads: Vec::new(), client: None }
    }

    /// Uploads until the queue is closed.
    pub(super) fn run(mut self, queue: &UploadQueue) {
        let mut failed = false;
        loop {
            let (new, is_closed) = queue.wait(failed);
            self.uploads.extend(new.into_iter().map(UploadState::new));
            failed = self.send_all(is_closed).is_err();
            if failed {
                // Whatever failed, ask the server for the state of every session again.
                self.client = None;
                self.uploads.iter_mut().for_each(|upload| upload.session = None);
                if is_closed {
                    // There is no later attempt: detect a session that was deleted meanwhile now.
                    let _ = self.send_all(is_closed);
                }
            }
            if is_closed {
                return;
            }
            if !failed {
                std::thread::sleep(FLUSH_DELAY);
            }
        }
    }

    /// Sends everything that is new; fails if some of it cannot be sent now.
    fn send_all(&mut self, is_closed: bool) -> Result<(), CliError> {
        if !self.uploads.iter().any(|upload| upload.is_behind(is_closed)) {
            return Ok(());
        }
        // The address file exists while a server runs. Checking it first avoids touching the lock.
        if self.client.is_none() && self.data.join(ADDRESS_FILE).exists() {
            self.client = Client::find(self.data)?;
        }
        let client = self.client.as_ref().ok_or_else(|| CliError::new("no server runs"))?;
        let mut is_blocked = false;
        for upload in self.uploads.iter_mut().filter(|upload| upload.is_behind(is_closed)) {
            is_blocked |= !upload.send(client, is_closed)?;
        }
        if is_blocked {
            Err(CliError::new("an older spool file must be sent first"))
        } else {
            Ok(())
        }
    }
}

impl UploadState {
    fn new(file: Arc<OpenSpool>) -> UploadState {
        let offset = file.spool.begins;
        UploadState { file, session: None, has_existed: false, next_packet: 0, offset, done: false }
    }

    fn is_behind(&self, is_closed: bool) -> bool {
        !self.done && (is_closed || self.offset < self.file.written_bytes.load(Ordering::Acquire))
    }

    /// Sends what is new; false if an older file of the session must be sent first.
    fn send(&mut self, client: &Client, is_closed: bool) -> Result<bool, CliError> {
        let id = match &self.session {
            Some(id) => id.clone(),
            None if self.file.spool.has_older() => return Ok(false),
            None => {
                let Some(id) = self.find_session(client)? else {
                    // A user has deleted the session: do not create it again.
                    self.done = true;
                    let _ = fs::remove_file(&self.file.spool.path);
                    return Ok(true);
                };
                id
            }
        };
        loop {
            let written = self.file.written_bytes.load(Ordering::Acquire);
            let spool = &self.file.spool;
            let body = next_body(spool, self.offset, written)
                .map_err(CliError::cannot("read the spool file"))?;
            let end = is_closed && self.offset + body.len() as u64 >= written;
            if body.is_empty() && !end {
                return Ok(true);
            }
            let root = encode_query(&spool.header.cwd);
            let path = format!(
                "/api/sessions/{id}/packets?format=acp&arrived=none&first={}&end={end}&exited={end}&root={root}",
                self.next_packet
            );
            let answer: PacketAnswer = client.post_stream(&path, body.as_slice())?;
            self.offset += body.len() as u64;
            // Every line is one packet and ends with a line feed.
            self.next_packet += body.split(|b| *b == b'\n').skip(1).count() as u64;
            if end && answer.read + 1 >= self.next_packet {
                self.done = true;
                let _ = fs::remove_file(&spool.path);
                return Ok(true);
            }
        }
    }

    /// Finds or creates the session, and the packet to resume at. None if a user has deleted it.
    fn find_session(&mut self, client: &Client) -> Result<Option<String>, CliError> {
        let spool = &self.file.spool;
        let label = &spool.header.label;
        let cannot_read = || CliError::cannot("read the spool file");
        let id = if !self.has_existed && spool.first().map_err(cannot_read())? == 0 {
            let session: Session = client.post("/api/sessions", &json!({ "label": label }))?;
            self.has_existed = true;
            session.id
        } else {
            let path = format!("/api/sessions?limit=1&label={}", encode_query(label));
            let page: SessionPage = client.get(&path)?;
            match page.sessions.into_iter().next() {
                Some(session) => session.id,
                None => return Ok(None),
            }
        };
        let state: PacketState = client.get(&format!("/api/sessions/{id}/packets"))?;
        let main = state.sources.iter().find(|s| s.number == 0);
        let (read, acknowledged) = main.map_or((0, 0), |m| (m.read, m.acknowledged));
        let (first, known) = spool.goes_on(read, acknowledged).map_err(cannot_read())?;
        self.offset = spool.after(known).map_err(cannot_read())?;
        self.next_packet = first + known;
        self.session = Some(id.clone());
        Ok(Some(id))
    }
}

/// Reads the next whole lines of a file.
fn next_body(spool: &Spool, offset: u64, written: u64) -> std::io::Result<Vec<u8>> {
    let left = usize::try_from(written.saturating_sub(offset)).unwrap_or(usize::MAX);
    let mut size = MAX_BODY_BYTES.min(left);
    loop {
        let mut bytes = vec![0; size];
        spool.file.read_exact_at(&mut bytes, offset)?;
        if let Some(end) = bytes.iter().rposition(|b| *b == b'\n') {
            bytes.truncate(end + 1);
            return Ok(bytes);
        }
        if size == left {
            return Ok(Vec::new());
        }
        size = (size * 4).min(left);
    }
}
