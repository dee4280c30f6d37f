//! The newest rows of one session's log in memory, shared by all subscribers. Rows enter in order once
//! they are durable and are published in batches: with many subscribers, rows wait a few milliseconds
//! for more, because waking everybody costs more than the wait.

use super::batch::Batch;
use super::hub::PendingAppend;
use super::preview::Preview;
use narrows_store::{EventRow, Session};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::watch;

/// The longest time for which rows wait to be published together.
const MAX_BATCH_DELAY: Duration = Duration::from_millis(20);
/// Approximate cost of publishing to one subscriber; the batch delay grows with the subscribers.
const COST_PER_FOLLOWER: Duration = Duration::from_micros(8);
/// A shorter delay is not worth a timer.
const MIN_BATCH_DELAY: Duration = Duration::from_millis(1);
/// Memory of one tail, in bytes.
pub(super) const MAX_BYTES: usize = 8 << 20;
const MAX_BATCH_COUNT: usize = 4096;
/// A tail without subscribers or appends is dropped after this time.
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);

/// The end of one session's log.
#[derive(Debug)]
pub struct LogTail {
    session: Session,
    state: Mutex<TailState>,
    signal: watch::Sender<TailSignal>,
}

/// The state that wakes subscribers when it changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TailSignal {
    seq: u64,
    /// The source has ended.
    source_ended: bool,
    /// The session, or this epoch of it, is gone.
    deleted: bool,
    /// Grows when another preview is to be shown.
    preview_version: u64,
}

#[derive(Debug)]
struct TailState {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
    /// Durable rows of the next batch.
    unpublished: Vec<EventRow>,
    /// The seq of the last row that was passed to `publish`. The log may be known to go further.
    published: u64,
    /// Whether the source has ended with these rows.
    source_ended: bool,
    last_batch: Instant,
    timer_running: bool,
    pending: VecDeque<PendingAppend>,
    /// A task awaits the pending appends.
    awaiting: bool,
    /// A task reads what other nodes have appended, and must read once more afterwards.
    fetching: bool,
    fetch_again: bool,
    preview: Option<Arc<Preview>>,
}

/// The rows after the cursor of a subscriber.
#[derive(Debug)]
pub enum TailRead {
    /// Rows in memory.
    Batch(Arc<Batch>),
    /// Rows that must be read from the store.
    Stored,
    /// No rows yet.
    Nothing {
        /// Whether the source has ended.
        over: bool,
    },
    /// The session is gone.
    Ended,
}

