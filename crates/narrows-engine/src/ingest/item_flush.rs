//! Items whose rows are not written yet: open ones, and ones that have closed a moment ago. The log has
//! their changes already; their rows are written together, so that a streaming item does not rewrite its
//! row with each chunk. Readers complete rows from the log.

use narrows::change::Change;
use narrows::event::{Answer, Decision, QuestionAnswer, ToolEvent};
use narrows::item::ItemBody;
use narrows::tool::{Fresh, ToolCall, ToolStatus};
use narrows::{Body, Item, Raw};
use narrows_store::{Append, ItemWrite};
use std::collections::HashMap;

/// Items, and bytes of their changes, whose rows may be deferred.
const MAX_DEFERRED_ITEMS: usize = 128;
const MAX_DEFERRED_BYTES: usize = 128 << 10;
/// The row of an open item is written when it lags this many events behind the log.
const MAX_LAG_EVENTS: u64 = 512;
/// A large row may lag by one event per this many of its bytes, or until its unwritten changes are as large
/// as the row: each write is of the whole row, so a growing item is written ever less often.
const ROW_BYTES_PER_LAG_EVENT: u64 = 1024;

/// The item rows that an append writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlushPolicy {
    /// None while few wait: a flush is scheduled.
    Defer,
    /// Those of closed items.
    Closed,
    /// Those of open items too.
    All,
}

/// An item and how far its row is behind.
#[derive(Debug)]
struct PendingItem {
    item: Item,
    /// The first event that is not in its row, if any, and the last event of the item.
    first_unwritten: Option<u64>,
    last_event: u64,
    /// Bytes of the written row, and of the changes since.
    row_bytes: u64,
    unwritten_bytes: u64,
}

impl PendingItem {
    /// Whether its row lags too far behind a log that ends at `seq`.
    fn is_overdue(&self, seq: u64) -> bool {
        let lag = self.first_unwritten.map_or(0, |first| seq.saturating_sub(first));
        let is_due = self.unwritten_bytes >= self.row_bytes
            || lag >= self.row_bytes / ROW_BYTES_PER_LAG_EVENT;
        lag >= MAX_LAG_EVENTS && is_due
    }
}

/// The open items of a session, and the closed ones whose rows are not written yet.
#[derive(Debug, Default)]
pub(super) struct PendingItems {
    items: HashMap<String, PendingItem>,
    /// Changes of items that are not in memory.
    patches: HashMap<String, Vec<(u64, Change)>>,
    removed: Vec<String>,
    /// Items that have changed since rows were written, with repetitions.
    touched: Vec<String>,
    /// Bytes of changes since then.
    bytes: usize,
    pub(super) next_order: u64,
    /// `next_order` as the store has it.
    stored_next_order: u64,
    /// No item is nested below a tool call, as far as it is known.
    no_nesting: bool,
}

impl PendingItems {
    /// The items of a log that ends at `last_seq`, each with the first event that its row lacks.
    pub(super) fn resume(
        items: impl Iterator<Item = (Item, Option<u64>)>,
        last_seq: u64,
        next_order: u64,
    ) -> Self {
        let pending = items.map(|(item, first_unwritten)| {
            let row_bytes = serialized_size(&item);
            let (last_event, unwritten_bytes) = (last_seq, 0);
            let id = item.id.as_str().to_owned();
            (id, PendingItem { item, first_unwritten, last_event, row_bytes, unwritten_bytes })
        });
        let items: HashMap<String, PendingItem> = pending.collect();
        // Closed items are written with the next rows.
        let closed = items.iter().filter(|(_, p)| p.first_unwritten.is_some() && !p.item.is_open());
        let touched = closed.map(|(id, _)| id.clone()).collect();
        PendingItems {
            items,
            touched,
            next_order,
            stored_next_order: next_order,
            no_nesting: last_seq == 0,
            ..PendingItems::default()
        }
    }

