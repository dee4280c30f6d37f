//! The records of an agent's session file that were read, by hash, so that a copy of a record in another
//! file is not read twice. They follow the checkpoints of the sources: records after the last
//! checkpoint are read again when the session is resumed.

use std::collections::HashSet;

/// Records after the last checkpoint that are stored.
const MAX_UNCHECKPOINTED: usize = 4096;

/// Record hashes by their relation to the checkpoints.
#[derive(Debug, Default)]
pub(super) struct SeenRecords {
    /// Before a committed checkpoint, not stored yet.
    committed: Vec<u64>,
    /// Before the pending checkpoint.
    pending: Vec<u64>,
    /// After the pending checkpoint.
    uncheckpointed: Vec<u64>,
    /// Read after the last checkpoint by an earlier writer: their packets are pushed again.
    replayed: Vec<u64>,
    /// The records after the last committed checkpoint differ from the stored ones.
    changed: bool,
}

impl SeenRecords {
    /// The records after the last checkpoint as the store has them. With `replay` their packets are
    /// pushed again; otherwise they count as checkpointed.
    pub(super) fn load(uncheckpointed: Vec<u64>, replay: bool) -> SeenRecords {
        if replay {
            return SeenRecords { replayed: uncheckpointed, ..SeenRecords::default() };
        }
        let changed = !uncheckpointed.is_empty();
        SeenRecords { committed: uncheckpointed, changed, ..SeenRecords::default() }
    }

    pub(super) fn add(&mut self, mut records: Vec<u64>) {
        self.changed |= !records.is_empty();
        self.uncheckpointed.append(&mut records);
    }

    /// All records so far are before the pending checkpoint.
    pub(super) fn set_pending(&mut self) {
        self.pending.append(&mut self.uncheckpointed);
        self.replayed.clear();
    }

    /// The pending checkpoint is committed.
    pub(super) fn commit(&mut self) {
        self.committed.append(&mut self.pending);
    }

    /// Ends the replay: the records of earlier writers count as checkpointed. Returns them.
    pub(super) fn end_replay(&mut self) -> Vec<u64> {
        let records = std::mem::take(&mut self.replayed);
        self.committed.extend(&records);
        self.changed = true;
        records
    }

    /// The checkpointed records to store.
    pub(super) fn take_committed(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.committed)
    }

    /// The records after the last committed checkpoint, if they differ from the stored ones.
    pub(super) fn take_uncheckpointed(&mut self) -> Option<Vec<u64>> {
        if !std::mem::take(&mut self.changed) {
            return None;
        }
        let parts = [&self.replayed, &self.pending, &self.uncheckpointed];
        let mut records: Vec<u64> = parts.into_iter().flatten().copied().collect();
        // Replayed records that were read again are in two parts.
        let mut unique = HashSet::new();
        records.retain(|record| unique.insert(*record));
        records.drain(..records.len().saturating_sub(MAX_UNCHECKPOINTED));
        Some(records)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_move_to_committed_with_their_checkpoint() {
        let mut records = SeenRecords::default();
        records.add(vec![1, 2]);
        records.set_pending();
        records.add(vec![3]);
        assert!(records.take_committed().is_empty(), "the checkpoint is pending");
        assert_eq!(records.take_uncheckpointed(), Some(vec![1, 2, 3]));
        records.commit();
        assert_eq!(records.take_committed(), [1, 2]);
        assert_eq!(records.take_uncheckpointed(), None, "nothing was added");
        records.add(vec![4]);
        assert_eq!(records.take_uncheckpointed(), Some(vec![3, 4]));
    }

    #[test]
    fn replayed_records_stay_until_the_next_checkpoint() {
        let mut records = SeenRecords::load(vec![1, 2], true);
        records.add(vec![1]);
        assert_eq!(records.take_uncheckpointed(), Some(vec![1, 2]), "each record once");
        assert_eq!(records.end_replay(), [1, 2]);
        assert_eq!(records.take_committed(), [1, 2]);
        assert_eq!(records.take_uncheckpointed(), Some(vec![1]));
    }
}
