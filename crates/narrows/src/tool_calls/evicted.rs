//! What is left of calls that ended long ago, or that were too many: enough to know them again.

use super::Calls;
use crate::limits::{ENDED_CALLS, KNOWN_CALLS};
use crate::model::tool::{ToolCall, ToolKind, ToolName, ToolStatus};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// Calls by a hash of their ids; the one that came first goes first. A few bytes each.
#[derive(Debug, Default)]
pub(super) struct Brief {
    calls: HashMap<u64, Gist>,
    order: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
struct Gist {
    tool_name: ToolName,
    kind: ToolKind,
    is_todo: bool,
    status: Option<ToolStatus>,
}

impl Brief {
    pub(super) fn put(&mut self, id: &str, call: &ToolCall) {
        let ToolCall { tool_name, kind, status, is_todo, .. } = *call;
        let key = key(id);
        if self.calls.insert(key, Gist { tool_name, kind, is_todo, status }).is_none() {
            self.order.push_back(key);
        }
        // Those that were taken out leave their names behind, in the order of their first time.
        while self.order.len() > KNOWN_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// Bytes, about.
    pub(super) fn weight(&self) -> usize {
        self.order.len() * 2 * (size_of::<Gist>() + size_of::<u64>())
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.calls.contains_key(&key(id))
    }

    /// What is known of a call, if it is one of these.
    pub(super) fn take(&mut self, id: &str) -> Option<ToolCall> {
        let Gist { tool_name, kind, is_todo, status } = self.calls.remove(&key(id))?;
        Some(ToolCall { tool_name, kind, status, is_todo, ..ToolCall::default() })
    }
}

impl Calls {
    /// How many calls are known whole.
    pub fn kept(&self) -> usize {
        self.calls.len()
    }

    /// Of the oldest call little stays when there is no room for another one.
    pub(super) fn make_room(&mut self, id: &str) {
        if let Some((id, state)) = self.calls.make_room(id) {
            self.held -= state.held;
            self.open.remove(&state.number);
            self.brief.put(&id, &state.known);
        }
    }

    /// Of calls that ended a while ago little stays.
    pub(super) fn forget_ended(&mut self) {
        while self.ended.len() > ENDED_CALLS
            && let Some(id) = self.ended.pop_front()
        {
            if let Some(state) = self.calls.take(&id) {
                self.held -= state.held;
                self.brief.put(&id, &state.known);
            }
        }
    }
}

fn key(id: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    id.hash(&mut hash);
    hash.finish()
}
