//! Copies bytes from one side of the proxy to the other.

use super::queue::{CaptureQueue, Peer};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// The capacity of a Linux pipe.
const CHUNK_BYTES: usize = 64 << 10;
/// The retry delay if the editor left its end in non-blocking mode.
const WOULD_BLOCK_DELAY: Duration = Duration::from_millis(1);
const DRAIN_POLL_INTERVAL: Duration = Duration::from_millis(2);

#[derive(Debug, Default)]
pub(super) struct PumpProgress {
    /// Bytes were read but not written yet.
    busy: AtomicBool,
    copied_bytes: AtomicU64,
    finished: AtomicBool,
}

impl PumpProgress {
    /// Waits until the pump has finished, is idle for `idle_timeout`, or `timeout` is over.
    pub(super) fn wait_drained(&self, idle_timeout: Duration, timeout: Duration) {
        let started = Instant::now();
        let (mut copied, mut since) = (self.copied_bytes.load(Ordering::Acquire), Instant::now());
        while !self.finished.load(Ordering::Acquire) && started.elapsed() < timeout {
            std::thread::sleep(DRAIN_POLL_INTERVAL);
            let now = self.copied_bytes.load(Ordering::Acquire);
            if now != copied || self.busy.load(Ordering::Acquire) {
                (copied, since) = (now, Instant::now());
            }
            if since.elapsed() > idle_timeout {
                return;
            }
        }
    }
}

/// Copies bytes until one side closes, then closes both. Captures bytes before it writes them, so
/// that the recorder sees a request before its response.
pub(super) fn pump(
    mut input: impl Read,
    mut output: impl Write,
    from: Peer,
    queue: &CaptureQueue,
    progress: &PumpProgress,
) {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let n = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(WOULD_BLOCK_DELAY);
                continue;
            }
            Err(_) => break,
        };
        progress.busy.store(true, Ordering::Release);
        queue.push(from, &chunk[..n]);
        if !write_all(&mut output, &chunk[..n]) {
            break;
        }
        progress.copied_bytes.fetch_add(n as u64, Ordering::Release);
        progress.busy.store(false, Ordering::Release);
    }
    drop((input, output));
    progress.finished.store(true, Ordering::Release);
}

/// Writes all bytes; false if the other side has closed.
fn write_all(output: &mut impl Write, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return false,
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(WOULD_BLOCK_DELAY),
            Err(_) => return false,
        }
    }
    true
}
