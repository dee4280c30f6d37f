//! Spool files: what `narrows acp` recorded of a session. Each is sent to a running server while it
//! grows; those that lie there are read into the store and deleted.
//!
//! A file is `<data>/spool/<time>-<key of the label>.jsonl`: a header, then one packet a line. As
//! long as its recorder lives, it holds a lock on it. The header says which place in the session the
//! first packet has, once it has one: so every packet is taken once, whoever brings it.

mod reading;

pub use reading::Spools;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Bytes read at once.
const CHUNK: usize = 256 << 10;
/// Longest header.
const MAX_HEADER: u64 = 64 << 10;
/// How a header begins: the place that follows is written later, where it stands.
const BEGINNING: &str = r#"{"narrows":"spool","first":""#;
const DIGITS: usize = 20;

/// What the first line of a spool file says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Header {
    /// Always `spool`.
    narrows: String,
    /// The place of the first packet in the session, in twenty digits; 0 while it has none.
    first: String,
    /// The session's label in the store.
    pub label: String,
    /// The agent's command, without its path.
    pub agent: String,
    /// The agent's own id of the session.
    pub session: String,
    /// The folder in which it works.
    pub cwd: String,
}

impl Header {
    /// A header of a session that has no place yet.
    pub fn new(label: String, agent: String, session: String, cwd: String) -> Header {
        let (narrows, first) = ("spool".to_owned(), "0".repeat(DIGITS));
        Header { narrows, first, label, agent, session, cwd }
    }
}

/// An open spool file.
#[derive(Debug)]
pub struct Spool {
    /// Where it lies.
    pub path: PathBuf,
    /// What it is.
    pub header: Header,
    /// Where the packets begin.
    pub begins: u64,
    /// The file, to be read and written at places.
    pub file: File,
}

impl Spool {
    /// Makes the file of a session, which is the caller's as long as it is open.
    pub fn create(data: &Path, header: Header) -> io::Result<Spool> {
        let folder = folder(data);
        DirBuilder::new().recursive(true).mode(0o700).create(&folder)?;
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_micros();
        let path = folder.join(format!("{now:017}-{}.jsonl", key(&header.label)));
        let mut options = OpenOptions::new();
        let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
        file.try_lock()?;
        let mut line = serde_json::to_vec(&header)?;
        line.push(b'\n');
        if let Err(e) = file.write_all_at(&line, 0) {
            let _ = fs::remove_file(&path);
            return Err(e);
        }
        Ok(Spool { path, header, begins: line.len() as u64, file })
    }

    /// Opens a file; none when there is nothing in it.
    pub fn open(path: &Path) -> io::Result<Option<Spool>> {
        // Links are not followed: whoever may write here could name any file.
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let mut line = Vec::new();
        BufReader::new((&file).take(MAX_HEADER)).read_until(b'\n', &mut line)?;
        if line.is_empty() {
            return Ok(None);
        }
        let begins = line.len() as u64;
        if !line.ends_with(b"\n") {
            return Err(io::Error::other("its header is not whole"));
        }
        let header: Header = serde_json::from_slice(&line)?;
        if !line.starts_with(BEGINNING.as_bytes()) || header.first.len() != DIGITS {
            return Err(io::Error::other("its header is not of a spool file"));
        }
        Ok(Some(Spool { path: path.to_owned(), header, begins, file }))
    }

    /// The place of the first packet; 0 while it has none. Somebody else may have given it one.
    pub fn first(&self) -> io::Result<u64> {
        let mut digits = [0; DIGITS];
        self.file.read_exact_at(&mut digits, BEGINNING.len() as u64)?;
        let digits = std::str::from_utf8(&digits).unwrap_or_default();
        digits.parse().map_err(|_| io::Error::other("its header is damaged"))
    }

    /// Gives the first packet its place.
    pub fn set_first(&self, first: u64) -> io::Result<()> {
        self.file.write_all_at(format!("{first:020}").as_bytes(), BEGINNING.len() as u64)
    }

    /// Where the packet after so many begins.
    pub fn after(&self, packets: u64) -> io::Result<u64> {
        let (mut at, mut left) = (self.begins, packets);
        let mut chunk = vec![0; CHUNK];
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

    /// Whether an older file of the same session lies there: what it holds comes first.
    pub fn has_older(&self) -> bool {
        let Some(folder) = self.path.parent() else { return false };
        list(folder).iter().any(|path| *path < self.path && key_of(path) == key_of(&self.path))
    }

    /// Where the packets go on: the place of the first, and how many are known already. `read` and
    /// `rest` are the places up to which the session's packets were read, and can go on.
    pub fn goes_on(&self, read: u64, rest: u64) -> io::Result<(u64, u64)> {
        let mut first = self.first()?;
        // A session that ends before its place is an older copy, without these packets.
        if first == 0 || first > read + 1 {
            first = read + 1;
            self.set_first(first)?;
        }
        Ok((first, (rest + 1).max(first) - first))
    }
}

/// Where spool files lie.
pub fn folder(data: &Path) -> PathBuf {
    data.join("spool")
}

/// Whether another file than `own` lies there for the session of a label.
pub fn has_other(data: &Path, label: &str, own: Option<&Path>) -> bool {
    let key = key(label);
    list(&folder(data)).iter().any(|p| Some(p.as_path()) != own && key_of(p) == Some(key.as_str()))
}

fn key(label: &str) -> String {
    Sha256::digest(label).iter().take(8).map(|b| format!("{b:02x}")).collect()
}

fn key_of(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()?.split_once('-').map(|(_, key)| key)
}

/// The files in a folder, the oldest first.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten().map(|e| e.path());
    let mut files: Vec<PathBuf> = entries
        .filter(|p| p.extension().is_some_and(|e| e == "jsonl") && key_of(p).is_some())
        .collect();
    files.sort();
    files
}
