//! Writes the spool file of one session.

use super::uploader::UploadQueue;
use narrows_engine::discovery::spool::{Header, Spool};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that wait while the disk cannot be written, or before the session has content. More bytes
/// are dropped.
const MAX_PENDING_BYTES: usize = 8 << 20;
/// The delay before a failed write is tried again.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A spool file on disk, and how many bytes of whole lines it has.
#[derive(Debug)]
pub(super) struct OpenSpool {
    pub(super) spool: Spool,
    pub(super) written_bytes: AtomicU64,
}

/// The lines of a session that are to be written.
#[derive(Debug)]
pub(super) struct SpoolFile {
    data: PathBuf,
    header: Header,
    file: Option<Arc<OpenSpool>>,
    pending: Vec<u8>,
    dropped_bytes: u64,
    failed_at: Option<Instant>,
    has_warned: bool,
    /// Nothing is written before: editors start many sessions that never get any content.
    has_content: bool,
}

impl SpoolFile {
    pub(super) fn new(data: &Path, header: Header) -> SpoolFile {
        SpoolFile {
            data: data.to_owned(),
            header,
            file: None,
            pending: Vec::new(),
            dropped_bytes: 0,
            failed_at: None,
            has_warned: false,
            has_content: false,
        }
    }

    pub(super) fn set_has_content(&mut self) {
        self.has_content = true;
    }

    pub(super) fn push(&mut self, line: &[u8]) {
        // A batch that is about to be written has no size limit.
        let is_blocked = self.failed_at.is_some() || !self.has_content;
        if self.dropped_bytes > 0 || is_blocked && self.pending.len() > MAX_PENDING_BYTES {
            self.dropped_bytes += line.len() as u64;
        } else {
            self.pending.extend_from_slice(line);
        }
    }

    /// Writes what is pending; false if nothing was written. `dropped_line` makes the line that reports
    /// dropped bytes.
    pub(super) fn flush(
        &mut self,
        dropped_line: impl Fn(u64) -> Vec<u8>,
        uploads: &UploadQueue,
    ) -> bool {
        let is_delayed = self.failed_at.is_some_and(|at| at.elapsed() < RETRY_DELAY);
        if self.pending.is_empty() || is_delayed || !self.has_content {
            return false;
        }
        match self.write(uploads) {
            Ok(()) => {
                self.failed_at = None;
                self.pending = Vec::new();
                if self.dropped_bytes > 0 {
                    let line = dropped_line(std::mem::take(&mut self.dropped_bytes));
                    self.push(&line);
                    self.flush(dropped_line, uploads);
                }
                true
            }
            Err(error) => {
                self.failed_at = Some(Instant::now());
                if !std::mem::replace(&mut self.has_warned, true) {
                    let _ = writeln!(io::stderr(), "narrows: cannot record the session: {error}");
                }
                false
            }
        }
    }

    fn write(&mut self, uploads: &UploadQueue) -> io::Result<()> {
        let file = if let Some(file) = &self.file {
            file
        } else {
            let spool = Spool::create(&self.data, self.header.clone())?;
            let written_bytes = AtomicU64::new(spool.begins);
            let file = Arc::new(OpenSpool { spool, written_bytes });
            uploads.add(Arc::clone(&file));
            self.file.insert(file)
        };
        let at = file.written_bytes.load(Ordering::Relaxed);
        if let Err(error) = file.spool.file.write_all_at(&self.pending, at) {
            // Remove a partial write, which would look like a line.
            let _ = file.spool.file.set_len(at);
            return Err(error);
        }
        file.written_bytes.store(at + self.pending.len() as u64, Ordering::Release);
        Ok(())
    }
}
