//! Tool cards and questions for leave.

use super::Fold;
use crate::limits::OUTPUT;
use crate::model::change::{Change, Set};
use crate::model::event::{Answer, Ask, Event, ToolEvent};
use crate::model::item::{Item, ItemBody, ToolItem};
use crate::model::tool::{Output, Permission, ToolCall, ToolKind, ToolName, ToolStatus};
use crate::sanitize::Clean;
use crate::tool_calls::permission;

/// Questions that may be open at once; the oldest is dropped when there are more.
const MAX_ASKS: usize = 256;

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
    /// Says something of the call and leaves the rest.
    fn say(&self, permission: Permission) -> Set {
        let (tool_name, kind, permission) = (self.tool_name, self.kind, Some(permission));
        let call = ToolCall { tool_name, kind, permission, ..ToolCall::default() };
        Set::ToolCall(Box::new(call))
    }
}

/// A question that has not been answered.
#[derive(Debug)]
pub(super) struct OpenAsk {
    item: Clean,
    request: Clean,
    call: Clean,
}

impl Fold {
    pub(super) fn tool(&mut self, event: &Event, tool: &ToolEvent, out: &mut Vec<Change>) {
        // An agent that goes on by itself begins with a call.
        self.running(event, tool.first && self.is_after_answer(event));
        let status = tool.call.status;
        let ended = status.is_some_and(ToolStatus::is_final);
        if tool.call.is_todo && status != Some(ToolStatus::Failed) {
            // It may have looked like another tool before its arguments came.
            if self.calls.take(&tool.id).is_some() {
                out.push(Change::Remove { id: tool.id.clone() });
            }
            if let Some(todos) = &tool.call.todos {
                self.todos(event, todos.clone(), out);
            }
            return;
        }
        if tool.first || tool.call.is_todo {
            let mut call = tool.call.clone();
            call.output = call.output.map(whole);
            self.shows(&tool.id, call.output.as_ref());
            let body =
                ItemBody::ToolCall { tool_call: Box::new(ToolItem { id: tool.id.clone(), call }) };
            self.put(event, tool.id.clone(), body, out);
        } else {
            self.set_tool(tool, out);
        }
        self.plan_document(event, tool, out);
        if ended {
            self.calls.take(&tool.id);
        } else {
            let open = self.calls.open_shared(&tool.id).0;
            open.id = tool.id.clone();
            open.tool_name = tool.call.tool_name;
            open.kind = tool.call.kind;
        }
        // A call may be told to run while its agent still waits for leave (opencode).
        if ended {
            self.drop_asks(out, |ask| ask.call == tool.id);
        }
    }

    /// The document of a plan is shown beside the call that presents it.
    fn plan_document(&mut self, event: &Event, tool: &ToolEvent, out: &mut Vec<Change>) {
        let Some(content) = tool.call.plan.clone() else { return };
        let id = Clean::concat(&[&Clean::literal("plan-"), &tool.id]);
        let known = self.plans.open_shared(&tool.id).0;
        if known.as_ref() == Some(&content) {
            return;
        }
        if known.replace(content.clone()).is_some() {
            out.push(Change::Set { id, set: Set::Content(content) });
            return;
        }
        let body = ItemBody::Plan { tool_call_id: tool.id.clone(), content };
        self.put(event, id, body, out);
    }

    fn set_tool(&mut self, tool: &ToolEvent, out: &mut Vec<Change>) {
        let mut news = tool.call.diff_of(tool.fresh);
        let id = tool.id.clone();
        let mut more = None;
        if tool.fresh.has_output() {
            match (&tool.call.output, tool.grew_from) {
                (Some(Output::Whole(text)), Some(from)) => more = text.after(from),
                (Some(Output::More(text)), _) => more = Some(text.clone()),
                (output, _) => news.output.clone_from(output),
            }
        }
        self.shows(&tool.id, news.output.as_ref());
        let more = more.and_then(|text| self.fits(tool, text, &mut news));
        let cut = news.truncated.is_some();
        if !tool.fresh.without_output().is_empty() || news.output.is_some() || cut {
            out.push(Change::Set { id: id.clone(), set: Set::ToolCall(Box::new(news)) });
        }
        if let Some(text) = more {
            out.push(Change::Append { id, field: "rawOutput", text });
        }
    }

