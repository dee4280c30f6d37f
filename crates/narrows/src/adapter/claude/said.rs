//! What the model said: text, thinking, calls.

use super::record::Record;
use super::{Claude, unknown};
use crate::adapter::Yield;
use crate::event::{Body, Chunk, Failure, Note};
use crate::json::{Json, Kind};
use crate::sanitize::{Raw, Tree};
use std::collections::VecDeque;

/// Messages whose blocks are counted.
const MAX_MESSAGES: usize = 64;

/// How many blocks of each message have come. A message is one record a block, all with its id.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    counts: VecDeque<(Box<str>, u32)>,
    /// Counts that are known from items: they hold when what is read again has been read.
    before: Vec<(Box<str>, u32)>,
}

impl Blocks {
    /// The number of the next block of a message.
    fn next(&mut self, message: &str) -> u32 {
        if let Some((_, n)) = self.counts.iter_mut().rev().find(|(id, _)| **id == *message) {
            *n += 1;
            return *n - 1;
        }
        self.count(message, 1);
        0
    }

    fn count(&mut self, message: &str, n: u32) {
        if self.counts.len() >= MAX_MESSAGES {
            self.counts.pop_front();
        }
        self.counts.push_back((message.into(), n));
    }

    /// A block that was told before the reader began, by its id.
    pub(super) fn recall(&mut self, block: &str) {
        let Some((message, number)) = block.rsplit_once(':') else { return };
        let Ok(number) = number.parse::<u32>() else { return };
        match self.before.iter_mut().rev().find(|(id, _)| **id == *message) {
            Some((_, n)) => *n = (*n).max(number + 1),
            None => self.before.push((message.into(), number + 1)),
        }
        if self.before.len() > MAX_MESSAGES {
            self.before.remove(0);
        }
    }

    /// What comes now is new.
    pub(super) fn caught_up(&mut self) {
        for (message, before) in std::mem::take(&mut self.before) {
            match self.counts.iter_mut().rev().find(|(id, _)| *id == message) {
                Some((_, n)) => *n = (*n).max(before),
                None => self.count(&message, before),
            }
        }
    }
}

/// Whether what the program says in the model's place is that something failed; older versions
/// print no mark of it.
fn is_failure(r: &Record<'_>) -> bool {
    let mut texts = r.blocks().each().filter_map(|b| b.text("text"));
    r.error.is_some() || texts.any(|t| t.starts_with("API Error"))
}

/// Where a block stands.
pub(super) struct Place<'a> {
    pub(super) message: Option<&'a str>,
    pub(super) number: u32,
    pub(super) parent: Option<&'a Raw>,
}

