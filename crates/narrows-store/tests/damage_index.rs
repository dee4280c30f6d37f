//! Indexes that do not agree with their tables, and rows beside the logs.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{FIXTURES, copy, written};
use narrows_store::{Options, Store};
use std::path::Path;
use std::time::Duration;

const PAGE: usize = 4096;

/// The first page of a table or an index.
fn root(database: &Path, name: &str) -> usize {
    let db = rusqlite::Connection::open(database).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(sql, [name], |r| r.get(0)).unwrap()
}

/// Flips a bit of the last letter of `text`, where it stands in that page.
fn flip(database: &Path, name: &str, text: &[u8]) {
    let page = root(database, name);
    let mut bytes = std::fs::read(database).unwrap();
    let range = (page - 1) * PAGE..page * PAGE;
    let at = bytes[range.clone()].windows(text.len()).position(|w| w == text);
    bytes[range.start + at.expect("it stands there") + text.len() - 1] ^= 2;
    std::fs::write(database, bytes).unwrap();
}

async fn says(store: &Store, pause: Duration) -> Vec<String> {
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_the_index_of_ids_lacks_is_found_and_said() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    let place = dir.path().join("data");
    for session in &all[..FIXTURES.len()] {
        copy(&dir.path().join("closed"), &place);
        flip(&place.join("narrows.db"), "sqlite_autoindex_session_1", session.id.as_bytes());
        let store = Store::open(&place, &Options::default()).unwrap();
        // It is served, and from the first time on it is known that something is wrong.
        assert_eq!(store.session(&session.id).await.unwrap().key, session.key);
        assert!(store.damaged_places() > 0, "nobody says so");
        for _ in 0..3 {
            assert_eq!(store.session_row(&session.id).await.unwrap().id, session.id);
        }
        for other in &all[..FIXTURES.len()] {
            assert_eq!(store.session(&other.id).await.unwrap().key, other.key);
        }
        assert!(store.session("nobody-has-this").await.is_err());
        store.close().await;
        // Whoever looks at everything finds it, in haste or not.
        for pause in [Duration::ZERO, Duration::from_millis(1)] {
            let store = Store::open(&place, &Options::default()).unwrap();
            let said = says(&store, pause).await;
            assert!(
                said.iter().any(|line| line.contains("sqlite_autoindex_session_1")),
                "{said:?}"
            );
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_beside_the_logs_are_looked_at() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (closed, place) = (dir.path().join("closed"), dir.path().join("data"));
    let beside = |sql: &str| {
        copy(&closed, &place);
        let db = rusqlite::Connection::open(place.join("narrows.db")).unwrap();
        db.execute_batch(sql).unwrap();
    };
    for (sql, word) in [
        (
            "INSERT INTO source (session, number, read, crc) VALUES (1, 7, 3, 12345)",
            "how far packets",
        ),
        (
            "INSERT INTO token (id, hash, kind, name, scopes, created, crc)
             VALUES ('t', x'00', 'api', 'name', 'read', 1, 12345)",
            "a token is not",
        ),
        (
            "INSERT INTO blob (hash, mime, size, body)
             VALUES (printf('%064d', 1), 'image/png', 3, x'010203')",
            "a picture is not",
        ),
    ] {
        beside(sql);
        let store = Store::open(&place, &Options::default()).unwrap();
        let said = says(&store, Duration::ZERO).await;
        assert!(said.iter().any(|line| line.contains(word)), "{word}: {said:?}");
        store.close().await;
    }
    beside("SELECT 1");
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
}
