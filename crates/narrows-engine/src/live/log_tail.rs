//! The newest rows of one session.

use super::batch::Batch;
use super::hub::Delivery;
use super::preview::Preview;
use narrows_store::{EventRow, Session};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// Rows that are durable within this time of each other are told together, where many follow.
const TICK: Duration = Duration::from_millis(20);
/// To tell one follower takes so long, about: the more there are, the longer rows wait for others.
const ONE: Duration = Duration::from_micros(8);
/// Less than this is not worth a timer.
const LEAST: Duration = Duration::from_millis(1);
/// What is kept of one session.
pub(super) const MAX_BYTES: usize = 8 << 20;
const MAX_BATCHES: usize = 4096;
/// Nobody follows and nobody writes for so long.
const IDLE: Duration = Duration::from_mins(1);

/// The end of one session's log.
#[derive(Debug)]
pub struct Tail {
    session: Session,
    state: Mutex<State>,
    wake: watch::Sender<Woken>,
}

/// What a follower is woken with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Woken {
    seq: u64,
    /// The source said that nothing more comes.
    over: bool,
    /// The session is gone.
    ended: bool,
    /// Grows when something else can be shown beside the log.
    previews: u64,
}

#[derive(Debug)]
struct State {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
    /// Durable rows that the next tick tells.
    next: Vec<EventRow>,
    /// The last row that was given here. The log may be known to go further.
    given: u64,
    /// Whether the source is over with them.
    over: bool,
    told: Instant,
    timer: bool,
    queue: VecDeque<Delivery>,
    delivering: bool,
    /// Somebody reads what other nodes wrote; and once more, since there is more by now.
    pulling: bool,
    pull_again: bool,
    preview: Option<Arc<Preview>>,
}

/// What lies ahead of a follower.
#[derive(Debug)]
pub enum Ahead {
    /// Rows in memory.
    Batch(Arc<Batch>),
    /// Rows that must be read from the store.
    Stored,
    /// Nothing; whether the source said that nothing more comes.
    Nothing {
        /// Whether it did.
        over: bool,
    },
    /// The session is gone.
    Ended,
}

impl Tail {
    pub(super) fn new(session: &Session) -> Self {
        let state = State {
            batches: VecDeque::new(),
            bytes: 0,
            next: Vec::new(),
            given: 0,
            over: session.ended,
            told: Instant::now().checked_sub(TICK).unwrap_or_else(Instant::now),
            timer: false,
            queue: VecDeque::new(),
            delivering: false,
            pulling: false,
            pull_again: false,
            preview: None,
        };
        let (seq, over) = (session.seq, session.ended);
        let wake = watch::Sender::new(Woken { seq, over, ended: false, previews: 0 });
        Tail { session: session.clone(), state: Mutex::new(state), wake }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Where the log ends, as far as it was told.
    pub fn head(&self) -> u64 {
        self.wake.borrow().seq
    }

    /// Wakes when the log has grown.
    pub fn waker(&self) -> Waker {
        Waker(self.wake.subscribe())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queues rows; true when somebody must begin to deliver.
    pub(super) fn queue(&self, delivery: Delivery) -> bool {
        let mut state = self.state();
        state.queue.push_back(delivery);
        !std::mem::replace(&mut state.delivering, true)
    }

    /// Whether nothing is on its way.
    pub(super) fn is_clear(&self) -> bool {
        !self.state().delivering
    }

    pub(super) fn next_delivery(&self) -> Option<Delivery> {
        let mut state = self.state();
        let next = state.queue.pop_front();
        state.delivering = next.is_some();
        next
    }

    /// Whether somebody follows it.
    pub(super) fn is_followed(&self) -> bool {
        self.wake.receiver_count() > 0
    }

    /// Whether the source said that nothing more comes.
    pub(super) fn is_over(&self) -> bool {
        self.wake.borrow().over
    }

    /// The last event that was told, or is about to be.
    pub(super) fn known(&self) -> u64 {
        self.head().max(self.state().given)
    }

    /// True when the caller is to read what other nodes wrote; else somebody is at it, and will look
    /// once more.
    pub(super) fn begin_pull(&self) -> bool {
        let mut state = self.state();
        state.pull_again = state.pulling;
        !std::mem::replace(&mut state.pulling, true)
    }

    /// True when the caller is to read once more.
    pub(super) fn end_pull(&self) -> bool {
        let mut state = self.state();
        state.pulling = std::mem::take(&mut state.pull_again);
        state.pulling
    }

    /// Tells rows that are durable, at once or with the next tick. What is known is passed over: this
    /// node may hear of its own rows from others.
    pub(super) fn publish(self: &Arc<Self>, mut rows: Vec<EventRow>, over: bool) {
        let known = self.wake.borrow().over;
        let mut state = self.state();
        let given = state.given;
        if rows.first().is_some_and(|row| row.seq <= given) {
            rows.retain(|row| row.seq > given);
        }
        if rows.is_empty() && known == over {
            return;
        }
        // What is told together has no gap.
        if !state.next.is_empty() && rows.first().is_some_and(|row| row.seq != given + 1) {
            self.tell(state);
            return self.publish(rows, over);
        }
        state.given = rows.last().map_or(given, |row| row.seq);
        if self.wake.receiver_count() == 0 && state.next.is_empty() {
            // Nobody follows: whoever comes finds it in the store.
            (state.over, state.bytes) = (over, 0);
            state.batches.clear();
            drop(state);
            let last = rows.last().map_or(0, |row| row.seq);
            self.wake.send_modify(|woken| {
                woken.seq = woken.seq.max(last);
                woken.over = over;
            });
            return;
        }
        state.next.extend(rows);
        state.over = over;
        let (since, tick) = (state.told.elapsed(), self.tick());
        if since >= tick {
            self.tell(state);
        } else if !state.timer {
            state.timer = true;
            let tail = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(tick.saturating_sub(since)).await;
                let mut state = tail.state();
                state.timer = false;
                tail.tell(state);
            });
        }
    }

