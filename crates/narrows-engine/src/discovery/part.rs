//! One file of a session: where it is read from, and what is remembered of it.

use super::identity::{goes_on, head, tail};
use super::look::age;
use narrows::adapter::record_of;
use narrows::event::Position;
use narrows::{Given, PARSER, Packets};
use narrows_store::FileMark;
use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

/// Bytes read at once.
pub(super) const CHUNK: usize = 1 << 20;
/// The longest line of a file.
pub(super) const MAX_LINE: usize = narrows::lines::MAX_LINE;
/// A last line without an end is taken when nothing has come after it for so long.
pub(super) const STILL: Duration = Duration::from_secs(10);
/// Sources from here on are files of long outputs, and of subagents that nobody asked for.
pub(super) const OUTPUTS: u32 = 1 << 24;
/// Files of subagents that nobody asked for have numbers from here on: the others' do not depend on
/// how many there are.
pub(super) const UNASKED: u32 = 1 << 20;

/// One file of a session, and where it is read from.
pub(super) struct Part {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// What it was when it was looked at.
    pub(super) node: String,
    pub(super) size: u64,
    pub(super) changed: i64,
    pub(super) from: Position,
    /// The last line that was read before.
    pub(super) read: u64,
    pub(super) parent: Option<String>,
    pub(super) skip: Option<Skip>,
    /// Where what was read of it ends.
    pub(super) end: Position,
    /// Its last record lacks its end: it is looked at again.
    pub(super) waits: bool,
}

/// Which lines of a file say what is known already.
pub(super) struct Skip {
    /// The last line whose record is known.
    pub(super) last: u64,
    /// The known records; none when everything up to that line is known.
    pub(super) known: Option<Rc<HashSet<u64>>>,
}

impl Skip {
    pub(super) fn skips(&self, line: u64, bytes: &[u8]) -> bool {
        let Some(known) = &self.known else { return line <= self.last };
        match std::str::from_utf8(bytes).ok().and_then(record_of) {
            Some(record) => known.contains(&record),
            None => line <= self.last,
        }
    }
}

impl Part {
    /// Whether a last line without an end is taken now: a whole record that has been so for a while.
    pub(super) fn takes_last(&mut self, line: &[u8], old: bool) -> bool {
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        self.waits = whole && !old && age(self.changed) <= STILL;
        whole && !self.waits
    }

    /// The whole lines that have not been read: those that come again, and those that are new.
    pub(super) fn rest(&mut self, old: bool) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.from.offset))?;
        let most = self.size.saturating_sub(self.from.offset);
        (&self.file).take(most).read_to_end(&mut bytes)?;
        let end = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        if !self.takes_last(&bytes[end..], old) {
            bytes.truncate(end);
        }
        let ends = || memchr::memchr_iter(b'\n', &bytes);
        let last = u64::from(bytes.last().is_some_and(|b| *b != b'\n'));
        self.end.line = self.from.line + ends().count() as u64 + last;
        self.end.offset = self.from.offset + bytes.len() as u64;
        let again = self.read.saturating_sub(self.from.line) as usize;
        let at = match again {
            0 => 0,
            n => ends().nth(n - 1).map_or(bytes.len(), |at| at + 1),
        };
        let new = bytes.split_off(at);
        Ok((bytes, new))
    }

    /// What stands after the last line that has ended.
    pub(super) fn last_line(&mut self, from: u64, until: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if until - from <= MAX_LINE as u64 {
            self.file.seek(SeekFrom::Start(from))?;
            (&self.file).take(until - from).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The last line whose record is known.
    pub(super) fn last_known(&mut self, known: &HashSet<u64>) -> io::Result<u64> {
        let (mut last, mut packets) = (0, Packets::new(MAX_LINE));
        let mut look = |given: Given<'_>| {
            if let Given::Packet(packet) = given
                && let Some(record) = std::str::from_utf8(packet.bytes).ok().and_then(record_of)
                && known.contains(&record)
            {
                last = packet.position.line;
            }
        };
        let mut chunk = vec![0; CHUNK];
        self.file.seek(SeekFrom::Start(0))?;
        loop {
            let n = self.file.read(&mut chunk)?;
            if n == 0 {
                break;
            }
            packets.push(&chunk[..n], &mut look);
        }
        packets.finish(&mut look);
        Ok(last)
    }

    /// What is remembered of it.
    pub(super) fn mark(&mut self, session: i64) -> io::Result<FileMark> {
        let (tail, tail_at) = tail(&mut self.file, self.end.offset)?;
        Ok(FileMark {
            session,
            number: self.number,
            path: self.path.to_string_lossy().into_owned(),
            node: self.node.clone(),
            // A file that has another length is looked at again.
            size: if self.waits { self.end.offset } else { self.size },
            changed: self.changed,
            head: head(&mut self.file)?,
            tail,
            tail_at,
            parent: self.parent.clone(),
            parser: PARSER,
            ..FileMark::default()
        })
    }
}

/// A file that was read elsewhere, of which this one is the continuation.
pub(super) fn continued<'m>(
    file: &mut File,
    mut marks: impl Iterator<Item = &'m FileMark>,
    parent: Option<&String>,
) -> io::Result<Option<&'m FileMark>> {
    for mark in marks.by_ref().filter(|m| m.parent.as_ref() == parent) {
        if !mark.tail.is_empty() && mark.tail_at > 0 && goes_on(file, mark)? {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

/// Whether a file has a whole line, or one that is too long to be read.
pub fn has_line(path: &Path) -> io::Result<bool> {
    let (mut file, mut chunk) = (File::open(path)?, vec![0; 64 << 10]);
    let (size, mut at) = (file.metadata()?.len(), 0);
    while at <= MAX_LINE as u64 {
        match file.read(&mut chunk)? {
            0 => return Ok(false),
            n if memchr::memchr(b'\n', &chunk[..n]).is_some() => return Ok(true),
            n => {
                at += n as u64;
                let hole = hole(&file, &chunk[..n], at, size)?;
                if at + hole >= size {
                    return Ok(false);
                }
                at += hole;
            }
        }
    }
    Ok(true)
}

/// How many bytes of a hole follow at a place of a file, which goes on behind it: nothing is written
/// there, and to read so many zeros takes its time. `before` is what was read up to there.
pub(super) fn hole(file: &File, before: &[u8], at: u64, size: u64) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    if before.first() != Some(&0) || before.last() != Some(&0) || at >= size {
        return Ok(0);
    }
    let data = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(size),
        // There is nothing but a hole up to the end.
        Err(rustix::io::Errno::NXIO) => size,
        // A disk that does not know: all of it is read.
        Err(_) => at,
    };
    seek(file, SeekFrom::Start(data))?;
    Ok(data - at)
}
