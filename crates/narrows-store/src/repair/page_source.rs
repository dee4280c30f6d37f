//! Reads the pages of a database and of its write-ahead log without SQLite, which refuses a database
//! without its first page and deletes the log next to an empty one.

use crate::data_dir::DataDir;
use crate::durability::wal_frames::WalFrames;
pub(super) use crate::durability::wal_frames::{PAGE_BYTES, read_u32};
use std::collections::HashMap;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

pub(super) type PageBuffer = [u8; PAGE_BYTES];

/// The newest version of each page.
pub(super) struct PageSource {
    database: Option<File>,
    wal: Option<File>,
    /// The offsets of pages in the write-ahead log.
    wal_pages: HashMap<u32, u64>,
    /// The number of pages that exist or existed.
    pub(super) count: u32,
}

impl PageSource {
    pub(super) fn open(dir: &DataDir) -> PageSource {
        PageSource::with_wal(dir, &dir.wal())
    }

    /// Opens the pages with another write-ahead log. Frames behind damage are read as well.
    pub(super) fn with_wal(dir: &DataDir, wal: &Path) -> PageSource {
        let database = File::open(dir.database()).ok();
        let wal = File::open(wal).ok();
        let frames = wal.as_ref().map(WalFrames::read).unwrap_or_default();
        let (wal_pages, wal_count) = (frames.pages, frames.page_count);
        let bytes = database.as_ref().and_then(|file| file.metadata().ok()).map_or(0, |m| m.len());
        let file_count = u32::try_from(bytes.div_ceil(PAGE_BYTES as u64)).unwrap_or(u32::MAX);
        let highest = wal_pages.keys().copied().max().unwrap_or(0);
        PageSource { database, wal, wal_pages, count: file_count.max(wal_count).max(highest) }
    }

    /// Whether a page is in the write-ahead log.
    pub(super) fn is_in_wal(&self, number: u32) -> bool {
        self.wal_pages.contains_key(&number)
    }

    /// Reads a page; false if there is none.
    pub(super) fn read(&self, number: u32, page: &mut PageBuffer) -> bool {
        page.fill(0);
        if number == 0 || number > self.count {
            return false;
        }
        let offset = u64::from(number - 1) * PAGE_BYTES as u64;
        match (self.wal_pages.get(&number), &self.wal, &self.database) {
            (Some(at), Some(wal), _) => wal.read_exact_at(page, *at).is_ok(),
            // A truncated last page is read as far as it goes.
            (_, _, Some(file)) => read_available(file, page, offset) > 0,
            _ => false,
        }
    }
}

fn read_available(file: &File, page: &mut PageBuffer, offset: u64) -> usize {
    let mut done = 0;
    while done < PAGE_BYTES {
        match file.read_at(&mut page[done..], offset + done as u64) {
            Ok(0) | Err(_) => break,
            Ok(more) => done += more,
        }
    }
    done
}