    /// Approximate memory of the items, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let items: u64 = self.items.values().map(|p| p.row_bytes + p.unwritten_bytes).sum();
        usize::try_from(items).unwrap_or(usize::MAX)
    }

    /// Applies a change of the event `seq`, of this many bytes.
    pub(super) fn apply(&mut self, seq: u64, change: Change, bytes: usize) {
        let is_nested = matches!(&change, Change::Put { item } if item.parent.is_some());
        self.no_nesting &= !is_nested;
        self.bytes += bytes;
        let bytes = bytes as u64;
        let Some(id) = change.item().map(|id| id.as_str().to_owned()) else { return };
        if let Change::Remove { .. } = change {
            self.items.remove(&id);
            self.patches.remove(&id);
            self.removed.push(id);
            return;
        }
        if let Some(pending) = self.items.get_mut(&id) {
            pending.item.apply(change);
            pending.first_unwritten.get_or_insert(seq);
            pending.last_event = seq;
            pending.unwritten_bytes += bytes;
        } else if let Change::Put { item } = change {
            self.next_order = self.next_order.max(item.order + 1);
            let pending = PendingItem {
                item: *item,
                first_unwritten: Some(seq),
                last_event: seq,
                row_bytes: 0,
                unwritten_bytes: bytes,
            };
            self.items.insert(id.clone(), pending);
        } else {
            self.patches.entry(id).or_default().push((seq, change));
            return;
        }
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
    }

    /// Whether rows may be deferred: readers complete them from the log.
    fn may_defer(&self, seq: u64) -> bool {
        self.removed.is_empty()
            && self.patches.is_empty()
            && self.touched.len() < MAX_DEFERRED_ITEMS
            && self.bytes < MAX_DEFERRED_BYTES
            && seq - self.materialized_seq(seq) < MAX_LAG_EVENTS
    }

    /// Adds the row writes to an append that ends at the event `seq`.
    pub(super) fn write_into(&mut self, append: &mut Append, seq: u64, policy: FlushPolicy) {
        append.items = self.take_writes(seq, policy);
        append.settled = self.materialized_seq(seq);
        append.new_from = Some(self.stored_next_order);
        append.flat = self.no_nesting;
        append.next_order = self.next_order;
        // As long as no row is written, the store has no item from `stored_next_order` on.
        if !append.items.is_empty() {
            self.stored_next_order = self.next_order;
        }
    }

    fn take_writes(&mut self, seq: u64, policy: FlushPolicy) -> Vec<ItemWrite> {
        if policy == FlushPolicy::Defer && self.may_defer(seq) {
            return Vec::new();
        }
        let all = policy == FlushPolicy::All;
        self.bytes = 0;
        let mut writes: Vec<ItemWrite> =
            self.removed.drain(..).map(|id| ItemWrite::Remove { id }).collect();
        let ids = if all { self.ids_in_order() } else { self.touched_or_overdue(seq) };
        self.touched.clear();
        for id in ids {
            let Some(pending) = self.items.get_mut(&id) else { continue };
            let closed = !pending.item.is_open();
            if pending.first_unwritten.is_none() {
                if closed {
                    self.items.remove(&id);
                }
                continue;
            }
            if closed {
                let seq = pending.last_event;
                if let Some(pending) = self.items.remove(&id) {
                    writes.push(ItemWrite::Put { item: Box::new(pending.item), seq });
                }
            } else if all || pending.is_overdue(seq) {
                pending.first_unwritten = None;
                (pending.row_bytes, pending.unwritten_bytes) = (serialized_size(&pending.item), 0);
                let (item, seq) = (Box::new(pending.item.clone()), pending.last_event);
                writes.push(ItemWrite::Put { item, seq });
            }
        }
        let patches = self.patches.drain().map(|(id, changes)| ItemWrite::Patch { id, changes });
        writes.extend(patches);
        writes
    }

    /// Whether the row of a closed item is not written yet.
    pub(super) fn has_closed(&self) -> bool {
        let closed = |id: &String| self.items.get(id).is_some_and(|p| !p.item.is_open());
        self.touched.iter().any(closed)
    }

    /// The items that have changed, and those whose rows lag too far although they do not change, as a tool
    /// call whose subagent works: readers complete all rows from the first event that any row lacks.
    fn touched_or_overdue(&mut self, seq: u64) -> Vec<String> {
        let overdue = self.items.iter().filter(|(_, pending)| pending.is_overdue(seq));
        let mut ids: Vec<String> = overdue.map(|(id, _)| id.clone()).collect();
        ids.append(&mut self.touched);
        ids
    }

    /// All items in their order, so that their rows are stored in order.
    fn ids_in_order(&self) -> Vec<String> {
        let mut ids: Vec<(u64, &String)> =
            self.items.iter().map(|(id, pending)| (pending.item.order, id)).collect();
        ids.sort_unstable();
        ids.into_iter().map(|(_, id)| id.clone()).collect()
    }

    /// The permission requests and questions of the agent that have no answer yet.
    pub(super) fn open_requests(&self) -> impl Iterator<Item = &Item> {
        self.items.values().map(|pending| &pending.item).filter(|item| is_open_request(item))
    }

    /// The last event that all rows include, in a log that ends at `seq`.
    pub(super) fn materialized_seq(&self, seq: u64) -> u64 {
        self.items.values().filter_map(|p| p.first_unwritten).min().map_or(seq, |first| first - 1)
    }
}

