//! A full store: it reports the condition, stays readable and recovers by itself.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, append, data, event, session, wait_for_maintenance};
use narrows_store::{Append, Error, NewSession, Options, Query, Store};

/// Appends events until the store is full; returns the end of the log.
async fn fill(store: &Store, key: i64, mut seq: u64) -> u64 {
    loop {
        let events = vec![event(seq + 1, &common::noise(8000, seq + 1))];
        let next = Append { session: key, after: seq, events, ..Append::default() };
        match append(store, next).await {
            Ok(last) => seq = last,
            Err(error) => {
                assert_eq!(error, Error::Full);
                return seq;
            }
        }
        assert!(seq < 1000, "it never was full");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn full_store_is_readable_and_recovers_after_delete() {
    let dir = tempfile::tempdir().unwrap();
    let most = Options { max_bytes: Some(2 << 20), ..Options::default() };
    let store = Store::open(&data(&dir), &most).unwrap();
    assert!(store.is_writable().await);
    let mut small = TestSession::new(&store, "small").await;
    small.say("a", "a needle in it");
    small.keep(&store).await;
    wait_for_maintenance(&store).await;
    // Many item rows too, so that deleting them changes a large index.
    let mut large = TestSession::new(&store, "large").await;
    for n in 0..300 {
        large.say(&format!("i{n}"), &format!("item {n} of {}", narrows_store::new_id().unwrap()));
    }
    large.keep(&store).await;
    wait_for_maintenance(&store).await;
    let last = fill(&store, large.key(), large.seq).await;
    assert!(last > large.seq + 10, "there was room for some");
    assert!(!store.is_writable().await);
    assert!(store.size().database <= 2 << 20);

    // Nothing of the failed append is there, everything else is.
    let page = store.events_after(large.key(), last - 1, 9, usize::MAX).await.unwrap();
    assert_eq!((page.rows.len(), page.last), (1, last));
    assert_eq!(common::all(&store, small.key()).await, small.printed());
    let asked = || Query { text: "needle".to_owned(), limit: 9, ..Query::default() };
    assert_eq!(store.search(asked()).await.unwrap().hits.len(), 1);
    assert!(Error::Full.is_retryable());

    // It stays full for concurrent writers too.
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..8 {
        let (store, key) = (store.clone(), small.key());
        tasks.spawn(async move {
            let events = vec![event(2, &common::noise(200_000, 2))];
            append(&store, Append { session: key, after: 1, events, ..Append::default() }).await
        });
    }
    assert!(tasks.join_all().await.iter().all(|told| *told == Err(Error::Full)));
    assert_eq!(common::all(&store, small.key()).await, small.printed());

    store.delete(&large.session.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert!(store.is_writable().await);
    let made = session(&store, "after", &[]).await;
    assert!(fill(&store, made.key, 0).await > 10, "the room can be used again");
    assert_eq!(common::all(&store, small.key()).await, small.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_works_without_room_for_index() {
    let dir = tempfile::tempdir().unwrap();
    let most = Options { max_bytes: Some(1 << 20), ..Options::default() };
    let store = Store::open(&data(&dir), &most).unwrap();
    // Items queued for indexing while the disk is full.
    let mut book = TestSession::new(&store, "s").await;
    loop {
        let words: Vec<String> = (0..100).map(|_| narrows_store::new_id().unwrap()).collect();
        book.say(&format!("i{}", book.seq), &words.join(" "));
        if append(&store, book.next(false)).await.is_err() {
            break;
        }
        assert!(book.seq < 1000, "it never was full");
    }
    fill(&store, book.key(), book.seq - 1).await;
    assert!(!store.is_settled().await.unwrap());
    store.delete(&book.session.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert!(store.is_writable().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_above_size_limit_opens() {
    let dir = tempfile::tempdir().unwrap();
    let store = common::open(&dir);
    let made = store.create(NewSession::default()).await.unwrap().0;
    let events = (1..=200).map(|seq| event(seq, &common::noise(8000, seq))).collect();
    append(&store, Append { session: made.key, events, ..Append::default() }).await.unwrap();
    store.close().await;
    let most = Options { max_bytes: Some(100_000), ..Options::default() };
    let store = Store::open(&data(&dir), &most).unwrap();
    assert!(!store.is_writable().await);
    assert_eq!(store.session(&made.id).await.unwrap().seq, 200);
    store.delete(&made.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert!(store.is_writable().await);
}

#[tokio::test(flavor = "multi_thread")]
async fn store_is_unhealthy_until_rejected_size_fits() {
    let dir = tempfile::tempdir().unwrap();
    let most = Options { max_bytes: Some(2 << 20), ..Options::default() };
    let store = Store::open(&data(&dir), &most).unwrap();
    let made = session(&store, "s", &[]).await;
    let say = async |after: u64, bytes: usize| {
        let events = vec![event(after + 1, &common::noise(bytes, after + 1))];
        append(&store, Append { session: made.key, after, events, ..Append::default() }).await
    };
    assert_eq!(say(0, 100_000).await, Ok(1));
    assert!(store.is_writable().await);
    // There is room for a little, but not for this.
    assert_eq!(say(1, 4 << 20).await, Err(Error::Full));
    assert!(!store.is_writable().await);
    assert!(!store.is_writable().await, "asking changes nothing");
    assert_eq!(say(1, 1000).await, Ok(2));
    assert!(!store.is_writable().await);
    store.close().await;
    // Larger writes are possible again: the store is healthy, and the probe takes no space.
    let store = Store::open(&data(&dir), &Options::default()).unwrap();
    assert!(store.is_writable().await);
}
