//! Damage is detected: after any change of a byte of the database or of its write-ahead log, reads return
//! what was written, or report damage.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{Dice, FIXTURES, Written, copy, events, flip, one, written};
use common::{TestSession, data, print, temp_store};
use narrows_store::{
    Append, DamagedPart, Error, ListFilter, Options, Query, Sight, Store, Window, repair,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads everything; whether all of it equals what was written. Differences must be marked as damage.
async fn is_equal(store: &Store, all: &[Written]) -> bool {
    let mut equal = true;
    for session in all {
        let known = match store.session(&session.id).await {
            Ok(known) => known,
            Err(Error::NotFound(_) | Error::Damaged(_)) => {
                equal = false;
                continue;
            }
            Err(other) => panic!("{other:?}"),
        };
        assert_eq!(known.key, session.key);
        match events(store, session.key).await {
            Ok(rows) => {
                let mut next = 1;
                for row in rows {
                    let json =
                        |part: &[u8]| serde_json::from_slice::<serde_json::Value>(part).is_ok();
                    assert!(json(&row.event), "no JSON");
                    assert!(row.changes.as_deref().is_none_or(json), "no JSON");
                    if row.kind == "damaged" {
                        equal = false;
                        assert!(row.event.starts_with(b"{\"type\":\"notice\""));
                    } else {
                        assert_eq!(row.seq, next, "an unmarked gap");
                        assert_eq!(one(&row), session.events[&row.seq]);
                    }
                    next = row.seq + 1;
                }
                equal &= next > *session.events.keys().last().unwrap();
            }
            Err(Error::Damaged(_)) => equal = false,
            Err(other) => panic!("{other:?}"),
        }
        match store.items(session.key, Window::End, usize::MAX - 1).await {
            Ok(page) => {
                let mut found = 0;
                for row in page.items {
                    let id = row.item.id.as_str();
                    let item = session.items.get(id);
                    // An item that lost its end lacks something, and the loss is marked.
                    equal &= item.is_some_and(|item| *item == print(&row.item));
                    assert!(item.is_some() || id.starts_with("damaged"), "{:?}", row.item);
                    found += usize::from(item.is_some());
                }
                equal &= found == session.items.len();
            }
            Err(Error::Damaged(_)) => equal = false,
            Err(other) => panic!("{other:?}"),
        }
    }
    let list = ListFilter { limit: 99, ..ListFilter::default() };
    match store.list(list).await {
        Ok(page) => equal &= page.sessions.len() == all.len(),
        Err(Error::Damaged(_)) => equal = false,
        Err(other) => panic!("{other:?}"),
    }
    equal
}

/// Damages one of several leaf pages of the session table.
fn damage_session_page(database: &Path) {
    let db = rusqlite::Connection::open(database).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'session'";
    let root: usize = db.query_row(sql, [], |r| r.get(0)).unwrap();
    drop(db);
    let mut bytes = std::fs::read(database).unwrap();
    let page = (root - 1) * 4096;
    assert_eq!(bytes[page], 5, "the table has several pages");
    let cell = page + usize::from(u16::from_be_bytes([bytes[page + 12], bytes[page + 13]]));
    let child = u32::from_be_bytes(bytes[cell..cell + 4].try_into().unwrap());
    bytes[(child as usize - 1) * 4096] ^= 0x41;
    std::fs::write(database, bytes).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn damaged_session_page_hides_no_other_session() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = temp_store();
    for n in 0..60 {
        let mut book = TestSession::new(&store, &format!("session-{n}")).await;
        book.say("a", "something to be found");
        book.keep(&store).await;
    }
    common::wait_for_maintenance(&store).await;
    store.close().await;
    damage_session_page(&data(&dir).join("narrows.db"));
    let store = common::open(&dir);
    let list = |after, limit| ListFilter { after, limit, ..ListFilter::default() };
    let all = store.list(list(None, 99)).await.unwrap().sessions;
    assert!((20..60).contains(&all.len()), "{} are listed", all.len());
    assert!(store.damaged_places() > 0, "the damage is reported");
    // The same with pagination.
    let (mut paged, mut after) = (Vec::new(), None);
    loop {
        let page = store.list(list(after, 7)).await.unwrap();
        paged.extend(page.sessions.into_iter().map(|s| s.id));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(paged, all.iter().map(|s| s.id.clone()).collect::<Vec<_>>());
    let facets = store.facets(Sight::default()).await.unwrap();
    assert_eq!(facets.total, all.len() as u64);
    let query = Query { text: "found".to_owned(), limit: 99, ..Query::default() };
    assert_eq!(store.search(query).await.unwrap().hits.len(), all.len());
    store.close().await;
    // A repair finds the other sessions by their events.
    let report = repair(&data(&dir), false, |_| ()).unwrap();
    assert_eq!((report.whole, report.gone.len()), (all.len() as u64, 0), "{report:?}");
    assert_eq!(report.sessions.len(), 60 - all.len());
    assert!(report.sessions.iter().all(|session| session.lost.is_empty() && session.events == 1));
    let store = common::open(&dir);
    assert_eq!(store.list(list(None, 99)).await.unwrap().sessions.len(), 60);
    for n in 0..60 {
        store.session_by_label(&format!("session-{n}")).await.unwrap();
    }
}

/// The number of flipped bits.
fn flip_count() -> u64 {
    std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

async fn flip_bits(state: &str, file: &str, seed: u64) {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut all = written(dir.path()).await;
    if state == "closed" {
        all.truncate(FIXTURES.len());
    }
    let (mut dice, mut different, mut rejected) = (Dice(seed), 0, 0);
    let place: PathBuf = dir.path().join("data");
    for n in 0..flip_count() {
        copy(&dir.path().join(state), &place);
        let at = flip(&place.join(file), &mut dice);
        let store = match Store::open(&place, &Options::default()) {
            Ok(store) => store,
            Err(Error::Damaged(_) | Error::Newer { .. } | Error::Refused(_)) => {
                rejected += 1;
                continue;
            }
            Err(other) => panic!("{file} at {at}: {other:?}"),
        };
        let equal = is_equal(&store, &all).await;
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        assert!(checked.complete, "{file} at {at}: incomplete check");
        let is_reported = !checked.damage.is_empty();
        assert!(equal || is_reported, "flip {n} of {file} at {at}: unreported damage");
        different += u64::from(!equal);
        store.close().await;
    }
    assert!(different > 0, "{different} different, {rejected} rejected: the test checks nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_database_bit_is_harmless_or_reported() {
    flip_bits("closed", "narrows.db", 0x5eed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_wal_bit_is_harmless_or_reported() {
    flip_bits("running", "narrows.db-wal", 0xfeed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_wal_is_reported_until_repair() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut all, place) = (Vec::new(), dir.path().join("data"));
    {
        let (from, store) = temp_store();
        let mut book = TestSession::new(&store, "first").await;
        book.say("a", "kept");
        book.keep(&store).await;
        store.close().await;
        // The database without what follows: that is in the missing write-ahead log.
        copy(&data(&from), &place);
        let store = common::open(&from);
        book.say("b", "lost");
        book.keep(&store).await;
        let new = TestSession::new(&store, "new").await;
        let ends = "narrows.durable";
        std::fs::copy(data(&from).join(ends), place.join(ends)).unwrap();
        all.push((book.session.id.clone(), book.session.epoch.clone()));
        all.push((new.session.id.clone(), String::new()));
        store.close().await;
    }
    assert!(!place.join("narrows.db-wal").exists());
    for _ in 0..2 {
        // It is reported until a repair, not only once.
        let store = Store::open(&place, &Options::default()).unwrap();
        let damage = store.damage().await.unwrap();
        let lines: Vec<String> = damage.iter().map(|(d, id)| d.words(id)).collect();
        assert_eq!(damage.len(), 2, "{lines:?}");
        assert!(damage.iter().all(|(d, _)| d.part == DamagedPart::Lost));
        assert!(lines[0].contains("write-ahead log") && lines[0].contains(&all[0].0), "{lines:?}");
        assert!(lines[1].contains(&all[1].0), "{lines:?}");
        // Clients that have seen the lost events must reload.
        assert_ne!(store.session(&all[0].0).await.unwrap().epoch, all[0].1);
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn append_to_removed_data_directory_fails() {
    if common::is_postgres() {
        return;
    }
    for replace in [false, true] {
        let (dir, store) = temp_store();
        let session = common::session(&store, "s", &[]).await;
        let write = |after: u64| Append {
            session: session.key,
            after,
            events: vec![common::event(after + 1, "said")],
            ..Append::default()
        };
        assert_eq!(common::append(&store, write(0)).await.unwrap(), 1);
        std::fs::rename(data(&dir), dir.path().join("away")).unwrap();
        if replace {
            copy(&dir.path().join("away"), &data(&dir));
        }
        let refused = common::append(&store, write(1)).await.unwrap_err();
        assert!(matches!(refused, Error::Io(_)), "{refused:?}");
        assert!(refused.to_string().contains("data directory"), "{refused}");
        assert!(!store.is_writable().await);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn returned_data_directory_is_written_again() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    book.say("a", "kept");
    book.keep(&store).await;
    let away = dir.path().join("away");
    std::fs::rename(data(&dir), &away).unwrap();
    // The checkpointer checks as well.
    for _ in 0..20 {
        let refused = store.check_writable().await.unwrap_err();
        assert!(matches!(refused, Error::Io(_)) && refused.is_retryable(), "{refused:?}");
        assert!(refused.to_string().contains("data directory"), "{refused}");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    std::fs::rename(&away, data(&dir)).unwrap();
    book.say("b", "kept, too");
    book.keep(&store).await;
    assert!(store.is_writable().await);
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    store.close().await;
    let store = common::open(&dir);
    assert_eq!(common::all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_database_is_reported() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut all = written(dir.path()).await;
    all.truncate(FIXTURES.len());
    let place = dir.path().join("data");
    for part in [1, 2, 3, 7] {
        copy(&dir.path().join("closed"), &place);
        let bytes = std::fs::read(place.join("narrows.db")).unwrap();
        std::fs::write(place.join("narrows.db"), &bytes[..bytes.len() * part / 8]).unwrap();
        let Ok(store) = Store::open(&place, &Options::default()) else { continue };
        assert!(!is_equal(&store, &all).await);
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        assert!(!checked.damage.is_empty());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_checksums_are_backfilled() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "old").await;
    book.say("a", "written before there were checksums");
    book.keep(&store).await;
    common::wait_for_maintenance(&store).await;
    let remove_checksums = "UPDATE event SET crc = NULL; UPDATE item SET crc = NULL; \
                  DELETE FROM meta WHERE key LIKE 'summed%'";
    common::raw_sql(&store, remove_checksums);
    // Maintenance runs after a write.
    book.say("b", "written since");
    book.keep(&store).await;
    let missing = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL) +
         (SELECT count(*) FROM item WHERE crc IS NULL)";
    let is_done = async || common::raw_sql(&store, missing) == ["0"];
    common::wait_until("all rows have checksums", is_done).await;
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    assert_eq!(common::all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn append_to_truncated_database_fails() {
    if common::is_postgres() {
        return;
    }
    for part in [0, 2] {
        let (dir, store) = temp_store();
        let mut book = TestSession::new(&store, "s").await;
        book.say("a", "kept");
        book.keep(&store).await;
        store.close().await;
        let store = common::open(&dir);
        assert!(store.is_writable().await);
        let path = data(&dir).join("narrows.db");
        let size = std::fs::metadata(&path).unwrap().len();
        assert!(size > 0);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        file.set_len(size * part / 4).unwrap();
        let write = Append {
            session: book.key(),
            after: book.session.seq + 1,
            events: vec![common::event(book.session.seq + 2, "said")],
            ..Append::default()
        };
        let refused = common::append(&store, write).await.unwrap_err();
        assert!(matches!(refused, Error::Damaged(_)), "{refused:?}");
        assert!(!store.is_writable().await, "the store is writable");
        assert!(store.damaged_places() > 0);
    }
}
