//! Items whose rows wait: those of which more is expected, and those that closed a moment ago. They are
//! kept here, so that a row is not written with each piece, nor a commit made larger for each item.

use narrows::change::Change;
use narrows::event::{Answer, Decision, QuestionAnswer};
use narrows::item::ItemBody;
use narrows::{Body, Item, Raw};
use narrows_store::ItemWrite;
use std::collections::HashMap;

/// Rows of so many items, made of so many bytes of changes, may wait for each other.
const MAX_WAITING: usize = 128;
const MAX_WAITING_BYTES: usize = 128 << 10;
/// A row that lags behind the log by so many events is written though its item is open.
const MAX_LAG: u64 = 512;
/// A large one by one event for so many of its bytes, or by as much as it is large: all of it is written
/// each time, and what grows for long is not to be written ever so often.
const BYTES_AN_EVENT: u64 = 1024;

/// Which rows of items are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Rows {
    /// None, while little waits: somebody sees to it soon.
    Later,
    /// Those of items that are closed.
    Closed,
    /// All of them.
    All,
}

/// An item and what its row lacks.
#[derive(Debug)]
struct Open {
    item: Item,
    /// The first event that is not in its row, if there is one.
    since: Option<u64>,
    last: u64,
    /// Bytes of its row as it was written, and of the changes since.
    written: u64,
    unwritten: u64,
}

impl Open {
    /// Whether its row lags behind too much, in a log that ends at `seq`.
    fn is_late(&self, seq: u64) -> bool {
        let lag = self.since.map_or(0, |since| seq.saturating_sub(since));
        let much = self.unwritten >= self.written || lag >= self.written / BYTES_AN_EVENT;
        lag >= MAX_LAG && much
    }
}

/// The open items of a session, and the closed ones whose rows are still to be written.
#[derive(Debug, Default)]
pub(super) struct OpenItems {
    items: HashMap<String, Open>,
    patches: HashMap<String, Vec<(u64, Change)>>,
    removed: Vec<String>,
    /// Items that changed since rows were written.
    touched: Vec<String>,
    /// Bytes of changes since then.
    bytes: usize,
    pub(super) next_order: u64,
}

impl OpenItems {
    /// Items as they are in a log whose rows lack something of them since an event.
    pub(super) fn resume(
        items: impl Iterator<Item = (Item, Option<u64>)>,
        last: u64,
        next_order: u64,
    ) -> Self {
        let open = items.map(|(item, since)| {
            let written = printed_size(&item);
            (item.id.as_str().to_owned(), Open { item, since, last, written, unwritten: 0 })
        });
        let items: HashMap<String, Open> = open.collect();
        // Those that closed are to be written as soon as any.
        let closed = items.iter().filter(|(_, open)| open.since.is_some() && !open.item.is_open());
        let touched = closed.map(|(id, _)| id.clone()).collect();
        OpenItems { items, touched, next_order, ..OpenItems::default() }
    }

    /// Bytes that the items take, about.
    pub(super) fn weight(&self) -> usize {
        let items: u64 = self.items.values().map(|open| open.written + open.unwritten).sum();
        usize::try_from(items).unwrap_or(usize::MAX)
    }

    /// Takes a change that the event `seq` made, of so many bytes.
    pub(super) fn take(&mut self, seq: u64, change: Change, bytes: usize) {
        self.bytes += bytes;
        let bytes = bytes as u64;
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
            open.unwritten += bytes;
        } else if let Change::Put { item } = change {
            self.next_order = self.next_order.max(item.order + 1);
            let (written, unwritten) = (0, bytes);
            let open = Open { item: *item, since: Some(seq), last: seq, written, unwritten };
            self.items.insert(id.clone(), open);
        } else {
            self.patches.entry(id).or_default().push((seq, change));
            return;
        }
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// Whether rows may wait: the log has all of it, and whoever reads completes the rows from there.
    fn may_wait(&self, seq: u64) -> bool {
        self.removed.is_empty()
            && self.patches.is_empty()
            && self.touched.len() < MAX_WAITING
            && self.bytes < MAX_WAITING_BYTES
            && seq - self.settled(seq) < MAX_LAG
    }

    /// What is to be written after the event `seq`.
    pub(super) fn writes(&mut self, seq: u64, rows: Rows) -> Vec<ItemWrite> {
        if rows == Rows::Later && self.may_wait(seq) {
            return Vec::new();
        }
        let all = rows == Rows::All;
        self.bytes = 0;
        let mut writes: Vec<ItemWrite> =
            self.removed.drain(..).map(|id| ItemWrite::Remove { id }).collect();
        let names = if all { self.in_order() } else { self.touched_or_late(seq) };
        self.touched.clear();
        for id in names {
            let Some(open) = self.items.get_mut(&id) else { continue };
            let closed = !open.item.is_open();
            if open.since.is_none() {
                if closed {
                    self.items.remove(&id);
                }
                continue;
            }
            if closed {
                let last = open.last;
                if let Some(open) = self.items.remove(&id) {
                    writes.push(ItemWrite::Put { item: Box::new(open.item), seq: last });
                }
            } else if all || open.is_late(seq) {
                open.since = None;
                (open.written, open.unwritten) = (printed_size(&open.item), 0);
                writes.push(ItemWrite::Put { item: Box::new(open.item.clone()), seq: open.last });
            }
        }
        let patches = self.patches.drain().map(|(id, changes)| ItemWrite::Patch { id, changes });
        writes.extend(patches);
        writes
    }

