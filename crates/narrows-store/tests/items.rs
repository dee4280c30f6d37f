//! Items are what their changes make, whether they are in rows or only in the log.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, all, append, cases, print, steps, temp_store, text_item};
use narrows::stored;
use narrows_store::{Append, Error, Store, Window};
use serde_json::json;

/// Recorded sessions: streams, calls, lists, images, subagents, questions, removed items.
const RECORDED: [&str; 12] = [
    "acp/opencode-1.18-c-files",
    "acp/opencode-1.18-f-todos",
    "acp/opencode-1.18-k-parallel-tools",
    "acp/claude-acp-g-subagent",
    "acp/claude-acp-h-permission-reject",
    "acp/claude-acp-m-image",
    "acp/claude-acp-o-plan-mode",
    "acp/codex-acp-d-bash",
    "acp/codex-acp-n-partial",
    "claude-stream/2.1-n-partial",
    "claude-stream/2.1-v-ask-user",
    "claude-history/2.1-q-compact",
];

/// The orders in a window, and whether there are more before and after.
async fn window(store: &Store, key: i64, window: Window, limit: usize) -> (Vec<u64>, bool, bool) {
    let page = store.items(key, window, limit).await.unwrap();
    (page.items.iter().map(|row| row.order).collect(), page.before, page.after)
}

/// Ten items: some have rows, some are only in the log, some have outdated rows.
async fn mixed(store: &Store) -> TestSession {
    let mut book = TestSession::new(store, "mixed").await;
    for n in 0..3 {
        book.say(&format!("i{n}"), &format!("said {n}"));
    }
    book.keep(store).await;
    for n in 3..6 {
        book.put(&text_item(&format!("i{n}"), n, &format!("begun {n}"), true));
    }
    book.rest(store).await;
    book.change(&json!([{ "change": "append", "id": "i4", "field": "content", "text": " more" }]));
    book.put(&text_item("i6", 6, "begun 6", true));
    book.say("i7", "said 7");
    book.put(&text_item("i8", 8, "begun 8", true));
    book.say("i9", "said 9");
    book.keep(store).await;
    book
}

