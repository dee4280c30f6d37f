//! The `activity` view: messages for a dashboard about calls, results, output, files and progress.

use super::progress::TurnProgress;
use crate::bounded_map::BoundedMap;
use crate::model::change::Items;
use crate::model::event::{Body, Event, FileAction, ToolEvent};
use crate::model::id::EventId;
use crate::model::item::ItemBody;
use crate::model::time::Time;
use crate::model::tool::{ToolName, ToolOutput, ToolStatus};
use crate::sanitize::{Clean, Tree};
use serde::Serialize;

/// Characters of a result in its preview.
const PREVIEW_CHARS: usize = 500;
/// Bytes of an output block; a longer one is sent in several messages.
const MAX_BLOCK_BYTES: usize = crate::limits::MAX_ITEM_TEXT_BYTES;
/// Calls that are remembered.
const MAX_CALLS: usize = 1 << 13;

/// Labels of the messages, and the interval of progress messages.
#[derive(Debug, Clone)]
pub struct ActivityConfig {
    /// Work order: the label of the session, or its id.
    pub work_order_id: String,
    /// Run: the id of the session without a label.
    pub run_id: String,
    /// Milliseconds of session time between two progress messages.
    pub interval_ms: u64,
}

/// One message.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ActivityMessage {
    r#type: &'static str,
    work_order_id: String,
    run_id: String,
    /// Id of the event it comes from, and which of the messages of that event it is.
    event_id: MessageId,
    seq: u64,
    timestamp: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent_tool_call_id: Option<Clean>,
    #[serde(flatten)]
    body: ActivityPayload,
}

/// Id of a message: one event may give a call and its result, and the progress of the turn.
#[derive(Debug, Clone, Copy)]
struct MessageId(EventId, &'static str);

impl Serialize for MessageId {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(&format_args!("{}{}", self.0, self.1))
    }
}

/// Payload of a message.
#[derive(Debug, Clone, Serialize)]
#[serde(untagged)]
pub(super) enum ActivityPayload {
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

/// The view of one run. It must see each event once, in order.
#[derive(Debug)]
pub struct Activity {
    config: ActivityConfig,
    calls: BoundedMap<SentCall>,
    open_block: Option<OutputBlock>,
    progress: TurnProgress,
    /// The turn was answered, and no prompt came since.
    answered: bool,
}

#[derive(Debug, Default)]
struct SentCall {
    called: bool,
    ended: bool,
}

#[derive(Debug)]
struct OutputBlock {
    last: Event,
    text: Clean,
    thinking: bool,
}

impl Activity {
    /// The view of one run.
    pub fn new(config: ActivityConfig) -> Self {
        let progress = TurnProgress::new(config.interval_ms);
        Activity {
            config,
            calls: BoundedMap::new(MAX_CALLS),
            open_block: None,
            progress,
            answered: false,
        }
    }

    /// Continues a view; `events` are those since the start of the last turn, which were sent
    /// before.
    pub fn resume(
        config: ActivityConfig,
        items: &Items,
        events: impl IntoIterator<Item = Event>,
    ) -> Self {
        let events: Vec<Event> = events.into_iter().collect();
        let mut activity = Activity::new(config);
        activity.progress.resume(items, &events);
        let mut sent = Vec::new();
        for event in &events {
            // A call is of an earlier turn if its item is older than the first event of it here.
            if let Some(tool) = event.body.tool()
                && !activity.calls.contains_key(&tool.id)
                && items.get(&tool.id).is_some_and(|item| item.time != event.time)
            {
                activity.calls.get_or_insert_shared(&tool.id).0.called = true;
            }
            activity.push(0, event, &mut sent);
            sent.clear();
        }
        for item in items.iter() {
            if let ItemBody::ToolCall { tool_call } = &item.body {
                let status = tool_call.call.status;
                let sent = activity.calls.get_or_insert_shared(&item.id).0;
                sent.called |= status != Some(ToolStatus::Pending);
                sent.ended |= status.is_some_and(ToolStatus::is_final);
            }
        }
        activity
    }

    /// Continues from the last reported seconds of a turn. Needed where events without a time got
    /// the time of their arrival: stored events do not record their clock.
    pub fn go_on_from(&mut self, seconds: u64) {
        self.progress.continue_from(seconds);
    }

