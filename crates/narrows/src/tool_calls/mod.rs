//! Completes tool calls: packets carry only what changed, events carry what is known.
//!
//! Every event of a call has its light fields (title, status, file …). Heavy fields (arguments, output,
//! diffs) are in the event that changes them, and all of them once more in the event that ends the call.
//! So the cost of an event follows the size of its packet, and the last event stands for itself.
//!
//! Continue in `merge_call` (one update of one call) and `resume` (state from the stored items).

mod activity;
mod evicted;
mod file_changes;
mod late_updates;
mod merge_call;
mod output;
mod permission;
mod resume;
mod turn_end;

pub use activity::CallActivity;

use crate::bounded_map::BoundedMap;
use crate::limits::MAX_TRACKED_CALLS;
use crate::model::artifact;
use crate::model::event::{
    Artifact, ArtifactInfo, Body, DecisionOutcome, Event, FileAction, FileChange,
    PermissionDecision, PermissionRequest, ToolEvent,
};
use crate::model::time::Time;
use crate::model::tool::{Permission, ToolCall, ToolOutput, ToolStatus};
use crate::sanitize::Clean;
use ecow::EcoString;
use evicted::EvictedCalls;
use std::collections::{BTreeMap, VecDeque};

/// Artifacts, and edited files of a turn, that are remembered.
const MAX_ARTIFACTS: usize = 4096;
/// Bytes of heavy fields retained for one open call. A larger value is in the event that brings it
/// and not in the one that ends the call.
const MAX_HEAVY_BYTES: usize = 16 << 20;
/// Bytes of heavy fields retained for all calls of the session.
const MAX_TOTAL_HEAVY_BYTES: usize = 64 << 20;
/// Most recently updated calls that [`ToolCallTracker::take_updated`] reports.
const MAX_UPDATED_CALLS: usize = 256;

/// The tool calls of one session.
#[derive(Debug)]
pub struct ToolCallTracker {
    calls: BoundedMap<CallState>,
    /// Ids of the ended calls in `calls`, oldest first.
    ended: VecDeque<EcoString>,
    /// Summaries of the calls that left `calls`.
    evicted: EvictedCalls,
    heavy_bytes: usize,
    /// Calls that have not ended, by ordinal.
    open: BTreeMap<u64, Clean>,
    /// Calls started so far; the ordinal of the newest one.
    started: u64,
    /// Calls that were denied and have not ended.
    denied: Vec<Clean>,
    /// `started` at the end of the last turn.
    turn_start: u64,
    /// Paths for which an artifact event was emitted.
    artifacts: BoundedMap<()>,
    /// Files that calls of this turn have changed.
    edited_files: BoundedMap<()>,
    /// The turn ended with an error, and the agent produced nothing since.
    turn_failed: bool,
    /// Ended calls that retain their heavy fields for late updates, oldest first.
    resendable: VecDeque<Clean>,
    /// Calls updated since the last [`ToolCallTracker::take_updated`], oldest first.
    updated: VecDeque<Clean>,
}

#[derive(Debug, Default)]
struct CallState {
    ordinal: u64,
    parent: Option<Clean>,
    call: ToolCall,
    started_at: Option<Time>,
    /// When the pending permission request of the call came.
    permission_since: Option<Time>,
    /// `started_at` is the time of the start, not of the end.
    has_start_time: bool,
    /// The first event of the call had no time, so its item has none.
    started_at_is_late: bool,
    heavy_bytes: usize,
    /// How often the ended call can be sent again in full; 0 while it has not ended.
    resends_left: u8,
    /// Restored from its item: replayed updates are already in it.
    from_item: bool,
    /// Restored from [`EvictedCalls`]: most of its fields are lost.
    was_evicted: bool,
    /// The call is in `ToolCallTracker::updated`.
    is_updated: bool,
}

impl CallState {
    fn is_final(&self) -> bool {
        self.call.status.is_some_and(ToolStatus::is_final)
    }

