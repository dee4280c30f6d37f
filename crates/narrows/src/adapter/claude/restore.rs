//! Restores the parser's state after a restart from the items that it produced.

use super::ClaudeParser;
use super::stream_event::StreamedMessage;
use super::tool_use::{ToolUseState, truncate};
use crate::model::change::Items;
use crate::model::event::{PermissionOption, SessionUpdate};
use crate::model::item::ItemBody;
use crate::model::session::SessionInfo;
use crate::model::tool::{ToolCall, ToolName, ToolOutput, ToolStatus};
use crate::sanitize::{Clean, Raw};
use std::collections::HashSet;

impl ClaudeParser {
    /// Whether no message, form, compaction or subagent among the session's own records is open, and
    /// no started turn awaits its prompt.
    pub(super) fn has_no_open_state(&self) -> bool {
        let awaits_prompt = self.turn_started && self.is_before_2_1();
        !awaits_prompt
            && !self.message_open
            && self.open_forms == 0
            && self.compaction.is_none()
            && self.held_text.is_none()
            && self.calls_matched_by_prompt.is_empty()
            && self.streamed_messages.iter().all(StreamedMessage::is_done)
    }

    /// Restores the state before the item of order `since`; the packets after it are parsed again.
    pub(super) fn restore_from_items(&mut self, items: &Items, since: u64) {
        self.info = restored_info(items.info());
        self.has_user_title = items.info().named;
        self.usage.restore(items.info());
        let parents: HashSet<&str> = items.iter().filter_map(|i| i.parent.as_deref()).collect();
        self.truncation.restore(items);
        for item in items.iter() {
            if let Some(parent) = &item.parent {
                self.sidechain_call = Some(parent.to_string());
                self.has_own_record = true;
            }
            match &item.body {
                ItemBody::Text { block_id: Some(block), .. }
                | ItemBody::Thinking { block_id: Some(block), .. } => {
                    self.blocks.restore(block);
                }
                ItemBody::ToolCall { tool_call } if item.order < since => {
                    let (id, call) = (&item.id, &tool_call.call);
                    *self.tool_uses.get_or_insert(id).0 = restored_tool_use(call);
                    if let Some(agent) = &call.child_session_id {
                        *self.subagent_calls.get_or_insert(agent).0 = id.to_string();
                    }
                    let is_open = !call.status.is_some_and(ToolStatus::is_final);
                    if let Some(ToolOutput::Whole(prompt)) = &call.output
                        && call.tool_name == ToolName::Task
                        && is_open
                        && !parents.contains(id.as_str())
                    {
                        self.tasks.add_prompt(prompt, id);
                    }
                }
                ItemBody::TodoList { todo_list } => self.tasks.restore(&todo_list.todos),
                ItemBody::BackgroundTask(task) => self.tasks.add_background(&task.task_id),
                ItemBody::Permission { request_id, tool_call_id, options, .. } => {
                    let option =
                        |o: &PermissionOption| (o.option_id.to_string(), o.name.to_string());
                    let request = self.control_requests.get_or_insert(request_id).0;
                    request.call_id = tool_call_id.to_string();
                    request.options = options.iter().map(option).collect();
                }
                ItemBody::Question {
                    request_id: Some(request_id),
                    tool_call_id,
                    answers: None,
                    ..
                } if !tool_call_id.starts_with("elicitation-") => {
                    self.control_requests.get_or_insert(request_id).0.call_id =
                        tool_call_id.to_string();
                }
                _ => {}
            }
        }
    }
}

fn restored_info(info: &SessionInfo) -> SessionUpdate<Raw> {
    let raw = |text: &Option<Clean>| text.as_ref().map(|t| Raw::new(t.as_str()));
    SessionUpdate {
        agent: raw(&info.agent),
        version: raw(&info.version),
        model: raw(&info.model),
        mode: raw(&info.mode),
        title: raw(&info.title),
        cwd: raw(&info.cwd),
        native_id: raw(&info.native_id),
        ..SessionUpdate::default()
    }
}

fn restored_tool_use(call: &ToolCall) -> ToolUseState {
    ToolUseState {
        name: call.name.as_deref().unwrap_or_default().into(),
        tool: Some(call.tool_name).filter(|tool| *tool != ToolName::Unknown),
        description: call.original_description().map(|text| truncate(&text).into()),
        task_change: None,
    }
}
