//! Merges one update into the state of its call, and fills the event with what is known.

use super::file_changes::file_changes;
use super::{
    CallState, MAX_HEAVY_BYTES, MAX_TOTAL_HEAVY_BYTES, MAX_UPDATED_CALLS, ToolCallTracker,
    heavy_bytes, late_updates, output, permission,
};
use crate::model::event::{FileChange, ToolEvent};
use crate::model::time::Time;
use crate::model::tool::{
    ChangedFields, Diff, ToolCall, ToolKind, ToolName, ToolOutput, ToolStatus,
};
use crate::sanitize::Clean;

impl ToolCallTracker {
    /// Merges a tool event and fills it with what is known of the call; `edits` gets the files that
    /// the call changed. Returns false if the event changes nothing.
    pub(super) fn merge_call(
        &mut self,
        tool: &mut ToolEvent,
        time: Option<&Time>,
        parent: Option<&Clean>,
        edits: &mut Vec<FileChange>,
    ) -> bool {
        self.evict_for(&tool.id);
        let (state, is_new) = self.calls.get_or_insert_shared(&tool.id);
        if !std::mem::replace(&mut state.is_updated, true) {
            self.updated.push_back(tool.id.clone());
            self.updated.drain(..self.updated.len().saturating_sub(MAX_UPDATED_CALLS));
        }
        if is_new && let Some(call) = self.evicted.remove(&tool.id) {
            (state.call, state.was_evicted) = (call, true);
        }
        let is_first = is_new && !state.was_evicted;
        let was_final = state.is_final();
        let mut update = std::mem::take(&mut tool.call);
        if tool.repeats {
            permission::drop_repeated(&state.call, &mut update);
        }
        let mut changed = state.adopt_tool(&update);
        if is_first {
            self.started += 1;
            state.ordinal = self.started;
            state.parent = parent.cloned();
            self.open.insert(state.ordinal, tool.id.clone());
            state.call.command = Some(Clean::default());
            state.call.file_path = Some(Clean::default());
            state.call.output = Some(ToolOutput::Whole(Clean::default()));
        }
        state.note_start(&update, time, is_first, was_final);
        let output_from = state.merge_update(update, &mut changed);
        let ended = !was_final && state.is_final();
        if ended {
            self.open.remove(&state.ordinal);
            let duration_ms = state.duration_ms(time, is_first);
            changed =
                changed.union(state.call.merge(ToolCall { duration_ms, ..ToolCall::default() }));
            if state.call.status == Some(ToolStatus::Completed) {
                file_changes(&tool.id, &state.call, edits);
            }
        }
        if state.call.status == Some(ToolStatus::Completed) {
            changed = changed.union(state.call.merge(with_line_counts(&state.call)));
        }
        if !state.was_evicted {
            changed = changed.union(state.call.merge(state.call.derived_labels()));
        }
        if ended || is_new && state.is_final() {
            self.ended.push_back(tool.id.shared());
        }
        if changed.is_empty() && !is_first {
            return false;
        }
        let resend = was_final && state.resends_left > 0;
        tool.call = if ended {
            state.last_call()
        } else if is_first || resend {
            state.resends_left = state.resends_left.saturating_sub(1);
            state.call.clone()
        } else {
            let mut call = state.call.light_and(changed);
            if changed.has_output() {
                call.output = output::take_delta(&mut state.call, output_from);
            }
            call
        };
        tool.fresh = changed;
        tool.grew_from = output_from;
        tool.first = is_first;

        self.heavy_bytes -= state.heavy_bytes;
        state.heavy_bytes = heavy_bytes(&state.call);
        if resend && late_updates::max_resends(&state.call) == 0 {
            state.resends_left = 0;
        }
        let is_over = (ended || was_final) && state.resends_left == 0;
        if is_over
            || state.heavy_bytes > MAX_HEAVY_BYTES
            || self.heavy_bytes + state.heavy_bytes > MAX_TOTAL_HEAVY_BYTES
        {
            state.drop_heavy();
        }
        self.heavy_bytes += state.heavy_bytes;
        if ended && state.resends_left > 0 {
            self.retain_for_resend(&tool.id);
        }
        self.evict_ended();
        true
    }
}

