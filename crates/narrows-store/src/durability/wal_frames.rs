//! The frames of a write-ahead log, read without SQLite. One frame that is not as it was written makes
//! SQLite give up all that stand behind it, and write over them: so the log is looked at before it is
//! opened. The checksum of a frame goes on from the one that is kept with the frame before it; so each can
//! be looked at by itself.

use crate::damage::Damage;
use crate::dir::DataDir;
use crate::durable::{self, Durable};
use crate::error::{Error, Result};
use rusqlite::Connection;
use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Bytes of a page, in every store.
pub(crate) const SIZE: usize = 4096;
/// Bytes before the first frame, and before the page of each frame.
const LOG_HEAD: usize = 32;
const FRAME_HEAD: usize = 24;
/// How a write-ahead log begins; the last bit says how its checksums read numbers.
const MAGIC: u32 = 0x377f_0682;
/// Copies of damaged logs that are kept.
const COPIES: u32 = 3;

/// What a write-ahead log holds.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    /// Where the newest version of each page stands that SQLite reads.
    pub(crate) newest: HashMap<u32, u64>,
    /// How many pages the database has then.
    pub(crate) pages: u32,
    /// Both with what stands behind frames that are damaged.
    pub(crate) all: HashMap<u32, u64>,
    pub(crate) all_pages: u32,
    /// Whole frames behind a damaged one, up to the last commit, and commits among them.
    pub(crate) behind: u64,
    pub(crate) commits: u64,
}

pub(crate) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |n, byte| n << 8 | u32::from(*byte))
}

fn sum_at(bytes: &[u8]) -> (u32, u32) {
    (number(bytes), number(bytes.get(4..).unwrap_or_default()))
}

/// The checksum of a write-ahead log, which goes on from frame to frame.
fn check((mut a, mut b): (u32, u32), bytes: &[u8], big: bool) -> (u32, u32) {
    for pair in bytes.chunks_exact(8) {
        let word = |at: usize| {
            let word = number(&pair[at..]);
            if big { word } else { word.swap_bytes() }
        };
        a = a.wrapping_add(word(0)).wrapping_add(b);
        b = b.wrapping_add(word(4)).wrapping_add(a);
    }
    (a, b)
}

/// How the frames of a log are known.
struct Head {
    salt: [u8; 8],
    big: bool,
    /// Whether it is as it was written.
    whole: bool,
    sum: (u32, u32),
}

impl Head {
    fn read(wal: &File) -> Option<Head> {
        let mut head = [0; LOG_HEAD];
        wal.read_exact_at(&mut head, 0).ok()?;
        let big = number(&head) & 1 == 1;
        let sum = sum_at(&head[24..]);
        let whole = number(&head) | 1 == MAGIC | 1
            && number(&head[8..]) as usize == SIZE
            && check((0, 0), &head[..24], big) == sum;
        let mut salt: [u8; 8] = head[16..24].try_into().ok()?;
        if whole {
            return Some(Head { salt, big, whole, sum });
        }
        // Nothing of it can be believed: the frames know it, too.
        let mut frame = [0; FRAME_HEAD];
        wal.read_exact_at(&mut frame, LOG_HEAD as u64).ok()?;
        salt.copy_from_slice(&frame[8..16]);
        Some(Head { salt, big: second_is_whole(wal, true), whole, sum })
    }
}

/// Whether the second frame is whole, if numbers are read like this.
fn second_is_whole(wal: &File, big: bool) -> bool {
    let mut frames = vec![0; 2 * (FRAME_HEAD + SIZE)];
    if wal.read_exact_at(&mut frames, LOG_HEAD as u64).is_err() {
        return false;
    }
    let (first, second) = frames.split_at(FRAME_HEAD + SIZE);
    frame_sum(sum_at(&first[16..]), second, big) == sum_at(&second[16..])
}

fn frame_sum(before: (u32, u32), frame: &[u8], big: bool) -> (u32, u32) {
    check(check(before, &frame[..8], big), &frame[FRAME_HEAD..], big)
}

