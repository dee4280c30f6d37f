//! Bounds on the writers in memory: idle ones are closed, and the oldest ones when there are too many.
//! A writer that holds text back is kept longer, so that its source need not send that text again.

use super::item_flush::FlushPolicy;
use super::session_writer::SessionWriter;
use super::{ANSWER_HOLD_TIMEOUT, Ingest, WriterSlot};
use std::cmp::Reverse;
use std::sync::Arc;
use std::time::Duration;

/// Writers in memory whose packets are sent by clients.
pub const MAX_WRITERS: usize = 2048;
/// Writers in memory whose packets come from files.
pub const MAX_FILE_WRITERS: usize = 128;
/// Idle writers that stay in memory because they hold text back.
pub const MAX_QUIET_WRITERS: usize = 512;
/// Bytes of these.
pub const MAX_QUIET_BYTES: usize = 64 << 20;
/// The share of writers that is evicted at once when there are too many: one in this number.
const EVICTION_SHARE: usize = 8;
/// A writer without requests for this time is closed.
const IDLE_TIMEOUT: Duration = Duration::from_mins(5);
/// A writer without requests for this time flushes the rows of its open items.
const OPEN_ITEMS_FLUSH_DELAY: Duration = Duration::from_secs(1);

impl Ingest {
    /// Flushes item rows that have waited long enough, and closes idle writers.
    pub async fn tidy(&self) {
        self.evict_idle(IDLE_TIMEOUT, (MAX_QUIET_WRITERS, MAX_QUIET_BYTES)).await;
    }

    /// Closes the writers without requests for `idle`. Of those that hold text back, up to `max_writers`
    /// of `bytes` together stay, the most recently used ones.
    pub async fn evict_idle(&self, idle: Duration, (max_writers, mut bytes): (usize, usize)) {
        let (store, hub) = (&self.inner.store, &self.inner.hub);
        let mut quiet = Vec::new();
        for (session, slot) in self.slots() {
            let since = slot.last_used.elapsed();
            let Ok(mut guard) = Arc::clone(&slot.writer).try_lock_owned() else { continue };
            if since > ANSWER_HOLD_TIMEOUT.min(idle)
                && let Some(writer) = guard.as_mut()
            {
                writer.flush_answer(store, hub).await;
            }
            let must_stay = guard.as_ref().is_some_and(SessionWriter::holds_unstored_text);
            if since > idle && !must_stay {
                self.close_writer(&mut guard, session).await;
            } else if since > OPEN_ITEMS_FLUSH_DELAY.min(idle)
                && let Some(writer) = guard.as_mut()
            {
                writer.flush_items(store, hub, FlushPolicy::All).await;
                if since > idle {
                    quiet.push((slot.last_used, session, writer.bytes()));
                }
            }
        }
        quiet.sort_unstable_by_key(|(last_used, ..)| Reverse(*last_used));
        for (at, (last_used, session, size)) in quiet.into_iter().enumerate() {
            if at < max_writers && size <= bytes {
                bytes -= size;
                continue;
            }
            bytes = 0;
            let slot = self.slot(session).filter(|slot| slot.last_used == last_used);
            let Some(slot) = slot else { continue };
            if let Ok(mut guard) = slot.writer.try_lock_owned() {
                self.close_writer(&mut guard, session).await;
            }
        }
    }

    /// Whether another writer may exceed the limit.
    pub(super) fn is_full(&self, session: i64, from_files: bool) -> bool {
        let writers = self.writers();
        writers.len() >= max_writers(from_files) && !writers.contains_key(&session)
    }

    /// Closes the least recently used writers when there are too many.
    pub(super) async fn evict_for(&self, from_files: bool) {
        let max = max_writers(from_files);
        // One request evicts; the others need not wait for it.
        let Ok(_evicting) = self.inner.eviction.try_lock() else { return };
        let mut slots = self.slots();
        slots.retain(|(_, slot)| slot.from_files == from_files);
        if slots.len() < max {
            return;
        }
        slots.sort_unstable_by_key(|(_, slot)| slot.last_used);
        let mut remaining = slots.len() - max + max / EVICTION_SHARE;
        // Writers that hold no text back first.
        for also_holding in [false, true] {
            for (session, slot) in &slots {
                if remaining == 0 {
                    return;
                }
                remaining -= usize::from(self.try_evict(*session, slot, also_holding).await);
            }
        }
    }

    /// Notes whether the packets of a session come from files.
    pub(super) fn set_from_files(&self, session: i64, from_files: bool) {
        let mut writers = self.writers();
        if let Some(slot) = writers.get_mut(&session) {
            slot.from_files = from_files;
        }
    }

    /// Closes a writer that no request uses; with `also_holding`, also one that holds text back.
    async fn try_evict(&self, session: i64, slot: &WriterSlot, also_holding: bool) -> bool {
        let Ok(mut guard) = Arc::clone(&slot.writer).try_lock_owned() else { return false };
        let holds = guard.as_ref().is_some_and(SessionWriter::holds_unstored_text);
        let unchanged = self.slot(session).is_some_and(|now| now.last_used == slot.last_used);
        if !unchanged || holds && !also_holding {
            return false;
        }
        self.close_writer(&mut guard, session).await;
        self.inner.hub.release(session);
        true
    }
}

fn max_writers(from_files: bool) -> usize {
    if from_files { MAX_FILE_WRITERS } else { MAX_WRITERS }
}
