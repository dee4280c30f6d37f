//! Items of tool calls and of plan documents.

use super::Fold;
use crate::limits::MAX_ITEM_OUTPUT_BYTES;
use crate::model::change::{Change, ItemPatch};
use crate::model::event::{Event, ToolEvent};
use crate::model::item::{Item, ItemBody, ToolItem};
use crate::model::tool::{Permission, ToolCall, ToolKind, ToolName, ToolOutput, ToolStatus};
use crate::sanitize::Clean;

/// A call that has not ended.
#[derive(Debug)]
pub(super) struct OpenCall {
    id: Clean,
    tool_name: ToolName,
    kind: ToolKind,
}

impl Default for OpenCall {
    fn default() -> Self {
        let (tool_name, kind) = (ToolName::Unknown, ToolKind::Other);
        OpenCall { id: Clean::default(), tool_name, kind }
    }
}

impl OpenCall {
    /// The patch that records a permission decision and leaves the other fields.
    pub(super) fn set_permission(&self, permission: Permission) -> ItemPatch {
        let (tool_name, kind, permission) = (self.tool_name, self.kind, Some(permission));
        let call = ToolCall { tool_name, kind, permission, ..ToolCall::default() };
        ItemPatch::ToolCall(Box::new(call))
    }
}

impl Fold {
    pub(super) fn fold_call(&mut self, event: &Event, tool: &ToolEvent, out: &mut Vec<Change>) {
        // An agent that continues by itself starts with a call.
        self.mark_running(event, tool.first && self.is_past_late_window(event));
        let status = tool.call.status;
        let ended = status.is_some_and(ToolStatus::is_final);
        if tool.call.is_todo && status != Some(ToolStatus::Failed) {
            // It may have looked like another tool before its arguments came.
            if self.open_calls.remove(&tool.id).is_some() {
                out.push(Change::Remove { id: tool.id.clone() });
            }
            if let Some(todos) = &tool.call.todos {
                self.update_todos(event, todos.clone(), out);
            }
            return;
        }
        if tool.first || tool.call.is_todo {
            let mut call = tool.call.clone();
            call.output = call.output.map(into_full);
            self.note_shown_output(&tool.id, call.output.as_ref());
            let body =
                ItemBody::ToolCall { tool_call: Box::new(ToolItem { id: tool.id.clone(), call }) };
            self.put_item(event, tool.id.clone(), body, out);
        } else {
            self.update_call(tool, out);
        }
        self.fold_plan_document(event, tool, out);
        if ended {
            self.open_calls.remove(&tool.id);
            // Only its end closes the requests of a call: opencode reports a call as running while it
            // still waits for permission.
            self.close_permissions(out, |open| open.call == tool.id);
        } else {
            self.note_open_call(&tool.id, &tool.call);
        }
    }

    fn note_open_call(&mut self, id: &Clean, call: &ToolCall) {
        let open = self.open_calls.get_or_insert_shared(id).0;
        open.id = id.clone();
        open.tool_name = call.tool_name;
        open.kind = call.kind;
    }

    /// Puts or updates the document of a plan, an item next to the call that presents it.
    fn fold_plan_document(&mut self, event: &Event, tool: &ToolEvent, out: &mut Vec<Change>) {
        let Some(content) = tool.call.plan.clone() else { return };
        let id = Clean::concat(&[&Clean::literal("plan-"), &tool.id]);
        let shown = self.plans.get_or_insert_shared(&tool.id).0;
        if shown.as_ref() == Some(&content) {
            return;
        }
        if shown.replace(content.clone()).is_some() {
            out.push(Change::Set { id, set: ItemPatch::Content(content) });
            return;
        }
        let body = ItemBody::Plan { tool_call_id: tool.id.clone(), content };
        self.put_item(event, id, body, out);
    }

    fn update_call(&mut self, tool: &ToolEvent, out: &mut Vec<Change>) {
        let mut patch = tool.call.diff_of(tool.fresh);
        let id = tool.id.clone();
        let mut more = None;
        if tool.fresh.has_output() {
            match (&tool.call.output, tool.grew_from) {
                (Some(ToolOutput::Whole(text)), Some(from)) => more = text.after(from),
                (Some(ToolOutput::More(text)), _) => more = Some(text.clone()),
                (output, _) => patch.output.clone_from(output),
            }
        }
        self.note_shown_output(&tool.id, patch.output.as_ref());
        let more = more.and_then(|text| self.cut_output(tool, text, &mut patch));
        let is_cut = patch.truncated.is_some();
        if !tool.fresh.without_output().is_empty() || patch.output.is_some() || is_cut {
            out.push(Change::Set { id: id.clone(), set: ItemPatch::ToolCall(Box::new(patch)) });
        }
        if let Some(text) = more {
            out.push(Change::Append { id, field: "rawOutput", text });
        }
    }

    /// Records how many bytes of output the item of a call shows: they count against the limit.
    fn note_shown_output(&mut self, id: &Clean, output: Option<&ToolOutput>) {
        if let Some(ToolOutput::Whole(text) | ToolOutput::More(text)) = output {
            *self.shown_output.get_or_insert_shared(id).0 = text.len();
        }
    }

    /// Cuts further output to what the item has room for, and marks the call as truncated. The
    /// events have the full output.
    fn cut_output(&mut self, tool: &ToolEvent, text: Clean, patch: &mut ToolCall) -> Option<Clean> {
        let shown = self.shown_output.get_or_insert_shared(&tool.id).0;
        let room = MAX_ITEM_OUTPUT_BYTES.saturating_sub(*shown);
        if text.len() <= room {
            *shown += text.len();
            return Some(text);
        }
        // Nothing is shown after a cut, however short it is.
        if std::mem::replace(shown, usize::MAX) != usize::MAX {
            patch.truncated = Some(true);
        }
        text.before(text.as_str().floor_char_boundary(room)).filter(|text| !text.is_empty())
    }

    pub(super) fn resume_call(&mut self, item: &Item) {
        match &item.body {
            ItemBody::ToolCall { tool_call } => {
                let call = &tool_call.call;
                if !call.status.is_some_and(ToolStatus::is_final) {
                    self.note_open_call(&item.id, call);
                    self.note_shown_output(&item.id, call.output.as_ref());
                    // A truncated output this close to the limit (a character has up to 4 bytes) was
                    // cut by the fold and must not grow again.
                    if let Some(ToolOutput::Whole(text)) = &call.output
                        && call.truncated == Some(true)
                        && text.len() + 4 > MAX_ITEM_OUTPUT_BYTES
                    {
                        *self.shown_output.get_or_insert_shared(&item.id).0 = usize::MAX;
                    }
                }
            }
            ItemBody::Plan { tool_call_id, content } => {
                *self.plans.get_or_insert(tool_call_id).0 = Some(content.clone());
            }
            _ => {}
        }
    }
}

fn into_full(output: ToolOutput) -> ToolOutput {
    match output {
        ToolOutput::Whole(text) | ToolOutput::More(text) => ToolOutput::Whole(text),
    }
}
