//! Notices in a log or an item window that replace unreadable events or items.

use super::range;
use bytes::Bytes;
use narrows::item::ItemBody;
use narrows::{Item, stored};

/// The kind of these notices and of their events.
pub(crate) const KIND: &str = "damaged";

/// An event of kind [`KIND`] with the change that shows its notice.
#[derive(Debug)]
pub(crate) struct DamageEvent {
    /// The last event that it stands for.
    pub(crate) seq: u64,
    pub(crate) event: Bytes,
    pub(crate) changes: Bytes,
}

/// Makes the event that a reader gets in place of events that cannot be read.
pub(crate) fn unreadable_events(session: &str, first: u64, last: u64, order: u64) -> DamageEvent {
    event(session, (first, last), order, "cannot be read: the store is damaged")
}

/// Makes the event that a repair writes in place of lost events.
pub(crate) fn lost_events(session: &str, first: u64, last: u64, order: u64) -> DamageEvent {
    event(session, (first, last), order, "cannot be read any more: the store was damaged")
}

fn event(session: &str, (first, last): (u64, u64), order: u64, problem: &str) -> DamageEvent {
    let text = format!("{} of this session {problem}", capitalize(&range("event", first, last)));
    let id = format!("{KIND}-{first}-{last}");
    let event = serde_json::json!({
        "type": "notice", "seq": last, "sessionId": session, "id": id, "timestamp": null,
        "kind": KIND, "text": text,
    });
    let item = item_json(&id, order, &text, None);
    let changes = serde_json::json!([{ "change": "put", "item": item }]);
    let bytes = |value: serde_json::Value| Bytes::from(value.to_string());
    DamageEvent { seq: last, event: bytes(event), changes: bytes(changes) }
}

/// Makes the item that a window shows in place of items that cannot be read.
pub(crate) fn unreadable_items(first: u64, last: u64, parent: Option<&str>) -> Option<Item> {
    let range = capitalize(&range("item", first, last));
    let text = format!("{range} of this session cannot be read: the store is damaged");
    let item = item_json(&format!("{KIND}-item-{first}"), first, &text, parent);
    stored::item(&item.to_string()).ok()
}

/// Whether an item is such a notice.
pub(crate) fn is_notice(item: &Item) -> bool {
    matches!(&item.body, ItemBody::Notice { kind, .. } if kind.as_str() == KIND)
}

fn item_json(id: &str, order: u64, text: &str, parent: Option<&str>) -> serde_json::Value {
    let mut item = serde_json::json!({ "type": "notice", "id": id, "order": order });
    if let Some(parent) = parent {
        item["parentToolCallId"] = parent.into();
    }
    item["timestamp"] = serde_json::Value::Null;
    item["kind"] = KIND.into();
    item["text"] = text.into();
    item
}

fn capitalize(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}
