//! Windows of selected items: top-level ones, and children of a call.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, cases, print, steps, temp_store, text_item};
use narrows::Item;
use narrows_store::{Store, Which, Window};
use serde_json::{Value, json};
use std::collections::BTreeSet;

/// Reproducible random numbers.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % most
    }
}

fn call(id: &str, order: u64, parent: Option<&str>, status: &str) -> Value {
    let mut item = json!({
        "type": "tool_call", "id": id, "order": order, "timestamp": null,
        "toolCall": {
            "id": id, "toolName": "task", "kind": "task", "status": status, "isTodo": false,
        },
    });
    if let Some(parent) = parent {
        item["parentToolCallId"] = parent.into();
    }
    item
}

fn below(parent: &str, mut item: Value) -> Value {
    item["parentToolCallId"] = parent.into();
    item
}

/// The expected top-level items, computed from all items.
fn top(book: &TestSession) -> Vec<String> {
    let lost = |item: &&Item| {
        let parent = item.parent.as_ref().filter(|parent| **parent != item.id);
        parent.is_none_or(|parent| book.items.get(parent).is_none())
    };
    book.items.iter().filter(lost).map(print).collect()
}

fn children(book: &TestSession, of: &str) -> Vec<String> {
    let below = |item: &&Item| item.parent.as_deref() == Some(of) && *item.id != *of;
    book.items.iter().filter(below).map(print).collect()
}

/// All items, page by page from the end and from the beginning, with consistent page borders.
async fn paged(store: &Store, key: i64, which: &Which, limit: usize) -> [Vec<String>; 2] {
    let (mut back, mut on) = (Vec::new(), Vec::new());
    let mut at = Window::End;
    loop {
        let page = store.items_of(key, which.clone(), at, limit).await.unwrap();
        assert_eq!(page.after, !back.is_empty(), "{at:?}");
        let Some(first) = page.items.first().map(|row| row.order) else { break };
        back.splice(0..0, page.items.iter().map(|row| print(&row.item)));
        at = Window::Before(first);
        if !page.before {
            break;
        }
    }
    let mut from = 0;
    loop {
        let page = store.items_of(key, which.clone(), Window::From(from), limit).await.unwrap();
        assert_eq!(page.before, !on.is_empty(), "from {from}");
        on.extend(page.items.iter().map(|row| print(&row.item)));
        let Some(last) = page.items.last() else { break };
        from = last.order + 1;
        if !page.after {
            break;
        }
    }
    [back, on]
}

/// Compares the windows of a session with its items, for several page sizes.
async fn agree(store: &Store, book: &TestSession, about: &str) {
    let key = book.key();
    let mut calls: BTreeSet<String> = book.items.iter().map(|i| i.id.as_str().to_owned()).collect();
    calls.extend(book.items.iter().filter_map(|i| Some(i.parent.as_ref()?.as_str().to_owned())));
    let mut expected = vec![(Which::Top, top(book))];
    expected.extend(calls.into_iter().map(|id| (Which::Of(id.clone()), children(book, &id))));
    for (which, items) in expected {
        for limit in [2, 500] {
            let [back, on] = paged(store, key, &which, limit).await;
            assert_eq!(back, items, "{about}: {which:?} by {limit} from the end");
            assert_eq!(on, items, "{about}: {which:?} by {limit} from the beginning");
            // Few calls have enough children for larger pages to differ.
            if items.len() < 2 {
                break;
            }
        }
    }
    let page = store.items(key, Window::End, 1).await.unwrap();
    assert_eq!(page.total, book.items.iter().count() as u64, "{about}");
    assert_eq!(page.next_order, book.items.next_order(), "{about}");
}

