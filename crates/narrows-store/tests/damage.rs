//! Damage is seen: whatever byte of the database or of its write-ahead log has changed, what is read is
//! equal to what was written, or says that it is not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{Dice, FIXTURES, Written, copy, events, flip, one, written};
use common::{Book, data, fresh, print};
use narrows_store::{
    Append, DamagedPart, Error, ListFilter, Options, Query, Sight, Store, Window, repair,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Reads everything; tells whether all of it is as it was written. What is not must be said.
async fn compare(store: &Store, all: &[Written]) -> bool {
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
                        assert_eq!(row.seq, next, "a hole that nobody speaks of");
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
                    // Of an item that lost its end something is missing, which is said.
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

/// Damages a leaf of the table of sessions, of which there are several.
fn tear_sessions(database: &Path) {
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
async fn sessions_beside_those_that_cannot_be_read_are_listed_and_found() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = fresh();
    for n in 0..60 {
        let mut book = Book::new(&store, &format!("session-{n}")).await;
        book.say("a", "something to be found");
        book.keep(&store).await;
    }
    common::settled(&store).await;
    store.close().await;
    tear_sessions(&data(&dir).join("narrows.db"));
    let store = common::open(&dir);
    let list = |after, limit| ListFilter { after, limit, ..ListFilter::default() };
    let all = store.list(list(None, 99)).await.unwrap().sessions;
    assert!((20..60).contains(&all.len()), "{} are listed", all.len());
    assert!(store.damaged_places() > 0, "and that is said");
    // In pages, too.
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
    // A repair finds the others by their events.
    let report = repair(&data(&dir), false, |_| ()).unwrap();
    assert_eq!((report.whole, report.gone.len()), (all.len() as u64, 0), "{report:?}");
    assert_eq!(report.sessions.len(), 60 - all.len());
    assert!(report.sessions.iter().all(|told| told.lost.is_empty() && told.events == 1));
    let store = common::open(&dir);
    assert_eq!(store.list(list(None, 99)).await.unwrap().sessions.len(), 60);
    for n in 0..60 {
        store.session_by_label(&format!("session-{n}")).await.unwrap();
    }
}

/// How many places are tried.
fn places() -> u64 {
    std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(150)
}

async fn flips(which: &str, file: &str, seed: u64) {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut all = written(dir.path()).await;
    if which == "closed" {
        all.truncate(FIXTURES.len());
    }
    let (mut dice, mut noticed, mut refused) = (Dice(seed), 0, 0);
    let place: PathBuf = dir.path().join("data");
    for n in 0..places() {
        copy(&dir.path().join(which), &place);
        let at = flip(&place.join(file), &mut dice);
        let store = match Store::open(&place, &Options::default()) {
            Ok(store) => store,
            Err(Error::Damaged(_) | Error::Newer { .. } | Error::Refused(_)) => {
                refused += 1;
                continue;
            }
            Err(other) => panic!("{file} at {at}: {other:?}"),
        };
        let equal = compare(&store, &all).await;
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        assert!(checked.complete, "{file} at {at}: it does not end");
        let said = !checked.damage.is_empty();
        assert!(
            equal || said,
            "flip {n} of {file} at {at}: something is wrong, and nobody says so"
        );
        noticed += u64::from(!equal);
        store.close().await;
    }
    assert!(noticed > 0, "{noticed} seen, {refused} refused: the test looks at nothing");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_of_the_database_changes_nothing_or_is_said() {
    flips("closed", "narrows.db", 0x5eed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_of_the_write_ahead_log_changes_nothing_or_is_said() {
    flips("running", "narrows.db-wal", 0xfeed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_ahead_log_that_is_gone_is_missed() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (mut all, place) = (Vec::new(), dir.path().join("data"));
    {
        let (from, store) = fresh();
        let mut book = Book::new(&store, "first").await;
        book.say("a", "kept");
        book.keep(&store).await;
        store.close().await;
        // The database without what comes now: that is in a write-ahead log which is gone.
        copy(&data(&from), &place);
        let store = common::open(&from);
        book.say("b", "lost");
        book.keep(&store).await;
        let new = Book::new(&store, "new").await;
        let ends = "narrows.durable";
        std::fs::copy(data(&from).join(ends), place.join(ends)).unwrap();
        all.push((book.session.id.clone(), book.session.epoch.clone()));
        all.push((new.session.id.clone(), String::new()));
        store.close().await;
    }
    assert!(!place.join("narrows.db-wal").exists());
    for _ in 0..2 {
        // It is said as long as nobody has repaired it, not only once.
        let store = Store::open(&place, &Options::default()).unwrap();
        let damage = store.damage().await.unwrap();
        let said: Vec<String> = damage.iter().map(|(d, id)| d.words(id)).collect();
        assert_eq!(damage.len(), 2, "{said:?}");
        assert!(damage.iter().all(|(d, _)| d.part == DamagedPart::Lost));
        assert!(said[0].contains("write-ahead log") && said[0].contains(&all[0].0), "{said:?}");
        assert!(said[1].contains(&all[1].0), "{said:?}");
        // Whoever has seen what is lost is told to read again.
        assert_ne!(store.session(&all[0].0).await.unwrap().epoch, all[0].1);
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_written_into_a_directory_that_is_gone_is_not_durable() {
    if common::is_postgres() {
        return;
    }
    for replace in [false, true] {
        let (dir, store) = fresh();
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
async fn a_directory_that_comes_back_is_written_again() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = fresh();
    let mut book = Book::new(&store, "s").await;
    book.say("a", "kept");
    book.keep(&store).await;
    let away = dir.path().join("away");
    std::fs::rename(data(&dir), &away).unwrap();
    // Whoever moves the write-ahead log looks, too.
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
async fn a_database_that_was_cut_short_is_said_to_be() {
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
        assert!(!compare(&store, &all).await);
        let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
        assert!(!checked.damage.is_empty());
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_of_an_earlier_version_get_checksums_when_there_is_time() {
    let (_dir, store) = fresh();
    let mut book = Book::new(&store, "old").await;
    book.say("a", "said before there were checksums");
    book.keep(&store).await;
    common::settled(&store).await;
    let forget = "UPDATE event SET crc = NULL; UPDATE item SET crc = NULL; \
                  DELETE FROM meta WHERE key LIKE 'summed%'";
    common::beside(&store, forget);
    // There is time after something was written.
    book.say("b", "said since");
    book.keep(&store).await;
    let lacks = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL) +
         (SELECT count(*) FROM item WHERE crc IS NULL)";
    let all = async || common::beside(&store, lacks) == ["0"];
    common::until("all rows have checksums", all).await;
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    assert_eq!(common::all(&store, book.key()).await, book.printed());
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_written_into_a_database_that_was_cut_short() {
    if common::is_postgres() {
        return;
    }
    for part in [0, 2] {
        let (dir, store) = fresh();
        let mut book = Book::new(&store, "s").await;
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
        assert!(!store.is_writable().await, "nothing can be written");
        assert!(store.damaged_places() > 0);
    }
}
