//! Streamed messages: chunks of blocks, which the complete block replaces.

use super::record::ClaudeRecord;
use super::{ClaudeParser, unknown};
use crate::adapter::output::AdapterOutput;
use crate::json::Json;
use crate::model::event::{Body, TextChunk, ToolEvent};
use crate::model::tool::{ChangedFields, ToolCall, ToolStatus};
use crate::sanitize::Raw;

/// The number of messages that may stream at once.
const MAX_STREAMS: usize = 64;
/// The number of blocks of one message that are tracked.
const MAX_BLOCKS: usize = 1024;

/// A message that is being streamed.
#[derive(Debug)]
pub(super) struct StreamedMessage {
    parent: Option<Raw>,
    message: String,
    blocks: Vec<StreamedBlock>,
    /// Its `message_stop` arrived.
    is_stopped: bool,
}

impl StreamedMessage {
    /// Whether it was emitted completely and nothing of it can be withdrawn.
    pub(super) fn is_done(&self) -> bool {
        self.is_stopped && self.blocks.iter().all(|b| b.is_complete || !b.is_emitted)
    }
}

#[derive(Debug)]
struct StreamedBlock {
    index: u32,
    kind: &'static str,
    /// A chunk of it was emitted.
    is_emitted: bool,
    /// Its complete text arrived.
    is_complete: bool,
}

impl ClaudeParser {
    pub(super) fn stream_event(
        &mut self,
        r: &ClaudeRecord<'_>,
        parent: Option<&Raw>,
        out: &mut AdapterOutput,
    ) {
        let Some(event) = r.event else {
            out.ignore();
            return;
        };
        // Versions before 2.1 emit the prompt after the chunks of its answer: the chunks are dropped.
        if self.turn_started && self.is_before_2_1() {
            self.streamed_messages.retain(|p| p.parent.as_ref() != parent);
            out.ignore();
            return;
        }
        let kind = event.text("type").unwrap_or_default();
        match &*kind {
            "message_start" => {
                let id = event.path(&["message", "id"]).and_then(Json::owned).unwrap_or_default();
                self.withdraw_streamed(&id, parent, out);
                self.streamed_messages.retain(|p| p.parent.as_ref() != parent);
                if self.streamed_messages.len() >= MAX_STREAMS {
                    self.streamed_messages.remove(0);
                }
                let parent = parent.cloned();
                self.streamed_messages.push(StreamedMessage {
                    parent,
                    message: id,
                    blocks: Vec::new(),
                    is_stopped: false,
                });
            }
            "content_block_start" => self.block_start(event, parent, out),
            "content_block_delta" => self.block_delta(event, parent, out),
            "message_delta" => {
                let message = self.streamed_message(parent).map(|p| p.message.clone());
                if let Some(message) = message {
                    self.message_usage(&message, (None, None), event.get("usage"), parent, out);
                    let reason = event.get("delta").and_then(|d| d.get("stop_reason"));
                    self.check_truncation(&message, reason, parent, out);
                }
            }
            "message_stop" => {
                self.message_open = false;
                if let Some(message) = self.streamed_message(parent) {
                    message.is_stopped = true;
                }
                out.ignore();
            }
            "content_block_stop" | "ping" => out.ignore(),
            _ => unknown(&format!("stream_event:{kind}"), event, out),
        }
    }

    fn streamed_message(&mut self, parent: Option<&Raw>) -> Option<&mut StreamedMessage> {
        self.streamed_messages.iter_mut().find(|p| p.parent.as_ref() == parent)
    }

    /// Withdraws the incomplete blocks of the last message when another one starts: the model repeats
    /// them.
    fn withdraw_streamed(&mut self, next: &str, parent: Option<&Raw>, out: &mut AdapterOutput) {
        let Some(message) = self.streamed_message(parent).filter(|p| p.message != next) else {
            return;
        };
        let is_incomplete =
            |b: &&StreamedBlock| b.is_emitted && !b.is_complete && b.kind != "tool_use";
        for block in message.blocks.iter().filter(is_incomplete) {
            let id = format!("{}:{}", message.message, block.index);
            let chunk = TextChunk {
                block_id: Some(Raw::new(id)),
                whole: true,
                has_block_id: true,
                ..TextChunk::default()
            };
            out.push_in(parent.cloned(), text_body(block.kind, chunk));
        }
    }

