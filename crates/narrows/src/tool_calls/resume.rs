//! Restores the tracker from the items of a session, and feeds it replayed events.

use super::{
    CallState, MAX_HEAVY_BYTES, MAX_TOTAL_HEAVY_BYTES, ToolCallTracker, heavy_bytes, late_updates,
};
use crate::model::change::Items;
use crate::model::event::Event;
use crate::model::item::{Item, ItemBody};
use crate::model::session::SessionStatus;
use crate::model::tool::{Permission, ToolCall, ToolName, ToolStatus};

impl ToolCallTracker {
    /// The tracker of a session that has these items, or whose newest items these are.
    pub fn resume(items: &Items) -> Self {
        let mut calls = ToolCallTracker::default();
        for item in items.iter() {
            match &item.body {
                ItemBody::Artifact { artifact } => {
                    calls.artifacts.get_or_insert_shared(&artifact.path);
                }
                ItemBody::ToolCall { tool_call } => calls.restore(item, &tool_call.call),
                _ => {}
            }
        }
        for item in items.iter() {
            if let ItemBody::Permission { tool_call_id, .. } = &item.body
                && let Some(state) = calls.calls.get_mut(tool_call_id)
            {
                state.permission_since =
                    state.permission_since.take().or_else(|| item.time.clone());
            }
        }
        if items.info().answered {
            calls.turn_start = calls.started;
        }
        let is_open = items.info().status == SessionStatus::Failed && !items.info().ended;
        calls.turn_failed = is_open && ends_with_error(items);
        calls
    }

    fn restore(&mut self, item: &Item, call: &ToolCall) {
        self.started += 1;
        let mut call = call.clone();
        call.said = call.original_description();
        let ended = call.status.is_some_and(ToolStatus::is_final);
        let is_allowed = |p: &Permission| p.decision == "allowed";
        if !ended {
            self.open.insert(self.started, item.id.clone());
            if !call.permission.as_ref().is_none_or(is_allowed) {
                self.denied.push(item.id.clone());
            }
        }
        let mut heavy_bytes = heavy_bytes(&call);
        let resends_left = if ended { late_updates::max_resends(&call) } else { 0 };
        if (ended && resends_left == 0)
            || heavy_bytes > MAX_HEAVY_BYTES
            || self.heavy_bytes + heavy_bytes > MAX_TOTAL_HEAVY_BYTES
        {
            call.drop_heavy();
            heavy_bytes = 0;
        }
        self.heavy_bytes += heavy_bytes;
        self.evict_for(&item.id);
        *self.calls.get_or_insert_shared(&item.id).0 = CallState {
            ordinal: self.started,
            parent: item.parent.clone(),
            call,
            started_at: item.time.clone(),
            has_start_time: true,
            heavy_bytes,
            resends_left,
            from_item: true,
            ..CallState::default()
        };
        if resends_left > 0 {
            self.retain_for_resend(&item.id);
        }
        if ended {
            self.ended.push_back(item.id.shared());
            self.evict_ended();
        }
    }

    /// Whether every call of the turn can be restored from its item. Not so for a call that only
    /// writes the todo list, which has no item, for one whose start time is not in its item, and for
    /// one whose tool is unknown, which is still inferred from all of its packets.
    pub fn is_at_rest(&self) -> bool {
        let is_lost = |state: &CallState| {
            state.call.is_todo || state.started_at_is_late || !is_identified(&state.call)
        };
        let mut open = self.open.range(self.turn_start + 1..);
        !open.any(|(_, id)| self.calls.get(id).is_some_and(is_lost))
    }

    /// Approximate bytes of the tracked calls.
    pub(crate) fn weight(&self) -> usize {
        self.heavy_bytes + self.calls.len() * size_of::<CallState>() + self.evicted.weight()
    }

    /// Applies a replayed event. Its effect on items is known already, so it only changes calls that
    /// were not restored from an item.
    pub(crate) fn replay(&mut self, event: Event) {
        let Some(tool) = event.body.tool() else { return };
        match self.calls.get_mut(&tool.id).filter(|state| state.from_item) {
            None if self.evicted.contains(&tool.id) => {}
            None => self.merge(event, &mut Vec::new()),
            // The first event of the call had no time, so its item has none.
            Some(state) => {
                if state.started_at.is_none() && event.time.is_some() {
                    state.has_start_time = !tool.call.status.is_some_and(ToolStatus::is_final);
                    state.started_at = event.time;
                    state.started_at_is_late = true;
                }
            }
        }
    }
}

/// Whether the error of the turn is the last thing that the agent produced.
fn ends_with_error(items: &Items) -> bool {
    let of_turn = items.iter().filter(|item| {
        matches!(
            item.body,
            ItemBody::Error { .. }
                | ItemBody::UserMessage { .. }
                | ItemBody::Text { .. }
                | ItemBody::Thinking { .. }
                | ItemBody::ToolCall { .. }
        ) && item.parent.is_none()
    });
    let last = of_turn.max_by_key(|item| item.order);
    last.is_some_and(|item| matches!(item.body, ItemBody::Error { .. }))
}

fn is_identified(call: &ToolCall) -> bool {
    call.tool_name != ToolName::Unknown || call.name.is_some()
}
