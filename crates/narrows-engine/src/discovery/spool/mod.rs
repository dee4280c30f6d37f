//! Spool files: sessions recorded by `narrows acp`. The recorder sends its file to a running server while
//! it grows; files that remain are drained into the store and deleted.
//!
//! A file is `<data>/spool/<time>-<label hash>.jsonl`: a header, then one packet per line. Its recorder
//! holds a lock on it. The header has the position of the first packet in the session once it is known, so
//! that every packet is stored once, whichever process sends it.

mod drain;

pub use drain::SpoolDrainer;

// Former names, until their last users are renamed.
pub use self::{SpoolFile as Spool, SpoolHeader as Header};
pub use drain::SpoolDrainer as Spools;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// Longest header, in bytes.
const MAX_HEADER_BYTES: u64 = 64 << 10;
/// The fixed beginning of a header: the position that follows is written later in place.
const HEADER_PREFIX: &str = r#"{"narrows":"spool","first":""#;
const POSITION_DIGITS: usize = 20;

/// The first line of a spool file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpoolHeader {
    /// Always `spool`.
    narrows: String,
    /// The position of the first packet in the session, in twenty digits; 0 while unknown.
    first: String,
    /// The session's label in the store.
    pub label: String,
    /// The agent's command, without its path.
    pub agent: String,
    /// The agent's own session id.
    pub session: String,
    /// The agent's working directory.
    pub cwd: String,
}

impl SpoolHeader {
    /// A header for a session without a position.
    pub fn new(label: String, agent: String, session: String, cwd: String) -> SpoolHeader {
        let (narrows, first) = ("spool".to_owned(), "0".repeat(POSITION_DIGITS));
        SpoolHeader { narrows, first, label, agent, session, cwd }
    }
}

/// An open spool file.
#[derive(Debug)]
pub struct SpoolFile {
    /// The path.
    pub path: PathBuf,
    /// The header.
    pub header: SpoolHeader,
    /// The offset of the first packet.
    pub begins: u64,
    /// The file, for positioned reads and writes.
    pub file: File,
}

impl SpoolFile {
    /// Creates and locks the file of a session.
    pub fn create(data: &Path, header: SpoolHeader) -> io::Result<SpoolFile> {
        let folder = folder(data);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let path = folder.join(format!("{now:017}-{}.jsonl", label_hash(&header.label)));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        if let Err(e) = file.write_all_at(&line, 0) {
            let _ = fs::remove_file(&path);
            return Err(e);
        }
        Ok(SpoolFile { path, header, begins: line.len() as u64, file })
    }

    /// Opens a file; `None` if it is empty.
    pub fn open(path: &Path) -> io::Result<Option<SpoolFile>> {
        // Links are not followed: an attacker with write access could point to any file.
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut line = Vec::new();
        BufReader::new((&file).take(MAX_HEADER_BYTES)).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let begins = line.len() as u64;
        if !line.ends_with(b"\n") {
            return Err(io::Error::other("the header is incomplete"));
        }
        let header: SpoolHeader = serde_json::from_slice(&line)?;
        if !line.starts_with(HEADER_PREFIX.as_bytes()) || header.first.len() != POSITION_DIGITS {
            return Err(io::Error::other("not a spool file header"));
        }
        Ok(Some(SpoolFile { path: path.to_owned(), header, begins, file }))
    }

    /// Reads the position of the first packet; 0 while unknown. Another process may have set it.
    pub fn first(&self) -> io::Result<u64> {
        let mut digits = [0; POSITION_DIGITS];
        self.file.read_exact_at(&mut digits, HEADER_PREFIX.len() as u64)?;
        let digits = std::str::from_utf8(&digits).unwrap_or_default();
        digits.parse().map_err(|_| io::Error::other("the header is damaged"))
    }

    /// Sets the position of the first packet.
    pub fn set_first(&self, first: u64) -> io::Result<()> {
        self.file.write_all_at(format!("{first:020}").as_bytes(), HEADER_PREFIX.len() as u64)
    }

    /// The offset after this number of packets.
    pub fn after(&self, packets: u64) -> io::Result<u64> {
        let (mut at, mut left) = (self.begins, packets);
        let mut chunk = vec![0; CHUNK_BYTES];
        while left > 0 {
            let n = self.file.read_at(&mut chunk, at)?;
            let mut ends = memchr::memchr_iter(b'\n', &chunk[..n]);
            let Some(end) = ends.nth(usize::try_from(left - 1).unwrap_or(usize::MAX)) else {
                if n == 0 {
                    return Ok(at);
                }
                left -= memchr::memchr_iter(b'\n', &chunk[..n]).count() as u64;
                at += n as u64;
                continue;
            };
            return Ok(at + end as u64 + 1);
        }
        Ok(at)
    }

    /// Returns whether an older file of the same session exists, whose packets come first.
    pub fn has_older(&self) -> bool {
        let Some(folder) = self.path.parent() else { return false };
        list(folder)
            .iter()
            .any(|path| *path < self.path && hash_in_name(path) == hash_in_name(&self.path))
    }

    /// Where to continue: the position of the first packet, and how many packets are known. `read` is the
    /// last packet that the session has read, `rest` its checkpoint.
    pub fn goes_on(&self, read: u64, rest: u64) -> io::Result<(u64, u64)> {
        let mut first = self.first()?;
        // A session that ends before this position is an older copy without these packets.
        if first == 0 || first > read + 1 {
            first = read + 1;
            self.set_first(first)?;
        }
        Ok((first, (rest + 1).max(first) - first))
    }
}

/// The directory of spool files.
pub fn folder(data: &Path) -> PathBuf {
    data.join("spool")
}

/// Returns whether a file other than `own` exists for the session of a label.
pub fn has_other(data: &Path, label: &str, own: Option<&Path>) -> bool {
    let hash = label_hash(label);
    list(&folder(data))
        .iter()
        .any(|p| Some(p.as_path()) != own && hash_in_name(p) == Some(hash.as_str()))
}

fn label_hash(label: &str) -> String {
    Sha256::digest(label).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn hash_in_name(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.split_once('-').map(|(_, key)| key)
}

/// The files in a directory, oldest first.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl") && hash_in_name(p).is_some())
        .collect();
    files.sort();
    files
}
