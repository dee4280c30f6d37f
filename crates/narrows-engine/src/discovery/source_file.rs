//! One file of a session: where to resume, and the mark that is stored.

use super::file_identity::{head, is_continuation, tail};
use super::scan::age;
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
pub(super) const CHUNK_BYTES: usize = 1 << 20;
/// Longest line of a file, in bytes.
pub(super) const MAX_LINE_BYTES: usize = narrows::lines::MAX_LINE;
/// A last line without an end is read when nothing has followed it for this time.
pub(super) const QUIESCENT_AFTER: Duration = Duration::from_secs(10);
/// Source numbers from here on belong to offloaded outputs and to subagents that are not read.
pub(super) const FIRST_OUTPUT_SOURCE: u32 = 1 << 24;
/// Source numbers from here on belong to subagents without a call: the numbers of the others do not depend
/// on them.
pub(super) const FIRST_ORPHAN_SOURCE: u32 = 1 << 20;

/// One file of a session and where to resume in it.
pub(super) struct SourceFile {
    pub(super) number: u32,
    pub(super) path: PathBuf,
    pub(super) file: File,
    /// The file's metadata when it was opened.
    pub(super) node: String,
    pub(super) size: u64,
    pub(super) changed: i64,
    pub(super) from: Position,
    /// The last line that was read before.
    pub(super) read: u64,
    pub(super) parent: Option<String>,
    pub(super) skip: Option<SkipRange>,
    /// Where the lines that were read end.
    pub(super) end: Position,
    /// The last record lacks its line end: the file is read again.
    pub(super) awaits_line_end: bool,
}

/// The lines of a file whose records are known.
pub(super) struct SkipRange {
    /// The last line with a known record.
    pub(super) last: u64,
    /// The known records; `None` if all records up to `last` are known.
    pub(super) known: Option<Rc<HashSet<u64>>>,
}

impl SkipRange {
    pub(super) fn contains(&self, line: u64, bytes: &[u8]) -> bool {
        let Some(known) = &self.known else { return line <= self.last };
        match std::str::from_utf8(bytes).ok().and_then(record_of) {
            Some(record) => known.contains(&record),
            None => line <= self.last,
        }
    }
}

impl SourceFile {
    /// Returns whether to read a last line without an end: a complete record that has been so for a while.
    pub(super) fn accepts_last_line(&mut self, line: &[u8], is_over: bool) -> bool {
        let whole = serde_json::from_slice::<serde::de::IgnoredAny>(line).is_ok();
        self.awaits_line_end = whole && !is_over && age(self.changed) <= QUIESCENT_AFTER;
        whole && !self.awaits_line_end
    }

    /// The complete lines from the checkpoint on: those that were read before, and new ones.
    pub(super) fn unread_lines(&mut self, is_over: bool) -> io::Result<(Vec<u8>, Vec<u8>)> {
        let mut bytes = Vec::new();
        self.file.seek(SeekFrom::Start(self.from.offset))?;
        let most = self.size.saturating_sub(self.from.offset);
        (&self.file).take(most).read_to_end(&mut bytes)?;
        let end = memchr::memrchr(b'\n', &bytes).map_or(0, |at| at + 1);
        if !self.accepts_last_line(&bytes[end..], is_over) {
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

    /// The bytes after the last line end.
    pub(super) fn last_line(&mut self, from: u64, until: u64) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        if until - from <= MAX_LINE_BYTES as u64 {
            self.file.seek(SeekFrom::Start(from))?;
            (&self.file).take(until - from).read_to_end(&mut bytes)?;
        }
        Ok(bytes)
    }

    /// The last line with a known record.
    pub(super) fn last_known_line(&mut self, known: &HashSet<u64>) -> io::Result<u64> {
        let (mut last, mut packets) = (0, Packets::new(MAX_LINE_BYTES));
        let mut note_known = |given: Given<'_>| {
            if let Given::Packet(packet) = given
                && let Some(record) = std::str::from_utf8(packet.bytes).ok().and_then(record_of)
                && known.contains(&record)
            {
                last = packet.position.line;
            }
        };
        let mut chunk = vec![0; CHUNK_BYTES];
        self.file.seek(SeekFrom::Start(0))?;
        loop {
            let n = self.file.read(&mut chunk)?;
            if n == 0 {
                break;
            }
            packets.push(&chunk[..n], &mut note_known);
        }
        packets.finish(&mut note_known);
        Ok(last)
    }

    /// The mark to store.
    pub(super) fn file_mark(&mut self, session: i64) -> io::Result<FileMark> {
        let (tail, tail_at) = tail(&mut self.file, self.end.offset)?;
        Ok(FileMark {
            session,
            number: self.number,
            path: self.path.to_string_lossy().into_owned(),
            node: self.node.clone(),
            // A differing length makes the next scan read the file again.
            size: if self.awaits_line_end { self.end.offset } else { self.size },
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

/// Finds the mark of another file that this file continues.
pub(super) fn find_predecessor<'m>(
    file: &mut File,
    mut marks: impl Iterator<Item = &'m FileMark>,
    parent: Option<&String>,
) -> io::Result<Option<&'m FileMark>> {
    for mark in marks.by_ref().filter(|m| m.parent.as_ref() == parent) {
        if !mark.tail.is_empty() && mark.tail_at > 0 && is_continuation(file, mark)? {
            return Ok(Some(mark));
        }
    }
    Ok(None)
}

/// Returns whether a file has a complete line, or one that is too long to be read.
pub fn has_line(path: &Path) -> io::Result<bool> {
    let (mut file, mut chunk) = (File::open(path)?, vec![0; 64 << 10]);
    let (size, mut at) = (file.metadata()?.len(), 0);
    while at <= MAX_LINE_BYTES as u64 {
        match file.read(&mut chunk)? {
            0 => return Ok(false),
            n if memchr::memchr(b'\n', &chunk[..n]).is_some() => return Ok(true),
            n => {
                at += n as u64;
                let hole_len = hole_len(&file, &chunk[..n], at, size)?;
                if at + hole_len >= size {
                    return Ok(false);
                }
                at += hole_len;
            }
        }
    }
    Ok(true)
}

/// The bytes of a hole that follows at an offset of a sparse file: reading as many zeros takes long.
/// `before` is what was read up to there.
pub(super) fn hole_len(file: &File, before: &[u8], at: u64, size: u64) -> io::Result<u64> {
    use rustix::fs::{SeekFrom, seek};
    if before.first() != Some(&0) || before.last() != Some(&0) || at >= size {
        return Ok(0);
    }
    let data = match seek(file, SeekFrom::Data(at)) {
        Ok(data) => data.min(size),
        // The hole extends to the end of the file.
        Err(rustix::io::Errno::NXIO) => size,
        // A file system without hole detection: everything is read.
        Err(_) => at,
    };
    seek(file, SeekFrom::Start(data))?;
    Ok(data - at)
}
