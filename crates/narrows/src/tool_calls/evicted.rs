//! Summaries of calls that left memory: enough to recognize them when they are updated again.

use super::ToolCallTracker;
use crate::limits::{MAX_ENDED_CALLS, MAX_EVICTED_CALLS};
use crate::model::tool::{ToolCall, ToolKind, ToolName, ToolStatus};
use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};

/// A few bytes for each evicted call, by the hash of its id; the oldest is dropped first.
#[derive(Debug, Default)]
pub(super) struct EvictedCalls {
    calls: HashMap<u64, CallSummary>,
    order: VecDeque<u64>,
}

#[derive(Debug, Clone, Copy)]
struct CallSummary {
    tool_name: ToolName,
    kind: ToolKind,
    is_todo: bool,
    status: Option<ToolStatus>,
}

impl EvictedCalls {
    pub(super) fn insert(&mut self, id: &str, call: &ToolCall) {
        let ToolCall { tool_name, kind, status, is_todo, .. } = *call;
        let key = hash_of(id);
        if self.calls.insert(key, CallSummary { tool_name, kind, is_todo, status }).is_none() {
            self.order.push_back(key);
        }
        // Removed calls leave their keys in `order`, at the place of their first insertion.
        while self.order.len() > MAX_EVICTED_CALLS
            && let Some(oldest) = self.order.pop_front()
        {
            self.calls.remove(&oldest);
        }
    }

    /// Approximate bytes in memory.
    pub(super) fn weight(&self) -> usize {
        self.order.len() * 2 * (size_of::<CallSummary>() + size_of::<u64>())
    }

    pub(super) fn contains(&self, id: &str) -> bool {
        self.calls.contains_key(&hash_of(id))
    }

    /// Removes a call and returns what is known of it.
    pub(super) fn remove(&mut self, id: &str) -> Option<ToolCall> {
        let CallSummary { tool_name, kind, is_todo, status } = self.calls.remove(&hash_of(id))?;
        Some(ToolCall { tool_name, kind, status, is_todo, ..ToolCall::default() })
    }
}

impl ToolCallTracker {
    /// Number of calls whose full state is in memory.
    pub fn tracked(&self) -> usize {
        self.calls.len()
    }

    /// Evicts the oldest call if the map has no room for `id`.
    pub(super) fn evict_for(&mut self, id: &str) {
        if let Some((id, state)) = self.calls.evict_for(id) {
            self.heavy_bytes -= state.heavy_bytes;
            self.open.remove(&state.ordinal);
            self.evicted.insert(&id, &state.call);
        }
    }

    /// Evicts calls that ended before the last [`MAX_ENDED_CALLS`] ones.
    pub(super) fn evict_ended(&mut self) {
        while self.ended.len() > MAX_ENDED_CALLS
            && let Some(id) = self.ended.pop_front()
        {
            if let Some(state) = self.calls.remove(&id) {
                self.heavy_bytes -= state.heavy_bytes;
                self.evicted.insert(&id, &state.call);
            }
        }
    }
}

fn hash_of(id: &str) -> u64 {
    let mut hash = DefaultHasher::new();
    id.hash(&mut hash);
    hash.finish()
}
