//! What of the store cannot be read: said once, and remembered as long as the store is open.

use crate::error::{Error, Result};
use crate::log::EventRow;
use crate::unindexed::Pause;
use bytes::Bytes;
use narrows::item::ItemBody;
use narrows::{Item, stored};
use serde::Serialize;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The type of an event, and the kind of a notice, that stands for what cannot be read.
pub(crate) const KIND: &str = "damaged";
/// Places that are remembered.
const MOST: usize = 1000;

/// What is damaged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Part {
    /// Events of a session's log.
    Events,
    /// Events that were durable and are not there: the write-ahead log is missing or damaged.
    Lost,
    /// Items of a session.
    Items,
    /// A session's own row.
    Session,
    /// A row of something else.
    Other,
    /// The database itself.
    Database,
}

/// A place that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Damage {
    /// Whose it is: the session's key in the store; 0 where it is nobody's.
    #[serde(skip)]
    pub session: i64,
    /// What.
    pub part: Part,
    /// The first and last event, or order of an item; 0 where there is none.
    pub first: u64,
    /// The last.
    pub last: u64,
    /// What there is to say beside that.
    pub what: String,
}

impl Damage {
    pub(crate) fn new(session: i64, part: Part, first: u64, last: u64) -> Damage {
        Damage { session, part, first, last, what: String::new() }
    }

    pub(crate) fn other(what: impl Into<String>) -> Damage {
        Damage { session: 0, part: Part::Other, first: 0, last: 0, what: what.into() }
    }

    pub(crate) fn database(what: impl Into<String>) -> Damage {
        Damage { part: Part::Database, ..Damage::other(what) }
    }

    /// The id of a session that lost its end, or all of it.
    pub(crate) fn lost_name(&self) -> Option<&str> {
        (self.part == Part::Lost && !self.what.is_empty()).then_some(self.what.as_str())
    }

    /// In words, of `session` as people name it.
    pub fn words(&self, session: &str) -> String {
        let Damage { first, last, what, .. } = self;
        match self.part {
            Part::Events => {
                format!("{} of session {session} cannot be read", range("event", *first, *last))
            }
            Part::Lost if *first == 0 => {
                format!("the write-ahead log is missing or damaged: session {session} is lost")
            }
            Part::Lost => format!(
                "the write-ahead log is missing or damaged: session {session} lacks its newest events \
                 ({first}–{last})"
            ),
            Part::Items => {
                format!("{} of session {session} cannot be read", range("item", *first, *last))
            }
            Part::Session => format!("the row of session {session} cannot be read"),
            Part::Other if self.session > 0 => format!("{what} (session {session})"),
            Part::Other => what.clone(),
            Part::Database => format!("the database is damaged: {what}"),
        }
    }
}

fn range(what: &str, first: u64, last: u64) -> String {
    if first >= last { format!("{what} {last}") } else { format!("{what}s {first}–{last}") }
}

thread_local! {
    static FOUND: RefCell<Vec<Damage>> = const { RefCell::new(Vec::new()) };
}

/// Something that cannot be read was found by this thread.
pub(crate) fn found(damage: Damage) {
    FOUND.with_borrow_mut(|found| {
        if found.len() < MOST && !found.contains(&damage) {
            found.push(damage);
        }
    });
}

/// What this thread has found since it was asked last.
pub(crate) fn take() -> Vec<Damage> {
    FOUND.with_borrow_mut(std::mem::take)
}

/// All that was found while the store is open.
#[derive(Debug, Default)]
pub(crate) struct Damages(Mutex<BTreeSet<Damage>>, Mutex<Pause>);

impl Damages {
    /// Remembers what is new, and says it once.
    pub(crate) fn keep(&self, found: Vec<Damage>) {
        if found.is_empty() {
            return;
        }
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for damage in found {
            let known = all.len() >= MOST || all.contains(&damage);
            if !known {
                let name = damage
                    .lost_name()
                    .map_or_else(|| format!("#{}", damage.session), str::to_owned);
                let told = damage.words(&name);
                tracing::error!(damage = %told, "the store is damaged");
                all.insert(damage);
            }
        }
    }

    /// Remembers that something failed because of damage.
    pub(crate) fn note<T>(&self, made: &Result<T>) {
        if let Err(Error::Damaged(what)) = made {
            self.keep(vec![Damage::database(what.clone())]);
        }
    }

    /// What is said so is not so any more.
    pub(crate) fn forget(&self, what: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|damage| damage.what != what);
    }

    pub(crate) fn all(&self) -> Vec<Damage> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).iter().cloned().collect()
    }

    /// Whether something that was found says this.
    pub(crate) fn says(&self, words: &str) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter().any(|damage| damage.what.contains(words))
    }

    /// How long nobody looks for sessions without an index.
    pub(crate) fn pause(&self) -> MutexGuard<'_, Pause> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

/// What stands in the log for events that cannot be read.
pub(crate) fn event(session: &str, first: u64, last: u64, order: u64) -> EventRow {
    told(session, (first, last), order, "cannot be read: the store is damaged")
}

/// What stands in the log for good for events that were lost.
pub(crate) fn lost(session: &str, first: u64, last: u64, order: u64) -> EventRow {
    told(session, (first, last), order, "cannot be read any more: the store was damaged")
}

fn told(session: &str, (first, last): (u64, u64), order: u64, what: &str) -> EventRow {
    let text = format!("{} of this session {what}", capital(&range("event", first, last)));
    let id = format!("{KIND}-{first}-{last}");
    let event = serde_json::json!({
        "type": "notice", "seq": last, "sessionId": session, "id": id, "timestamp": null,
        "kind": KIND, "text": text,
    });
    let change = serde_json::json!([{ "change": "put", "item": notice(&id, order, &text, None) }]);
    let bytes = |value: serde_json::Value| Bytes::from(value.to_string());
    EventRow {
        seq: last,
        kind: KIND.into(),
        event: bytes(event),
        changes: Some(bytes(change)),
        activity: None,
    }
}

/// What stands in a window for items that cannot be read.
pub(crate) fn item(first: u64, last: u64, parent: Option<&str>) -> Option<Item> {
    let text = format!(
        "{} of this session cannot be read: the store is damaged",
        capital(&range("item", first, last))
    );
    let item = notice(&format!("{KIND}-item-{first}"), first, &text, parent);
    stored::item(&item.to_string()).ok()
}

/// Whether an item stands for what cannot be read.
pub(crate) fn is_notice(item: &Item) -> bool {
    matches!(&item.body, ItemBody::Notice { kind, .. } if kind.as_str() == KIND)
}

fn notice(id: &str, order: u64, text: &str, parent: Option<&str>) -> serde_json::Value {
    let mut item = serde_json::json!({ "type": "notice", "id": id, "order": order });
    if let Some(parent) = parent {
        item["parentToolCallId"] = parent.into();
    }
    item["timestamp"] = serde_json::Value::Null;
    item["kind"] = KIND.into();
    item["text"] = text.into();
    item
}

fn capital(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}