impl LogTail {
    pub(super) fn new(session: &Session) -> Self {
        let state = TailState {
            batches: VecDeque::new(),
            bytes: 0,
            unpublished: Vec::new(),
            published: 0,
            source_ended: session.ended,
            last_batch: Instant::now().checked_sub(MAX_BATCH_DELAY).unwrap_or_else(Instant::now),
            timer_running: false,
            pending: VecDeque::new(),
            awaiting: false,
            fetching: false,
            fetch_again: false,
            preview: None,
        };
        let (seq, source_ended) = (session.seq, session.ended);
        let signal = TailSignal { seq, source_ended, deleted: false, preview_version: 0 };
        LogTail {
            session: session.clone(),
            state: Mutex::new(state),
            signal: watch::Sender::new(signal),
        }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// The seq at which the log ends, as far as it is known.
    pub fn head(&self) -> u64 {
        self.signal.borrow().seq
    }

    /// Wakes when the log has grown or is gone.
    pub fn waker(&self) -> TailWatcher {
        TailWatcher(self.signal.subscribe())
    }

    fn state(&self) -> MutexGuard<'_, TailState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Enqueues an append; returns whether the caller must start the task that awaits it.
    pub(super) fn enqueue(&self, append: PendingAppend) -> bool {
        let mut state = self.state();
        state.pending.push_back(append);
        !std::mem::replace(&mut state.awaiting, true)
    }

    /// Whether no append is pending.
    pub(super) fn has_no_pending(&self) -> bool {
        !self.state().awaiting
    }

    /// The next append to await; without one the task ends.
    pub(super) fn next_pending(&self) -> Option<PendingAppend> {
        let mut state = self.state();
        let next = state.pending.pop_front();
        state.awaiting = next.is_some();
        next
    }

    /// Whether the tail has subscribers.
    pub(super) fn is_followed(&self) -> bool {
        self.signal.receiver_count() > 0
    }

    /// Whether the source has ended.
    pub(super) fn has_source_ended(&self) -> bool {
        self.signal.borrow().source_ended
    }

    /// The seq of the last row that is published or waits in the next batch.
    pub(super) fn published_seq(&self) -> u64 {
        self.head().max(self.state().published)
    }

    /// Returns whether the caller is to read what other nodes have appended. Otherwise a task is reading
    /// and will read once more.
    pub(super) fn begin_fetch(&self) -> bool {
        let mut state = self.state();
        state.fetch_again = state.fetching;
        !std::mem::replace(&mut state.fetching, true)
    }

    /// Returns whether the caller is to read once more.
    pub(super) fn end_fetch(&self) -> bool {
        let mut state = self.state();
        state.fetching = std::mem::take(&mut state.fetch_again);
        state.fetching
    }

    /// Publishes durable rows, at once or with the next batch. Rows that are published already are
    /// skipped: this node may receive its own rows from other nodes.
    pub(super) fn publish(self: &Arc<Self>, mut rows: Vec<EventRow>, source_ended: bool) {
        let was_ended = self.signal.borrow().source_ended;
        let mut state = self.state();
        let published = state.published;
        if rows.first().is_some_and(|row| row.seq <= published) {
            rows.retain(|row| row.seq > published);
        }
        if rows.is_empty() && was_ended == source_ended {
            return;
        }
        // The rows of a batch have no gap.
        if !state.unpublished.is_empty() && rows.first().is_some_and(|row| row.seq != published + 1)
        {
            self.publish_batch(state);
            return self.publish(rows, source_ended);
        }
        state.published = rows.last().map_or(published, |row| row.seq);
        if self.signal.receiver_count() == 0 && state.unpublished.is_empty() {
            // Without subscribers the rows need not be in memory: a later one reads the store.
            (state.source_ended, state.bytes) = (source_ended, 0);
            state.batches.clear();
            drop(state);
            let last = rows.last().map_or(0, |row| row.seq);
            self.signal.send_modify(|signal| {
                signal.seq = signal.seq.max(last);
                signal.source_ended = source_ended;
            });
            return;
        }
        state.unpublished.extend(rows);
        state.source_ended = source_ended;
        let (since, delay) = (state.last_batch.elapsed(), self.batch_delay());
        if since >= delay {
            self.publish_batch(state);
        } else if !state.timer_running {
            state.timer_running = true;
            let tail = Arc::clone(self);
            tokio::spawn(async move {
                tokio::time::sleep(delay.saturating_sub(since)).await;
                let mut state = tail.state();
                state.timer_running = false;
                tail.publish_batch(state);
            });
        }
    }

    /// How long rows wait for more: about as long as it takes to publish to all subscribers.
    fn batch_delay(&self) -> Duration {
        let followers = u32::try_from(self.signal.receiver_count()).unwrap_or(u32::MAX);
        let cost = COST_PER_FOLLOWER.saturating_mul(followers).min(MAX_BATCH_DELAY);
        if cost < MIN_BATCH_DELAY { Duration::ZERO } else { cost }
    }

    fn publish_batch(&self, mut state: MutexGuard<'_, TailState>) {
        let rows = std::mem::take(&mut state.unpublished);
        let source_ended = state.source_ended;
        state.last_batch = Instant::now();
        let Some(batch) = Batch::new(&self.session.epoch, rows) else {
            drop(state);
            self.signal.send_modify(|signal| signal.source_ended = source_ended);
            return;
        };
        let seq = batch.last();
        // Batches are searched by seq, so they must not have gaps; the store has the older rows.
        if state.batches.back().is_some_and(|b| b.last() + 1 != batch.first()) {
            state.batches.clear();
            state.bytes = 0;
        }
        state.bytes += batch.bytes();
        state.batches.push_back(Arc::new(batch));
        while state.bytes > MAX_BYTES || state.batches.len() > MAX_BATCH_COUNT {
            let Some(oldest) = state.batches.pop_front() else { break };
            state.bytes -= oldest.bytes();
        }
        drop(state);
        self.signal.send_modify(|signal| {
            signal.seq = signal.seq.max(seq);
            signal.source_ended = source_ended;
        });
    }

    /// Reads what comes after the event `seq`.
    pub fn after(&self, seq: u64) -> TailRead {
        let TailSignal { seq: head, source_ended, deleted, .. } = *self.signal.borrow();
        if deleted {
            return TailRead::Ended;
        }
        if seq >= head {
            return TailRead::Nothing { over: source_ended };
        }
        let state = self.state();
        let at = state.batches.partition_point(|b| b.last() <= seq);
        match state.batches.get(at) {
            Some(batch) if batch.first() <= seq + 1 => TailRead::Batch(Arc::clone(batch)),
            _ => TailRead::Stored,
        }
    }

    /// Notes that the store has the log up to `head`, though the rows may not be published here yet.
    pub(super) fn advance_to(&self, head: u64) {
        self.signal.send_if_modified(|signal| {
            let grown = head > signal.seq;
            signal.seq = signal.seq.max(head);
            grown
        });
    }

    /// Ends all subscriptions: the session, or this epoch of it, is gone.
    pub(super) fn close(&self) {
        self.signal.send_modify(|signal| signal.deleted = true);
    }

    pub(super) fn bytes(&self) -> usize {
        self.state().bytes
    }

    /// Drops the rows in memory; returns their bytes.
    pub(super) fn drop_rows(&self) -> usize {
        let mut state = self.state();
        state.batches.clear();
        std::mem::take(&mut state.bytes)
    }

    pub(super) fn preview(&self) -> Option<Arc<Preview>> {
        self.state().preview.clone()
    }

    /// Replaces the preview. With `wake` subscribers are woken; without, the rows of the same append
    /// wake them.
    pub(super) fn set_preview(&self, preview: Option<Preview>, wake: bool) {
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
        if wake {
            self.signal.send_modify(|signal| signal.preview_version += 1);
        }
    }

    /// Whether the tail can be dropped. One with a current preview cannot: later subscribers see it too.
    pub(super) fn is_idle(&self) -> bool {
        let head = self.head();
        let state = self.state();
        let has_preview = state.preview.as_ref().is_some_and(|preview| preview.seq >= head);
        !state.awaiting
            && !has_preview
            && state.unpublished.is_empty()
            && state.last_batch.elapsed() > IDLE_TIMEOUT
    }
}

/// Wakes a subscriber of a log tail.
#[derive(Debug)]
pub struct TailWatcher(watch::Receiver<TailSignal>);

impl TailWatcher {
    /// Waits until the log has grown or is gone.
    pub async fn woken(&mut self) {
        // The sender lives in the tail, which the subscriber holds.
        let _ = self.0.changed().await;
    }

    /// Makes only later changes wake.
    pub(super) fn mark_seen(&mut self) {
        self.0.mark_unchanged();
    }
}
