//! The files of subagents that lie beside a session's own: read with it, in the order of time.

use crate::lines::{Line, Lines};
use crate::model::event::{Malformed, Position};
use crate::model::time::Time;
use crate::packet::{Given, Packet};
use memchr::{memchr, memmem};

/// Files of subagents, each with the call that began it.
///
/// ```
/// use narrows::{Beside, Given, Packet};
///
/// let mut beside = Beside::default();
/// beside.add("toolu_1", br#"{"type":"user","timestamp":"2026-01-01T00:00:05Z"}"#.to_vec());
/// let mut lines = 0;
/// let early = br#"{"type":"user","timestamp":"2026-01-01T00:00:01Z"}"#;
/// beside.before(early, |_| lines += 1);
/// assert_eq!(lines, 0);
/// beside.rest(|given| match given {
///     Given::Packet(packet) => assert_eq!(packet.parent, Some("toolu_1")),
///     Given::Fault(_) => unreachable!(),
/// });
/// ```
#[derive(Debug, Default)]
pub struct Beside {
    files: Vec<File>,
}

struct File {
    source: u32,
    call: String,
    bytes: Vec<u8>,
    at: usize,
    line: u64,
    /// Where in its file these bytes begin.
    offset: u64,
    /// When the next line was written.
    time: i64,
}

// The text of a file is not shown, not even to whoever debugs.
impl std::fmt::Debug for File {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "File({} bytes)", self.bytes.len())
    }
}

impl Beside {
    /// Adds the file of the subagent that `call` began.
    pub fn add(&mut self, call: impl Into<String>, bytes: Vec<u8>) {
        let source = self.files.len() as u32 + 1;
        self.add_rest(call, source, Position::default(), bytes);
    }

    /// Adds what follows after so many lines and bytes of a file, the session's source `source`.
    pub fn add_rest(
        &mut self,
        call: impl Into<String>,
        source: u32,
        after: Position,
        bytes: Vec<u8>,
    ) {
        let (line, offset) = (after.line, after.offset);
        let mut file =
            File { source, call: call.into(), bytes, at: 0, line, offset, time: i64::MIN };
        file.look();
        self.files.push(file);
    }

    /// Whether there is nothing to read.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// Gives what was written before a line of the session's own file.
    pub fn before(&mut self, line: &[u8], found: impl FnMut(Given<'_>)) {
        if !self.files.is_empty()
            && let Some(time) = time(line)
        {
            self.until(time, found);
        }
    }

    /// Gives what is left.
    pub fn rest(&mut self, found: impl FnMut(Given<'_>)) {
        self.until(i64::MAX, found);
    }

    fn until(&mut self, time: i64, mut found: impl FnMut(Given<'_>)) {
        loop {
            let open = self.files.iter_mut().filter(|f| f.at < f.bytes.len() && f.time <= time);
            let Some(file) = open.min_by_key(|f| f.time) else { return };
            file.take(&mut found);
        }
    }
}

impl File {
    /// The end of the next line.
    fn end(&self) -> usize {
        memchr(b'\n', &self.bytes[self.at..]).map_or(self.bytes.len(), |i| self.at + i)
    }

    /// Sees when the next line was written; one that does not tell was written with the one before.
    fn look(&mut self) {
        if let Some(time) = time(&self.bytes[self.at..self.end()]) {
            self.time = self.time.max(time);
        }
    }

    fn take(&mut self, found: &mut impl FnMut(Given<'_>)) {
        let end = self.end();
        self.line += 1;
        let (source, number) = (self.source, self.line);
        let offset = self.offset + self.at as u64;
        // The same rules for lines as everywhere.
        let mut lines = Lines::default();
        let mut give = |line: Line<'_>| {
            let position = Position { line: number, column: 0, offset };
            if line.cut {
                let (reason, length) = ("line too long", line.length);
                found(Given::Fault(Malformed { reason, position, length, source }));
            } else if !line.bytes.trim_ascii().is_empty() {
                let parent = Some(self.call.as_str());
                found(Given::Packet(Packet {
                    source,
                    parent,
                    ..Packet::new(line.bytes, position)
                }));
            }
        };
        lines.push(&self.bytes[self.at..end], &mut give);
        lines.finish(&mut give);
        self.at = (end + 1).min(self.bytes.len());
        if self.at < self.bytes.len() {
            self.look();
        }
    }
}

/// When a record was written.
fn time(line: &[u8]) -> Option<i64> {
    const KEY: &[u8] = b"\"timestamp\":\"";
    let from = memmem::find(line, KEY)? + KEY.len();
    let rest = line.get(from..)?;
    let text = std::str::from_utf8(rest.get(..memchr(b'"', rest)?)?).ok()?;
    Time::parse(text).map(|t| t.millis())
}
