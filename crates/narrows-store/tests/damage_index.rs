//! Indexes that disagree with their tables, and damaged rows outside the logs.
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

const PAGE_BYTES: usize = 4096;

/// The root page of a table or an index.
fn root_page(database: &Path, name: &str) -> usize {
    let db = rusqlite::Connection::open(database).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    db.query_row(sql, [name], |r| r.get(0)).unwrap()
}

/// Flips a bit of the last byte of `text` in the root page of an index.
fn flip_text(database: &Path, name: &str, text: &[u8]) {
    let page = root_page(database, name);
    let mut bytes = std::fs::read(database).unwrap();
    let range = (page - 1) * PAGE_BYTES..page * PAGE_BYTES;
    let at = bytes[range.clone()].windows(text.len()).position(|w| w == text);
    bytes[range.start + at.expect("the text is on the page") + text.len() - 1] ^= 2;
    std::fs::write(database, bytes).unwrap();
}

async fn damage_lines(store: &Store, pause: Duration) -> Vec<String> {
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn session_missing_from_id_index_is_found_and_reported() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    let place = dir.path().join("data");
    for session in &all[..FIXTURES.len()] {
        copy(&dir.path().join("closed"), &place);
        flip_text(&place.join("narrows.db"), "sqlite_autoindex_session_1", session.id.as_bytes());
        let store = Store::open(&place, &Options::default()).unwrap();
        // The session is found, and the first lookup reports the damage.
        assert_eq!(store.session(&session.id).await.unwrap().key, session.key);
        assert!(store.damaged_places() > 0, "the damage is reported");
        for _ in 0..3 {
            assert_eq!(store.session_row(&session.id).await.unwrap().id, session.id);
        }
        for other in &all[..FIXTURES.len()] {
            assert_eq!(store.session(&other.id).await.unwrap().key, other.key);
        }
        assert!(store.session("nobody-has-this").await.is_err());
        store.close().await;
        // A full check finds it, with and without pauses.
        for pause in [Duration::ZERO, Duration::from_millis(1)] {
            let store = Store::open(&place, &Options::default()).unwrap();
            let lines = damage_lines(&store, pause).await;
            let is_reported = |line: &String| line.contains("sqlite_autoindex_session_1");
            assert!(lines.iter().any(is_reported), "{lines:?}");
            store.close().await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_side_table_rows_are_reported() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (closed, place) = (dir.path().join("closed"), dir.path().join("data"));
    let damage_copy = |sql: &str| {
        copy(&closed, &place);
        let db = rusqlite::Connection::open(place.join("narrows.db")).unwrap();
        db.execute_batch(sql).unwrap();
    };
    for (sql, text) in [
        (
            "INSERT INTO source (session, number, read, crc) VALUES (1, 7, 3, 12345)",
            "source checkpoint",
        ),
        (
            "INSERT INTO token (id, hash, kind, name, scopes, created, crc)
             VALUES ('t', x'00', 'api', 'name', 'read', 1, 12345)",
            "a token does not match",
        ),
        (
            "INSERT INTO blob (hash, mime, size, body)
             VALUES (printf('%064d', 1), 'image/png', 3, x'010203')",
            "an image does not match",
        ),
    ] {
        damage_copy(sql);
        let store = Store::open(&place, &Options::default()).unwrap();
        let lines = damage_lines(&store, Duration::ZERO).await;
        assert!(lines.iter().any(|line| line.contains(text)), "{text}: {lines:?}");
        store.close().await;
    }
    damage_copy("SELECT 1");
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
}
