//! Splits a source into packets: native messages, byte for byte.

use super::lines::{Line, Lines, MAX_LINE};
use crate::model::event::{Body, Malformed, Position};
use crate::model::time::Time;
use crate::sanitize::Raw;

/// The [parent](Packet::parent) of an orphan subagent, one that no tool call started, such as those
/// with which Claude Code warms up: its text is not shown, its usage is counted.
pub const ORPHAN_PARENT: &str = "";

/// One message as it was read. Never shown, stored or logged.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    /// The message.
    pub bytes: &'a [u8],
    /// Its position in its source.
    pub position: Position,
    /// The time of arrival, if the caller knows it; used when the message has no time of its own.
    pub arrived: Option<&'a Time>,
    /// The number of its file in a session of several files; 0 is the main one.
    pub source: u32,
    /// The tool call whose subagent wrote it, when its file determines that; [`ORPHAN_PARENT`] when
    /// no call started the subagent.
    pub parent: Option<&'a str>,
}

impl<'a> Packet<'a> {
    /// Creates a packet of a session's only source.
    pub fn new(bytes: &'a [u8], position: Position) -> Self {
        Packet { bytes, position, arrived: None, source: 0, parent: None }
    }
}

impl std::fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({} bytes at line {})", self.bytes.len(), self.position.line)
    }
}

/// An event that the host program adds to a session that it runs. No line of an agent can produce
/// one.
#[derive(Debug, Clone)]
pub struct HostEvent {
    /// A source of its own, so that its positions differ from those of packets.
    pub source: u32,
    /// The position in that source, from 1.
    pub line: u64,
    /// The time of the event.
    pub time: Option<Time>,
    /// The event.
    pub body: Body<Raw>,
}

/// The output of the framer: a packet, or a line that cannot be one.
#[derive(Debug)]
pub enum Framed<'a> {
    /// A packet to parse.
    Packet(Packet<'a>),
    /// A line that cannot be parsed.
    Fault(Malformed),
}

/// Splits bytes into packets: JSON lines, or the `data:` lines of server-sent events.
#[derive(Debug)]
pub struct Packets {
    lines: Lines,
    sse: SseJoiner,
}

impl Default for Packets {
    fn default() -> Self {
        Packets::new(MAX_LINE)
    }
}

impl Packets {
    /// Creates a framer that rejects lines of more than `max_bytes`.
    pub fn new(max_bytes: usize) -> Self {
        let sse = SseJoiner { buffer: Vec::new(), start: None, max_bytes };
        Packets { lines: Lines::new(max_bytes), sse }
    }

    /// Resumes a source at `position`: the number of complete lines and bytes before it.
    pub fn after(max_bytes: usize, position: Position) -> Self {
        let lines = Lines::after(max_bytes, position.line, position.offset);
        Packets { lines, ..Packets::new(max_bytes) }
    }

    /// The position after the last complete line.
    pub fn ended(&self) -> Position {
        let (line, offset) = self.lines.ended();
        Position { line, column: 0, offset }
    }

    /// Accepts `count` zero bytes, which is what a hole in a file reads as.
    pub fn pass_zeros(&mut self, count: u64) {
        self.lines.pass_zeros(count);
    }

    /// Accepts the next bytes and calls `on_packet` for each packet that is complete.
    pub fn push(&mut self, bytes: &[u8], mut on_packet: impl FnMut(Framed<'_>)) {
        let sse = &mut self.sse;
        self.lines.push(bytes, |line| sse.push(line, &mut on_packet));
    }

    /// Ends the input: the last line may lack its line break.
    pub fn finish(&mut self, mut on_packet: impl FnMut(Framed<'_>)) {
        let sse = &mut self.sse;
        self.lines.finish(|line| sse.push(line, &mut on_packet));
        sse.flush(&mut on_packet);
    }
}

/// Joins the `data:` lines of one server-sent event.
#[derive(Debug)]
struct SseJoiner {
    buffer: Vec<u8>,
    /// The position of the first buffered line.
    start: Option<Position>,
    max_bytes: usize,
}

impl SseJoiner {
    fn push(&mut self, line: Line<'_>, on_packet: &mut impl FnMut(Framed<'_>)) {
        let position = Position { line: line.number, column: 0, offset: line.offset };
        if line.cut {
            self.flush(on_packet);
            let reason = "line too long";
            on_packet(Framed::Fault(Malformed {
                reason,
                position,
                length: line.length,
                source: 0,
            }));
            return;
        }
        // The common case first: one packet per line.
        if line.bytes.first() == Some(&b'{') && self.start.is_none() {
            on_packet(Framed::Packet(Packet::new(line.bytes, position)));
            return;
        }
        let Some(data) = line.bytes.strip_prefix(b"data:") else {
            self.flush(on_packet);
            if !line.bytes.trim_ascii().is_empty() && !is_sse_control(line.bytes) {
                on_packet(Framed::Packet(Packet::new(line.bytes, position)));
            }
            return;
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        if data.trim_ascii() == b"[DONE]" {
            return;
        }
        // A complete object starts at the margin; the lines of a pretty-printed one are indented.
        if data.starts_with(b"{") && data.trim_ascii_end().ends_with(b"}") {
            self.flush(on_packet);
            on_packet(Framed::Packet(Packet::new(data, position)));
            return;
        }
        if self.start.is_none() {
            self.start = Some(position);
        } else {
            self.buffer.push(b'\n');
        }
        self.buffer.extend_from_slice(data);
        if self.buffer.len() > self.max_bytes {
            let length = self.buffer.len() as u64;
            self.buffer = Vec::new();
            let position = self.start.take().unwrap_or_default();
            on_packet(Framed::Fault(Malformed {
                reason: "event too long",
                position,
                length,
                source: 0,
            }));
        }
    }

    fn flush(&mut self, on_packet: &mut impl FnMut(Framed<'_>)) {
        if let Some(position) = self.start.take() {
            let buffer = std::mem::take(&mut self.buffer);
            on_packet(Framed::Packet(Packet::new(&buffer, position)));
        }
    }
}

/// Whether a line of an event stream carries no data.
fn is_sse_control(line: &[u8]) -> bool {
    line.starts_with(b":")
        || [&b"event:"[..], b"id:", b"retry:"].iter().any(|field| line.starts_with(field))
}