    /// For how long rows are gathered: as long as it takes to tell them to all who follow.
    fn tick(&self) -> Duration {
        let followers = u32::try_from(self.wake.receiver_count()).unwrap_or(u32::MAX);
        let all = ONE.saturating_mul(followers).min(TICK);
        if all < LEAST { Duration::ZERO } else { all }
    }

    fn tell(&self, mut state: MutexGuard<'_, State>) {
        let rows = std::mem::take(&mut state.next);
        let over = state.over;
        state.told = Instant::now();
        let Some(batch) = Batch::new(&self.session.epoch, rows) else {
            drop(state);
            self.wake.send_modify(|woken| woken.over = over);
            return;
        };
        let seq = batch.last();
        // A batch that does not follow the one before cannot be looked up: the store has it all.
        if state.batches.back().is_some_and(|b| b.last() + 1 != batch.first()) {
            state.batches.clear();
            state.bytes = 0;
        }
        state.bytes += batch.size();
        state.batches.push_back(Arc::new(batch));
        while state.bytes > MAX_BYTES || state.batches.len() > MAX_BATCHES {
            let Some(oldest) = state.batches.pop_front() else { break };
            state.bytes -= oldest.size();
        }
        drop(state);
        self.wake.send_modify(|woken| {
            woken.seq = woken.seq.max(seq);
            woken.over = over;
        });
    }

    /// What comes after the event `seq`.
    pub fn after(&self, seq: u64) -> Ahead {
        let Woken { seq: head, over, ended, .. } = *self.wake.borrow();
        if ended {
            return Ahead::Ended;
        }
        if seq >= head {
            return Ahead::Nothing { over };
        }
        let state = self.state();
        let at = state.batches.partition_point(|b| b.last() <= seq);
        match state.batches.get(at) {
            Some(batch) if batch.first() <= seq + 1 => Ahead::Batch(Arc::clone(batch)),
            _ => Ahead::Stored,
        }
    }

    /// The log is known to go this far: what the store has may not have been told yet.
    pub fn seen(&self, head: u64) {
        self.wake.send_if_modified(|woken| {
            let grown = head > woken.seq;
            woken.seq = woken.seq.max(head);
            grown
        });
    }

    /// The session is gone.
    pub(super) fn end(&self) {
        self.wake.send_modify(|woken| woken.ended = true);
    }

    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Lets go of the rows; returns their bytes.
    pub(super) fn clear(&self) -> usize {
        let mut state = self.state();
        state.batches.clear();
        std::mem::take(&mut state.bytes)
    }

    pub(super) fn preview(&self) -> Option<Arc<Preview>> {
        self.state().preview.clone()
    }

    /// Something else can be shown beside the log; those who follow are woken with `alone`.
    pub(super) fn set_preview(&self, preview: Option<Preview>, alone: bool) {
        let mut state = self.state();
        let same = match (&state.preview, &preview) {
            (Some(old), Some(new)) => old.seq == new.seq && old.changes == new.changes,
            (old, new) => old.is_none() && new.is_none(),
        };
        if same {
            return;
        }
        state.preview = preview.map(Arc::new);
        drop(state);
        if alone {
            self.wake.send_modify(|woken| woken.previews += 1);
        }
    }

    pub(super) fn is_idle(&self) -> bool {
        let head = self.head();
        let state = self.state();
        // What is shown beside the log is shown to whoever comes later, too.
        let shows = state.preview.as_ref().is_some_and(|preview| preview.seq >= head);
        !state.delivering && !shows && state.next.is_empty() && state.told.elapsed() > IDLE
    }
}

/// Wakes a follower.
#[derive(Debug)]
pub struct Waker(watch::Receiver<Woken>);

impl Waker {
    /// Waits until the log has grown or is gone.
    pub async fn woken(&mut self) {
        // The sender lives in the tail, which the follower holds.
        let _ = self.0.changed().await;
    }

    /// From now on, only what is new wakes.
    pub fn settle(&mut self) {
        self.0.mark_unchanged();
    }
}