    /// Projects one event.
    pub fn push(&mut self, seq: u64, event: &Event, out: &mut Vec<ActivityMessage>) {
        let is_answer = matches!(event.body, Body::PromptResponse(_));
        // A stored event does not record whether it is the first of its call.
        let ends_text = match &event.body {
            Body::ToolCallProgress(tool) => !self.calls.contains_key(&tool.id),
            body => body.ends_text(),
        };
        if is_answer || (ends_text && !self.continues_output(event)) {
            self.close_output(seq, out);
        }
        match &event.body {
            Body::PromptResponse(_) => self.answered = true,
            Body::UserMessage(_) if event.parent.is_none() => self.answered = false,
            _ => {}
        }
        match &event.body {
            Body::TextChunk(c) | Body::ThinkingChunk(c) => {
                let thinking = matches!(event.body, Body::ThinkingChunk(_));
                let block = self.open_block.get_or_insert_with(|| OutputBlock {
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
                // Nothing need follow late text, so it is sent at once unless it ends in a blank:
                // then more words come. Blocks with an id of their own are sent in full at their
                // end.
                let expects_words =
                    block.text.ends_with([' ', '\t']) || block.text.trim().is_empty();
                let is_late = self.answered && !c.has_block_id && !expects_words;
                if c.whole || is_late || block.text.len() > MAX_BLOCK_BYTES {
                    self.close_output(seq, out);
                }
            }
            Body::ToolCallStart(tool) | Body::ToolCallProgress(tool) => {
                self.push_call(seq, event, tool, out);
            }
            Body::FileChanged(file) => {
                let body = ActivityPayload::File {
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

    /// Ends the input: sends the open text.
    pub fn finish(&mut self, seq: u64, out: &mut Vec<ActivityMessage>) {
        self.close_output(seq, out);
    }

    fn continues_output(&self, event: &Event) -> bool {
        let is_same = |b: &OutputBlock| {
            b.last.body.is_same_block(&event.body) && b.last.parent == event.parent
        };
        self.open_block.as_ref().is_some_and(is_same)
    }

    fn close_output(&mut self, seq: u64, out: &mut Vec<ActivityMessage>) {
        let Some(block) = self.open_block.take() else {
            return;
        };
        if !block.text.trim().is_empty() {
            let body = ActivityPayload::Output { content: block.text, thinking: block.thinking };
            out.push(self.message("agent_output", seq, &block.last, body));
        }
    }

    fn push_call(
        &mut self,
        seq: u64,
        event: &Event,
        tool: &ToolEvent,
        out: &mut Vec<ActivityMessage>,
    ) {
        let call = &tool.call;
        let ended = call.status.is_some_and(ToolStatus::is_final);
        let sent = self.calls.get_or_insert_shared(&tool.id).0;
        // A call starts with empty arguments: it is sent when they are there.
        let is_ready = call.status != Some(ToolStatus::Pending);
        let (send_call, send_result) = (!sent.called && is_ready, ended && !sent.ended);
        sent.called |= send_call;
        sent.ended |= send_result;
        if send_call {
            self.progress.count_call();
            let body = ActivityPayload::Call {
                tool_use_id: tool.id.clone(),
                tool: tool_label(call.tool_name),
                name: call.name.clone().unwrap_or_else(|| default_name(call.tool_name)),
                input: call.input.clone().unwrap_or_else(Tree::empty),
            };
            out.push(self.message("agent_tool_call", seq, event, body));
        }
        if send_result {
            let text = match (&call.task_output, &call.error, &call.output) {
                (Some(text), _, _) | (None, Some(text), _) => text.clone(),
                (None, None, Some(ToolOutput::Whole(text) | ToolOutput::More(text))) => {
                    text.clone()
                }
                (None, None, None) => Clean::default(),
            };
            let body = ActivityPayload::Result {
                tool_use_id: tool.id.clone(),
                success: call.status == Some(ToolStatus::Completed),
                content_preview: text.head(PREVIEW_CHARS),
                content_length: text.chars().count(),
                duration_ms: call.duration_ms,
            };
            out.push(self.message("agent_tool_result", seq, event, body));
        }
    }

    fn message(
        &self,
        kind: &'static str,
        seq: u64,
        event: &Event,
        body: ActivityPayload,
    ) -> ActivityMessage {
        let suffix = match body {
            ActivityPayload::Result { .. } => "-result",
            ActivityPayload::Progress { .. } => "-progress",
            ActivityPayload::Call { .. }
            | ActivityPayload::Output { .. }
            | ActivityPayload::File { .. } => "",
        };
        ActivityMessage {
            r#type: kind,
            work_order_id: self.config.work_order_id.clone(),
            run_id: self.config.run_id.clone(),
            event_id: MessageId(event.id, suffix),
            seq,
            timestamp: event.time.clone(),
            parent_tool_call_id: event.parent.clone(),
            body,
        }
    }
}

fn tool_label(tool: ToolName) -> &'static str {
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

fn default_name(tool: ToolName) -> Clean {
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
        tool => tool_label(tool),
    })
}
