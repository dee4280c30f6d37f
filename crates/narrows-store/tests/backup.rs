//! Backup and restore, also while the store is written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{
    TestSession, append, data, event, open, session, steps, temp_store, wait_for_maintenance,
};
use narrows_store::{Append, Error, ListFilter, NewSession, Query, Store, backup, now, restore};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The stores set aside by restores.
fn aside(data: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(data).unwrap().map(|f| f.unwrap().path());
    let old = |path: &PathBuf| path.to_string_lossy().contains("before-");
    files.filter(|p| old(p) && !p.to_string_lossy().ends_with("-wal")).collect()
}

/// All visible content of a store except epochs.
async fn seen(store: &Store, word: &str) -> Vec<String> {
    let mut seen = Vec::new();
    let page = store.list(ListFilter { limit: 99, ..ListFilter::default() }).await.unwrap();
    for row in page.sessions {
        let session = store.session(&row.id).await.unwrap();
        let place = row.cursor.split_once('-').unwrap().1;
        seen.push(format!("{} {:?} {:?} {place}", row.id, row.label, row.tags));
        seen.push(row.info.get().to_owned());
        let log = store.events_after(session.key, 0, 9999, usize::MAX).await.unwrap();
        seen.extend(log.rows.iter().map(|r| format!("{r:?}")));
        seen.extend(common::all(store, session.key).await);
    }
    let asked = Query { text: word.to_owned(), limit: 99, ..Query::default() };
    let found = store.search(asked).await.unwrap().hits;
    assert!(!found.is_empty());
    seen.extend(found.iter().map(|hit| format!("{hit:?}")));
    seen
}

