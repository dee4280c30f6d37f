//! The spool file of one session, as the recorder writes it.

use super::send::Outbox;
use narrows_server::source::spool::{Header, Spool};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What waits for a disk that cannot be written now; more is left out.
const MAX_WAITING: usize = 8 << 20;
/// How often such a disk is tried.
const TRY: Duration = Duration::from_secs(1);

/// A file, and how far it is written: up to the end of a line.
#[derive(Debug)]
pub(super) struct Growing {
    pub(super) spool: Spool,
    pub(super) written: AtomicU64,
}

/// What is to be written into the file of a session.
#[derive(Debug)]
pub(super) struct Spooled {
    data: PathBuf,
    header: Header,
    file: Option<Arc<Growing>>,
    waiting: Vec<u8>,
    /// Bytes that were left out.
    lost: u64,
    failed: Option<Instant>,
    complained: bool,
    /// Something is told in the session. Editors begin many in which nothing ever is.
    tells: bool,
}

impl Spooled {
    pub(super) fn new(data: &Path, header: Header) -> Spooled {
        Spooled {
            data: data.to_owned(),
            header,
            file: None,
            waiting: Vec::new(),
            lost: 0,
            failed: None,
            complained: false,
            tells: false,
        }
    }

    /// There is something to keep.
    pub(super) fn tells(&mut self) {
        self.tells = true;
    }

    pub(super) fn push(&mut self, line: &[u8]) {
        // While nothing is wrong, a batch may be of any size.
        let stays = self.failed.is_some() || !self.tells;
        if self.lost > 0 || stays && self.waiting.len() > MAX_WAITING {
            self.lost += line.len() as u64;
        } else {
            self.waiting.extend_from_slice(line);
        }
    }

    /// Writes what waits; true when it could. `lost` makes the line that tells of what was left out.
    pub(super) fn flush(&mut self, lost: impl Fn(u64) -> Vec<u8>, outbox: &Outbox) -> bool {
        let waits = self.failed.is_some_and(|at| at.elapsed() < TRY);
        if self.waiting.is_empty() || waits || !self.tells {
            return false;
        }
        match self.write(outbox) {
            Ok(()) => {
                self.failed = None;
                self.waiting = Vec::new();
                if self.lost > 0 {
                    let line = lost(std::mem::take(&mut self.lost));
                    self.push(&line);
                    self.flush(lost, outbox);
                }
                true
            }
            Err(error) => {
                self.failed = Some(Instant::now());
                if !std::mem::replace(&mut self.complained, true) {
                    let what = "narrows: this session cannot be recorded now";
                    let _ = writeln!(io::stderr(), "{what}: {error}");
                }
                false
            }
        }
    }

    fn write(&mut self, outbox: &Outbox) -> io::Result<()> {
        let file = if let Some(file) = &self.file {
            file
        } else {
            let spool = Spool::create(&self.data, self.header.clone())?;
            let written = AtomicU64::new(spool.begins);
            let file = Arc::new(Growing { spool, written });
            outbox.add(Arc::clone(&file));
            self.file.insert(file)
        };
        let at = file.written.load(Ordering::Relaxed);
        if let Err(error) = file.spool.file.write_all_at(&self.waiting, at) {
            // A part of it may be there: nobody should take it for a line.
            let _ = file.spool.file.set_len(at);
            return Err(error);
        }
        file.written.store(at + self.waiting.len() as u64, Ordering::Release);
        Ok(())
    }
}