impl Frames {
    pub(crate) fn of(wal: &File) -> Frames {
        let mut frames = Frames::default();
        let Some(head) = Head::read(wal) else { return frames };
        let (mut before, mut in_order) = (head.sum, head.whole);
        let (mut waiting, mut later, mut behind) = (Vec::new(), Vec::new(), 0);
        let mut frame = vec![0; FRAME_HEAD + SIZE];
        let mut at = LOG_HEAD as u64;
        while wal.read_exact_at(&mut frame, at).is_ok() {
            let place = at + FRAME_HEAD as u64;
            at += frame.len() as u64;
            let is_own = frame[8..16] == head.salt;
            let kept = sum_at(&frame[16..]);
            let whole = is_own && frame_sum(before, &frame, head.big) == kept;
            before = kept;
            // As SQLite reads it: up to the first frame that is not whole, and of these up to the last
            // commit.
            in_order &= whole;
            if !whole {
                continue;
            }
            let (page, after) = (number(&frame), number(&frame[4..]));
            later.push((page, place));
            if in_order {
                waiting.push((page, place));
            } else {
                behind += 1;
            }
            if after > 0 {
                frames.all_pages = after;
                frames.all.extend(later.drain(..));
                if in_order {
                    frames.pages = after;
                    frames.newest.extend(waiting.drain(..));
                } else {
                    frames.behind = behind;
                    frames.commits += 1;
                }
            }
        }
        frames
    }

    /// The frames may be of the last commit alone, which was not yet durable when power went off.
    fn may_be_torn(&self) -> bool {
        self.commits < 2
    }

    fn at(path: &Path) -> Frames {
        File::open(path).map_or_else(|_| Frames::default(), |wal| Frames::of(&wal))
    }
}

/// The copies of damaged logs that are there.
pub(crate) fn copies(dir: &DataDir) -> Vec<PathBuf> {
    (1..=COPIES).map(|n| copy_at(dir, n)).filter(|path| path.exists()).collect()
}

fn copy_at(dir: &DataDir, n: u32) -> PathBuf {
    let mut name = dir.wal().into_os_string();
    name.push(format!(".damaged-{n}"));
    name.into()
}

/// A copy that was made.
#[derive(Debug)]
pub(crate) struct Copied {
    path: PathBuf,
    may_be_torn: bool,
}

impl Copied {
    /// Nothing of it is missed: power went off while the last commit was written.
    pub(crate) fn let_go(self) {
        if self.may_be_torn {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Keeps a copy of the write-ahead log if SQLite would give up frames that are whole. Only for whoever has
/// the right to write, before the database is opened.
pub(crate) fn keep(dir: &DataDir) -> Result<Option<Copied>> {
    let frames = Frames::at(&dir.wal());
    if frames.behind == 0 {
        return Ok(None);
    }
    let free = (1..=COPIES).map(|n| copy_at(dir, n)).find(|path| !path.exists());
    let Some(to) = free else {
        tracing::error!("the write-ahead log is damaged; no more copies of it are kept");
        return Ok(None);
    };
    copy(&dir.wal(), &to).map_err(|e| match e.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Io(format!("{}: {e}", to.display())),
    })?;
    Ok(Some(Copied { path: to, may_be_torn: frames.may_be_torn() }))
}

/// Whole or not at all, and for its owner only.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let mut fresh = to.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = PathBuf::from(fresh);
    let _ = fs::remove_file(&fresh);
    crate::dir::make_private(&fresh)?;
    fs::copy(from, &fresh)?;
    fs::set_permissions(&fresh, fs::Permissions::from_mode(0o600))?;
    File::open(&fresh)?.sync_all()?;
    fs::rename(&fresh, to)?;
    to.parent().map_or(Ok(()), |dir| File::open(dir)?.sync_all())
}

/// What is said of a log that is damaged: of copies, or of one that nobody has opened since.
pub(crate) fn said(dir: &DataDir) -> Vec<Damage> {
    let name = |path: &PathBuf| {
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        Damage::other(format!(
            "the write-ahead log was damaged: what it held is kept in {}, and `narrows repair` brings \
             back what it can",
            name.unwrap_or_default()
        ))
    };
    copies(dir).iter().map(name).collect()
}

/// The same for whoever only reads, while nobody writes: also of a log that nobody has opened since.
pub(crate) fn said_of_log(dir: &DataDir, db: Option<&Connection>) -> Vec<Damage> {
    let mut said = said(dir);
    let frames = Frames::at(&dir.wal());
    let is_missed = || db.is_none_or(|db| !durable::missing(db, Durable::ends(dir)).is_empty());
    if frames.behind > 0 && (!frames.may_be_torn() || is_missed()) {
        said.push(Damage::other(format!(
            "the write-ahead log is damaged, and {} pages of {} commits stand behind that: \
             `narrows repair` brings back what it can",
            frames.behind, frames.commits
        )));
    }
    said
}

/// The copies are of a database that is called otherwise now.
pub(crate) fn set_aside(dir: &DataDir, name: &str) {
    for (n, copy) in (1..).zip(copies(dir)) {
        let _ = fs::rename(&copy, dir.path().join(format!("{name}-wal.damaged-{n}")));
    }
}
