//! Going on after a restart: what the reader must remember, out of the items that it made.

use super::Acp;
use super::compaction::Compacting;
use super::rpc::Leave;
use super::tool::Known;
use crate::calls::said_of;
use crate::change::Items;
use crate::event::Origin;
use crate::item::{Item, ItemBody};

use crate::session::Status;
use crate::tool::{ToolCall, ToolName};

impl Acp {
    /// Whether nothing is half read: no character, no failure, no answer that is waited for.
    pub(in crate::adapter) fn is_at_rest(&self) -> bool {
        self.half.is_none() && !self.failing && self.waiting == 0
    }

    /// Remembers what was before the item of order `since`; what came after is read again.
    pub(in crate::adapter) fn recall(&mut self, items: &Items, since: u64) {
        let before = || items.iter().filter(|item| item.order < since);
        for item in before() {
            match &item.body {
                ItemBody::ToolCall { tool_call } => {
                    *self.calls.open(&item.id).0 = known(&tool_call.call);
                }
                ItemBody::Permission { request_id, tool_call_id, options, .. } => {
                    let options = options
                        .iter()
                        .map(|o| (o.option_id.to_string(), o.name.to_string(), o.kind.to_string()));
                    let (call, options) = (tool_call_id.to_string(), options.collect());
                    *self.leave.open(request_id).0 = Leave { call, options };
                }
                ItemBody::Compaction(summary) => {
                    if let Some(id) = &summary.id {
                        let text = summary.text.to_string();
                        *self.compacting.open(id).0 = Compacting { text, done: true, told: 0 };
                    }
                }
                _ => {}
            }
        }
        let prompt = |item: &&Item| {
            matches!(item.body, ItemBody::UserMessage { origin: Origin::Client, .. })
        };
        // After a failure, the answer to the prompt may still come.
        let info = items.info();
        if !info.answered || (info.status == Status::Failed && !info.ended) {
            self.prompted = before().filter(prompt).last().and_then(|item| item.time.clone());
        }
    }
}

fn known(call: &ToolCall) -> Known {
    let full = |text: &Option<crate::Clean>| text.as_ref().is_some_and(|t| !t.is_empty());
    Known {
        tool: Some(call.tool_name).filter(|tool| *tool != ToolName::Unknown),
        kind: Some(call.kind),
        named: full(&call.name),
        // The title stands for the path until something better comes.
        path: full(&call.file_path) && call.file_path != call.agent_title,
        searches: full(&call.pattern),
        said: said_of(call).map(|said| said.as_str().into()),
    }
}
