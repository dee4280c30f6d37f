//! Going on after a restart: the calls, out of their items.

use super::{Calls, MAX_HELD, MAX_HELD_ALL, State, late_updates, weight};
use crate::model::change::Items;
use crate::model::event::Event;
use crate::model::item::ItemBody;
use crate::model::session::Status;
use crate::model::tool::{Permission, ToolCall, ToolKind, ToolName, ToolStatus};
use crate::sanitize::Clean;

impl Calls {
    /// The calls of a session whose items, or the last of them, are these.
    pub fn resume(items: &Items) -> Self {
        let mut calls = Calls::default();
        for item in items.iter() {
            if let ItemBody::Artifact { artifact } = &item.body {
                calls.artifacts.open_shared(&artifact.path);
            }
            let ItemBody::ToolCall { tool_call } = &item.body else { continue };
            calls.began += 1;
            let mut known = tool_call.call.clone();
            known.said = said_of(&known);
            let ended = known.status.is_some_and(ToolStatus::is_final);
            let allowed = |p: &Permission| p.decision == "allowed";
            if !ended {
                calls.open.insert(calls.began, item.id.clone());
                if !known.permission.as_ref().is_none_or(allowed) {
                    calls.refused.push(item.id.clone());
                }
            }
            let mut held = weight(&known);
            let again = if ended { late_updates::again(&known) } else { 0 };
            if (ended && again == 0) || held > MAX_HELD || calls.held + held > MAX_HELD_ALL {
                known.drop_heavy();
                held = 0;
            }
            calls.held += held;
            calls.make_room(&item.id);
            *calls.calls.open_shared(&item.id).0 = State {
                number: calls.began,
                parent: item.parent.clone(),
                known,
                began: item.time.clone(),
                asked: None,
                whole: true,
                late: false,
                held,
                again,
                resumed: true,
                brief: false,
                heard: false,
            };
            if again > 0 {
                calls.keep_late(&item.id);
            }
            if ended {
                calls.ended.push_back(item.id.shared());
                calls.forget_ended();
            }
        }
        for item in items.iter() {
            if let ItemBody::Permission { tool_call_id, .. } = &item.body
                && let Some(state) = calls.calls.get_mut(tool_call_id)
            {
                state.asked = state.asked.take().or_else(|| item.time.clone());
            }
        }
        if items.info().answered {
            calls.settled = calls.began;
        }
        let open = items.info().status == Status::Failed && !items.info().ended;
        calls.failed = open && ends_with_error(items);
        calls
    }

    /// Whether every call of the turn can be taken up again from its item: one that only writes the
    /// todo list has none, and how one that nobody knows will be known goes by all that was said.
    pub fn is_at_rest(&self) -> bool {
        let lost = |state: &State| state.known.is_todo || state.late || !is_known(&state.known);
        let mut open = self.open.range(self.settled + 1..);
        !open.any(|(_, id)| self.calls.get(id).is_some_and(lost))
    }

    /// Bytes of what is known of calls, about.
    pub(crate) fn weight(&self) -> usize {
        self.held + self.calls.len() * size_of::<State>() + self.brief.weight()
    }

    /// Takes an event that is read again: what it did to items is known, so only calls without one
    /// learn from it.
    pub(crate) fn reread(&mut self, event: Event) {
        let Some(tool) = event.body.tool() else { return };
        match self.calls.get_mut(&tool.id).filter(|state| state.resumed) {
            None if self.brief.has(&tool.id) => {}
            None => self.merge(event, &mut Vec::new()),
            // Of a call that began before anything told the time, the item does not tell it.
            Some(state) => {
                if state.began.is_none() && event.time.is_some() {
                    state.whole = !tool.call.status.is_some_and(ToolStatus::is_final);
                    state.began = event.time;
                    state.late = true;
                }
            }
        }
    }
}

/// Whether nothing was said since the turn's error.
fn ends_with_error(items: &Items) -> bool {
    let said = items.iter().filter(|item| {
        matches!(
            item.body,
            ItemBody::Error { .. }
                | ItemBody::UserMessage { .. }
                | ItemBody::Text { .. }
                | ItemBody::Thinking { .. }
                | ItemBody::ToolCall { .. }
        ) && item.parent.is_none()
    });
    let last = said.max_by_key(|item| item.order);
    last.is_some_and(|item| matches!(item.body, ItemBody::Error { .. }))
}

/// Whether it is settled which tool a call uses.
fn is_known(call: &ToolCall) -> bool {
    call.tool_name != ToolName::Unknown || call.name.is_some()
}

/// The agent's own description of a call, out of the one that was made of it.
pub(crate) fn said_of(call: &ToolCall) -> Option<Clean> {
    if call.said.is_some() {
        return call.said.clone();
    }
    let made = |d: &Clean| match (call.tool_name, call.kind) {
        (ToolName::Task, _) => *d == "Running subagent",
        (_, ToolKind::Read | ToolKind::Edit | ToolKind::Delete | ToolKind::Move) => true,
        (ToolName::Mcp, _) => {
            Some(d) == call.agent_title.as_ref() || Some(d) == call.title.as_ref()
        }
        (_, ToolKind::Execute) => *d == "Running command",
        (_, ToolKind::Search) | (ToolName::TodoWrite, _) => true,
        _ => Some(d) == call.agent_title.as_ref() || Some(d) == call.title.as_ref(),
    };
    call.description.clone().filter(|d| !d.is_empty() && !made(d))
}
