//! Messages of the model: text, thinking, tool calls.

use super::record::{ClaudeRecord, ContentBlocks};
use super::{ClaudeParser, unknown};
use crate::adapter::output::AdapterOutput;
use crate::json::{Json, Kind};
use crate::model::event::{Body, ErrorEvent, Notice, TextChunk};
use crate::sanitize::{Raw, Tree};
use std::collections::VecDeque;

/// The number of messages whose blocks are counted.
const MAX_MESSAGES: usize = 64;

/// Counts the blocks of each message. A message is one record per block, all with its id.
#[derive(Debug, Default)]
pub(super) struct BlockCounter {
    counts: VecDeque<(Box<str>, u32)>,
    /// The counts derived from items, which apply after the replay.
    restored: Vec<(Box<str>, u32)>,
}

impl BlockCounter {
    /// Returns the number of the next block of a message.
    fn next(&mut self, message: &str) -> u32 {
        if let Some((_, n)) = self.counts.iter_mut().rev().find(|(id, _)| **id == *message) {
            *n += 1;
            return *n - 1;
        }
        self.insert(message, 1);
        0
    }

    fn insert(&mut self, message: &str, n: u32) {
        if self.counts.len() >= MAX_MESSAGES {
            self.counts.pop_front();
        }
        self.counts.push_back((message.into(), n));
    }

    /// Adds a block that was emitted before a restart, by its id.
    pub(super) fn restore(&mut self, block: &str) {
        let Some((message, number)) = block.rsplit_once(':') else { return };
        let Ok(number) = number.parse::<u32>() else { return };
        match self.restored.iter_mut().rev().find(|(id, _)| **id == *message) {
            Some((_, n)) => *n = (*n).max(number + 1),
            None => self.restored.push((message.into(), number + 1)),
        }
        if self.restored.len() > MAX_MESSAGES {
            self.restored.remove(0);
        }
    }

    /// Applies the restored counts: the next record is new.
    pub(super) fn finish_replay(&mut self) {
        for (message, restored) in std::mem::take(&mut self.restored) {
            match self.counts.iter_mut().rev().find(|(id, _)| *id == message) {
                Some((_, n)) => *n = (*n).max(restored),
                None => self.insert(&message, restored),
            }
        }
    }
}

/// Whether text of the program in the model's role is an error message. Older versions do not mark
/// it as one.
fn is_error_text(r: &ClaudeRecord<'_>) -> bool {
    let mut texts = r.blocks().iter().filter_map(|b| b.text("text"));
    r.error.is_some() || texts.any(|t| t.starts_with("API Error"))
}

/// The position of a block.
pub(super) struct BlockPosition<'a> {
    pub(super) message: Option<&'a str>,
    pub(super) number: u32,
    pub(super) parent: Option<&'a Raw>,
}

impl ClaudeParser {
    pub(super) fn assistant(
        &mut self,
        r: &ClaudeRecord<'_>,
        object: Json<'_>,
        parent: Option<Raw>,
        out: &mut AdapterOutput,
    ) {
        self.turn_started = false;
        let message = r.message.id.and_then(Json::str);
        let is_synthetic = r.message.is_synthetic();
        if r.is_api_error || (is_synthetic && is_error_text(r)) {
            return Self::api_error(r, parent, out);
        }
        if !is_synthetic {
            self.truncation.continue_with(message.as_deref().unwrap_or_default(), parent.as_ref());
        }
        self.continue_turn(message.as_deref(), parent.as_ref());
        let (mut has_block, mut has_output) = (false, false);
        let blocks = r.blocks();
        for block in blocks.iter() {
            has_block = true;
            let position = self.next_position(message.as_deref(), parent.as_ref());
            let kind = block.text("type").unwrap_or_default();
            has_output |= !kind.ends_with("thinking");
            match &*kind {
                "text" => {
                    let text = block.text("text").unwrap_or_default();
                    if r.is_command_output {
                        Self::command_output(&text, out);
                    } else if is_synthetic {
                        self.program_text(&text, r.is_history, &position, out);
                    } else {
                        self.block("text", Raw::new(text), false, &position, out);
                    }
                }
                "thinking" | "redacted_thinking" => {
                    let text = block.text("thinking").unwrap_or_default();
                    // Redacted thinking has only a signature.
                    let hidden = text.is_empty();
                    self.block("thinking", Raw::new(text), hidden, &position, out);
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    self.end_streamed_block(message.as_deref(), "tool_use", parent.as_ref());
                    self.tool_use(block, parent.clone(), out);
                }
                "web_search_tool_result"
                | "web_fetch_tool_result"
                | "mcp_tool_result"
                | "tool_result" => self.tool_result(block, None, r, parent.as_ref(), out),
                _ => unknown(&format!("assistant:{kind}"), block, out),
            }
        }
        if let ContentBlocks::Text(text) = blocks {
            has_block = true;
            let position = self.next_position(message.as_deref(), parent.as_ref());
            self.block("text", Raw::new(text.str().unwrap_or_default()), false, &position, out);
        }
        if !has_block {
            return unknown("assistant", object, out);
        }
        if let Some(message) = message.as_deref().filter(|_| !is_synthetic) {
            let usage = r.message.usage.filter(|u| u.kind() == Kind::Object);
            self.message_usage(message, (r.request, r.message.model), usage, parent.as_ref(), out);
            // Every record of a message has its stop reason: thinking precedes the end.
            if has_output {
                self.check_truncation(message, r.message.stop_reason, parent.as_ref(), out);
                if r.is_history && parent.is_none() {
                    self.end_turn_of_message(message, r.message.stop_reason, out);
                }
            }
        }
    }

