//! Turns that fail: each has exactly one error event, whichever packet carries it.

use super::ToolCallTracker;
use crate::model::event::{Body, ErrorEvent, Event, TurnEnd};
use crate::model::time::Time;
use crate::sanitize::Clean;

impl ToolCallTracker {
    /// Emits the error of a turn that only its end carries, before that end; drops an error that was
    /// emitted already.
    pub(super) fn emit_turn_error(
        &mut self,
        response: &mut TurnEnd<Clean>,
        time: Option<&Time>,
        out: &mut Vec<Event>,
    ) {
        if let Some(message) = response.error.take().filter(|_| !self.turn_failed) {
            let (code, details, retryable) = (None, None, None);
            let failure = ErrorEvent { message, code, details, retryable, is_end: false };
            let body = Body::Error(Box::new(failure));
            self.merge(Event::derived(time.cloned(), None, body), out);
        }
        response.failed = std::mem::take(&mut self.turn_failed);
    }
}
