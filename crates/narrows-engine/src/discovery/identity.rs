//! Whether a file is the one that was read before, and goes on where that ended.

use narrows::event::Position;
use narrows_store::{FileMark, SourceMark};
use sha2::{Digest, Sha256};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

/// How much of a file's beginning is compared.
const HEAD: usize = 1024;
/// How much of the last line is.
const TAIL: u64 = 64 << 10;

/// A name that the same session gets again: the agent's own id of it, which is the file's name, or
/// the file's name and place.
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

/// A hash of some bytes, and how many they were.
fn hash(bytes: &[u8]) -> Vec<u8> {
    let mut mark = (bytes.len() as u32).to_le_bytes().to_vec();
    mark.extend_from_slice(&Sha256::digest(bytes)[..12]);
    mark
}

fn length(mark: &[u8]) -> usize {
    mark.first_chunk().map_or(0, |n| u32::from_le_bytes(*n) as usize)
}

fn bytes_at(file: &mut File, at: u64, most: usize) -> io::Result<Vec<u8>> {
    file.seek(SeekFrom::Start(at))?;
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// How a file begins.
pub(super) fn head(file: &mut File) -> io::Result<Vec<u8>> {
    Ok(hash(&bytes_at(file, 0, HEAD)?))
}

/// What was read of a file ends at `end`: a hash of the last of it, and where that begins.
pub(super) fn tail(file: &mut File, end: u64) -> io::Result<(Vec<u8>, u64)> {
    let from = end.saturating_sub(TAIL);
    let bytes = bytes_at(file, from, (end - from) as usize)?;
    let line = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    let begin = memchr::memrchr(b'\n', line).map_or(0, |at| at + 1);
    Ok((hash(&bytes[begin..]), from + begin as u64))
}

/// Whether a file holds what was read before where it was read.
pub(super) fn goes_on(file: &mut File, mark: &FileMark) -> io::Result<bool> {
    let size = file.metadata()?.len();
    let end = mark.tail_at + length(&mark.tail) as u64;
    Ok(size >= end
        && hash(&bytes_at(file, 0, length(&mark.head))?) == mark.head
        && hash(&bytes_at(file, mark.tail_at, length(&mark.tail))?) == mark.tail)
}

/// Where reading goes on: after the last line of which nothing was held back.
pub(super) fn place(file: &mut File, source: Option<&SourceMark>) -> io::Result<Position> {
    // Where it is not known, everything is read again, and what was read is passed over.
    let Some(source) = source.filter(|s| s.rest_offset > 0) else {
        return Ok(Position::default());
    };
    let mut offset = source.rest_offset;
    // A line that was read without its end has got it.
    let around = bytes_at(file, offset - 1, 2)?;
    offset += u64::from(around.len() == 2 && around[0] != b'\n' && around[1] == b'\n');
    Ok(Position { line: source.rest, column: 0, offset })
}
