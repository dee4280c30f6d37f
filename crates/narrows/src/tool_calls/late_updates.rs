//! Updates that agents add to a call after its end, as Codex does when it replays a session.
//!
//! The calls that ended last retain their heavy fields, so that a late event carries all of the call,
//! like the event that ended it.

use super::{ToolCallTracker, heavy_bytes};
use crate::model::tool::ToolCall;
use crate::sanitize::Clean;

/// Ended calls that retain their heavy fields.
const MAX_RESENDABLE_CALLS: usize = 16;
/// Bytes of heavy fields of one such call.
const MAX_RESENDABLE_BYTES: usize = 64 << 10;
/// Full events of one call after its end: many small late updates must not fill the log.
const MAX_RESENDS: u8 = 8;

/// How often an ended call can be sent again in full. Never for a todo list: a late one could be older
/// than the one that is shown.
pub(super) fn max_resends(call: &ToolCall) -> u8 {
    if call.is_todo {
        return 0;
    }
    let text = |t: &Option<Clean>| t.as_ref().map_or(0, |t| t.len());
    let diffs = call.diffs.iter().flatten();
    let diffs: usize = diffs.map(|d| text(&d.old_text) + text(&d.new_text) + text(&d.patch)).sum();
    let all = heavy_bytes(call) + diffs + text(&call.task_output) + text(&call.error);
    if all <= MAX_RESENDABLE_BYTES { MAX_RESENDS } else { 0 }
}

impl ToolCallTracker {
    /// Retains the heavy fields of an ended call, and drops those of the oldest one.
    pub(super) fn retain_for_resend(&mut self, id: &Clean) {
        self.resendable.push_back(id.clone());
        if self.resendable.len() <= MAX_RESENDABLE_CALLS {
            return;
        }
        let oldest = self.resendable.pop_front();
        if let Some(state) = oldest.and_then(|id| self.calls.get_mut(&id)) {
            self.heavy_bytes -= state.heavy_bytes;
            state.drop_heavy();
        }
    }
}