    /// Returns the position of the next block.
    fn next_position<'a>(
        &mut self,
        message: Option<&'a str>,
        parent: Option<&'a Raw>,
    ) -> BlockPosition<'a> {
        let number = message.map_or(0, |m| self.blocks.next(m));
        BlockPosition { message, number, parent }
    }

    /// Emits a complete block. It replaces the streamed chunks.
    pub(super) fn block(
        &mut self,
        kind: &'static str,
        text: Raw,
        hidden: bool,
        position: &BlockPosition<'_>,
        out: &mut AdapterOutput,
    ) {
        let streamed = self.end_streamed_block(position.message, kind, position.parent);
        if text.is_empty() && !hidden && streamed.is_none() {
            out.ignore();
            return;
        }
        let number = streamed.unwrap_or(position.number);
        let id = match position.message {
            Some(message) => format!("{message}:{number}"),
            None => format!("line-{}", self.line),
        };
        let chunk = TextChunk {
            text,
            block_id: Some(Raw::new(id)),
            whole: true,
            has_block_id: true,
            hidden,
            ..TextChunk::default()
        };
        let body = if kind == "text" { Body::TextChunk(chunk) } else { Body::ThinkingChunk(chunk) };
        out.push_in(position.parent.cloned(), body);
    }

    /// Emits the error of a failed request to the model.
    fn api_error(r: &ClaudeRecord<'_>, parent: Option<Raw>, out: &mut AdapterOutput) {
        let mut message = String::new();
        for text in r.blocks().iter().filter_map(|b| b.text("text")) {
            message.push_str(&text);
        }
        let code = r.error.and_then(Json::str);
        let retryable = code.as_deref().and_then(|code| match code {
            "rate_limit" | "server_error" | "overloaded" => Some(true),
            "invalid_request" | "billing_error" => Some(false),
            _ => None,
        });
        let quoted = |json: Json<'_>| Tree::checked(&format!("\"{}\"", json.raw()));
        let code_tree = r.error.filter(|e| e.kind() == Kind::String).map(quoted);
        // A missing login has the same code for every agent.
        let is_login = code.as_deref() == Some("authentication_failed");
        let code = if is_login { Some(Tree::text("LOGIN_REQUIRED")) } else { code_tree };
        let failure = ErrorEvent {
            message: Raw::new(message),
            code,
            details: None,
            retryable,
            is_end: false,
        };
        out.push_in(parent, Body::Error(Box::new(failure)));
    }

    /// Emits the output of a slash command.
    pub(super) fn command_output(text: &str, out: &mut AdapterOutput) {
        let text = text.trim();
        if text.is_empty() {
            out.ignore();
            return;
        }
        let note = Notice { kind: Raw::new("command_output"), text: Raw::new(text) };
        out.push(Body::Notice(note));
    }
}
