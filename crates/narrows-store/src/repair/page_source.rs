//! The pages of a database and of its write-ahead log, read without SQLite: it opens no database that
//! lacks its beginning, and deletes the log beside an empty one.

use crate::dir::DataDir;
use crate::frames::Frames;
pub(super) use crate::frames::{SIZE, number};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

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
        Pages::with(dir, &dir.wal())
    }

    /// With a copy of its write-ahead log. What stands behind a damaged frame is read as well.
    pub(super) fn with(dir: &DataDir, wal: &Path) -> Pages {
        let database = File::open(dir.database()).ok();
        let wal = File::open(wal).ok();
        let frames = wal.as_ref().map(Frames::of).unwrap_or_default();
        let (newest, said) = (frames.all, frames.all_pages);
        let bytes = database.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |m| m.len());
        let there = u32::try_from(bytes.div_ceil(SIZE as u64)).unwrap_or(u32::MAX);
        let highest = newest.keys().copied().max().unwrap_or(0);
        Pages { database, wal, newest, count: there.max(said).max(highest) }
    }

    /// Whether a page is of the write-ahead log.
    pub(super) fn is_logged(&self, number: u32) -> bool {
        self.newest.contains_key(&number)
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