    /// Remembers how much output a call shows: it may grow.
    fn shows(&mut self, id: &Clean, output: Option<&Output>) {
        if let Some(Output::Whole(text) | Output::More(text)) = output {
            *self.outputs.open_shared(id).0 = text.len();
        }
    }

    /// What there is room for of more output. The events tell the rest, and the call says that there
    /// is more.
    fn fits(&mut self, tool: &ToolEvent, text: Clean, news: &mut ToolCall) -> Option<Clean> {
        let shown = self.outputs.open_shared(&tool.id).0;
        let room = OUTPUT.saturating_sub(*shown);
        if text.len() <= room {
            *shown += text.len();
            return Some(text);
        }
        // What comes after a cut is not shown either, however short it is.
        if std::mem::replace(shown, usize::MAX) != usize::MAX {
            news.truncated = Some(true);
        }
        text.before(text.as_str().floor_char_boundary(room)).filter(|text| !text.is_empty())
    }

    pub(super) fn ask(&mut self, event: &Event, ask: &Ask, out: &mut Vec<Change>) {
        let same = |a: &OpenAsk| a.request == ask.request_id;
        self.drop_asks(out, same);
        let item = self.name("permission", event);
        let body = ItemBody::Permission {
            request_id: ask.request_id.clone(),
            tool_call_id: ask.tool_call_id.clone(),
            title: ask.title.clone(),
            options: ask.options.clone(),
            tool_call: ask.call.as_ref().map(|call| {
                Box::new(ToolItem { id: ask.tool_call_id.clone(), call: (**call).clone() })
            }),
        };
        self.put(event, item.clone(), body, out);
        let (request, call) = (ask.request_id.clone(), ask.tool_call_id.clone());
        self.asks.push(OpenAsk { item, request, call });
        if self.asks.len() > MAX_ASKS {
            let old = self.asks.remove(0);
            out.push(Change::Remove { id: old.item });
        }
    }

    /// An answered question leaves the screen; what was decided stays on its call.
    pub(super) fn answer(&mut self, answer: &Answer, out: &mut Vec<Change>) {
        self.drop_asks(out, |ask| ask.request == answer.request_id);
        if let Some(open) = self.calls.get_mut(&answer.tool_call_id) {
            let decided = permission(answer);
            let set = open.say(decided);
            out.push(Change::Set { id: answer.tool_call_id.clone(), set });
        }
    }

    pub(super) fn drop_asks(&mut self, out: &mut Vec<Change>, gone: impl Fn(&OpenAsk) -> bool) {
        self.asks.retain(|ask| {
            let gone = gone(ask);
            if gone {
                out.push(Change::Remove { id: ask.item.clone() });
            }
            !gone
        });
    }

    pub(super) fn resume_tool(&mut self, item: &Item) {
        match &item.body {
            ItemBody::ToolCall { tool_call } => {
                let call = &tool_call.call;
                if !call.status.is_some_and(ToolStatus::is_final) {
                    let open = self.calls.open_shared(&item.id).0;
                    open.id = item.id.clone();
                    open.tool_name = call.tool_name;
                    open.kind = call.kind;
                    self.shows(&item.id, call.output.as_ref());
                    if let Some(Output::Whole(text)) = &call.output
                        && call.truncated == Some(true)
                        && text.len() + 4 > OUTPUT
                    {
                        *self.outputs.open_shared(&item.id).0 = usize::MAX;
                    }
                }
            }
            ItemBody::Plan { tool_call_id, content } => {
                *self.plans.open(tool_call_id).0 = Some(content.clone());
            }
            ItemBody::Permission { request_id, tool_call_id, .. } => self.asks.push(OpenAsk {
                item: item.id.clone(),
                request: request_id.clone(),
                call: tool_call_id.clone(),
            }),
            _ => {}
        }
    }
}

fn whole(output: Output) -> Output {
    match output {
        Output::Whole(text) | Output::More(text) => Output::Whole(text),
    }
}
