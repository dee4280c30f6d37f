//! The file `narrows.durable`: fixed-size slots, each with the end of one session's log and a CRC.

use crate::data_dir::DataDir;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

const FILE_NAME: &str = "narrows.durable";
/// Sessions whose log ends are kept. With more sessions, those written last.
pub(super) const SLOT_COUNT: u64 = 1024;
/// Bytes of a slot: key, last event, session id, checksum.
const SLOT_BYTES: usize = 64;
/// Bytes of a session id in a slot; longer ids are cut.
pub(super) const ID_BYTES: usize = 40;
/// The slot after the log ends: the highest key that any session ever had.
const HIGHEST_KEY_SLOT: u64 = SLOT_COUNT;

/// The end of a session's log.
pub(super) struct LogEnd {
    /// The session's key; 0 in an empty slot.
    pub(super) session: i64,
    /// The last event.
    pub(super) last: u64,
    /// The session's id.
    pub(super) id: String,
}

/// The open file. Everything is best effort: without the file the store works, and less is known after
/// a loss.
#[derive(Debug)]
pub(super) struct LogEndFile(Option<File>);

impl LogEndFile {
    pub(super) fn open(dir: &DataDir) -> LogEndFile {
        let mut options = OpenOptions::new();
        options.create(true).read(true).write(true).truncate(false).mode(0o600);
        LogEndFile(options.open(dir.path().join(FILE_NAME)).ok())
    }

    pub(super) fn open_read_only(dir: &DataDir) -> LogEndFile {
        LogEndFile(File::open(dir.path().join(FILE_NAME)).ok())
    }

    pub(super) fn remove(dir: &DataDir) {
        let _ = std::fs::remove_file(dir.path().join(FILE_NAME));
    }

    /// The slots that can be read.
    pub(super) fn read_all(&self) -> Vec<(u64, LogEnd)> {
        let Some(file) = &self.0 else { return Vec::new() };
        let mut bytes = vec![0; SLOT_BYTES];
        let mut ends = Vec::new();
        for slot in 0..SLOT_COUNT {
            if file.read_exact_at(&mut bytes, slot * SLOT_BYTES as u64).is_err() {
                break;
            }
            ends.extend(LogEnd::decode(&bytes).map(|end| (slot, end)));
        }
        ends
    }

    /// The highest session key that is known.
    pub(super) fn highest_key(&self) -> i64 {
        let mut bytes = vec![0; SLOT_BYTES];
        let offset = HIGHEST_KEY_SLOT * SLOT_BYTES as u64;
        let read = |file: &File| file.read_exact_at(&mut bytes, offset).ok();
        let own = self.0.as_ref().and_then(read).and_then(|()| LogEnd::decode(&bytes));
        let of_slots = self.read_all().into_iter().map(|(_, end)| end.session).max();
        own.map_or(0, |own| own.session).max(of_slots.unwrap_or(0))
    }

    pub(super) fn write(&self, slot: u64, end: &LogEnd) {
        if let Some(file) = &self.0 {
            let _ = file.write_all_at(&end.encode(), slot * SLOT_BYTES as u64);
        }
    }

    pub(super) fn write_highest_key(&self, session: i64) {
        self.write(HIGHEST_KEY_SLOT, &LogEnd { session, last: 0, id: String::new() });
    }
}

impl LogEnd {
    pub(super) const EMPTY: LogEnd = LogEnd { session: 0, last: 0, id: String::new() };

    fn encode(&self) -> [u8; SLOT_BYTES] {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&self.session.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.last.to_le_bytes());
        let id = self.id.as_bytes();
        let length = id.len().min(ID_BYTES);
        bytes[16..16 + length].copy_from_slice(&id[..length]);
        let crc = crc32fast::hash(&bytes[..SLOT_BYTES - 8]);
        bytes[SLOT_BYTES - 4..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<LogEnd> {
        let number = |at: usize| bytes.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        let crc = bytes.get(SLOT_BYTES - 4..)?.try_into().ok().map(u32::from_le_bytes)?;
        let session = i64::try_from(number(0)?).ok().filter(|session| *session > 0)?;
        if crc != crc32fast::hash(bytes.get(..SLOT_BYTES - 8)?) {
            return None;
        }
        let id = bytes.get(16..16 + ID_BYTES)?.split(|b| *b == 0).next()?;
        Some(LogEnd { session, last: number(8)?, id: String::from_utf8(id.to_vec()).ok()? })
    }
}