impl Claude {
    pub(super) fn said(
        &mut self,
        r: &Record<'_>,
        object: Json<'_>,
        parent: Option<Raw>,
        out: &mut Yield,
    ) {
        self.begins = false;
        let message = r.message.id.and_then(Json::str);
        let synthetic = r.message.is_synthetic();
        if r.failed || (synthetic && is_failure(r)) {
            return Self::failed(r, parent, out);
        }
        if !synthetic {
            self.cut.goes_on(message.as_deref().unwrap_or_default(), parent.as_ref());
        }
        self.turn_goes_on(message.as_deref(), parent.as_ref());
        let (mut some, mut spoke) = (false, false);
        let blocks = r.blocks();
        for block in blocks.each() {
            some = true;
            let place = self.place(message.as_deref(), parent.as_ref());
            let kind = block.text("type").unwrap_or_default();
            spoke |= !kind.ends_with("thinking");
            match &*kind {
                "text" => {
                    let text = block.text("text").unwrap_or_default();
                    if r.command {
                        Self::command_output(&text, out);
                    } else if synthetic {
                        self.program_said(&text, r.kept, &place, out);
                    } else {
                        self.block("text", Raw::new(text), false, &place, out);
                    }
                }
                "thinking" | "redacted_thinking" => {
                    let text = block.text("thinking").unwrap_or_default();
                    // Only a signature is left of what may not be shown.
                    let hidden = text.is_empty();
                    self.block("thinking", Raw::new(text), hidden, &place, out);
                }
                "tool_use" | "server_tool_use" | "mcp_tool_use" => {
                    self.partial_ends(message.as_deref(), "tool_use", parent.as_ref());
                    self.call(block, parent.clone(), out);
                }
                "web_search_tool_result"
                | "web_fetch_tool_result"
                | "mcp_tool_result"
                | "tool_result" => self.result(block, None, r, parent.as_ref(), out),
                _ => unknown(&format!("assistant:{kind}"), block, out),
            }
        }
        if let super::record::Blocks::Text(text) = blocks {
            some = true;
            let place = self.place(message.as_deref(), parent.as_ref());
            self.block("text", Raw::new(text.str().unwrap_or_default()), false, &place, out);
        }
        if !some {
            return unknown("assistant", object, out);
        }
        if let Some(message) = message.as_deref().filter(|_| !synthetic) {
            let usage = r.message.usage.filter(|u| u.kind() == Kind::Object);
            self.used(message, (r.request, r.message.model), usage, parent.as_ref(), out);
            // Every record of a message tells why it ended: what was thought comes before it is said.
            if spoke {
                self.stopped(message, r.message.stop_reason, parent.as_ref(), out);
                if r.kept && parent.is_none() {
                    self.kept_end(message, r.message.stop_reason, out);
                }
            }
        }
    }

    /// The place of the next block.
    fn place<'a>(&mut self, message: Option<&'a str>, parent: Option<&'a Raw>) -> Place<'a> {
        let number = message.map_or(0, |m| self.blocks.next(m));
        Place { message, number, parent }
    }

    /// A whole block. It replaces what was streamed of it.
    pub(super) fn block(
        &mut self,
        kind: &'static str,
        text: Raw,
        hidden: bool,
        place: &Place<'_>,
        out: &mut Yield,
    ) {
        let streamed = self.partial_ends(place.message, kind, place.parent);
        if text.is_empty() && !hidden && streamed.is_none() {
            out.quiet += 1;
            return;
        }
        let number = streamed.unwrap_or(place.number);
        let id = match place.message {
            Some(message) => format!("{message}:{number}"),
            None => format!("line-{}", self.line),
        };
        let chunk = Chunk {
            text,
            block_id: Some(Raw::new(id)),
            whole: true,
            keyed: true,
            hidden,
            ..Chunk::default()
        };
        let body = if kind == "text" { Body::TextChunk(chunk) } else { Body::ThinkingChunk(chunk) };
        out.push_in(place.parent.cloned(), body);
    }

    /// The model could not be asked, and the program says so in its place.
    fn failed(r: &Record<'_>, parent: Option<Raw>, out: &mut Yield) {
        let mut words = String::new();
        for text in r.blocks().each().filter_map(|b| b.text("text")) {
            words.push_str(&text);
        }
        let code = r.error.and_then(Json::str);
        let retryable = code.as_deref().and_then(|code| match code {
            "rate_limit" | "server_error" | "overloaded" => Some(true),
            "invalid_request" | "billing_error" => Some(false),
            _ => None,
        });
        let quoted = |json: Json<'_>| Tree::checked(&format!("\"{}\"", json.raw()));
        let word = r.error.filter(|e| e.kind() == Kind::String).map(quoted);
        // A missing login has one name, whichever agent misses it.
        let login = code.as_deref() == Some("authentication_failed");
        let code = if login { Some(Tree::text("LOGIN_REQUIRED")) } else { word };
        let failure =
            Failure { message: Raw::new(words), code, details: None, retryable, is_end: false };
        out.push_in(parent, Body::Error(Box::new(failure)));
    }

    /// What a slash command printed.
    pub(super) fn command_output(text: &str, out: &mut Yield) {
        let text = text.trim();
        if text.is_empty() {
            out.quiet += 1;
            return;
        }
        let note = Note { kind: Raw::new("command_output"), text: Raw::new(text) };
        out.push(Body::Notice(note));
    }
}
