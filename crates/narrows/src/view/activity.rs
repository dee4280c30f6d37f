//! What an agent does, as messages for a dashboard: calls, results, output, files, progress.

use super::progress::Progress;
use crate::bounded_map::BoundedMap;
use crate::model::change::Items;
use crate::model::event::{Body, Event, FileAction, ToolEvent};
use crate::model::id::EventId;
use crate::model::item::ItemBody;
use crate::model::time::Time;
use crate::model::tool::{Output, ToolName, ToolStatus};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// Characters of a result that are shown.
const PREVIEW: usize = 500;
/// A block longer than this is told in parts.
const MAX_BLOCK: usize = crate::limits::TEXT_PART;
/// Calls that are remembered.
const MAX_CALLS: usize = 1 << 13;

/// Whose activity this is, and how often progress is told.
#[derive(Debug, Clone)]
pub struct ActivityConfig {
    /// The work order: the session's label, or its id.
    pub work_order_id: String,
    /// The run: the session's id without one.
    pub run_id: String,
    /// Milliseconds of the session's own time between two progress messages.
    pub interval_ms: u64,
}

/// One message.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Message {
    r#type: &'static str,
    work_order_id: String,
    run_id: String,
    /// The event it comes from, and which of its messages this is.
    event_id: MessageId,
    seq: u64,
    timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<Clean>,
    #[serde(flatten)]
    body: What,
}

/// An event may give several messages: a call and its result, and how far the turn is.
#[derive(Debug, Clone, Copy)]
struct MessageId(EventId, &'static str);

impl Serialize for MessageId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{}{}", self.0, self.1))
    }
}

/// What a message says.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum What {
    #[serde(rename_all = "camelCase")]
    Call {
        tool_use_id: Clean,
        tool: &'static str,
        name: Clean,
        input: Tree<Clean>,
    },
    #[serde(rename_all = "camelCase")]
    Result {
        tool_use_id: Clean,
        success: bool,
        content_preview: Clean,
        content_length: usize,
        duration_ms: Option<u64>,
    },
    Output {
        content: Clean,
        thinking: bool,
    },
    #[serde(rename_all = "camelCase")]
    File {
        path: Clean,
        action: FileAction,
        #[serde(skip_serializing_if = "Option::is_none")]
        size_bytes: Option<u64>,
    },
    #[serde(rename_all = "camelCase")]
    Progress {
        percentage: u64,
        current_phase: &'static str,
        tool_call_count: u64,
        elapsed_seconds: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        estimated_remaining_seconds: Option<u64>,
        turn: u64,
    },
}

/// The projection. It sees each event once, in order.
#[derive(Debug)]
pub struct Activity {
    config: ActivityConfig,
    calls: BoundedMap<Seen>,
    block: Option<Block>,
    progress: Progress,
    /// The turn was answered, and nobody has asked since.
    answered: bool,
}

#[derive(Debug, Default)]
struct Seen {
    called: bool,
    ended: bool,
}

#[derive(Debug)]
struct Block {
    last: Event,
    text: Clean,
    thinking: bool,
}

impl Activity {
    /// A projection for one run.
    pub fn new(config: ActivityConfig) -> Self {
        let progress = Progress::new(config.interval_ms);
        Activity {
            config,
            calls: BoundedMap::new(MAX_CALLS),
            block: None,
            progress,
            answered: false,
        }
    }

    /// A projection that goes on: `events` are those since the last turn began, which were told.
    pub fn resume(
        config: ActivityConfig,
        items: &Items,
        events: impl IntoIterator<Item = Event>,
    ) -> Self {
        let events: Vec<Event> = events.into_iter().collect();
        let mut activity = Activity::new(config);
        activity.progress.resume(items, &events);
        let mut told = Vec::new();
        for event in &events {
            // A call is of an earlier turn when its card is older than what is first heard of it.
            if let Some(tool) = event.body.tool()
                && !activity.calls.has(&tool.id)
                && items.get(&tool.id).is_some_and(|item| item.time != event.time)
            {
                activity.calls.get_or_insert_shared(&tool.id).0.called = true;
            }
            activity.push(0, event, &mut told);
            told.clear();
        }
        for item in items.iter() {
            if let ItemBody::ToolCall { tool_call } = &item.body {
                let status = tool_call.call.status;
                let seen = activity.calls.get_or_insert_shared(&item.id).0;
                seen.called |= status != Some(ToolStatus::Pending);
                seen.ended |= status.is_some_and(ToolStatus::is_final);
            }
        }
        activity
    }

    /// Goes on from the seconds that were told last of a turn whose events got the time of their arrival
    /// where they had none: kept events do not tell by which clock they are.
    pub fn go_on_from(&mut self, seconds: u64) {
        self.progress.go_on_from(seconds);
    }

