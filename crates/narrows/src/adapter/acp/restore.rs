//! Restores the parser's state after a restart from the items that it produced.

use super::AcpParser;
use super::compaction::CompactionState;
use super::permission::{OfferedOption, PendingPermission};
use super::tool_call::ToolIdentity;
use crate::model::change::Items;
use crate::model::event::{PermissionOption, PromptOrigin};
use crate::model::item::{Item, ItemBody};
use crate::model::session::SessionStatus;
use crate::model::tool::{ToolCall, ToolName};
use crate::sanitize::Clean;

impl AcpParser {
    /// Whether no character, failure or request is open.
    pub(super) fn has_no_open_state(&self) -> bool {
        self.pending_surrogate.is_none() && !self.codex_failing && self.open_requests == 0
    }

    /// Restores the state before the item of order `since`; the packets after it are parsed again.
    pub(super) fn restore_from_items(&mut self, items: &Items, since: u64) {
        let before = || items.iter().filter(|item| item.order < since);
        for item in before() {
            match &item.body {
                ItemBody::ToolCall { tool_call } => {
                    *self.tool_calls.get_or_insert(&item.id).0 = tool_identity(&tool_call.call);
                }
                ItemBody::Permission { request_id, tool_call_id, options, .. } => {
                    let option = |o: &PermissionOption| OfferedOption {
                        id: o.option_id.to_string(),
                        name: o.name.to_string(),
                        kind: o.kind.to_string(),
                    };
                    *self.permissions.get_or_insert(request_id).0 = PendingPermission {
                        call_id: tool_call_id.to_string(),
                        options: options.iter().map(option).collect(),
                    };
                }
                ItemBody::Compaction(summary) => {
                    if let Some(id) = &summary.id {
                        let text = summary.text.to_string();
                        *self.compactions.get_or_insert(id).0 =
                            CompactionState { text, done: true, emitted: 0 };
                    }
                }
                _ => {}
            }
        }
        let is_prompt = |item: &&Item| {
            matches!(item.body, ItemBody::UserMessage { origin: PromptOrigin::Client, .. })
        };
        // After a failure, the response to the prompt may still arrive.
        let info = items.info();
        if !info.answered || (info.status == SessionStatus::Failed && !info.ended) {
            self.has_restored_prompt = before().any(|item| is_prompt(&item));
            self.prompt_time = before().filter(is_prompt).last().and_then(|item| item.time.clone());
        }
    }
}

fn tool_identity(call: &ToolCall) -> ToolIdentity {
    let is_set = |text: &Option<Clean>| text.as_ref().is_some_and(|t| !t.is_empty());
    ToolIdentity {
        tool: Some(call.tool_name).filter(|tool| *tool != ToolName::Unknown),
        kind: Some(call.kind),
        has_name: is_set(&call.name),
        // The title is used as the path until a better one arrives.
        has_path: is_set(&call.file_path) && call.file_path != call.agent_title,
        has_pattern: is_set(&call.pattern),
        description: call.original_description().map(|text| text.as_str().into()),
    }
}
