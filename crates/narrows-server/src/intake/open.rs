//! Items of which more is expected: kept here, so that their rows are not written with each piece.

use narrows::Item;
use narrows::change::Change;
use narrows_store::ItemWrite;
use std::collections::HashMap;

/// A row that lags behind the log by so much is written though its item is open.
const MAX_LAG: u64 = 512;

/// An item and what its row lacks.
#[derive(Debug)]
struct Open {
    item: Item,
    /// The first event that is not in its row, if there is one.
    since: Option<u64>,
    last: u64,
}

/// The open items of a session.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    items: HashMap<String, Open>,
    patches: HashMap<String, Vec<(u64, Change)>>,
    removed: Vec<String>,
    /// Items that changed since rows were written.
    touched: Vec<String>,
    pub(super) next_order: u64,
}

impl OpenItems {
    /// Items as they are in a log whose rows lack something of them since an event.
    pub(super) fn resume(
        items: impl Iterator<Item = (Item, Option<u64>)>,
        last: u64,
        next_order: u64,
    ) -> Self {
        let open =
            items.map(|(item, since)| (item.id.as_str().to_owned(), Open { item, since, last }));
        OpenItems { items: open.collect(), next_order, ..OpenItems::default() }
    }

    /// Takes a change that the event `seq` made.
    pub(super) fn take(&mut self, seq: u64, change: Change) {
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return };
        if let Change::Remove { .. } = change {
            self.items.remove(&id);
            self.patches.remove(&id);
            self.removed.push(id);
            return;
        }
        if let Some(open) = self.items.get_mut(&id) {
            open.item.apply(change);
            open.since.get_or_insert(seq);
            open.last = seq;
        } else if let Change::Put { item } = change {
            self.next_order = self.next_order.max(item.order + 1);
            self.items.insert(id.clone(), Open { item: *item, since: Some(seq), last: seq });
        } else {
            self.patches.entry(id).or_default().push((seq, change));
            return;
        }
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// What is to be written after the event `seq`; with `all`, open items too.
    pub(super) fn writes(&mut self, seq: u64, all: bool) -> Vec<ItemWrite> {
        let mut writes: Vec<ItemWrite> =
            self.removed.drain(..).map(|id| ItemWrite::Remove { id }).collect();
        let names = if all { self.in_order() } else { self.touched_or_late(seq) };
        self.touched.clear();
        for id in names {
            let Some(open) = self.items.get_mut(&id) else { continue };
            let closed = !open.item.is_open();
            let Some(since) = open.since else {
                if closed {
                    self.items.remove(&id);
                }
                continue;
            };
            if closed {
                let last = open.last;
                if let Some(open) = self.items.remove(&id) {
                    writes.push(ItemWrite::Put { item: Box::new(open.item), seq: last });
                }
            } else if all || seq.saturating_sub(since) >= MAX_LAG {
                open.since = None;
                writes.push(ItemWrite::Put { item: Box::new(open.item.clone()), seq: open.last });
            }
        }
        let patches = self.patches.drain().map(|(id, changes)| ItemWrite::Patch { id, changes });
        writes.extend(patches);
        writes
    }

    /// Those that changed, and those that did not for so long that the log's tail grows by them: a
    /// call whose subagent works.
    fn touched_or_late(&mut self, seq: u64) -> Vec<String> {
        let late =
            |open: &Open| open.since.is_some_and(|since| seq.saturating_sub(since) >= MAX_LAG);
        let mut names: Vec<String> =
            self.items.iter().filter(|(_, open)| late(open)).map(|(id, _)| id.clone()).collect();
        names.append(&mut self.touched);
        names
    }

    /// All of them: rows that are written in order lie in order.
    fn in_order(&self) -> Vec<String> {
        let mut names: Vec<(u64, &String)> =
            self.items.iter().map(|(id, open)| (open.item.order, id)).collect();
        names.sort_unstable();
        names.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// The last event up to which all rows are complete, in a log that ends at `seq`.
    pub(super) fn settled(&self, seq: u64) -> u64 {
        self.items.values().filter_map(|open| open.since).min().map_or(seq, |first| first - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows::stored;

    #[test]
    fn a_row_does_not_lag_behind_because_nothing_happens_to_its_item() {
        let mut open = OpenItems::default();
        let mut put = |seq: u64, id: &str, streams: bool| {
            let change = format!(
                r#"[{{"change":"put","item":{{"type":"text","id":"{id}","order":{seq},
                "timestamp":null,"content":"","isStreaming":{streams}}}}}]"#
            );
            let changes = stored::changes(&change).expect("a change");
            changes.into_iter().for_each(|change| open.take(seq, change));
            (open.writes(seq, false).len(), open.settled(seq))
        };
        assert_eq!(put(1, "waits", true), (0, 0));
        for seq in 2..=MAX_LAG {
            assert_eq!(put(seq, &format!("i{seq}"), false), (1, 0));
        }
        // Now its row is written with that of the item that is new.
        let seq = MAX_LAG + 1;
        assert_eq!(put(seq, "last", false), (2, seq));
    }
}
