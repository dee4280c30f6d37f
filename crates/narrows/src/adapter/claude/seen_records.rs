//! Recognizes records that were parsed before, by their ids. A resumed session may repeat its old
//! records.

use crate::json::Index;
use std::collections::{HashSet, VecDeque};

/// The number of records that are recognized when they are repeated.
const MAX_RECORDS: usize = 1 << 16;

/// The hashes of the ids of parsed records.
#[derive(Debug, Default)]
pub(super) struct SeenRecords {
    hashes: HashSet<u64>,
    order: VecDeque<u64>,
    /// The hashes since the last [`SeenRecords::take_new`].
    new: Vec<u64>,
}

impl SeenRecords {
    /// Adds a record; returns false if it was parsed before. A record without a UUID is always new.
    pub(super) fn insert(&mut self, uuid: &str) -> bool {
        let Some(hash) = uuid_hash(uuid) else { return true };
        if !self.restore(hash) {
            return false;
        }
        self.new.push(hash);
        if self.new.len() > MAX_RECORDS {
            self.new.clear();
        }
        true
    }

    /// Adds a record that was parsed before a restart.
    pub(super) fn restore(&mut self, hash: u64) -> bool {
        if !self.hashes.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_RECORDS
            && let Some(oldest) = self.order.pop_front()
        {
            self.hashes.remove(&oldest);
        }
        true
    }

    /// Returns the hashes of the records that were added since the last call.
    pub(super) fn take_new(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.new)
    }
}

/// Folds a UUID to 64 bits.
fn uuid_hash(uuid: &str) -> Option<u64> {
    let mut id = 0u128;
    let mut digits = 0;
    for c in uuid.bytes().filter(|c| *c != b'-') {
        id = id << 4 | u128::from(char::from(c).to_digit(16)?);
        digits += 1;
    }
    (digits == 32).then_some((id >> 64) as u64 ^ id as u64)
}

/// Returns the hash of the record id in a line of Claude Code, if it has one. The live stream and
/// the session file have the same ids.
pub fn record_hash(line: &str) -> Option<u64> {
    let mut index = Index::default();
    let doc = index.read(line.trim()).ok()?;
    uuid_hash(&doc.root().text("uuid")?)
}
