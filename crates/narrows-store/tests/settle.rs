//! Rows that lag behind their log: nobody who reads sees it, and they are written in the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{Book, all, beside, fresh, steps};
use narrows_store::{Query, Store};

const RECORDED: [&str; 6] = [
    "acp/opencode-1.18-c-files",
    "acp/codex-acp-c-files",
    "acp/claude-acp-g-subagent",
    "acp/opencode-1.18-f-todos",
    "claude-history/2.1-c-files",
    "claude-stream/2.1-u-bidi",
];

/// All that is read of a session, but for what names the session itself.
async fn told(store: &Store, book: &Book) -> (Vec<String>, String, Vec<String>) {
    let outline = store.outline(book.key(), None, 1000).await.unwrap();
    let outline = serde_json::to_string(&outline).unwrap();
    let kept = store.kept(book.key(), usize::MAX).await.unwrap();
    let kept = kept.items.iter().map(common::print).collect();
    (all(store, book.key()).await, outline, kept)
}

/// What lists and statistics tell of it.
async fn counted(store: &Store, book: &Book) -> (u64, u64, u64, Option<String>) {
    let row = store.session_row(&book.session.id).await.unwrap();
    (row.items, row.calls, row.failed, row.prompt)
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_reads_does_not_see_that_rows_wait() {
    let (_dir, store) = fresh();
    for name in RECORDED {
        let mut sooner = Book::new(&store, &format!("{name} sooner")).await;
        let mut later = Book::new(&store, &format!("{name} later")).await;
        let steps = steps(name).into_iter().zip(steps(name));
        for (n, (one, other)) in steps.enumerate() {
            sooner.step(one);
            later.step(other);
            sooner.keep(&store).await;
            // Now and then they are written.
            if n % 9 == 8 {
                later.keep(&store).await;
            } else {
                later.note(&store).await;
            }
            if n % 4 == 0 {
                assert_eq!(told(&store, &later).await, told(&store, &sooner).await, "{name} {n}");
            }
        }
        assert_eq!(told(&store, &later).await, told(&store, &sooner).await, "{name}");
        later.rest(&store).await;
        sooner.rest(&store).await;
        assert_eq!(counted(&store, &later).await, counted(&store, &sooner).await, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_somebody_left_behind_are_written() {
    let (_dir, store) = fresh();
    for name in RECORDED {
        let mut whole = Book::new(&store, &format!("{name} whole")).await;
        let mut left = Book::new(&store, &format!("{name} left")).await;
        for (n, (one, other)) in steps(name).into_iter().zip(steps(name)).enumerate() {
            whole.step(one);
            left.step(other);
            if n == 3 {
                left.keep(&store).await;
            }
        }
        whole.rest(&store).await;
        left.note(&store).await;
        // Where other nodes write too, it must have been quiet for a while.
        beside(&store, &format!("UPDATE session SET updated = 1 WHERE key = {}", left.key()));
        assert_eq!(store.unsettled().await.unwrap(), [left.key()], "{name}");
        assert_ne!(counted(&store, &left).await, counted(&store, &whole).await, "{name}");
        store.settle(left.key()).await.unwrap();
        assert!(store.unsettled().await.unwrap().is_empty(), "{name}");
        assert_eq!(counted(&store, &left).await, counted(&store, &whole).await, "{name}");
        assert_eq!(told(&store, &left).await, told(&store, &whole).await, "{name}");
        assert_eq!(found(&store, &left).await, found(&store, &whole).await, "{name}");
    }
}

/// The orders of the items in which there is an e.
async fn found(store: &Store, book: &Book) -> Vec<String> {
    let session = Some(book.key());
    let query = Query { text: "e".to_owned(), session, limit: 1000, ..Query::default() };
    let mut hits: Vec<String> =
        store.search(query).await.unwrap().hits.into_iter().map(|hit| hit.item_id).collect();
    hits.sort();
    hits
}
