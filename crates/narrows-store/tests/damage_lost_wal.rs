//! Sessions that were lost with the write-ahead log, and sessions that are created after the loss.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::copy;
use common::{TestSession, data, temp_store};
use narrows_store::{DamagedPart, NewSession, Options, Store, repair};
use std::path::{Path, PathBuf};

/// A store that lost some sessions with its write-ahead log: its directory, and their ids.
async fn lose_sessions(dir: &Path, sessions: usize, delete_one: bool) -> (PathBuf, Vec<String>) {
    let (from, store) = temp_store();
    let mut book = TestSession::new(&store, "first").await;
    book.say("a", "kept");
    book.keep(&store).await;
    store.close().await;
    let place = dir.join("data");
    copy(&data(&from), &place);
    let store = common::open(&from);
    let mut lost = Vec::new();
    for n in 0..sessions {
        let mut book = TestSession::new(&store, &format!("lost-{n}")).await;
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

async fn lost_ids(store: &Store) -> Vec<String> {
    let damage = store.damage().await.unwrap();
    assert!(damage.iter().all(|(d, _)| d.part == DamagedPart::Lost), "{damage:?}");
    let mut names: Vec<String> = damage.into_iter().map(|(_, id)| id).collect();
    names.sort();
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn new_session_never_reuses_key_of_lost_session() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lose_sessions(dir.path(), 6, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(lost_ids(&store).await, lost);
    let mut book = TestSession::new(&store, "new").await;
    book.say("a", "written after the loss");
    book.keep(&store).await;
    let (id, epoch) = (book.session.id.clone(), book.session.epoch.clone());
    store.close().await;
    // A read-only store names the lost sessions, too, and not the new one.
    let reader = Store::open_read_only(&place).unwrap();
    assert_eq!(lost_ids(&reader).await, lost);
    reader.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    assert_eq!((report.whole, report.sessions.len()), (2, 0), "{report:?}");
    assert_eq!(report.gone, lost);
    let store = Store::open(&place, &Options::default()).unwrap();
    let session = store.session(&id).await.unwrap();
    assert_eq!((session.epoch, session.seq), (epoch, 1));
    assert_eq!(common::all(&store, session.key).await, book.printed());
    assert_eq!(lost_ids(&store).await, Vec::<String>::new());
    // Nor does a session that is created after the repair.
    let (after, _) = store.create(NewSession::default()).await.unwrap();
    assert!(after.key > session.key, "{} {}", after.key, session.key);
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_deleted_and_repaired_sessions_are_not_reused() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    // The last session was deleted in the same WAL that is lost: nothing names it, but its key was used.
    let (place, lost) = lose_sessions(dir.path(), 4, true).await;
    repair(&place, false, |_| ()).unwrap();
    let store = Store::open(&place, &Options::default()).unwrap();
    let (after, _) = store.create(NewSession::default()).await.unwrap();
    assert_eq!(lost.len(), 3);
    assert_eq!(after.key, 6, "five had keys");
}

#[tokio::test(flavor = "multi_thread")]
async fn second_loss_keeps_report_of_first() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lose_sessions(dir.path(), 3, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(lost_ids(&store).await, lost);
    // The report is in the database itself, not only in the next write-ahead log.
    let again = dir.path().join("again");
    copy(&place, &again);
    std::fs::remove_file(again.join("narrows.db-wal")).unwrap();
    store.close().await;
    let store = Store::open(&again, &Options::default()).unwrap();
    assert_eq!(lost_ids(&store).await, lost);
}

#[tokio::test(flavor = "multi_thread")]
async fn session_with_key_of_lost_session_is_kept_apart() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (place, lost) = lose_sessions(dir.path(), 1, false).await;
    let store = Store::open(&place, &Options::default()).unwrap();
    // As in earlier versions.
    common::raw_sql(&store, "UPDATE sqlite_sequence SET seq = 1 WHERE name = 'session'");
    let mut book = TestSession::new(&store, "new").await;
    assert_eq!(book.key(), 2);
    book.say("a", "written after the loss");
    book.keep(&store).await;
    store.close().await;
    let reader = Store::open_read_only(&place).unwrap();
    assert_eq!(lost_ids(&reader).await, lost);
    reader.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    assert_eq!((report.whole, report.sessions.len()), (2, 0), "{report:?}");
    assert_eq!(report.gone, lost);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(store.session(&book.session.id).await.unwrap().epoch, book.session.epoch);
}
