//! Packets: framed native messages, byte for byte.

use crate::event::{Body, Malformed, Position};
use crate::lines::{Line, Lines};
use crate::sanitize::Raw;
use crate::time::Time;

/// A dialect that an agent writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// The Agent Client Protocol: JSON-RPC lines, the packets of back ends that relay them, and
    /// rows that keep such packets.
    Acp,
    /// What Claude Code prints with `--output-format stream-json`.
    ClaudeStream,
    /// The files in which Claude Code keeps its sessions.
    ClaudeHistory,
    /// Whichever the packets turn out to be.
    #[default]
    Auto,
}

impl Format {
    /// All of them, with their names.
    pub const ALL: [(Format, &'static str); 4] = [
        (Format::Acp, "acp"),
        (Format::ClaudeStream, "claude-stream"),
        (Format::ClaudeHistory, "claude-history"),
        (Format::Auto, "auto"),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Format::ALL.iter().find(|(format, _)| *format == self).map_or("auto", |(_, name)| name)
    }

    /// The one of this name.
    pub fn named(name: &str) -> Option<Format> {
        Format::ALL.iter().find(|(_, known)| *known == name).map(|(format, _)| *format)
    }
}

/// The [parent](Packet::parent) of a subagent that no call began, as those by which Claude Code warms
/// itself up: what it says is not seen, what it used is counted.
pub const NOBODY: &str = "";

/// One message as it was read. Never shown, stored or logged.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    /// The message.
    pub bytes: &'a [u8],
    /// Where it stands in its source.
    pub position: Position,
    /// When it arrived, if the caller tells; used where the message has no time of its own.
    pub arrived: Option<&'a Time>,
    /// Which file of the session it is from, where there are several; 0 is the main one.
    pub source: u32,
    /// The call whose subagent wrote it, where the place it is from tells; [`NOBODY`] where none did.
    pub parent: Option<&'a str>,
}

impl<'a> Packet<'a> {
    /// A packet of a session's only source.
    pub fn new(bytes: &'a [u8], position: Position) -> Self {
        Packet { bytes, position, arrived: None, source: 0, parent: None }
    }
}

impl std::fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Packet({} bytes at line {})", self.bytes.len(), self.position.line)
    }
}

/// Something that the program itself tells of a session that it runs: no line of an agent can.
#[derive(Debug, Clone)]
pub struct Told {
    /// Its own source, so that its places are not those of packets.
    pub source: u32,
    /// Its place there, from 1.
    pub line: u64,
    /// When it happened.
    pub time: Option<Time>,
    /// What happened.
    pub body: Body<Raw>,
}

/// What a source gave: a packet, or a line that cannot be one.
#[derive(Debug)]
pub enum Given<'a> {
    /// A packet to be read.
    Packet(Packet<'a>),
    /// A line that cannot be read.
    Fault(Malformed),
}

/// Splits bytes into packets: JSON lines, or the `data:` lines of server-sent events.
#[derive(Debug)]
pub struct Packets {
    lines: Lines,
    sse: Sse,
}

impl Default for Packets {
    fn default() -> Self {
        Packets::new(crate::lines::MAX_LINE)
    }
}

impl Packets {
    /// Refuses lines of more than `cap` bytes.
    pub fn new(cap: usize) -> Self {
        Packets { lines: Lines::new(cap), sse: Sse { held: Vec::new(), position: None, cap } }
    }

    /// Goes on with a source after so many lines and bytes.
    pub fn after(cap: usize, place: Position) -> Self {
        Packets { lines: Lines::after(cap, place.line, place.offset), ..Packets::new(cap) }
    }

    /// Where the lines that have ended end.
    pub fn ended(&self) -> Position {
        let (line, offset) = self.lines.ended();
        Position { line, column: 0, offset }
    }

    /// Takes so many zeros, as they are read where nothing was ever written.
    pub fn pass_zeros(&mut self, many: u64) {
        self.lines.pass_zeros(many);
    }

    /// Takes the next bytes; calls `found` for each packet in them.
    pub fn push(&mut self, bytes: &[u8], mut found: impl FnMut(Given<'_>)) {
        let sse = &mut self.sse;
        self.lines.push(bytes, |line| sse.line(line, &mut found));
    }

    /// The input is over: the last line may lack its end.
    pub fn finish(&mut self, mut found: impl FnMut(Given<'_>)) {
        let sse = &mut self.sse;
        self.lines.finish(|line| sse.line(line, &mut found));
        sse.flush(&mut found);
    }
}

/// Data lines of one event that go on over several lines.
#[derive(Debug)]
struct Sse {
    held: Vec<u8>,
    position: Option<Position>,
    cap: usize,
}

impl Sse {
    fn line(&mut self, line: Line<'_>, found: &mut impl FnMut(Given<'_>)) {
        let position = Position { line: line.number, column: 0, offset: line.offset };
        if line.cut {
            self.flush(found);
            let reason = "line too long";
            found(Given::Fault(Malformed { reason, position, length: line.length, source: 0 }));
            return;
        }
        // The usual case first: a packet a line.
        if line.bytes.first() == Some(&b'{') && self.position.is_none() {
            found(Given::Packet(Packet::new(line.bytes, position)));
            return;
        }
        let Some(data) = line.bytes.strip_prefix(b"data:") else {
            self.flush(found);
            if !line.bytes.trim_ascii().is_empty() && !is_control(line.bytes) {
                found(Given::Packet(Packet::new(line.bytes, position)));
            }
            return;
        };
        let data = data.strip_prefix(b" ").unwrap_or(data);
        if data.trim_ascii() == b"[DONE]" {
            return;
        }
        // A whole object stands at the margin; the parts of a printed one are indented.
        if data.starts_with(b"{") && data.trim_ascii_end().ends_with(b"}") {
            self.flush(found);
            found(Given::Packet(Packet::new(data, position)));
            return;
        }
        if self.position.is_none() {
            self.position = Some(position);
        } else {
            self.held.push(b'\n');
        }
        self.held.extend_from_slice(data);
        if self.held.len() > self.cap {
            let length = self.held.len() as u64;
            self.held = Vec::new();
            let position = self.position.take().unwrap_or_default();
            found(Given::Fault(Malformed {
                reason: "event too long",
                position,
                length,
                source: 0,
            }));
        }
    }

    fn flush(&mut self, found: &mut impl FnMut(Given<'_>)) {
        if let Some(position) = self.position.take() {
            let held = std::mem::take(&mut self.held);
            found(Given::Packet(Packet::new(&held, position)));
        }
    }
}

/// A line of an event stream that carries no data.
fn is_control(line: &[u8]) -> bool {
    line.starts_with(b":")
        || [&b"event:"[..], b"id:", b"retry:"].iter().any(|field| line.starts_with(field))
}
