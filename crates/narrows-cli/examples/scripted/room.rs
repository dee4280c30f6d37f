//! What the reader of standard input and the player of a turn share.

use serde_json::Value;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

#[derive(Debug, Default)]
pub struct Room {
    cancelled: Mutex<bool>,
    told: Condvar,
    /// Questions that wait for an answer, by id.
    waiting: Mutex<HashMap<String, Sender<Value>>>,
    /// Answers that are waited for later, by id: an id may be used more than once.
    kept: Mutex<HashMap<String, Receiver<Value>>>,
    /// The input has ended: no answer will come.
    pub ended: AtomicBool,
    pub close_stdin: AtomicBool,
    pub deaf: AtomicBool,
    /// What subagents say is wanted, too.
    pub forwards: AtomicBool,
    /// Turns that run or wait to run.
    pub turns: AtomicU64,
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Room {
    pub fn set_cancelled(&self, cancelled: bool) {
        *lock(&self.cancelled) = cancelled;
        self.told.notify_all();
    }

    /// Breaks off the turn that runs, if one does.
    pub fn interrupt(&self) {
        let mut cancelled = lock(&self.cancelled);
        *cancelled = self.turns.load(Ordering::SeqCst) > 0;
        self.told.notify_all();
    }

    /// A turn is over; an interrupt that came too late is not for the next one.
    pub fn turn_ended(&self) {
        let mut cancelled = lock(&self.cancelled);
        *cancelled = false;
        self.turns.fetch_sub(1, Ordering::SeqCst);
    }

    pub fn is_cancelled(&self) -> bool {
        *lock(&self.cancelled)
    }

    /// Waits, or less when the turn is cancelled.
    pub fn wait(&self, time: Duration) {
        let end = Instant::now() + time;
        let mut cancelled = lock(&self.cancelled);
        while !*cancelled {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            cancelled =
                self.told.wait_timeout(cancelled, left).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A question of this id is about to be asked.
    pub fn expect(&self, id: &str) -> Receiver<Value> {
        let (sender, receiver) = channel();
        lock(&self.waiting).insert(id.to_owned(), sender);
        receiver
    }

    /// Every answer to questions of this id is kept until somebody asks for the [next](Room::next).
    pub fn expect_all(&self, id: &str) {
        let mut kept = lock(&self.kept);
        if !kept.contains_key(id) {
            kept.insert(id.to_owned(), self.expect(id));
        }
    }

    /// The next answer to a question of this id; none when the turn is cancelled first.
    pub fn next(&self, id: &str) -> Option<Value> {
        let receiver = lock(&self.kept).remove(id)?;
        let answer = self.answered(&receiver);
        lock(&self.kept).insert(id.to_owned(), receiver);
        answer
    }

    /// An answer came.
    pub fn answer(&self, id: &str, answer: Value) {
        let mut waiting = lock(&self.waiting);
        if waiting.get(id).is_some_and(|sender| sender.send(answer).is_err()) {
            waiting.remove(id);
        }
    }

    /// The answer; none when the turn is cancelled first, or the input ends.
    pub fn answered(&self, receiver: &Receiver<Value>) -> Option<Value> {
        loop {
            match receiver.recv_timeout(Duration::from_millis(5)) {
                Ok(answer) => return Some(answer),
                Err(RecvTimeoutError::Disconnected) => return None,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_cancelled() || self.ended.load(Ordering::SeqCst) {
                return None;
            }
        }
    }
}