    /// Whether the row of an item waits that is closed.
    pub(super) fn closed_wait(&self) -> bool {
        let closed = |id: &String| self.items.get(id).is_some_and(|open| !open.item.is_open());
        self.touched.iter().any(closed)
    }

    /// Those that changed, and those that did not for so long that the log's tail grows by them: a
    /// call whose subagent works.
    fn touched_or_late(&mut self, seq: u64) -> Vec<String> {
        let late = self.items.iter().filter(|(_, open)| open.is_late(seq));
        let mut names: Vec<String> = late.map(|(id, _)| id.clone()).collect();
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

    /// Requests of the agent that wait for an answer.
    pub(super) fn requests(&self) -> impl Iterator<Item = &Item> {
        self.items.values().map(|open| &open.item).filter(|item| is_request(item))
    }

    /// The last event up to which all rows are complete, in a log that ends at `seq`.
    pub(super) fn settled(&self, seq: u64) -> u64 {
        self.items.values().filter_map(|open| open.since).min().map_or(seq, |first| first - 1)
    }
}

/// Whether an item is a request of the agent that somebody can answer, and nobody has.
fn is_request(item: &Item) -> bool {
    let asked = match &item.body {
        ItemBody::Permission { .. } => true,
        ItemBody::Question { request_id, .. } => request_id.is_some(),
        _ => false,
    };
    asked && item.is_open()
}

/// Tells that nobody can answer a request any more; nothing for items that are none.
pub(crate) fn withdrawn(item: &Item) -> Option<Body<Raw>> {
    match &item.body {
        _ if !is_request(item) => None,
        ItemBody::Permission { request_id, tool_call_id, .. } => {
            Some(Body::PermissionAnswer(Box::new(Answer {
                request_id: Raw::new(request_id.as_str()),
                tool_call_id: Raw::new(tool_call_id.as_str()),
                decision: Decision::Cancelled,
                option_id: None,
                option: None,
                waited_ms: None,
            })))
        }
        ItemBody::Question { tool_call_id, .. } => {
            let (tool_call_id, answers) = (Raw::new(tool_call_id.as_str()), Vec::new());
            Some(Body::QuestionAnswer(Box::new(QuestionAnswer { tool_call_id, answers })))
        }
        _ => None,
    }
}

fn printed_size(item: &Item) -> u64 {
    let mut printed = Vec::new();
    // What cannot be printed is refused when it is written.
    let _ = narrows::json::print(&mut printed, item);
    printed.len() as u64
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
            changes.into_iter().for_each(|change| open.take(seq, change, 100));
            (open.writes(seq, Rows::Closed).len(), open.settled(seq))
        };
        assert_eq!(put(1, "waits", true), (0, 0));
        for seq in 2..=MAX_LAG {
            assert_eq!(put(seq, &format!("i{seq}"), false), (1, 0));
        }
        // Now its row is written with that of the item that is new.
        let seq = MAX_LAG + 1;
        assert_eq!(put(seq, "last", false), (2, seq));
    }

    /// Lets a text grow by pieces of so many bytes; returns its length, the bytes of rows that were
    /// written meanwhile, and by how many events they lagged behind at most.
    fn grow(piece: usize, events: u64) -> (usize, usize, u64) {
        let mut open = OpenItems::default();
        let put = r#"[{"change":"put","item":{"type":"text","id":"long","order":0,
            "timestamp":null,"content":"","isStreaming":true}}]"#;
        let text = "x".repeat(piece);
        let more =
            format!(r#"[{{"change":"append","id":"long","field":"content","text":"{text}"}}]"#);
        let [put, more] = [put, &more].map(|c| stored::changes(c).expect("a change"));
        put.into_iter().for_each(|change| open.take(1, change, 100));
        let (mut written, mut length, mut lag) = (0, 0, 0);
        for seq in 2..=events {
            for change in &more {
                open.take(seq, change.clone(), piece);
                length += piece;
            }
            lag = lag.max(seq - open.settled(seq));
            written += if open.writes(seq, Rows::Closed).is_empty() { 0 } else { length };
        }
        (length, written, lag)
    }

    #[test]
    fn a_row_that_grows_is_written_ever_less_often() {
        // 1.8 MB in small pieces: some times as much is written, and the log's tail stays short.
        let (length, written, lag) = grow(44, 40_000);
        assert!(written > 0 && written < 40 * length, "{written} bytes for {length}");
        assert!(lag <= MAX_LAG.max(length as u64 / BYTES_AN_EVENT) + 1, "{lag}");
        // In large pieces, the tail is never longer than the text.
        let (length, written, lag) = grow(20_000, 1500);
        assert!(written > 0 && written < 4 * length, "{written} bytes for {length}");
        assert!(lag <= 1500 / 2 + MAX_LAG, "{lag}");
    }
}
