//! Merges the files of subagents into the session's own file, in the order of time.

use crate::frame::lines::{Line, Lines};
use crate::frame::packets::{Framed, Packet};
use crate::model::event::{Malformed, Position};
use crate::model::time::Time;
use memchr::{memchr, memmem};

/// The files of subagents, each with the call that started it.
///
/// ```
/// use narrows::{Framed, Packet, SubagentFiles};
///
/// let mut files = SubagentFiles::default();
/// files.add("toolu_1", br#"{"type":"user","timestamp":"2026-01-01T00:00:05Z"}"#.to_vec());
/// let mut packets = 0;
/// let early = br#"{"type":"user","timestamp":"2026-01-01T00:00:01Z"}"#;
/// files.before(early, |_| packets += 1);
/// assert_eq!(packets, 0);
/// files.rest(|framed| match framed {
///     Framed::Packet(packet) => assert_eq!(packet.parent, Some("toolu_1")),
///     Framed::Fault(_) => unreachable!(),
/// });
/// ```
#[derive(Debug, Default)]
pub struct SubagentFiles {
    files: Vec<SubagentFile>,
}

struct SubagentFile {
    source: u32,
    /// Id of the call that started the subagent.
    call: String,
    bytes: Vec<u8>,
    /// Index in `bytes` of the next line.
    at: usize,
    /// Number of the last line read.
    line: u64,
    /// Offset of `bytes` in the file.
    offset: u64,
    /// Time of the next line, in milliseconds since 1970.
    time_ms: i64,
}

// The content is not clean and must not reach a log, not even for debugging.
impl std::fmt::Debug for SubagentFile {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SubagentFile({} bytes)", self.bytes.len())
    }
}

impl SubagentFiles {
    /// Adds the file of the subagent that `call` started.
    pub fn add(&mut self, call: impl Into<String>, bytes: Vec<u8>) {
        let source = self.files.len() as u32 + 1;
        self.add_rest(call, source, Position::default(), bytes);
    }

    /// Adds the part of a file that follows the position `after`; `source` is its number in the
    /// session.
    pub fn add_rest(
        &mut self,
        call: impl Into<String>,
        source: u32,
        after: Position,
        bytes: Vec<u8>,
    ) {
        let (line, offset) = (after.line, after.offset);
        let call = call.into();
        let mut file = SubagentFile { source, call, bytes, at: 0, line, offset, time_ms: i64::MIN };
        file.update_time();
        self.files.push(file);
    }

    /// Whether there are no files.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Emits the packets that were written before a line of the session's own file.
    pub fn before(&mut self, line: &[u8], emit: impl FnMut(Framed<'_>)) {
        if !self.files.is_empty()
            && let Some(time_ms) = time_of(line)
        {
            self.emit_until(time_ms, emit);
        }
    }

    /// Emits the remaining packets.
    pub fn rest(&mut self, emit: impl FnMut(Framed<'_>)) {
        self.emit_until(i64::MAX, emit);
    }

    fn emit_until(&mut self, time_ms: i64, mut emit: impl FnMut(Framed<'_>)) {
        loop {
            let files = self.files.iter_mut();
            let unread = files.filter(|f| f.at < f.bytes.len() && f.time_ms <= time_ms);
            let Some(file) = unread.min_by_key(|f| f.time_ms) else { return };
            file.emit_line(&mut emit);
        }
    }
}

impl SubagentFile {
    fn line_end(&self) -> usize {
        memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |i| self.at + i)
    }

    /// Reads the time of the next line; a line without one has the time of the line before.
    fn update_time(&mut self) {
        if let Some(time_ms) = time_of(&self.bytes[self.at..self.line_end()]) {
            self.time_ms = self.time_ms.max(time_ms);
        }
    }

    fn emit_line(&mut self, emit: &mut impl FnMut(Framed<'_>)) {
        let end = self.line_end();
        self.line += 1;
        let (source, number) = (self.source, self.line);
        let offset = self.offset + self.at as u64;
        // `Lines` applies the same rules to lines as everywhere.
        let mut lines = Lines::default();
        let mut on_line = |line: Line<'_>| {
            let position = Position { line: number, column: 0, offset };
            if line.cut {
                let (reason, length) = ("line too long", line.length);
                emit(Framed::Fault(Malformed { reason, position, length, source }));
            } else if !line.bytes.trim_ascii().is_empty() {
                let parent = Some(self.call.as_str());
                emit(Framed::Packet(Packet {
                    source,
                    parent,
                    ..Packet::new(line.bytes, position)
                }));
            }
        };
        lines.push(&self.bytes[self.at..end], &mut on_line);
        lines.finish(&mut on_line);
        self.at = (end + 1).min(self.bytes.len());
        if self.at < self.bytes.len() {
            self.update_time();
        }
    }
}

/// The time of a record, in milliseconds since 1970.
fn time_of(line: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"timestamp\":\"";
    let from = memmem::find(line, KEY)? + KEY.len();
    let rest = line.get(from..)?;
    let text = std::str::from_utf8(rest.get(..memchr(b'"', rest)?)?).ok()?;
    Time::parse(text).map(|t| t.millis())
}
