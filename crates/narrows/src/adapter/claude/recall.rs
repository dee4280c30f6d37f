//! Going on after a restart: what the reader must remember, out of the items that it made.

use super::Claude;
use super::call::{Known, short};
use super::partial::Partial;
use crate::calls::said_of;
use crate::change::Items;
use crate::event::{Choice, Info};
use crate::item::ItemBody;
use crate::sanitize::{Clean, Raw};
use crate::session::SessionInfo;
use crate::tool::{Output, ToolCall, ToolName, ToolStatus};
use std::collections::HashSet;

impl Claude {
    /// Whether nothing is half read: no message, no form, no compaction, no subagent among the
    /// session's own records, no beginning of a turn whose prompt is still to come.
    pub(in crate::adapter) fn is_at_rest(&self) -> bool {
        let begins = self.begins && self.is_old();
        !begins
            && !self.speaking
            && self.waiting == 0
            && self.compaction.is_none()
            && self.doubt.is_none()
            && self.guessed.is_empty()
            && self.partials.iter().all(Partial::is_done)
    }

    /// What was read before has been read again.
    pub(in crate::adapter) fn caught_up(&mut self) {
        self.blocks.caught_up();
    }

    /// Remembers what was before the item of order `since`; what came after is read again.
    pub(in crate::adapter) fn recall(&mut self, items: &Items, since: u64) {
        self.info = known_info(items.info());
        self.named = items.info().named;
        self.usage.recall(items.info());
        let parents: HashSet<&str> = items.iter().filter_map(|i| i.parent.as_deref()).collect();
        self.cut.recall(items);
        for item in items.iter() {
            if let Some(parent) = &item.parent {
                self.side = Some(parent.to_string());
                self.own = true;
            }
            match &item.body {
                ItemBody::Text { block_id: Some(block), .. }
                | ItemBody::Thinking { block_id: Some(block), .. } => {
                    self.blocks.recall(block);
                }
                ItemBody::ToolCall { tool_call } if item.order < since => {
                    let (id, call) = (&item.id, &tool_call.call);
                    *self.calls.open(id).0 = known_call(call);
                    if let Some(agent) = &call.child_session_id {
                        *self.agents.open(agent).0 = id.to_string();
                    }
                    let open = !call.status.is_some_and(ToolStatus::is_final);
                    if let Some(Output::Whole(prompt)) = &call.output
                        && call.tool_name == ToolName::Task
                        && open
                        && !parents.contains(id.as_str())
                    {
                        self.tasks.ask(prompt, id);
                    }
                }
                ItemBody::TodoList { todo_list } => self.tasks.recall(&todo_list.todos),
                ItemBody::BackgroundTask(task) => self.tasks.began(&task.task_id),
                ItemBody::Permission { request_id, tool_call_id, options, .. } => {
                    let option = |o: &Choice| (o.option_id.to_string(), o.name.to_string());
                    let request = self.requests.open(request_id).0;
                    request.call = tool_call_id.to_string();
                    request.options = options.iter().map(option).collect();
                }
                ItemBody::Question {
                    request_id: Some(request_id),
                    tool_call_id,
                    answers: None,
                    ..
                } if !tool_call_id.starts_with("elicitation-") => {
                    self.requests.open(request_id).0.call = tool_call_id.to_string();
                }
                _ => {}
            }
        }
    }
}

fn known_info(info: &SessionInfo) -> Info<Raw> {
    let raw = |text: &Option<Clean>| text.as_ref().map(|t| Raw::new(t.as_str()));
    Info {
        agent: raw(&info.agent),
        version: raw(&info.version),
        model: raw(&info.model),
        mode: raw(&info.mode),
        title: raw(&info.title),
        cwd: raw(&info.cwd),
        native_id: raw(&info.native_id),
        ..Info::default()
    }
}

fn known_call(call: &ToolCall) -> Known {
    Known {
        name: call.name.as_deref().unwrap_or_default().into(),
        tool: Some(call.tool_name).filter(|tool| *tool != ToolName::Unknown),
        description: said_of(call).map(|said| short(&said).into()),
        task: None,
    }
}
