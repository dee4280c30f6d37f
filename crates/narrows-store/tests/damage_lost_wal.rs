//! Sessions that were lost with the write-ahead log, and those that are made after them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::copy;
use common::{Book, data, fresh};
use narrows_store::{DamagedPart, NewSession, Options, Store, repair};
use std::path::{Path, PathBuf};

/// A store that lost some sessions with its write-ahead log: where it is, and their ids.
async fn lost(dir: &Path, sessions: usize, delete_one: bool) -> (PathBuf, Vec<String>) {
    let (from, store) = fresh();
    let mut book = Book::new(&store, "first").await;
    book.say("a", "kept");
    book.keep(&store).await;
    store.close().await;
    let place = dir.join("data");
    copy(&data(&from), &place);
    let store = common::open(&from);
    let mut lost = Vec::new();
    for n in 0..sessions {
        let mut book = Book::new(&store, &format!("lost-{n}")).await;
        for line in 0..5 {
            book.say(&format!("line-{line}"), "this is lost");
        }
        book.keep(&store).await;
        lost.push(book.session.id.clone());
    }
    if delete_one {
        store.delete(&lost.pop().unwrap()).await.unwrap();
    }
    let ends = "narrows.durable";
    std::fs::copy(data(&from).join(ends), place.join(ends)).unwrap();
    store.close().await;
    lost.sort();
    (place, lost)
}

async fn named(store: &Store) -> Vec<String> {
    let damage = store.damage().await.unwrap();
    assert!(damage.iter().all(|(d, _)| d.part == DamagedPart::Lost), "{damage:?}");
    let mut names: Vec<String> = damage.into_iter().map(|(_, id)| id).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_session_never_has_the_key_of_a_lost_one() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lost(dir.path(), 6, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(named(&store).await, lost);
    let mut book = Book::new(&store, "new").await;
    book.say("a", "said after the loss");
    book.keep(&store).await;
    let (id, epoch) = (book.session.id.clone(), book.session.epoch.clone());
    store.close().await;
    // Those that are lost are named, the new one is not: also by those who only read.
    let reader = Store::open_read_only(&place).unwrap();
    assert_eq!(named(&reader).await, lost);
    reader.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    assert_eq!((report.whole, report.sessions.len()), (2, 0), "{report:?}");
    assert_eq!(report.gone, lost);
    let store = Store::open(&place, &Options::default()).unwrap();
    let session = store.session(&id).await.unwrap();
    assert_eq!((session.epoch, session.seq), (epoch, 1));
    assert_eq!(common::all(&store, session.key).await, book.printed());
    assert_eq!(named(&store).await, Vec::<String>::new());
    // Nor does one that is made after the repair.
    let (after, _) = store.create(NewSession::default()).await.unwrap();
    assert!(after.key > session.key, "{} {}", after.key, session.key);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_are_not_given_again_when_their_sessions_were_deleted_or_repaired() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The last one was deleted, in the same log that is lost: nothing names it, and its key was given.
    let (place, lost) = lost(dir.path(), 4, true).await;
    repair(&place, false, |_| ()).unwrap();
    let store = Store::open(&place, &Options::default()).unwrap();
    let (after, _) = store.create(NewSession::default()).await.unwrap();
    assert_eq!(lost.len(), 3);
    assert_eq!(after.key, 6, "five had keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_loss_does_not_make_the_first_one_forgotten() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lost(dir.path(), 3, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(named(&store).await, lost);
    // What was found stands in the database itself, not only in the next write-ahead log.
    let again = dir.path().join("again");
    copy(&place, &again);
    std::fs::remove_file(again.join("narrows.db-wal")).unwrap();
    store.close().await;
    let store = Store::open(&again, &Options::default()).unwrap();
    assert_eq!(named(&store).await, lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_the_key_of_a_lost_one_is_not_taken_for_it() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lost(dir.path(), 1, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    // As earlier versions did it.
    common::beside(&store, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'session'");
    let mut book = Book::new(&store, "new").await;
    assert_eq!(book.key(), 2);
    book.say("a", "said after the loss");
    book.keep(&store).await;
    store.close().await;
    let reader = Store::open_read_only(&place).unwrap();
    assert_eq!(named(&reader).await, lost);
    reader.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    assert_eq!((report.whole, report.sessions.len()), (2, 0), "{report:?}");
    assert_eq!(report.gone, lost);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(store.session(&book.session.id).await.unwrap().epoch, book.session.epoch);
}