/// Whether an item is a permission request or question of the agent without an answer.
fn is_open_request(item: &Item) -> bool {
    let is_request = match &item.body {
        ItemBody::Permission { .. } => true,
        ItemBody::Question { request_id, .. } => request_id.is_some(),
        _ => false,
    };
    is_request && item.is_open()
}

/// The event that withdraws an open request of the agent; `None` for other items.
pub fn withdrawal(item: &Item) -> Option<Body<Raw>> {
    match &item.body {
        _ if !is_open_request(item) => None,
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

/// The event that cancels a tool call, which will not run.
pub(crate) fn cancelled_call(id: Raw) -> Body<Raw> {
    let call = ToolCall { status: Some(ToolStatus::Cancelled), ..ToolCall::unknown() };
    let fresh = Fresh::default();
    Body::ToolCallProgress(Box::new(ToolEvent {
        id,
        call,
        fresh,
        grew_from: None,
        first: false,
        grows: false,
        repeats: false,
    }))
}

fn serialized_size(item: &Item) -> u64 {
    let mut buffer = Vec::new();
    // An item that cannot be serialized is refused when its row is written.
    let _ = narrows::json::print(&mut buffer, item);
    buffer.len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use narrows::stored;

    #[test]
    fn unchanged_open_item_does_not_hold_back_materialized_seq() {
        let mut items = PendingItems::default();
        let mut put = |seq: u64, id: &str, streams: bool| {
            let change = format!(
                r#"[{{"change":"put","item":{{"type":"text","id":"{id}","order":{seq},
                "timestamp":null,"content":"","isStreaming":{streams}}}}}]"#
            );
            let changes = stored::changes(&change).expect("a change");
            changes.into_iter().for_each(|change| items.apply(seq, change, 100));
            (items.take_writes(seq, FlushPolicy::Closed).len(), items.materialized_seq(seq))
        };
        assert_eq!(put(1, "waits", true), (0, 0));
        for seq in 2..=MAX_LAG_EVENTS {
            assert_eq!(put(seq, &format!("i{seq}"), false), (1, 0));
        }
        // Its row is overdue and written with that of the new item.
        let seq = MAX_LAG_EVENTS + 1;
        assert_eq!(put(seq, "last", false), (2, seq));
    }

    /// Grows a text by pieces of this size; returns its length, the bytes of rows that were written
    /// meanwhile, and the largest lag in events.
    fn grow(piece: usize, events: u64) -> (usize, usize, u64) {
        let mut items = PendingItems::default();
        let put = r#"[{"change":"put","item":{"type":"text","id":"long","order":0,
            "timestamp":null,"content":"","isStreaming":true}}]"#;
        let text = "x".repeat(piece);
        let more =
            format!(r#"[{{"change":"append","id":"long","field":"content","text":"{text}"}}]"#);
        let [put, more] = [put, &more].map(|c| stored::changes(c).expect("a change"));
        put.into_iter().for_each(|change| items.apply(1, change, 100));
        let (mut written, mut length, mut lag) = (0, 0, 0);
        for seq in 2..=events {
            for change in &more {
                items.apply(seq, change.clone(), piece);
                length += piece;
            }
            lag = lag.max(seq - items.materialized_seq(seq));
            written +=
                if items.take_writes(seq, FlushPolicy::Closed).is_empty() { 0 } else { length };
        }
        (length, written, lag)
    }

    #[test]
    fn growing_row_is_written_ever_less_often() {
        // 1.8 MB in small pieces: a bounded multiple is written, and the lag stays short.
        let (length, written, lag) = grow(44, 40_000);
        assert!(written > 0 && written < 40 * length, "{written} bytes for {length}");
        assert!(lag <= MAX_LAG_EVENTS.max(length as u64 / ROW_BYTES_PER_LAG_EVENT) + 1, "{lag}");
        // In large pieces the lag is bounded by the size of the text.
        let (length, written, lag) = grow(20_000, 1500);
        assert!(written > 0 && written < 4 * length, "{written} bytes for {length}");
        assert!(lag <= 1500 / 2 + MAX_LAG_EVENTS, "{lag}");
    }
}
