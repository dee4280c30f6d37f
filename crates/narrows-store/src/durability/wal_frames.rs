//! Reads the frames of a write-ahead log without SQLite. SQLite ignores and later overwrites all frames
//! after a damaged one, so a WAL with valid frames behind damage is copied before it is opened. Each
//! frame can be verified by itself: its checksum continues from the one stored in the frame before it.

use super::file_error;
use super::log_ends::{self, LogEnds};
use crate::damage::Damage;
use crate::data_dir::{DataDir, make_private};
use crate::error::Result;
use rusqlite::Connection;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a database page, in every store.
pub(crate) const PAGE_BYTES: usize = 4096;
/// Bytes of the header of the WAL, and of the header of each frame.
const WAL_HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
/// Bytes of a frame.
const FRAME_BYTES: usize = FRAME_HEADER_BYTES + PAGE_BYTES;
/// The first bytes of a WAL; the lowest bit is the byte order of its checksums.
const MAGIC: u32 = 0x377f_0682;
/// The most copies of damaged WALs that are kept.
const MAX_COPIES: u32 = 3;

/// The valid frames of a write-ahead log, also behind damaged ones.
#[derive(Debug, Default)]
pub(crate) struct WalFrames {
    /// The offset of the newest committed version of each page.
    pub(crate) pages: HashMap<u32, u64>,
    /// Pages of the database after the last commit.
    pub(crate) page_count: u32,
    /// Valid frames behind a damaged one, up to the last commit.
    pub(crate) frames_behind_damage: u64,
    /// Commits behind a damaged frame.
    pub(crate) commits_behind_damage: u64,
}

/// Reads a big-endian number.
pub(crate) fn read_u32(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |n, byte| n << 8 | u32::from(*byte))
}

fn read_checksum(bytes: &[u8]) -> (u32, u32) {
    (read_u32(bytes), read_u32(bytes.get(4..).unwrap_or_default()))
}

/// Continues the running checksum of a WAL.
fn extend_checksum((mut a, mut b): (u32, u32), bytes: &[u8], is_big_endian: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let word = read_u32(&pair[at..]);
            if is_big_endian { word } else { word.swap_bytes() }
        };
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    (a, b)
}

/// The header of a WAL, as far as needed to verify its frames.
struct WalHeader {
    salt: [u8; 8],
    /// The byte order of checksums.
    is_big_endian: bool,
    /// Whether the header matches its checksum.
    is_intact: bool,
    checksum: (u32, u32),
}

impl WalHeader {
    fn read(wal: &File) -> Option<WalHeader> {
        let mut header = [0; WAL_HEADER_BYTES];
        wal.read_exact_at(&mut header, 0).ok()?;
        let is_big_endian = read_u32(&header) & 1 == 1;
        let checksum = read_checksum(&header[24..]);
        let is_intact = read_u32(&header) | 1 == MAGIC | 1
            && read_u32(&header[8..]) as usize == PAGE_BYTES
            && extend_checksum((0, 0), &header[..24], is_big_endian) == checksum;
        let mut salt: [u8; 8] = header[16..24].try_into().ok()?;
        if is_intact {
            return Some(WalHeader { salt, is_big_endian, is_intact, checksum });
        }
        // The header cannot be trusted: take the salt from the first frame and try the byte order.
        let mut frame = [0; FRAME_HEADER_BYTES];
        wal.read_exact_at(&mut frame, WAL_HEADER_BYTES as u64).ok()?;
        salt.copy_from_slice(&frame[8..16]);
        let is_big_endian = second_frame_matches(wal, true);
        Some(WalHeader { salt, is_big_endian, is_intact, checksum })
    }
}

/// Whether the second frame matches its checksum with this byte order.
fn second_frame_matches(wal: &File, is_big_endian: bool) -> bool {
    let mut frames = vec![0; 2 * FRAME_BYTES];
    if wal.read_exact_at(&mut frames, WAL_HEADER_BYTES as u64).is_err() {
        return false;
    }
    let (first, second) = frames.split_at(FRAME_BYTES);
    frame_checksum(read_checksum(&first[16..]), second, is_big_endian)
        == read_checksum(&second[16..])
}

fn frame_checksum(previous: (u32, u32), frame: &[u8], is_big_endian: bool) -> (u32, u32) {
    let header = extend_checksum(previous, &frame[..8], is_big_endian);
    extend_checksum(header, &frame[FRAME_HEADER_BYTES..], is_big_endian)
}

