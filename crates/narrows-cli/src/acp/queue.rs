//! Captured bytes on their way to the recorder. A push never blocks: bytes that exceed the limit are
//! dropped and counted.

use narrows_store::now;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Captured bytes in the queue. The recorder holds at most as many again.
const MAX_QUEUED_BYTES: usize = 32 << 20;

/// A side of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Peer {
    Client,
    Agent,
}

impl Peer {
    /// The direction field of recorded lines.
    pub(super) fn direction(self) -> &'static str {
        match self {
            Peer::Client => "client->agent",
            Peer::Agent => "agent->client",
        }
    }

    pub(super) fn other(self) -> Peer {
        match self {
            Peer::Client => Peer::Agent,
            Peer::Agent => Peer::Client,
        }
    }
}

/// Bytes from one side. Times are in milliseconds since the Unix epoch.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Captured {
    Bytes {
        from: Peer,
        at: i64,
        bytes: Vec<u8>,
    },
    /// Bytes were dropped; `ends_line` says whether the last of them was a line feed.
    Dropped {
        from: Peer,
        at: i64,
        length: u64,
        ends_line: bool,
    },
}

/// The queue between the pumps and the recorder.
#[derive(Debug)]
pub(super) struct CaptureQueue {
    state: Mutex<QueueState>,
    not_empty: Condvar,
    max_bytes: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    captured: VecDeque<Captured>,
    bytes: usize,
    /// Dropped bytes of each side that are not reported yet, and whether they end a line.
    dropped: [Option<(u64, bool)>; 2],
    /// The recorder waits for a notification.
    is_waiting: bool,
    closed: bool,
}

impl Default for CaptureQueue {
    fn default() -> Self {
        CaptureQueue::new(MAX_QUEUED_BYTES)
    }
}

impl CaptureQueue {
    pub(super) fn new(max_bytes: usize) -> CaptureQueue {
        CaptureQueue { state: Mutex::default(), not_empty: Condvar::new(), max_bytes }
    }

    fn state(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues a copy of the bytes, or drops them if there is no room.
    pub(super) fn push(&self, from: Peer, bytes: &[u8]) {
        let at = now();
        // Copied outside the lock.
        let copy = bytes.to_vec();
        let mut state = self.state();
        if state.bytes + bytes.len() > self.max_bytes {
            let (dropped, ends_line) = state.dropped[from as usize].get_or_insert((0, false));
            *dropped += bytes.len() as u64;
            *ends_line = bytes.ends_with(b"\n");
            return;
        }
        if let Some((length, ends_line)) = state.dropped[from as usize].take() {
            state.captured.push_back(Captured::Dropped { from, at, length, ends_line });
        }
        state.bytes += bytes.len();
        state.captured.push_back(Captured::Bytes { from, at, bytes: copy });
        let wake = std::mem::take(&mut state.is_waiting);
        drop(state);
        if wake {
            self.not_empty.notify_one();
        }
    }

    /// Ends the queue: nothing more is pushed.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.not_empty.notify_one();
    }

    /// Waits until something is queued; false if the queue is closed and empty.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        while state.captured.is_empty() && !state.closed {
            state.is_waiting = true;
            state = self.not_empty.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.captured.is_empty() || state.dropped.iter().any(Option::is_some)
    }

    /// Takes everything that is queued.
    pub(super) fn drain(&self) -> VecDeque<Captured> {
        let mut state = self.state();
        if state.closed {
            let at = now();
            for from in [Peer::Client, Peer::Agent] {
                if let Some((length, ends_line)) = state.dropped[from as usize].take() {
                    state.captured.push_back(Captured::Dropped { from, at, length, ends_line });
                }
            }
        }
        state.bytes = 0;
        std::mem::take(&mut state.captured)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overflow_is_reported_as_dropped() {
        let queue = CaptureQueue::new(8);
        queue.push(Peer::Agent, b"12345");
        queue.push(Peer::Agent, b"67890\n");
        queue.push(Peer::Client, b"abc");
        queue.push(Peer::Client, b"d");
        let drained = queue.drain();
        assert_eq!(drained.len(), 2);
        queue.push(Peer::Agent, b"x");
        queue.close();
        let drained: Vec<Captured> = queue.drain().into();
        assert!(matches!(
            drained[0],
            Captured::Dropped { from: Peer::Agent, length: 6, ends_line: true, .. }
        ));
        assert!(
            matches!(&drained[1], Captured::Bytes { from: Peer::Agent, bytes, .. } if bytes == b"x")
        );
        assert!(matches!(drained[2], Captured::Dropped { from: Peer::Client, length: 1, .. }));
        assert!(!queue.wait());
    }
}
