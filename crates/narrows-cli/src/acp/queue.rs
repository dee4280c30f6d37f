//! What has passed, on its way to the recorder. Whoever puts something in never waits: what finds
//! no room is left out, and the recorder is told.

use narrows_store::now;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Bytes that may wait; as many are with the recorder at most.
const MAX_BYTES: usize = 32 << 20;

/// Who said something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum From {
    Client,
    Agent,
}

impl From {
    /// As recorded lines tell it.
    pub(super) fn dir(self) -> &'static str {
        match self {
            From::Client => "client->agent",
            From::Agent => "agent->client",
        }
    }

    pub(super) fn other(self) -> From {
        match self {
            From::Client => From::Agent,
            From::Agent => From::Client,
        }
    }
}

/// Something that passed.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// These bytes, at this time.
    Bytes { from: From, at: i64, bytes: Vec<u8> },
    /// So many bytes that found no room; whether the last of them ended a line.
    Lost { from: From, at: i64, length: u64, ended: bool },
}

/// The queue. Its recorder takes all that waits at once.
#[derive(Debug)]
pub(super) struct Queue {
    state: Mutex<State>,
    filled: Condvar,
    most: usize,
}

#[derive(Debug, Default)]
struct State {
    pieces: VecDeque<Piece>,
    bytes: usize,
    lost: [Option<(u64, bool)>; 2],
    /// The recorder sleeps until it is woken.
    idle: bool,
    closed: bool,
}

impl Default for Queue {
    fn default() -> Self {
        Queue::new(MAX_BYTES)
    }
}

impl Queue {
    pub(super) fn new(most: usize) -> Queue {
        Queue { state: Mutex::default(), filled: Condvar::new(), most }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a copy in, if there is room.
    pub(super) fn push(&self, from: From, bytes: &[u8]) {
        let at = now();
        // Copied before anybody could have to wait for it.
        let copy = bytes.to_vec();
        let mut state = self.state();
        if state.bytes + bytes.len() > self.most {
            let (lost, ended) = state.lost[from as usize].get_or_insert((0, false));
            *lost += bytes.len() as u64;
            *ended = bytes.ends_with(b"\n");
            return;
        }
        if let Some((length, ended)) = state.lost[from as usize].take() {
            state.pieces.push_back(Piece::Lost { from, at, length, ended });
        }
        state.bytes += bytes.len();
        state.pieces.push_back(Piece::Bytes { from, at, bytes: copy });
        let wake = std::mem::take(&mut state.idle);
        drop(state);
        if wake {
            self.filled.notify_one();
        }
    }

    /// Nothing more comes.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.filled.notify_one();
    }

    /// Waits until there is something; false when nothing more comes.
    pub(super) fn wait(&self) -> bool {
        let mut state = self.state();
        while state.pieces.is_empty() && !state.closed {
            state.idle = true;
            state = self.filled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        !state.pieces.is_empty() || state.lost.iter().any(Option::is_some)
    }

    /// Everything that waits.
    pub(super) fn take(&self) -> VecDeque<Piece> {
        let mut state = self.state();
        if state.closed {
            let at = now();
            for from in [From::Client, From::Agent] {
                if let Some((length, ended)) = state.lost[from as usize].take() {
                    state.pieces.push_back(Piece::Lost { from, at, length, ended });
                }
            }
        }
        state.bytes = 0;
        std::mem::take(&mut state.pieces)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_finds_no_room_is_told() {
        let queue = Queue::new(8);
        queue.push(From::Agent, b"12345");
        queue.push(From::Agent, b"67890\n");
        queue.push(From::Client, b"abc");
        queue.push(From::Client, b"d");
        let taken = queue.take();
        assert_eq!(taken.len(), 2);
        queue.push(From::Agent, b"x");
        queue.close();
        let taken: Vec<Piece> = queue.take().into();
        assert!(matches!(taken[0], Piece::Lost { from: From::Agent, length: 6, ended: true, .. }));
        assert!(
            matches!(&taken[1], Piece::Bytes { from: From::Agent, bytes, .. } if bytes == b"x")
        );
        assert!(matches!(taken[2], Piece::Lost { from: From::Client, length: 1, .. }));
        assert!(!queue.wait());
    }
}
