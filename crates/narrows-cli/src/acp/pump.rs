//! Bytes from one side to the other, as they come.

use super::queue::{From, Queue};
use std::io::{ErrorKind, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Bytes that are read at once: what a pipe holds.
const CHUNK: usize = 64 << 10;
/// A side that was left in non-blocking mode is asked again after this long.
const AGAIN: Duration = Duration::from_millis(1);

/// How far a pump is.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Bytes were read and are not written yet.
    busy: AtomicBool,
    moved: AtomicU64,
    over: AtomicBool,
}

impl Progress {
    /// Waits until the pump is over, or nothing has come for a while, or the other side takes
    /// nothing for too long.
    pub(super) fn drain(&self, quiet: Duration, patience: Duration) {
        let began = Instant::now();
        let (mut moved, mut since) = (self.moved.load(Ordering::Acquire), Instant::now());
        while !self.over.load(Ordering::Acquire) && began.elapsed() < patience {
            std::thread::sleep(Duration::from_millis(2));
            let now = self.moved.load(Ordering::Acquire);
            if now != moved || self.busy.load(Ordering::Acquire) {
                (moved, since) = (now, Instant::now());
            }
            if since.elapsed() > quiet {
                return;
            }
        }
    }
}

/// Moves bytes until one side is over; then both ends are closed. The recorder's copy is put in
/// first: an answer must not overtake its request there.
pub(super) fn pump(
    mut input: impl Read,
    mut output: impl Write,
    from: From,
    queue: &Queue,
    progress: &Progress,
) {
    let mut chunk = vec![0; CHUNK];
    loop {
        let n = match input.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == ErrorKind::Interrupted => continue,
            Err(e) if e.kind() == ErrorKind::WouldBlock => {
                std::thread::sleep(AGAIN);
                continue;
            }
            Err(_) => break,
        };
        progress.busy.store(true, Ordering::Release);
        queue.push(from, &chunk[..n]);
        if !write(&mut output, &chunk[..n]) {
            break;
        }
        progress.moved.fetch_add(n as u64, Ordering::Release);
        progress.busy.store(false, Ordering::Release);
    }
    drop((input, output));
    progress.over.store(true, Ordering::Release);
}

/// False when the other side is gone.
fn write(output: &mut impl Write, mut bytes: &[u8]) -> bool {
    while !bytes.is_empty() {
        match output.write(bytes) {
            Ok(0) => return false,
            Ok(n) => bytes = &bytes[n..],
            Err(e) if e.kind() == ErrorKind::Interrupted => {}
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(AGAIN),
            Err(_) => return false,
        }
    }
    true
}
