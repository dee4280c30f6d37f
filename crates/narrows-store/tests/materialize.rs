//! Item rows that are behind their log: invisible to readers, and materialized in the end.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, all, raw_sql, steps, temp_store};
use narrows_store::{Query, Store};

const RECORDED: [&str; 6] = [
    "acp/opencode-1.18-c-files",
    "acp/codex-acp-c-files",
    "acp/claude-acp-g-subagent",
    "acp/opencode-1.18-f-todos",
    "claude-history/2.1-c-files",
    "claude-stream/2.1-u-bidi",
];

/// All readable content of a session, without its ids.
async fn told(store: &Store, book: &TestSession) -> (Vec<String>, String, Vec<String>) {
    let outline = store.outline(book.key(), None, 1000).await.unwrap();
    let outline = serde_json::to_string(&outline).unwrap();
    let kept = store.kept(book.key(), usize::MAX).await.unwrap();
    let kept = kept.items.iter().map(common::print).collect();
    (all(store, book.key()).await, outline, kept)
}

/// What lists and statistics contain about it.
async fn counted(store: &Store, book: &TestSession) -> (u64, u64, u64, Option<String>) {
    let row = store.session_row(&book.session.id).await.unwrap();
    (row.items, row.calls, row.failed, row.prompt)
}

#[tokio::test(flavor = "multi_thread")]
async fn readers_see_no_difference_for_outdated_rows() {
    let (_dir, store) = temp_store();
    for name in RECORDED {
        let mut sooner = TestSession::new(&store, &format!("{name} sooner")).await;
        let mut later = TestSession::new(&store, &format!("{name} later")).await;
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
async fn outdated_rows_are_materialized() {
    let (_dir, store) = temp_store();
    for name in RECORDED {
        let mut whole = TestSession::new(&store, &format!("{name} whole")).await;
        let mut left = TestSession::new(&store, &format!("{name} left")).await;
        for (n, (one, other)) in steps(name).into_iter().zip(steps(name)).enumerate() {
            whole.step(one);
            left.step(other);
            if n == 3 {
                left.keep(&store).await;
            }
        }
        whole.rest(&store).await;
        left.note(&store).await;
        // Where other nodes may write, the session must have been quiet for a while.
        raw_sql(&store, &format!("UPDATE session SET updated = 1 WHERE key = {}", left.key()));
        assert_eq!(store.unsettled().await.unwrap(), [left.key()], "{name}");
        assert_ne!(counted(&store, &left).await, counted(&store, &whole).await, "{name}");
        store.settle(left.key()).await.unwrap();
        assert!(store.unsettled().await.unwrap().is_empty(), "{name}");
        assert_eq!(counted(&store, &left).await, counted(&store, &whole).await, "{name}");
        assert_eq!(told(&store, &left).await, told(&store, &whole).await, "{name}");
        assert_eq!(found(&store, &left).await, found(&store, &whole).await, "{name}");
    }
}

/// The orders of the items that contain an e.
async fn found(store: &Store, book: &TestSession) -> Vec<String> {
    let session = Some(book.key());
    let query = Query { text: "e".to_owned(), session, limit: 1000, ..Query::default() };
    let mut hits: Vec<String> =
        store.search(query).await.unwrap().hits.into_iter().map(|hit| hit.item_id).collect();
    hits.sort();
    hits
}