#[tokio::test(flavor = "multi_thread")]
async fn item_wrongly_assumed_new_keeps_row() {
    let (_dir, store) = temp_store();
    let mut book = mixed(&store).await;
    book.put(&text_item("i2", 2, "said otherwise", false));
    book.change(
        &json!([{ "change": "append", "id": "i4", "field": "content", "text": " and more" }]),
    );
    let mut next = book.next(true);
    next.new_from = Some(0);
    assert_eq!(append(&store, next).await, Ok(book.seq));
    assert_eq!(all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn window_spans_rows_and_log_in_both_directions() {
    let (_dir, store) = temp_store();
    let book = mixed(&store).await;
    let key = book.key();
    assert_eq!(all(&store, key).await, book.printed());
    let is = async |of, limit| window(&store, key, of, limit).await;
    assert_eq!(is(Window::End, 3).await, (vec![7, 8, 9], true, false));
    assert_eq!(is(Window::End, 10).await, ((0..10).collect(), false, false));
    assert_eq!(is(Window::End, 0).await, (vec![], true, false));
    assert_eq!(is(Window::Before(7), 3).await, (vec![4, 5, 6], true, true));
    assert_eq!(is(Window::Before(2), 5).await, (vec![0, 1], false, true));
    assert_eq!(is(Window::Before(0), 5).await, (vec![], false, true));
    assert_eq!(is(Window::Before(99), 2).await, (vec![8, 9], true, false));
    assert_eq!(is(Window::From(5), 3).await, (vec![5, 6, 7], true, true));
    assert_eq!(is(Window::From(8), 5).await, (vec![8, 9], true, false));
    assert_eq!(is(Window::From(0), 10).await, ((0..10).collect(), false, false));
    assert_eq!(is(Window::From(10), 3).await, (vec![], true, false));
    assert_eq!(is(Window::Around(6), 4).await, (vec![4, 5, 6, 7], true, true));
    assert_eq!(is(Window::Around(6), 5).await, (vec![4, 5, 6, 7, 8], true, true));
    assert_eq!(is(Window::Around(0), 4).await, (vec![0, 1], false, true));
    assert_eq!(is(Window::Around(9), 4).await, (vec![7, 8, 9], true, false));
    assert_eq!(is(Window::Around(5), 99).await, ((0..10).collect(), false, false));

    // Page by page, each item once.
    let (mut seen, mut at) = (Vec::new(), u64::MAX);
    loop {
        let (page, more, _) = is(Window::Before(at), 3).await;
        at = page[0];
        seen.splice(0..0, page);
        if !more {
            break;
        }
    }
    assert_eq!(seen, (0..10).collect::<Vec<_>>());
}

#[tokio::test(flavor = "multi_thread")]
async fn item_by_id_has_current_state() {
    let (_dir, store) = temp_store();
    let mut book = mixed(&store).await;
    for item in book.items.iter() {
        let (found, ended) = store.item(book.key(), &item.id).await.unwrap();
        assert_eq!(print(&found), print(item));
        assert!(!ended);
    }
    let none = store.item(book.key(), "nothing").await.unwrap_err();
    assert_eq!(none, Error::NotFound("item"));
    book.change(&json!([{ "change": "remove", "id": "i2" }, { "change": "remove", "id": "i6" }]));
    let last = Append { ended: Some(true), ..book.next(false) };
    common::append(&store, last).await.unwrap();
    for gone in ["i2", "i6"] {
        assert_eq!(store.item(book.key(), gone).await.unwrap_err(), Error::NotFound("item"));
    }
    assert!(store.item(book.key(), "i9").await.unwrap().1, "the source is over");
    assert!(store.items(book.key(), Window::End, 1).await.unwrap().ended);
    assert_eq!(store.session_row(&book.session.id).await.unwrap().items, 7);
}

#[tokio::test(flavor = "multi_thread")]
async fn item_put_again_keeps_position_unless_removed() {
    let (_dir, store) = temp_store();
    let mut book = mixed(&store).await;
    // In a row, in an outdated row, and only in the log; also next to an item that stays open.
    book.put(&text_item("i1", 40, "anew", false));
    book.put(&text_item("i4", 41, "anew", true));
    book.put(&text_item("i6", 42, "anew", true));
    book.keep(&store).await;
    assert_eq!(all(&store, book.key()).await, book.printed());
    assert_eq!(window(&store, book.key(), Window::End, 99).await.0, (0..10).collect::<Vec<_>>());
    book.rest(&store).await;
    assert_eq!(all(&store, book.key()).await, book.printed());

    book.change(&json!([{ "change": "remove", "id": "i1" }, { "change": "remove", "id": "i8" }]));
    book.keep(&store).await;
    assert_eq!(all(&store, book.key()).await, book.printed());
    for (id, open) in [("i8", true), ("i1", false)] {
        let order = book.items.next_order();
        book.put(&text_item(id, order, "back", open));
        book.keep(&store).await;
        assert_eq!(all(&store, book.key()).await, book.printed());
    }
    // Removed and put again within one append.
    book.change(&json!([{ "change": "remove", "id": "i9" }]));
    book.say("i9", "back at once");
    book.keep(&store).await;
    assert_eq!(all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn patch_applies_once_to_old_rows() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "old").await;
    book.say("old", "said");
    book.keep(&store).await;
    // While another item is open, the log is read too: no change must apply twice.
    book.put(&text_item("open", 1, "begun", true));
    book.keep(&store).await;
    for _ in 0..3 {
        book.change(
            &json!([{ "change": "append", "id": "old", "field": "content", "text": " more" }]),
        );
        book.change(
            &json!([{ "change": "append", "id": "open", "field": "content", "text": " more" }]),
        );
        book.keep(&store).await;
        assert_eq!(all(&store, book.key()).await, book.printed());
    }
    assert!(book.printed()[0].contains("said more more more"));
    // Changes of missing items have no effect.
    book.change(&json!([{ "change": "set", "id": "nobody", "content": "x" }]));
    book.keep(&store).await;
    assert_eq!(all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn items_match_changes_at_every_log_position() {
    for fixture in RECORDED.into_iter().step_by(cases(1, 3)) {
        let (_dir, store) = temp_store();
        let steps = steps(fixture);
        assert!(steps.len() > 3, "{fixture}");
        let mut book = TestSession::new(&store, fixture).await;
        // Rows of open items are written now and then.
        book.max_lag = 7;
        for step in steps {
            book.step(step);
            book.keep(&store).await;
            let at = book.seq;
            assert_eq!(all(&store, book.key()).await, book.printed(), "{fixture} at {at}");
            kept(&store, &book, fixture).await;
        }
    }
}

/// The state needed to resume: header, next order, open items and the last ones.
async fn kept(store: &Store, book: &TestSession, fixture: &str) {
    let at = book.seq;
    let whole = store.kept(book.key(), usize::MAX).await.unwrap();
    assert_eq!(whole.items.iter().map(print).collect::<Vec<_>>(), book.printed());
    assert_eq!((whole.seq, whole.next_order), (book.seq, book.items.next_order()));
    assert_eq!(whole.items.next_order(), book.items.next_order());
    let header = |items: &narrows::Items| stored::print_info(items.info());
    assert_eq!(header(&whole.items), header(&book.items), "{fixture} at {at}");
    let some = store.kept(book.key(), 2).await.unwrap();
    let recent = book.items.iter().count().saturating_sub(2);
    for (n, item) in book.items.iter().enumerate() {
        let needed = n >= recent || item.is_open();
        match some.items.get(&item.id) {
            Some(found) => assert_eq!(print(found), print(item), "{fixture} at {at}"),
            None => assert!(!needed, "{fixture} at {at}: lacks {}", print(item)),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_state_lists_outdated_rows() {
    let (_dir, store) = temp_store();
    let mut book = mixed(&store).await;
    let kept = store.kept(book.key(), 1).await.unwrap();
    let mut lack: Vec<&str> = kept.unsettled.iter().map(|(id, _)| id.as_str()).collect();
    lack.sort_unstable();
    for id in ["i4", "i6", "i8"] {
        assert!(lack.contains(&id), "{lack:?}");
        assert!(kept.items.get(id).is_some(), "{id} is open");
    }
    for id in ["i0", "i1", "i2", "i3", "i5", "i7", "i9"] {
        assert!(!lack.contains(&id), "{id} has all of it in its row");
    }
    let since = |id| kept.unsettled.iter().find(|(i, _)| i == id).map(|(_, seq)| *seq);
    assert_eq!((since("i4"), since("i6"), since("i8")), (Some(7), Some(8), Some(10)));
    book.rest(&store).await;
    assert!(store.kept(book.key(), 1).await.unwrap().unsettled.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn resume_state_contains_reopened_old_item() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "again").await;
    for n in 0..5 {
        book.say(&format!("i{n}"), "said");
    }
    book.keep(&store).await;
    book.put(&text_item("i0", 0, "said", true));
    book.keep(&store).await;
    let kept = store.kept(book.key(), 2).await.unwrap();
    let opened = kept.items.get("i0").expect("it is open");
    assert_eq!(print(opened), book.printed()[0]);
}

#[tokio::test(flavor = "multi_thread")]
async fn last_turn_starts_at_last_prompt() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "turns").await;
    steps("acp/claude-acp-l-resume").into_iter().for_each(|step| book.step(step));
    book.rest(&store).await;
    let log = store.events_after(book.key(), 0, usize::MAX, usize::MAX).await.unwrap().rows;
    let prompt = log.iter().rposition(|row| row.kind == "user_message").expect("it has prompts");
    let seqs = |rows: &[narrows_store::EventRow]| rows.iter().map(|r| r.seq).collect::<Vec<_>>();
    let turn = store.last_turn(book.key(), usize::MAX >> 1).await.unwrap();
    assert_eq!(seqs(&turn), seqs(&log[prompt..]));
    assert!(log.len() > turn.len() && turn.len() > 2, "the fixture has several turns");
    let short = store.last_turn(book.key(), 2).await.unwrap();
    assert_eq!(seqs(&short), seqs(&log[log.len() - 2..]));
}