impl WalFrames {
    pub(crate) fn read(wal: &File) -> WalFrames {
        let mut frames = WalFrames::default();
        let Some(header) = WalHeader::read(wal) else { return frames };
        // SQLite reads up to the first frame that does not match.
        let (mut previous, mut is_readable) = (header.checksum, header.is_intact);
        let (mut uncommitted, mut behind_damage) = (Vec::new(), 0);
        let mut frame = vec![0; FRAME_BYTES];
        let mut offset = WAL_HEADER_BYTES as u64;
        while wal.read_exact_at(&mut frame, offset).is_ok() {
            let page_offset = offset + FRAME_HEADER_BYTES as u64;
            offset += frame.len() as u64;
            let has_salt = frame[8..16] == header.salt;
            let stored = read_checksum(&frame[16..]);
            let matches =
                has_salt && frame_checksum(previous, &frame, header.is_big_endian) == stored;
            previous = stored;
            is_readable &= matches;
            if !matches {
                continue;
            }
            let (page, page_count) = (read_u32(&frame), read_u32(&frame[4..]));
            uncommitted.push((page, page_offset));
            behind_damage += u64::from(!is_readable);
            // The last frame of a commit has the number of pages.
            if page_count > 0 {
                frames.page_count = page_count;
                frames.pages.extend(uncommitted.drain(..));
                if !is_readable {
                    frames.frames_behind_damage = behind_damage;
                    frames.commits_behind_damage += 1;
                }
            }
        }
        frames
    }

    /// Whether the damage may be a torn last commit, which was not durable when power went off.
    fn may_be_torn(&self) -> bool {
        self.commits_behind_damage < 2
    }

    fn read_path(path: &Path) -> WalFrames {
        File::open(path).map_or_else(|_| WalFrames::default(), |wal| WalFrames::read(&wal))
    }
}

/// The copies of damaged WALs in a data directory.
pub(crate) fn copies(dir: &DataDir) -> Vec<PathBuf> {
    (1..=MAX_COPIES).map(|n| copy_path(dir, n)).filter(|path| path.exists()).collect()
}

fn copy_path(dir: &DataDir, n: u32) -> PathBuf {
    let mut name = dir.wal().into_os_string();
    name.push(format!(".damaged-{n}"));
    name.into()
}

/// A copy of a damaged WAL.
#[derive(Debug)]
pub(crate) struct WalCopy {
    path: PathBuf,
    may_be_torn: bool,
}

impl WalCopy {
    /// Removes the copy if the damage may be a torn last commit. Call it only when no event is missing.
    pub(crate) fn discard_if_torn(self) {
        if self.may_be_torn {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Copies the WAL if SQLite would ignore valid frames of it. Needs the lock of the data directory, and
/// must run before the database is opened.
pub(crate) fn copy_if_damaged(dir: &DataDir) -> Result<Option<WalCopy>> {
    let frames = WalFrames::read_path(&dir.wal());
    if frames.frames_behind_damage == 0 {
        return Ok(None);
    }
    let unused = (1..=MAX_COPIES).map(|n| copy_path(dir, n)).find(|path| !path.exists());
    let Some(path) = unused else {
        tracing::error!(
            copies = MAX_COPIES,
            "the write-ahead log is damaged and not copied: there are enough copies"
        );
        return Ok(None);
    };
    copy_private(&dir.wal(), &path).map_err(file_error(&path))?;
    Ok(Some(WalCopy { path, may_be_torn: frames.may_be_torn() }))
}

/// Copies a file atomically, readable only by its owner.
fn copy_private(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut temporary = to.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = PathBuf::from(temporary);
    let _ = fs::remove_file(&temporary);
    make_private(&temporary)?;
    fs::copy(from, &temporary)?;
    fs::set_permissions(&temporary, fs::Permissions::from_mode(0o600))?;
    File::open(&temporary)?.sync_all()?;
    fs::rename(&temporary, to)?;
    to.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// Reports the copies of damaged WALs.
pub(crate) fn damage_of_copies(dir: &DataDir) -> Vec<Damage> {
    let report = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Damage::other(format!(
            "the write-ahead log was damaged and is kept as {}: `narrows repair` recovers what it can",
            name.unwrap_or_default()
        ))
    };
    copies(dir).iter().map(report).collect()
}

/// Reports the copies, and a damaged WAL that was not opened for writing since. Only while no process
/// writes.
pub(crate) fn damage_of_wal(dir: &DataDir, db: Option<&Connection>) -> Vec<Damage> {
    let mut reports = damage_of_copies(dir);
    let frames = WalFrames::read_path(&dir.wal());
    let has_losses =
        || db.is_none_or(|db| !log_ends::find_losses(db, LogEnds::read(dir)).is_empty());
    if frames.frames_behind_damage > 0 && (!frames.may_be_torn() || has_losses()) {
        reports.push(Damage::other(format!(
            "the write-ahead log is damaged, with {} valid pages of {} commits behind the damage: \
             `narrows repair` recovers what it can",
            frames.frames_behind_damage, frames.commits_behind_damage
        )));
    }
    reports
}

/// Renames the copies along with a database that is moved aside.
pub(crate) fn move_copies_aside(dir: &DataDir, database_name: &str) {
    for (n, copy) in (1..).zip(copies(dir)) {
        let _ = fs::rename(&copy, dir.path().join(format!("{database_name}-wal.damaged-{n}")));
    }
}