impl CallState {
    /// Takes over the tool of an update while the tool is unknown.
    fn adopt_tool(&mut self, update: &ToolCall) -> ChangedFields {
        let call = &mut self.call;
        let mut changed = ChangedFields::default();
        if call.tool_name == ToolName::Unknown
            && (call.tool_name, call.kind) != (update.tool_name, update.kind)
            && (update.tool_name != ToolName::Unknown || call.kind == ToolKind::Other)
        {
            call.tool_name = update.tool_name;
            call.kind = update.kind;
            call.is_todo = update.is_todo;
            changed.mark_tool();
        }
        changed
    }

    /// Records when the call started. Its name may come before any packet that has a time.
    fn note_start(
        &mut self,
        update: &ToolCall,
        time: Option<&Time>,
        is_first: bool,
        was_final: bool,
    ) {
        if self.started_at.is_none() && !was_final {
            self.started_at = time.cloned();
            self.has_start_time = is_first || !update.status.is_some_and(ToolStatus::is_final);
            self.started_at_is_late = !is_first && self.started_at.is_some();
        }
    }

    /// Merges the fields of an update. Returns where the new part of the output starts if the output
    /// only grew.
    fn merge_update(&mut self, mut update: ToolCall, changed: &mut ChangedFields) -> Option<usize> {
        let call = &mut self.call;
        update.status = next_status(call.status, update.status);
        output::derive_edit_texts(call, &mut update);
        // A result repeats the decision, but not the label of the chosen option.
        if let (Some(old), Some(new)) = (&call.permission, &mut update.permission)
            && new.option.is_none()
            && new.decision == old.decision
        {
            new.clone_from(old);
        }
        let output_from = output::merge_output(call, update.output.take(), changed);
        *changed = changed.union(call.merge(update));
        if call.exit_code.is_some_and(|code| code != 0)
            && call.kind == ToolKind::Execute
            && call.status == Some(ToolStatus::Completed)
        {
            let status = Some(ToolStatus::Failed);
            *changed = changed.union(call.merge(ToolCall { status, ..ToolCall::default() }));
        }
        output_from
    }

    /// How long the call ran, without the time it waited for permission. The duration is unknown if
    /// only the end of the call was seen.
    fn duration_ms(&mut self, time: Option<&Time>, is_first: bool) -> Option<u64> {
        let mut waited_ms = self.call.permission.as_ref().and_then(|p| p.waited_ms).unwrap_or(0);
        if let Some((since, end)) = self.permission_since.take().zip(time) {
            waited_ms += end.since(&since).unwrap_or(0);
        }
        time.filter(|_| !is_first && self.has_start_time && !self.was_evicted)
            .zip(self.started_at.as_ref())
            .and_then(|(end, start)| end.since(start))
            .map(|ms| ms.saturating_sub(waited_ms))
    }

    /// The call as its last event has it: everything that was retained for this moment.
    fn last_call(&mut self) -> ToolCall {
        self.resends_left = late_updates::max_resends(&self.call);
        let mut last = if self.resends_left > 0 {
            self.call.clone()
        } else {
            let light = self.call.light_and(ChangedFields::default());
            std::mem::replace(&mut self.call, light)
        };
        // Output that was too long to retain was in earlier events: nothing more of it comes.
        last.output.get_or_insert_with(|| ToolOutput::More(Clean::default()));
        last
    }
}

/// The status that an update sets: a status only moves forward, and a call without one is pending.
fn next_status(old: Option<ToolStatus>, new: Option<ToolStatus>) -> Option<ToolStatus> {
    match (old, new) {
        (None, None) => Some(ToolStatus::Pending),
        (Some(old), Some(new)) if new.rank() <= old.rank() => None,
        (_, new) => new,
    }
}

/// The changed lines of a finished edit, where the agent does not count them: a client may have only
/// a part of the texts.
fn with_line_counts(call: &ToolCall) -> ToolCall {
    let count = |diff: &Diff| {
        let (added, removed) = diff.changed_lines();
        Diff { additions: Some(added), deletions: Some(removed), ..diff.clone() }
    };
    let is_uncounted = |d: &Diff| d.additions.is_none() || d.deletions.is_none();
    let diffs = call.diffs.as_ref().filter(|all| all.iter().any(is_uncounted));
    ToolCall { diffs: diffs.map(|all| all.iter().map(count).collect()), ..ToolCall::default() }
}