    fn drop_heavy(&mut self) {
        self.call.drop_heavy();
        (self.heavy_bytes, self.resends_left) = (0, 0);
    }
}

impl Default for ToolCallTracker {
    fn default() -> Self {
        ToolCallTracker {
            calls: BoundedMap::new(MAX_TRACKED_CALLS),
            ended: VecDeque::new(),
            evicted: EvictedCalls::default(),
            heavy_bytes: 0,
            open: BTreeMap::new(),
            started: 0,
            denied: Vec::new(),
            turn_start: 0,
            artifacts: BoundedMap::new(MAX_ARTIFACTS),
            edited_files: BoundedMap::new(MAX_ARTIFACTS),
            turn_failed: false,
            resendable: VecDeque::new(),
            updated: VecDeque::new(),
        }
    }
}

impl ToolCallTracker {
    /// Completes an event and appends it to `out` with the events derived from it; drops a tool event
    /// that changes nothing.
    pub fn merge(&mut self, mut event: Event, out: &mut Vec<Event>) {
        match &mut event.body {
            Body::UserMessage(_) => {
                self.turn_failed &= event.parent.is_some();
                out.push(event);
            }
            // Text of a subagent does not continue the turn that failed.
            Body::TextChunk(chunk) | Body::ThinkingChunk(chunk) => {
                self.turn_failed &= chunk.text.is_empty() || event.parent.is_some();
                out.push(event);
            }
            Body::ToolCallStart(_) | Body::ToolCallProgress(_) => self.push_call(event, out),
            Body::PermissionRequest(request) => {
                self.describe_request(request, event.time.as_ref());
                out.push(event);
            }
            Body::PermissionAnswer(answer) => {
                let withdrawn = self.apply_decision(answer, event.time.as_ref());
                let time = event.time.clone();
                out.push(event);
                if withdrawn {
                    self.cancel_calls(false, time.as_ref(), out);
                }
            }
            Body::FileChanged(_) => self.push_file_change(event, out),
            Body::PromptResponse(response) => {
                self.edited_files = BoundedMap::new(MAX_ARTIFACTS);
                self.emit_turn_error(response, event.time.as_ref(), out);
                let cancelled = response.stop_reason.as_deref() == Some("cancelled");
                self.cancel_calls(cancelled, event.time.as_ref(), out);
                self.turn_start = self.started;
                out.push(event);
            }
            Body::Error(failure) if event.parent.is_none() => {
                let all = failure.is_end;
                self.cancel_calls(all, event.time.as_ref(), out);
                self.turn_failed = true;
                out.push(event);
            }
            _ => out.push(event),
        }
    }

