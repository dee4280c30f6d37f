//! Messages while they stream: pieces of blocks, which the whole block replaces.

use super::record::Record;
use super::{Claude, unknown};
use crate::adapter::Yield;
use crate::event::{Body, Chunk, ToolEvent};
use crate::json::Json;
use crate::sanitize::Raw;
use crate::tool::{Fresh, ToolCall, ToolStatus};

/// Messages that may stream at once, and blocks of one that are remembered.
const MAX_STREAMS: usize = 64;
const MAX_BLOCKS: usize = 1024;

/// A message that streams.
#[derive(Debug)]
pub(super) struct Partial {
    parent: Option<Raw>,
    message: String,
    blocks: Vec<Block>,
    /// Its end has come.
    over: bool,
}

impl Partial {
    /// Whether all of it was told, and nothing will be taken back.
    pub(super) fn is_done(&self) -> bool {
        self.over && self.blocks.iter().all(|b| b.whole || !b.told)
    }
}

#[derive(Debug)]
struct Block {
    index: u32,
    kind: &'static str,
    /// Something of it was told.
    told: bool,
    /// Its whole text has come.
    whole: bool,
}

impl Claude {
    pub(super) fn partial(&mut self, r: &Record<'_>, parent: Option<&Raw>, out: &mut Yield) {
        let Some(event) = r.event else {
            out.quiet += 1;
            return;
        };
        // Versions before 2.1 print the prompt after the pieces of its answer: these wait for it.
        if self.begins && self.is_old() {
            self.partials.retain(|p| p.parent.as_ref() != parent);
            out.quiet += 1;
            return;
        }
        let kind = event.text("type").unwrap_or_default();
        match &*kind {
            "message_start" => {
                let id = event.path(&["message", "id"]).and_then(Json::owned).unwrap_or_default();
                self.take_back(&id, parent, out);
                self.partials.retain(|p| p.parent.as_ref() != parent);
                if self.partials.len() >= MAX_STREAMS {
                    self.partials.remove(0);
                }
                let parent = parent.cloned();
                self.partials.push(Partial {
                    parent,
                    message: id,
                    blocks: Vec::new(),
                    over: false,
                });
            }
            "content_block_start" => self.block_begins(event, parent, out),
            "content_block_delta" => self.piece(event, parent, out),
            "message_delta" => {
                let message = self.streaming(parent).map(|p| p.message.clone());
                if let Some(message) = message {
                    self.used(&message, (None, None), event.get("usage"), parent, out);
                    let reason = event.get("delta").and_then(|d| d.get("stop_reason"));
                    self.stopped(&message, reason, parent, out);
                }
            }
            "message_stop" => {
                self.speaking = false;
                if let Some(partial) = self.streaming(parent) {
                    partial.over = true;
                }
                out.quiet += 1;
            }
            "content_block_stop" | "ping" => out.quiet += 1,
            _ => unknown(&format!("stream_event:{kind}"), event, out),
        }
    }

    fn streaming(&mut self, parent: Option<&Raw>) -> Option<&mut Partial> {
        self.partials.iter_mut().find(|p| p.parent.as_ref() == parent)
    }

    /// A new message begins though the last one did not end: what was cut off will be said again.
    fn take_back(&mut self, next: &str, parent: Option<&Raw>, out: &mut Yield) {
        let Some(partial) = self.streaming(parent).filter(|p| p.message != next) else {
            return;
        };
        for block in partial.blocks.iter().filter(|b| b.told && !b.whole && b.kind != "tool_use") {
            let id = format!("{}:{}", partial.message, block.index);
            let chunk = Chunk {
                block_id: Some(Raw::new(id)),
                whole: true,
                keyed: true,
                ..Chunk::default()
            };
            out.push_in(parent.cloned(), text(block.kind, chunk));
        }
    }

    fn block_begins(&mut self, event: Json<'_>, parent: Option<&Raw>, out: &mut Yield) {
        let index = event.get("index").and_then(Json::u64).unwrap_or(0) as u32;
        let block = event.get("content_block");
        let kind = block.and_then(|b| b.text("type"));
        let kind = match kind.as_deref() {
            Some("text") => "text",
            Some("thinking" | "redacted_thinking") => "thinking",
            Some("tool_use" | "server_tool_use" | "mcp_tool_use") => "tool_use",
            _ => {
                out.quiet += 1;
                return;
            }
        };
        let Some(partial) = self.streaming(parent) else {
            out.quiet += 1;
            return;
        };
        if partial.blocks.len() < MAX_BLOCKS && partial.blocks.iter().all(|b| b.index != index) {
            partial.blocks.push(Block { index, kind, told: false, whole: false });
        }
        let (Some(block), "tool_use") = (block, kind) else {
            out.quiet += 1;
            return;
        };
        // The name comes long before the arguments of a long call.
        let id = block.get("id").and_then(Json::scalar);
        let (Some(id), Some(name)) = (id, block.text("name")) else {
            out.quiet += 1;
            return;
        };
        let first = !self.calls.has(&id);
        let known = self.calls.open(&id).0;
        known.identify(&name);
        let mut call = ToolCall::unknown();
        known.tell(&mut call);
        call.name = Some(Raw::new(name));
        call.status = Some(ToolStatus::Pending);
        let id = Raw::new(id.into_owned());
        let tool = ToolEvent {
            id,
            call,
            fresh: Fresh::default(),
            grew_from: None,
            first,
            grows: false,
            repeats: false,
        };
        out.push_in(parent.cloned(), Body::ToolCallStart(Box::new(tool)));
    }

    fn piece(&mut self, event: Json<'_>, parent: Option<&Raw>, out: &mut Yield) {
        let index = event.get("index").and_then(Json::u64).unwrap_or(0) as u32;
        let delta = event.get("delta");
        let words = match delta.and_then(|d| d.text("type")).as_deref() {
            Some("text_delta") => delta.and_then(|d| d.text("text")),
            Some("thinking_delta") => delta.and_then(|d| d.text("thinking")),
            _ => None,
        };
        let words = words.filter(|w| !w.is_empty());
        let partial = self.streaming(parent);
        let found = partial.and_then(|p| {
            let block = p.blocks.iter_mut().find(|b| b.index == index && !b.whole)?;
            Some((&p.message, block))
        });
        let (Some(words), Some((message, block))) = (words, found) else {
            out.quiet += 1;
            return;
        };
        if block.kind == "tool_use" {
            out.quiet += 1;
            return;
        }
        block.told = true;
        let chunk = Chunk {
            text: Raw::new(words),
            block_id: Some(Raw::new(format!("{message}:{index}"))),
            keyed: true,
            ..Chunk::default()
        };
        out.push_in(parent.cloned(), text(block.kind, chunk));
    }

    /// The whole of a block has come: returns the number under which its pieces were told.
    pub(super) fn partial_ends(
        &mut self,
        message: Option<&str>,
        kind: &str,
        parent: Option<&Raw>,
    ) -> Option<u32> {
        let partial = self.streaming(parent).filter(|p| Some(&*p.message) == message)?;
        let block = partial.blocks.iter_mut().find(|b| b.kind == kind && !b.whole)?;
        block.whole = true;
        Some(block.index)
    }
}

fn text(kind: &str, chunk: Chunk<Raw>) -> Body<Raw> {
    if kind == "text" { Body::TextChunk(chunk) } else { Body::ThinkingChunk(chunk) }
}
