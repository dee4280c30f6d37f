//! The data directory: one writer, no access for others, clear errors.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, data, open, temp_store};
use narrows_store::{DataDir, Error, NewSession, Options, SCHEMA, Store, backup, write_private};
use rusqlite::Connection;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use tempfile::TempDir;

fn try_open(dir: &TempDir) -> Result<Store, Error> {
    Store::open(&data(dir), &Options::default())
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test(flavor = "multi_thread")]
async fn second_writer_of_data_directory_is_rejected() {
    let (dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    book.say("a", "said");
    book.keep(&store).await;
    match try_open(&dir) {
        Err(Error::Locked(told)) => {
            assert!(told.contains(&std::process::id().to_string()), "{told}");
            assert!(told.contains(data(&dir).to_str().unwrap()) && told.contains("--data"));
        }
        other => panic!("{other:?}"),
    }
    assert!(store.dir().is_in_use());

    // A read-only store sees new events and cannot write.
    let reader = Store::open_read_only(&data(&dir)).unwrap();
    assert_eq!(common::all(&reader, book.key()).await, book.printed());
    book.say("b", "more");
    book.keep(&store).await;
    assert_eq!(common::all(&reader, book.key()).await, book.printed());
    assert!(reader.create(NewSession::default()).await.is_err());
    assert!(!reader.is_writable().await);

    store.close().await;
    assert!(!reader.dir().is_in_use());
    let again = open(&dir);
    assert_eq!(common::all(&again, book.key()).await, book.printed());
    assert_eq!(again.mark_key(), store.mark_key(), "the key of an installation stays");
    assert_ne!(again.mark_key(), [0; 32]);
    book.say("c", "and more");
    book.keep(&again).await;
    assert_eq!(common::all(&reader, book.key()).await, book.printed());
    // A process that lost the lock does not get it back.
    assert_eq!(store.create(NewSession::default()).await, Err(Error::Closed));
    assert_eq!(store.session(&book.session.id).await, Err(Error::Closed));
}

#[tokio::test(flavor = "multi_thread")]
async fn lock_is_held_until_writer_stops() {
    let (dir, store) = temp_store();
    let made = store.create(NewSession::default()).await.unwrap().0;
    let mut waiting = Vec::new();
    // More than one commit can take.
    for seq in 1..=40 {
        let events = vec![common::event(seq, &"x".repeat(500_000))];
        let after = seq - 1;
        let next = narrows_store::Append { session: made.key, after, events, ..Default::default() };
        waiting.push(store.append(next).await.unwrap());
    }
    let place = DataDir::open(&data(&dir)).unwrap();
    drop(store);
    common::wait_until("it is free", async || !place.is_in_use()).await;
    for mut answer in waiting {
        answer.try_recv().expect("all that was taken is done").unwrap();
    }
    assert_eq!(open(&dir).session(&made.id).await.unwrap().seq, 40);
}

#[tokio::test(flavor = "multi_thread")]
async fn files_are_readable_by_owner_only() {
    let (dir, store) = temp_store();
    let made = store.create(NewSession::default()).await.unwrap().0;
    assert_eq!(store.session(&made.id).await.unwrap(), made);
    assert_eq!(mode(&data(&dir)), 0o700);
    let mut names: Vec<String> = Vec::new();
    for file in fs::read_dir(data(&dir)).unwrap() {
        let path = file.unwrap().path();
        assert_eq!(mode(&path), 0o600, "{}", path.display());
        names.push(path.file_name().unwrap().to_string_lossy().into_owned());
    }
    names.sort();
    assert_eq!(
        names,
        ["lock", "narrows.db", "narrows.db-shm", "narrows.db-wal", "narrows.durable"]
    );
    let copy = dir.path().join("copy.db");
    backup(&data(&dir), &copy).unwrap();
    assert_eq!(mode(&copy), 0o600);

    let token = data(&dir).join(narrows_store::TOKEN_FILE);
    for content in ["one", "another"] {
        write_private(&token, content.as_bytes()).unwrap();
        assert_eq!(fs::read_to_string(&token).unwrap(), content);
        assert_eq!(mode(&token), 0o600);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_directory_is_made_private_or_rejected() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(data(&dir)).unwrap();
    fs::set_permissions(data(&dir), Permissions::from_mode(0o755)).unwrap();
    drop(DataDir::open(&data(&dir)).unwrap());
    assert_eq!(mode(&data(&dir)), 0o700);
    fs::set_permissions(data(&dir), Permissions::from_mode(0o777)).unwrap();
    match try_open(&dir) {
        Err(Error::Refused(told)) => assert!(told.contains("chmod 700"), "{told}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_dir(data(&dir)).unwrap().count(), 0, "nothing was put there");
}

#[tokio::test(flavor = "multi_thread")]
async fn data_path_without_directory_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(data(&dir), "a file").unwrap();
    match try_open(&dir) {
        Err(Error::Refused(told)) => assert!(told.contains("not a directory"), "{told}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(fs::read_to_string(data(&dir)).unwrap(), "a file");
    let below = Store::open(&data(&dir).join("below"), &Options::default());
    assert!(matches!(below, Err(Error::Refused(_))), "{below:?}");
    let none = Store::open_read_only(&dir.path().join("none"));
    assert_eq!(none.unwrap_err(), Error::NotFound("store"));
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_schema_is_rejected_unchanged() {
    let (dir, store) = temp_store();
    let path = store.dir().database();
    store.close().await;
    let db = Connection::open(&path).unwrap();
    db.execute_batch("PRAGMA user_version = 99").unwrap();
    drop(db);
    let newer = Error::Newer { found: 99, known: SCHEMA };
    assert_eq!(try_open(&dir).unwrap_err(), newer);
    assert_eq!(Store::open_read_only(&data(&dir)).unwrap_err(), newer);
    let copy = dir.path().join("copy.db");
    assert_eq!(backup(&data(&dir), &copy).unwrap_err(), newer);
    assert!(newer.to_string().contains("99"));
    // Rejected, but the lock is released.
    let db = Connection::open(&path).unwrap();
    db.execute_batch(&format!("PRAGMA user_version = {SCHEMA}")).unwrap();
    drop(db);
    assert!(try_open(&dir).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_database_becomes_store() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(data(&dir)).unwrap();
    let path = DataDir::open(&data(&dir)).unwrap().database();
    drop(Connection::open(&path).unwrap());
    fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    let store = open(&dir);
    let made = store.create(NewSession::default()).await.unwrap().0;
    store.close().await;
    for _ in 0..2 {
        let store = open(&dir);
        assert_eq!(store.session(&made.id).await.unwrap(), made);
        store.close().await;
    }
    let db = Connection::open(&path).unwrap();
    let version: u32 = db.query_row("PRAGMA user_version", [], |r| r.get(0)).unwrap();
    assert_eq!(version, SCHEMA);
    let journal: String = db.query_row("PRAGMA journal_mode", [], |r| r.get(0)).unwrap();
    assert_eq!(journal, "wal");
}

#[tokio::test(flavor = "multi_thread")]
async fn non_database_file_is_reported_as_damaged() {
    let dir = tempfile::tempdir().unwrap();
    fs::create_dir(data(&dir)).unwrap();
    let path = DataDir::open(&data(&dir)).unwrap().database();
    let garbage: Vec<u8> = (0..20_000_u32).map(|n| (n * 7919 % 251) as u8).collect();
    fs::write(&path, &garbage).unwrap();
    for told in [try_open(&dir), Store::open_read_only(&data(&dir))] {
        let told = told.unwrap_err();
        assert!(matches!(told, Error::Damaged(_)), "{told:?}");
        assert!(told.to_string().contains("damaged"), "{told}");
    }
    assert!(fs::read(&path).unwrap() == garbage, "it is left as it was");
}

#[tokio::test(flavor = "multi_thread")]
async fn overwritten_pages_give_errors_without_panic() {
    let (dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    for n in 0..200 {
        book.say(&format!("i{n}"), &format!("said {n}").repeat(100));
    }
    book.keep(&store).await;
    common::wait_for_maintenance(&store).await;
    let path = store.dir().database();
    store.close().await;
    assert!(!path.with_extension("db-wal").exists(), "all is in one file");
    let whole = fs::read(&path).unwrap();
    // The first page is intact, so that it still looks like a store.
    let page = usize::from(u16::from_be_bytes([whole[16], whole[17]]));
    let mut garbage = whole.clone();
    garbage[page..].iter_mut().enumerate().for_each(|(at, byte)| *byte = (at * 31 % 253) as u8);
    for bytes in [&garbage[..], &whole[..whole.len() / 2 / page * page]] {
        fs::write(&path, bytes).unwrap();
        let told = match try_open(&dir) {
            Err(told) => told,
            Ok(store) => {
                let read = store.events_after(book.key(), 0, 9999, usize::MAX).await;
                let told = match read {
                    Err(told) => told,
                    Ok(_) => {
                        store.items(book.key(), narrows_store::Window::End, 9999).await.unwrap_err()
                    }
                };
                let _ = store.create(NewSession::default()).await;
                store.close().await;
                told
            }
        };
        assert!(matches!(told, Error::Damaged(_)), "{told:?}");
    }
}