    fn push_call(&mut self, mut event: Event, out: &mut Vec<Event>) {
        let (time, parent) = (event.time.clone(), event.parent.clone());
        let mut changes = Vec::new();
        let is_first = match &mut event.body {
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                if !self.merge_call(tool, time.as_ref(), parent.as_ref(), &mut changes) {
                    return;
                }
                tool.first
            }
            _ => return,
        };
        self.turn_failed &= !is_first || parent.is_some();
        // Agents may send the start twice or not at all; the log has it exactly once.
        event.body = match event.body {
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) if is_first => {
                Body::ToolCallStart(tool)
            }
            Body::ToolCallStart(tool) => Body::ToolCallProgress(tool),
            body => body,
        };
        out.push(event);
        for change in changes {
            let artifact = self.new_artifact(&change);
            self.edited_files.get_or_insert_shared(&change.path);
            let bodies = [Some(Body::FileChanged(Box::new(change))), artifact];
            out.extend(
                bodies
                    .into_iter()
                    .flatten()
                    .map(|b| Event::derived(time.clone(), parent.clone(), b)),
            );
        }
    }

    /// Adds the details of the call to a permission request.
    fn describe_request(&mut self, request: &mut PermissionRequest, time: Option<&Time>) {
        if let Some(state) = self.calls.get_mut(&request.tool_call_id) {
            request.call = Some(Box::new(state.call.for_permission()));
            request.title = permission::title(&state.call).or(request.title.take());
            state.permission_since = state.permission_since.take().or_else(|| time.cloned());
        }
    }

    /// Records a permission decision. Returns whether it withdraws a call of a turn that has ended:
    /// nothing else says that such a call will not continue.
    fn apply_decision(&mut self, answer: &mut PermissionDecision, time: Option<&Time>) -> bool {
        let Some(state) = self.calls.get_mut(&answer.tool_call_id) else { return false };
        if answer.decision != DecisionOutcome::Allowed && self.denied.len() < MAX_TRACKED_CALLS {
            self.denied.push(answer.tool_call_id.clone());
        }
        let wait = state.permission_since.take().zip(time);
        let wait_ms = wait.and_then(|(since, now)| now.since(&since));
        let earlier_ms = state.call.permission.as_ref().and_then(|p| p.waited_ms);
        answer.waited_ms = wait_ms.map(|ms| ms + earlier_ms.unwrap_or(0)).or(earlier_ms);
        state.call.permission = Some(Permission::from(&*answer));
        answer.decision == DecisionOutcome::Cancelled && state.ordinal <= self.turn_start
    }

    /// Passes a file change on unless a call of this turn has reported it: a file watcher sees the
    /// same change again.
    fn push_file_change(&mut self, event: Event, out: &mut Vec<Event>) {
        let Body::FileChanged(change) = &event.body else { return };
        if self.edited_files.remove(&change.path).is_some() {
            return;
        }
        // A change that no call made is not the agent's work: no artifact.
        let by_call = change.tool_call_id.is_some().then(|| change.clone());
        let artifact = by_call.and_then(|change| self.new_artifact(&change));
        let (time, parent) = (event.time.clone(), event.parent.clone());
        out.push(event);
        out.extend(artifact.map(|body| Event::derived(time, parent, body)));
    }

    /// The artifact event of a changed file, the first time it changes.
    fn new_artifact(&mut self, change: &FileChange) -> Option<Body> {
        if change.action == FileAction::Deleted {
            return None;
        }
        let matched = artifact::classify(change.path.as_str())?;
        let path = change.path.before(matched.end)?;
        if !self.artifacts.get_or_insert_shared(&path).1 {
            return None;
        }
        let artifact = ArtifactInfo {
            id: path.clone(),
            r#type: Clean::literal(matched.kind),
            name: path.after(matched.name)?,
            path,
            preview_url: None,
        };
        Some(Body::ArtifactCreated(Box::new(Artifact { artifact })))
    }

    /// Cancels the calls that will not continue after their turn: the denied ones, or `all` open
    /// ones when the turn was cancelled or the agent is gone.
    fn cancel_calls(&mut self, all: bool, time: Option<&Time>, out: &mut Vec<Event>) {
        let denied = std::mem::take(&mut self.denied);
        let ids = if all { self.open.values().cloned().collect() } else { denied };
        for id in ids {
            let is_open = |s: &&mut CallState| !s.is_final();
            let Some(state) = self.calls.get_mut(&id).filter(is_open) else { continue };
            let parent = state.parent.clone();
            let status = Some(ToolStatus::Cancelled);
            let tool = ToolEvent::new(id, ToolCall { status, ..ToolCall::default() });
            let body = Body::ToolCallProgress(Box::new(tool));
            self.merge(Event::derived(time.cloned(), parent, body), out);
        }
    }
}

/// Approximate bytes of the heavy fields of a call.
fn heavy_bytes(call: &ToolCall) -> usize {
    let output = match &call.output {
        Some(ToolOutput::Whole(t) | ToolOutput::More(t)) => t.len(),
        None => 0,
    };
    let text = |t: &Option<Clean>| t.as_ref().map_or(0, |t| t.len());
    let input = call.input.as_ref().map_or(0, |t| t.json().len());
    output + input + 2 * text(&call.old_content) + 2 * text(&call.new_content)
}
