//! What agents add to a call after they called it ended, as Codex does when it replays a session.
//!
//! The last calls that ended keep what is known of them, so that an event which comes late tells all of
//! it like the one that ended the call.

use super::{Calls, weight};
use crate::model::tool::ToolCall;
use crate::sanitize::Clean;

/// Ended calls that keep their heavy fields.
const MAX_LATE: usize = 16;
/// Bytes of these, at most, of one call.
const MAX_LATE_HELD: usize = 64 << 10;
/// How often they are told again: what comes late in many small pieces must not fill the log.
const MAX_AGAIN: u8 = 8;

/// How often all of a call that ends can be told again. A todo list that is told late could be older
/// than the one that is shown.
pub(super) fn again(call: &ToolCall) -> u8 {
    if call.is_todo {
        return 0;
    }
    let text = |t: &Option<Clean>| t.as_ref().map_or(0, |t| t.len());
    let diffs = call.diffs.iter().flatten();
    let diffs: usize = diffs.map(|d| text(&d.old_text) + text(&d.new_text) + text(&d.patch)).sum();
    let all = weight(call) + diffs + text(&call.task_output) + text(&call.error);
    if all <= MAX_LATE_HELD { MAX_AGAIN } else { 0 }
}

impl Calls {
    /// A call has ended and keeps its heavy fields; the first that did so forgets them.
    pub(super) fn keep_late(&mut self, id: &Clean) {
        self.late.push_back(id.clone());
        if self.late.len() <= MAX_LATE {
            return;
        }
        let first = self.late.pop_front();
        if let Some(state) = first.and_then(|id| self.calls.get_mut(&id)) {
            self.held -= state.held;
            state.known.drop_heavy();
            (state.held, state.again) = (0, 0);
        }
    }
}