    /// Projects one event.
    pub fn push(&mut self, seq: u64, event: &Event, out: &mut Vec<Message>) {
        let answered = matches!(event.body, Body::PromptResponse(_));
        // A stored event does not tell whether it is its call's first.
        let ends = match &event.body {
            Body::ToolCallProgress(tool) => !self.calls.has(&tool.id),
            body => body.ends_text(),
        };
        if answered || (ends && !self.goes_on(event)) {
            self.end_block(seq, out);
        }
        match &event.body {
            Body::PromptResponse(_) => self.answered = true,
            Body::UserMessage(_) if event.parent.is_none() => self.answered = false,
            _ => {}
        }
        match &event.body {
            Body::TextChunk(c) | Body::ThinkingChunk(c) => {
                let thinking = matches!(event.body, Body::ThinkingChunk(_));
                let block = self.block.get_or_insert_with(|| Block {
                    last: event.clone(),
                    text: Clean::default(),
                    thinking,
                });
                block.last.id = event.id;
                block.last.time.clone_from(&event.time);
                if c.whole {
                    block.text = c.text.clone();
                } else {
                    block.text.push(&c.text);
                }
                // Nothing need come after what is said late: only the rest of a line is waited for,
                // as long as words come. Blocks with an id of their own come whole in the end.
                let words = block.text.ends_with([' ', '\t']) || block.text.trim().is_empty();
                let late = self.answered && !c.keyed && !words;
                if c.whole || late || block.text.len() > MAX_BLOCK {
                    self.end_block(seq, out);
                }
            }
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                self.tool(seq, event, tool, out);
            }
            Body::FileChanged(file) => {
                let body = What::File {
                    path: file.path.clone(),
                    action: file.action,
                    size_bytes: file.size_bytes,
                };
                out.push(self.message("file_changed", seq, event, body));
            }
            _ => {}
        }
        if let Some(body) = self.progress.push(event) {
            out.push(self.message("progress_update", seq, event, body));
        }
    }

    /// The input is over: tells the text that was still open.
    pub fn finish(&mut self, seq: u64, out: &mut Vec<Message>) {
        self.end_block(seq, out);
    }

    fn goes_on(&self, event: &Event) -> bool {
        let same = |b: &Block| b.last.body.same_block(&event.body) && b.last.parent == event.parent;
        self.block.as_ref().is_some_and(same)
    }

    fn end_block(&mut self, seq: u64, out: &mut Vec<Message>) {
        let Some(block) = self.block.take() else {
            return;
        };
        if !block.text.trim().is_empty() {
            let body = What::Output { content: block.text, thinking: block.thinking };
            out.push(self.message("agent_output", seq, &block.last, body));
        }
    }

    fn tool(&mut self, seq: u64, event: &Event, tool: &ToolEvent, out: &mut Vec<Message>) {
        let call = &tool.call;
        let ended = call.status.is_some_and(ToolStatus::is_final);
        let seen = self.calls.get_or_insert_shared(&tool.id).0;
        // A call begins with empty arguments: it is told when they are there.
        let ready = call.status != Some(ToolStatus::Pending);
        let (tell_call, tell_result) = (!seen.called && ready, ended && !seen.ended);
        seen.called |= tell_call;
        seen.ended |= tell_result;
        if tell_call {
            self.progress.call();
            let body = What::Call {
                tool_use_id: tool.id.clone(),
                tool: tool_word(call.tool_name),
                name: call.name.clone().unwrap_or_else(|| own_name(call.tool_name)),
                input: call.input.clone().unwrap_or_else(Tree::empty),
            };
            out.push(self.message("agent_tool_call", seq, event, body));
        }
        if tell_result {
            let text = match (&call.task_output, &call.error, &call.output) {
                (Some(text), _, _) | (None, Some(text), _) => text.clone(),
                (None, None, Some(Output::Whole(text) | Output::More(text))) => text.clone(),
                (None, None, None) => Clean::default(),
            };
            let body = What::Result {
                tool_use_id: tool.id.clone(),
                success: call.status == Some(ToolStatus::Completed),
                content_preview: text.head(PREVIEW),
                content_length: text.chars().count(),
                duration_ms: call.duration_ms,
            };
            out.push(self.message("agent_tool_result", seq, event, body));
        }
    }

    fn message(&self, kind: &'static str, seq: u64, event: &Event, body: What) -> Message {
        let which = match body {
            What::Result { .. } => "-result",
            What::Progress { .. } => "-progress",
            What::Call { .. } | What::Output { .. } | What::File { .. } => "",
        };
        Message {
            r#type: kind,
            work_order_id: self.config.work_order_id.clone(),
            run_id: self.config.run_id.clone(),
            event_id: MessageId(event.id, which),
            seq,
            timestamp: event.time.clone(),
            parent_tool_call_id: event.parent.clone(),
            body,
        }
    }
}

fn tool_word(tool: ToolName) -> &'static str {
    match tool {
        ToolName::Read => "Read",
        ToolName::Write => "Write",
        ToolName::Edit => "Edit",
        ToolName::Bash => "Bash",
        ToolName::Grep => "Grep",
        ToolName::Glob => "Glob",
        ToolName::WebFetch => "WebFetch",
        ToolName::WebSearch => "WebSearch",
        _ => "Other",
    }
}

fn own_name(tool: ToolName) -> Clean {
    Clean::literal(match tool {
        ToolName::Task => "task",
        ToolName::TodoWrite => "todowrite",
        ToolName::ApplyPatch => "apply_patch",
        ToolName::Skill => "skill",
        ToolName::List => "list",
        ToolName::Lsp => "lsp",
        ToolName::Question => "question",
        ToolName::Notebook => "notebook",
        ToolName::PlanMode => "plan_mode",
        ToolName::Mcp => "mcp",
        ToolName::Unknown => "unknown",
        known => tool_word(known),
    })
}