#[tokio::test(flavor = "multi_thread")]
async fn top_level_windows_are_stable_during_subagent_streaming() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "streams").await;
    book.say("a", "said");
    book.put(&call("task", 1, None, "in_progress"));
    book.keep(&store).await;
    for n in 2..40 {
        // The call itself has no row while its children have.
        let child = text_item(&format!("i{n}"), n, "more", n % 3 == 0);
        book.put(&below("task", child));
        book.keep(&store).await;
        let page = store.items_of(book.key(), Which::Top, Window::End, 10).await.unwrap();
        let ids: Vec<&str> = page.items.iter().map(|row| row.item.id.as_str()).collect();
        assert_eq!((ids, page.before, page.after), (vec!["a", "task"], false, false), "{n}");
        if n % cases(1, 6) as u64 == 0 {
            agree(&store, &book, "streaming").await;
        }
    }
    book.put(&call("task", 1, None, "completed"));
    book.say("z", "done");
    book.keep(&store).await;
    let page = store.items_of(book.key(), Which::Top, Window::Around(20), 10).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.order).collect::<Vec<_>>(), [0, 1, 40]);
    agree(&store, &book, "done").await;
    book.rest(&store).await;
    agree(&store, &book, "rested").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn item_with_missing_parent_is_top_level() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "orphans").await;
    book.put(&below("later", text_item("early", 0, "before its call", false)));
    book.put(&below("never", text_item("lost", 1, "without a call", false)));
    book.put(&below("self", text_item("self", 2, "below itself", false)));
    book.put(&below("early", text_item("deep", 3, "a child's child", false)));
    book.keep(&store).await;
    let ids = async |which: Which| {
        let page = store.items_of(book.key(), which, Window::End, 99).await.unwrap();
        page.items.iter().map(|row| row.item.id.as_str().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(ids(Which::Top).await, ["early", "lost", "self"]);
    assert_eq!(ids(Which::Of("early".to_owned())).await, ["deep"]);
    assert_eq!(ids(Which::Of("never".to_owned())).await, ["lost"]);
    assert!(ids(Which::Of("self".to_owned())).await.is_empty());
    // Its parent appears, first only in the log, and is removed again.
    book.put(&call("later", 4, None, "in_progress"));
    book.keep(&store).await;
    agree(&store, &book, "come").await;
    assert_eq!(top(&book).len(), 3);
    book.rest(&store).await;
    agree(&store, &book, "with a row").await;
    book.change(&json!([{ "change": "remove", "id": "later" }]));
    book.keep(&store).await;
    agree(&store, &book, "gone").await;
    assert_eq!(top(&book).len(), 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn cyclic_parents_keep_one_item_top_level() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "circle").await;
    for (order, (id, parent)) in [("a", "c"), ("b", "a"), ("c", "b")].into_iter().enumerate() {
        book.put(&call(id, order as u64, Some(parent), "completed"));
        book.keep(&store).await;
    }
    let page = store.items_of(book.key(), Which::Top, Window::End, 9).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.order).collect::<Vec<_>>(), [0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn recorded_windows_match_items_at_every_position() {
    let recorded = [
        "acp/claude-acp-g-subagent",
        "acp/opencode-1.18-g-subagent",
        "claude-stream/2.1-g-subagent",
        "claude-stream/2.1-g-subagent-background",
    ];
    for fixture in recorded.into_iter().take(cases(4, 2)) {
        let (_dir, store) = temp_store();
        let mut book = TestSession::new(&store, fixture).await;
        book.max_lag = 9;
        for step in steps(fixture) {
            book.step(step);
            book.keep(&store).await;
            agree(&store, &book, fixture).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn random_changes_keep_windows_consistent() {
    for seed in 0..cases(6, 1) as u64 {
        let (_dir, store) = temp_store();
        let mut book = TestSession::new(&store, "dice").await;
        book.max_lag = 20;
        let mut dice = Dice(seed);
        for _ in 0..60 {
            let (n, order) = (dice.roll(9), book.items.next_order());
            // A call's parent has a smaller number, and may come later or never.
            let parent = (n > 0 && dice.roll(3) > 0).then(|| format!("c{}", dice.roll(n)));
            let item = match dice.roll(4) {
                0 => call(&format!("c{n}"), order, parent.as_deref(), "completed"),
                1 => call(&format!("c{n}"), order, parent.as_deref(), "pending"),
                _ => {
                    let text = text_item(&format!("i{order}"), order, "x", dice.roll(3) == 0);
                    parent.as_deref().map_or(text.clone(), |parent| below(parent, text))
                }
            };
            let id = item["id"].as_str().unwrap().to_owned();
            // An item that is put again keeps its parent, as agents do it.
            let known = book.items.get(&id).map(|known| known.parent.clone());
            let same = known.is_none_or(|p| p.as_deref() == item["parentToolCallId"].as_str());
            if dice.roll(8) == 0 {
                let gone = format!("c{}", dice.roll(9));
                book.change(&json!([{ "change": "remove", "id": gone }]));
            } else if same {
                book.put(&item);
            } else {
                continue;
            }
            match dice.roll(6) {
                0 => book.rest(&store).await,
                1 | 2 => continue,
                _ => book.keep(&store).await,
            }
            agree(&store, &book, &format!("seed {seed} at {}", book.seq)).await;
        }
    }
}
