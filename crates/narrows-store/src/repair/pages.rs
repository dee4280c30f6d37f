//! The pages of a database and of its write-ahead log, read without SQLite: it opens no database that
//! lacks its beginning, and deletes the log beside an empty one.

use crate::dir::DataDir;
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Bytes of a page, in every store.
pub(super) const SIZE: usize = 4096;
/// Bytes before the first frame of a write-ahead log, and before the page of each frame.
const LOG_HEAD: usize = 32;
const FRAME_HEAD: usize = 24;
/// How a write-ahead log begins; the last bit says how its checksums read numbers.
const MAGIC: u32 = 0x377f_0682;

pub(super) type Page = [u8; SIZE];

/// The newest version of each page.
pub(super) struct Pages {
    database: Option<File>,
    wal: Option<File>,
    /// Where in the write-ahead log a page stands.
    newest: HashMap<u32, u64>,
    /// How many pages there are, or were.
    pub(super) count: u32,
}

impl Pages {
    pub(super) fn open(dir: &DataDir) -> Pages {
        let database = File::open(dir.database()).ok();
        let wal = File::open(dir.wal()).ok();
        let (newest, said) = wal.as_ref().map(frames).unwrap_or_default();
        let bytes = database.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |m| m.len());
        let there = u32::try_from(bytes.div_ceil(SIZE as u64)).unwrap_or(u32::MAX);
        let highest = newest.keys().copied().max().unwrap_or(0);
        Pages { database, wal, newest, count: there.max(said).max(highest) }
    }

    /// Reads a page; false where there is none.
    pub(super) fn read(&self, number: u32, page: &mut Page) -> bool {
        page.fill(0);
        if number == 0 || number > self.count {
            return false;
        }
        let place = u64::from(number - 1) * SIZE as u64;
        match (self.newest.get(&number), &self.wal, &self.database) {
            (Some(at), Some(wal), _) => wal.read_exact_at(page, *at).is_ok(),
            // The end of a file that was cut within a page is read as far as it goes.
            (_, _, Some(file)) => fill(file, page, place) > 0,
            _ => false,
        }
    }
}

fn fill(file: &File, page: &mut Page, place: u64) -> usize {
    let mut done = 0;
    while done < SIZE {
        match file.read_at(&mut page[done..], place + done as u64) {
            Ok(0) | Err(_) => break,
            Ok(more) => done += more,
        }
    }
    done
}

pub(super) fn number(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |n, byte| n << 8 | u32::from(*byte))
}

/// Which pages were committed, and where they stand; and how many pages the database has then.
fn frames(wal: &File) -> (HashMap<u32, u64>, u32) {
    let (mut newest, mut pages) = (HashMap::new(), 0);
    let mut head = [0; LOG_HEAD];
    if wal.read_exact_at(&mut head, 0).is_err() {
        return (newest, pages);
    }
    let big = number(&head) & 1 == 1;
    let sum = check((0, 0), &head[..24], big);
    let is_whole = number(&head) | 1 == MAGIC | 1
        && number(&head[8..]) as usize == SIZE
        && sum == (number(&head[24..]), number(&head[28..]));
    if !is_whole {
        return (newest, pages);
    }
    let (mut sum, mut waiting) = (sum, Vec::new());
    let mut frame = vec![0; FRAME_HEAD + SIZE];
    let mut at = LOG_HEAD as u64;
    // As SQLite reads it: up to the first frame that is not whole, and of these up to the last commit.
    while wal.read_exact_at(&mut frame, at).is_ok() && frame[8..16] == head[16..24] {
        sum = check(sum, &frame[..8], big);
        sum = check(sum, &frame[FRAME_HEAD..], big);
        if sum != (number(&frame[16..]), number(&frame[20..])) {
            break;
        }
        waiting.push((number(&frame), at + FRAME_HEAD as u64));
        let after = number(&frame[4..]);
        if after > 0 {
            pages = after;
            newest.extend(waiting.drain(..));
        }
        at += frame.len() as u64;
    }
    (newest, pages)
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
