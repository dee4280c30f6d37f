//! Inline commits: appends that are committed on the caller's thread, mixed with others.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, all, append, data, is_postgres, wait_for_maintenance};
use narrows_store::{Error, NewSession, Options, Store};
use tempfile::TempDir;

fn open(dir: &TempDir) -> Store {
    Store::open(&data(dir), &Options { write_here: true, ..Options::default() }).unwrap()
}

/// Appends a text and waits for durability.
async fn say(store: &Store, book: &mut TestSession, text: &str) {
    book.say(&format!("i{}", book.seq), text);
    let mut next = book.next(false);
    next.waits = true;
    let mut durable = store.append(next).await.unwrap();
    let done = match durable.try_recv() {
        Ok(done) => done,
        Err(_) => durable.await.unwrap(),
    };
    assert_eq!(done, Ok(book.seq));
}

async fn talk(store: Store, label: String, sentences: u64) -> TestSession {
    let mut book = TestSession::new(&store, &label).await;
    for n in 0..sentences {
        say(&store, &mut book, &format!("sentence {n} of {label}")).await;
    }
    book
}

/// All texts are there once after the store was closed and reopened.
async fn is_kept(dir: TempDir, store: Store, books: &[TestSession]) {
    // The thread has had time for maintenance too.
    wait_for_maintenance(&store).await;
    store.close().await;
    let store = open(&dir);
    for book in books {
        assert_eq!(all(&store, book.key()).await, book.printed());
    }
    store.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lone_writer_commits_inline() {
    if is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let mut book = TestSession::new(&store, "alone").await;
    let mut at_once = 0;
    for n in 0..200 {
        book.say(&format!("i{n}"), "something");
        let mut next = book.next(false);
        next.waits = true;
        let mut durable = store.append(next).await.unwrap();
        // No thread switch was needed, unless the writer was doing maintenance.
        match durable.try_recv() {
            Ok(done) => {
                at_once += 1;
                assert_eq!(done, Ok(book.seq));
            }
            Err(_) => assert_eq!(durable.await.unwrap(), Ok(book.seq)),
        }
    }
    assert!(at_once > 100, "{at_once} of 200");
    is_kept(dir, store, &[book]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_writers_do_not_block_each_other() {
    if is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let talks: Vec<_> =
        (0..8).map(|n| tokio::spawn(talk(store.clone(), format!("talk {n}"), 60))).collect();
    // Concurrent jobs of another kind.
    for n in 0..60 {
        store.create(NewSession { label: Some(format!("other {n}")), tags: vec![] }).await.unwrap();
    }
    let mut books = Vec::new();
    for talk in talks {
        books.push(talk.await.unwrap());
    }
    is_kept(dir, store, &books).await;
}

#[tokio::test(flavor = "current_thread")]
async fn current_thread_runtime_commits_on_writer_thread() {
    if is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let book = talk(store.clone(), "one thread".to_owned(), 20).await;
    is_kept(dir, store, &[book]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejected_inline_append_returns_error_without_trace() {
    if is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let store = open(&dir);
    let mut book = talk(store.clone(), "refused".to_owned(), 3).await;
    for _ in 0..3 {
        let mut wrong = common::event(9, "nobody comes from there");
        wrong.seq = 9;
        let late = narrows_store::Append {
            session: book.key(),
            after: 8,
            events: vec![wrong],
            waits: true,
            ..narrows_store::Append::default()
        };
        assert_eq!(append(&store, late).await, Err(Error::Conflict { last: book.seq }));
        say(&store, &mut book, "and on").await;
    }
    is_kept(dir, store, &[book]).await;
}
