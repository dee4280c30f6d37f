//! Recognizes a file that was read before and where to resume in it.

use narrows::event::Position;
use narrows_store::{FileMark, SourceMark};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// Bytes at the beginning of a file that identify it.
const HEAD_BYTES: usize = 1024;
/// Bytes of the last line that identify where reading ended.
const TAIL_BYTES: u64 = 64 << 10;

/// The label of a file's session, the same each time: the session id in the file name, otherwise the file
/// name and a hash of its path.
pub fn label_of(file: &Path) -> String {
    let path = std::path::absolute(file).unwrap_or_else(|_| file.to_owned());
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let parts: Vec<usize> = name.split('-').map(str::len).collect();
    if parts == [8, 4, 4, 4, 12] && name.bytes().all(|b| b.is_ascii_hexdigit() || b == b'-') {
        return name;
    }
    let hash = Sha256::digest(path.as_os_str().as_encoded_bytes());
    let hash: String = hash.iter().take(4).map(|b| format!("{b:02x}")).collect();
    let plain = |c: char| if c.is_control() { '_' } else { c };
    format!("{}-{hash}", name.chars().map(plain).take(150).collect::<String>())
}

/// A hash of some bytes, prefixed with their number.
fn hash(bytes: &[u8]) -> Vec<u8> {
    let mut mark = (bytes.len() as u32).to_le_bytes().to_vec();
    mark.extend_from_slice(&Sha256::digest(bytes)[..12]);
    mark
}

fn length(mark: &[u8]) -> usize {
    mark.first_chunk().map_or(0, |n| u32::from_le_bytes(*n) as usize)
}

fn bytes_at(file: &mut File, at: u64, max: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::with_capacity(max);
    file.take(max as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The hash of a file's beginning.
pub(super) fn head(file: &mut File) -> io::Result<Vec<u8>> {
    Ok(hash(&bytes_at(file, 0, HEAD_BYTES)?))
}

/// The hash of the last line that was read before `end`, and its offset.
pub(super) fn tail(file: &mut File, end: u64) -> io::Result<(Vec<u8>, u64)> {
    let from = end.saturating_sub(TAIL_BYTES);
    let bytes = bytes_at(file, from, (end - from) as usize)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let begin = memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
    Ok((hash(&bytes[begin..]), from + begin as u64))
}

/// Returns whether a file still has the content that was read before.
pub(super) fn is_continuation(file: &mut File, mark: &FileMark) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let end = mark.tail_at + length(&mark.tail) as u64;
    Ok(size >= end
        && hash(&bytes_at(file, 0, length(&mark.head))?) == mark.head
        && hash(&bytes_at(file, mark.tail_at, length(&mark.tail))?) == mark.tail)
}

/// Where reading resumes: at the checkpoint.
pub(super) fn resume_at(file: &mut File, source: Option<&SourceMark>) -> io::Result<Position> {
    // Without a checkpoint everything is read again, and known records are skipped.
    let Some(source) = source.filter(|s| s.rest_offset > 0) else {
        return Ok(Position::default());
    };
    let mut offset = source.rest_offset;
    // A line that was read without its end has got one.
    let around = bytes_at(file, offset - 1, 2)?;
    offset += u64::from(around.len() == 2 && around[0] != b'\n' && around[1] == b'\n');
    Ok(Position { line: source.rest, column: 0, offset })
}
