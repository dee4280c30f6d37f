//! Room for sessions in memory: however many are written, a bounded number of pipelines is kept.

use super::{Intake, Slot};
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};

/// Sessions in memory that are sent by somebody, and those that are read from files.
pub const MAX_LIVE: usize = 2048;
pub const MAX_FILES: usize = 128;
/// When there are more, so many of them are let go at once: those that were written longest ago.
const AT_ONCE: usize = 8;

impl Intake {
    /// Whether there may be too many sessions in memory for another one.
    pub(super) fn is_full(&self, session: i64, placed: bool) -> bool {
        let live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.len() >= most(placed) && !live.contains_key(&session)
    }

    /// Lets go of sessions, when there are too many in memory.
    pub(super) async fn make_room(&self, placed: bool) {
        let most = most(placed);
        // One at a time does; the others need not wait for it.
        let Ok(_room) = self.inner.room.try_lock() else { return };
        let mut slots = self.slots();
        slots.retain(|(_, slot)| slot.placed == placed);
        if slots.len() < most {
            return;
        }
        slots.sort_unstable_by_key(|(_, slot)| slot.used);
        let mut left = slots.len() - most + most / AT_ONCE;
        // Those first of which nothing is held back.
        for any in [false, true] {
            for (session, slot) in &slots {
                if left == 0 {
                    return;
                }
                left -= usize::from(self.let_go(*session, slot, any).await);
            }
        }
    }

    /// Remembers whether a session is read from files.
    pub(super) fn place(&self, session: i64, placed: bool) {
        let mut live = self.inner.live.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = live.get_mut(&session) {
            slot.placed = placed;
        }
    }

    /// Lets go of a session that nobody has; with `any`, also of one of which something is held back.
    async fn let_go(&self, session: i64, slot: &Slot, any: bool) -> bool {
        let Ok(mut held) = Arc::clone(&slot.gate).try_lock_owned() else { return false };
        let waits = held.as_ref().is_some_and(|live| {
            !live.placed && !live.broken.load(Ordering::Relaxed) && !live.is_at_rest()
        });
        let known = self.slot(session).is_some_and(|now| now.used == slot.used);
        if !known || waits && !any {
            return false;
        }
        self.rest(&mut held, session).await;
        self.inner.hub.release(session);
        true
    }
}

/// How many sessions there may be.
fn most(placed: bool) -> usize {
    if placed { MAX_FILES } else { MAX_LIVE }
}