async fn epochs(store: &Store) -> BTreeMap<String, String> {
    let page = store.list(ListFilter { limit: 99, ..ListFilter::default() }).await.unwrap();
    let epoch = |cursor: &str| cursor.split_once('-').unwrap().0.to_owned();
    page.sessions.into_iter().map(|s| (s.id, epoch(&s.cursor))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_recovers_content_with_new_epochs() {
    let (dir, store) = temp_store();
    for fixture in ["acp/opencode-1.18-c-files", "acp/claude-acp-g-subagent"] {
        let mut book = TestSession::of(session(&store, fixture, &["recorded"]).await);
        steps(fixture).into_iter().for_each(|step| book.step(step));
        book.keep(&store).await;
    }
    let mut half = TestSession::new(&store, "half").await;
    half.put(&common::text_item("a", 0, "half a sen", true));
    half.keep(&store).await;
    wait_for_maintenance(&store).await;
    let (before, lives, key) = (seen(&store, "read").await, epochs(&store).await, store.mark_key());
    let copy = dir.path().join("copy.db");
    let bytes = backup(&data(&dir), &copy).unwrap();
    assert_eq!(bytes, fs::metadata(&copy).unwrap().len());

    // Not part of the backup.
    half.say("later", "read this later");
    half.keep(&store).await;
    store.create(NewSession::default()).await.unwrap();
    match restore(&copy, &data(&dir)) {
        Err(Error::Locked(told)) => assert!(told.contains("another narrows"), "{told}"),
        other => panic!("{other:?}"),
    }
    let later = seen(&store, "read").await;
    store.close().await;
    drop(store);

    let began = now();
    assert_eq!(restore(&copy, &data(&dir)), Ok(3));
    let store = open(&dir);
    assert_eq!(seen(&store, "read").await, before);
    assert_eq!(store.mark_key(), key);
    let new_lives = epochs(&store).await;
    assert_eq!(new_lives.keys().collect::<Vec<_>>(), lives.keys().collect::<Vec<_>>());
    for (id, life) in &new_lives {
        assert_ne!(life, &lives[id]);
    }
    // The restored session continues.
    let session = store.session(&half.session.id).await.unwrap();
    assert_eq!((session.seq, session.key), (1, half.key()));
    let next = Append {
        session: session.key,
        after: 1,
        events: vec![event(2, "x")],
        ..Default::default()
    };
    assert_eq!(append(&store, next).await, Ok(2));
    store.close().await;
    drop(store);

    // The replaced store was set aside completely.
    let old = aside(&data(&dir));
    let [old] = old.as_slice() else { panic!("{old:?}") };
    let at = old.to_string_lossy().rsplit_once('-').unwrap().1.parse::<i64>().unwrap();
    assert!((began..=now()).contains(&at));
    let second = tempfile::tempdir().unwrap();
    assert_eq!(restore(old, &data(&second)), Ok(4));
    assert_eq!(seen(&open(&second), "read").await, later);
    assert!(aside(&data(&second)).is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_during_writes_is_consistent() {
    let (dir, store) = temp_store();
    let on = Arc::new(AtomicBool::new(true));
    let mut writers = tokio::task::JoinSet::new();
    for n in 0..4 {
        let (store, on) = (store.clone(), Arc::clone(&on));
        writers.spawn(async move {
            let mut book = TestSession::new(&store, &format!("s{n}")).await;
            while on.load(Ordering::Relaxed) {
                book.say(&format!("i{}", book.seq), "said while it is copied");
                book.keep(&store).await;
            }
            book.seq
        });
    }
    let mut copies = Vec::new();
    for n in 0..3 {
        // Something must have been committed since the last backup.
        let [commits, ..] = store.counts();
        common::wait_until("they write", async || store.counts()[0] > commits + 20).await;
        let copy = dir.path().join(format!("copy-{n}.db"));
        let (data, to) = (data(&dir), copy.clone());
        tokio::task::spawn_blocking(move || backup(&data, &to)).await.unwrap().unwrap();
        copies.push(copy);
    }
    on.store(false, Ordering::Relaxed);
    let written: u64 = writers.join_all().await.iter().sum();
    let mut last = 0;
    for copy in copies {
        let restored = tempfile::tempdir().unwrap();
        assert_eq!(restore(&copy, &data(&restored)), Ok(4));
        let store = open(&restored);
        let page = store.list(ListFilter { limit: 9, ..ListFilter::default() }).await.unwrap();
        let mut events = 0;
        for row in &page.sessions {
            let session = store.session(&row.id).await.unwrap();
            let log = store.events_after(session.key, 0, usize::MAX, usize::MAX).await.unwrap();
            assert_eq!(log.rows.last().map_or(0, |r| r.seq), row.events);
            assert_eq!(log.rows.len() as u64, row.events);
            assert_eq!(common::all(&store, session.key).await.len() as u64, row.items);
            assert_eq!(row.items, row.events, "an event and its item come together");
            events += row.events;
        }
        assert!(events > last && events <= written, "{last} {events} {written}");
        last = events;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_of_invalid_file_fails_without_changes() {
    let (dir, store) = temp_store();
    let made = session(&store, "s", &[]).await;
    store.close().await;
    drop(store);
    let file = |name: &str, content: &[u8]| {
        let path = dir.path().join(name);
        fs::write(&path, content).unwrap();
        path
    };
    let other = dir.path().join("other.db");
    let db = Connection::open(&other).unwrap();
    db.execute_batch("CREATE TABLE t (a); PRAGMA user_version = 1").unwrap();
    drop(db);
    let newer = dir.path().join("newer.db");
    let db = Connection::open(&newer).unwrap();
    db.execute_batch("CREATE TABLE t (a); PRAGMA user_version = 99").unwrap();
    drop(db);
    let whole = fs::read(data(&dir).join("narrows.db")).unwrap();
    for from in [
        file("garbage", &[42; 9000]),
        file("empty", b""),
        file("text", b"SQLite is not in here, it only looks long enough to be something else."),
        file("half", &whole[..whole.len() / 2]),
        dir.path().join("nothing"),
        other,
        newer,
    ] {
        let told = restore(&from, &data(&dir)).unwrap_err();
        let clear =
            matches!(told, Error::Refused(_) | Error::Damaged(_) | Error::Newer { found: 99, .. });
        assert!(clear, "{}: {told:?}", from.display());
    }
    let mut left: Vec<String> = fs::read_dir(data(&dir))
        .unwrap()
        .map(|f| f.unwrap().file_name().to_string_lossy().into_owned())
        .filter(|name| !name.ends_with("-wal") && !name.ends_with("-shm"))
        .collect();
    left.sort();
    assert_eq!(left, ["lock", "narrows.db", "narrows.durable"]);
    assert_eq!(open(&dir).session(&made.id).await.unwrap(), made);
}

#[tokio::test(flavor = "multi_thread")]
async fn backup_requires_store_and_new_file() {
    let (dir, _store) = temp_store();
    let there = dir.path().join("there");
    fs::write(&there, "mine").unwrap();
    assert!(matches!(backup(&data(&dir), &there), Err(Error::Refused(_))));
    assert_eq!(fs::read_to_string(&there).unwrap(), "mine");
    let nowhere = dir.path().join("no/such/folder");
    assert!(matches!(backup(&data(&dir), &nowhere), Err(Error::Refused(_))));
    let empty = tempfile::tempdir().unwrap();
    let to = dir.path().join("copy.db");
    assert_eq!(backup(empty.path(), &to), Err(Error::NotFound("store")));
    assert!(!to.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_sets_damaged_store_aside() {
    let (dir, store) = temp_store();
    let made = session(&store, "s", &[]).await;
    let copy = dir.path().join("copy.db");
    backup(&data(&dir), &copy).unwrap();
    let path = store.dir().database();
    store.close().await;
    drop(store);
    fs::write(&path, [42; 9000]).unwrap();
    assert_eq!(restore(&copy, &data(&dir)), Ok(1));
    assert_eq!(open(&dir).session(&made.id).await.unwrap().label.as_deref(), Some("s"));
    assert!(fs::read(&aside(&data(&dir))[0]).unwrap() == [42; 9000]);
}

#[tokio::test(flavor = "multi_thread")]
async fn restore_with_open_reader_sets_complete_store_aside() {
    let (dir, store) = temp_store();
    session(&store, "first", &[]).await;
    let copy = dir.path().join("copy.db");
    backup(&data(&dir), &copy).unwrap();
    // A reader of the old store prevents the WAL from being checkpointed.
    let reader = Connection::open(store.dir().database()).unwrap();
    reader.execute_batch("BEGIN; SELECT * FROM session").unwrap();
    session(&store, "second", &[]).await;
    store.close().await;
    drop(store);
    assert_eq!(restore(&copy, &data(&dir)), Ok(1));
    drop(reader);
    let old = Connection::open(&aside(&data(&dir))[0]).unwrap();
    let count: i64 = old.query_row("SELECT count(*) FROM session", [], |r| r.get(0)).unwrap();
    assert_eq!(count, 2);
}