    fn block_start(&mut self, event: Json<'_>, parent: Option<&Raw>, out: &mut AdapterOutput) {
        let index = event.get("index").and_then(Json::u64).unwrap_or(0) as u32;
        let block = event.get("content_block");
        let kind = block.and_then(|b| b.text("type"));
        let kind = match kind.as_deref() {
            Some("text") => "text",
            Some("thinking" | "redacted_thinking") => "thinking",
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => "tool_use",
            _ => {
                out.ignore();
                return;
            }
        };
        let Some(message) = self.streamed_message(parent) else {
            out.ignore();
            return;
        };
        if message.blocks.len() < MAX_BLOCKS && message.blocks.iter().all(|b| b.index != index) {
            let block = StreamedBlock { index, kind, is_emitted: false, is_complete: false };
            message.blocks.push(block);
        }
        let (Some(block), "tool_use") = (block, kind) else {
            out.ignore();
            return;
        };
        // The name arrives long before the arguments of a long call.
        let id = block.get("id").and_then(Json::scalar);
        let (Some(id), Some(name)) = (id, block.text("name")) else {
            out.ignore();
            return;
        };
        let first = !self.tool_uses.contains_key(&id);
        let known = self.tool_uses.get_or_insert(&id).0;
        known.identify(&name);
        let mut call = ToolCall::unknown();
        known.describe(&mut call);
        call.name = Some(Raw::new(name));
        call.status = Some(ToolStatus::Pending);
        let id = Raw::new(id.into_owned());
        let tool = ToolEvent {
            id,
            call,
            fresh: ChangedFields::default(),
            grew_from: None,
            first,
            grows: false,
            repeats: false,
        };
        out.push_in(parent.cloned(), Body::ToolCallStart(Box::new(tool)));
    }

    fn block_delta(&mut self, event: Json<'_>, parent: Option<&Raw>, out: &mut AdapterOutput) {
        let index = event.get("index").and_then(Json::u64).unwrap_or(0) as u32;
        let delta = event.get("delta");
        let text = match delta.and_then(|d| d.text("type")).as_deref() {
            Some("text_delta") => delta.and_then(|d| d.text("text")),
            Some("thinking_delta") => delta.and_then(|d| d.text("thinking")),
            _ => None,
        };
        let text = text.filter(|t| !t.is_empty());
        let streamed = self.streamed_message(parent);
        let block = streamed.and_then(|p| {
            let block = p.blocks.iter_mut().find(|b| b.index == index && !b.is_complete)?;
            Some((&p.message, block))
        });
        let (Some(text), Some((message, block))) = (text, block) else {
            out.ignore();
            return;
        };
        if block.kind == "tool_use" {
            out.ignore();
            return;
        }
        block.is_emitted = true;
        let chunk = TextChunk {
            text: Raw::new(text),
            block_id: Some(Raw::new(format!("{message}:{index}"))),
            has_block_id: true,
            ..TextChunk::default()
        };
        out.push_in(parent.cloned(), text_body(block.kind, chunk));
    }

    /// Marks a block as complete; returns the index with which its chunks were emitted.
    pub(super) fn end_streamed_block(
        &mut self,
        message_id: Option<&str>,
        kind: &str,
        parent: Option<&Raw>,
    ) -> Option<u32> {
        let message = self.streamed_message(parent).filter(|p| Some(&*p.message) == message_id)?;
        let block = message.blocks.iter_mut().find(|b| b.kind == kind && !b.is_complete)?;
        block.is_complete = true;
        Some(block.index)
    }
}

fn text_body(kind: &str, chunk: TextChunk<Raw>) -> Body<Raw> {
    if kind == "text" { Body::TextChunk(chunk) } else { Body::ThinkingChunk(chunk) }
}
