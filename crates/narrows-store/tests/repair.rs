//! A repair keeps all that can be read, says what it does not, and leaves a store that is whole.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::print;
use common::written::{Dice, FIXTURES, Written, copy, events, flip, one, written};
use narrows_store::{
    Error, ListFilter, Options, Query, Repaired, RepairedSession, Store, Window, repair,
};
use std::path::Path;
use std::time::Duration;

/// How many places are tried.
fn places() -> u64 {
    std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// Every session is as it was, or the report says what of it is not.
async fn compare(place: &Path, all: &[Written], report: &Repaired, what: &str) {
    let store = Store::open(place, &Options::default()).unwrap();
    let mut whole = 0;
    for session in all {
        let told = report.sessions.iter().find(|told| told.id == session.id);
        if report.gone.contains(&session.id) {
            assert!(matches!(store.session(&session.id).await, Err(Error::NotFound(_))), "{what}");
            continue;
        }
        let known = store.session(&session.id).await;
        let known = known.unwrap_or_else(|e| panic!("{what}: {} {e} {report:?}", session.id));
        assert_eq!(known.key, session.key, "{what}");
        let none = RepairedSession::default();
        let told = told.unwrap_or(&none);
        whole += u64::from(*told == none);
        log(&store, session, told, what).await;
        let page = store.items(session.key, Window::End, usize::MAX - 1).await.unwrap();
        let mut same = 0;
        for row in &page.items {
            match session.items.get(row.item.id.as_str()) {
                // Where events are lost an item may lack something.
                Some(item) if *item == print(&row.item) => same += 1,
                Some(_) => assert!(!told.lost.is_empty(), "{what}: {:?}", row.item),
                None => assert!(row.item.id.as_str().starts_with("damaged"), "{what}"),
            }
        }
        assert!(same == session.items.len() || !told.lost.is_empty(), "{what}: {told:?}");
        let notices = page.items.iter().filter(|r| r.item.id.as_str().starts_with("damaged"));
        assert_eq!(notices.count(), told.lost.len(), "{what}: each loss has a place");
    }
    assert_eq!(whole, report.whole, "{what}: {report:?}");
    let list = ListFilter { limit: 99, ..ListFilter::default() };
    let listed = store.list(list).await.unwrap().sessions;
    assert_eq!(listed.len(), all.len() - report.gone.len(), "{what}");
    // All of it is found.
    let query = Query { text: "the".to_owned(), limit: 5, ..Query::default() };
    let found = store.search(query).await.unwrap().hits;
    assert!(!found.is_empty() || whole == 0, "{what}: {report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    let left: Vec<String> = checked.damage.iter().map(|(d, id)| d.words(id)).collect();
    assert!(checked.complete && left.is_empty(), "{what}: {left:?}");
    store.close().await;
    let again = repair(place, false, |_| ()).unwrap();
    assert!(!again.damaged && again.aside.is_none(), "{what}: {again:?}");
}

/// The events of a session, with an event in the place of each run of lost ones.
async fn log(store: &Store, session: &Written, told: &RepairedSession, what: &str) {
    let rows = events(store, session.key).await.unwrap();
    let (mut next, mut lost) = (1, Vec::new());
    for row in &rows {
        if row.kind == "damaged" {
            lost.push((next, row.seq));
        } else {
            assert_eq!(row.seq, next, "{what}: a hole that nobody speaks of");
            assert_eq!(one(row), session.events[&row.seq], "{what}");
        }
        next = row.seq + 1;
    }
    assert_eq!(lost, told.lost, "{what}");
    assert_eq!(next - 1, *session.events.keys().last().unwrap(), "{what}: the end is missing");
    let kept = rows.iter().filter(|row| row.kind != "damaged").count() as u64;
    assert!(told.id.is_empty() || told.events == kept, "{what}: {told:?}");
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
    let (mut dice, mut damaged, mut refused) = (Dice(seed), 0, Vec::new());
    let place = dir.path().join("data");
    for n in 0..places() {
        copy(&dir.path().join(which), &place);
        // The more the later.
        let flips = 1 + n / 10;
        let at: Vec<u64> = (0..flips).map(|_| flip(&place.join(file), &mut dice)).collect();
        let before = std::fs::read(place.join("narrows.db")).unwrap();
        let what = format!("flip {n} of {file} at {at:?}");
        let report = match repair(&place, false, |_| ()) {
            Ok(report) => report,
            Err(error) => {
                refused.push(format!("{what}: {error}"));
                continue;
            }
        };
        damaged += u64::from(report.damaged);
        if let Some(aside) = &report.aside {
            assert_eq!(std::fs::read(aside).unwrap(), before, "{what}: it is kept as it was");
        }
        compare(&place, &all, &report, &what).await;
    }
    assert!(damaged > 0, "the test looks at nothing");
    assert!(refused.is_empty(), "{refused:#?}");
}

/// Where the places begin: another number tries others.
fn seed(usual: u64) -> u64 {
    std::env::var("NARROWS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_flipped_in_the_database_the_rest_is_kept() {
    flips("closed", "narrows.db", seed(0x5eed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_flipped_in_the_write_ahead_log_the_rest_is_kept() {
    flips("running", "narrows.db-wal", seed(0xfeed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_whole_stays_as_it_is() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    let place = dir.path().join("running");
    let before = std::fs::read(place.join("narrows.db")).unwrap();
    let report = repair(&place, false, |_| ()).unwrap();
    assert!(!report.damaged && report.aside.is_none(), "{report:?}");
    assert_eq!(report.whole, all.len() as u64);
    assert_eq!(std::fs::read(place.join("narrows.db")).unwrap(), before);
    compare(&place, &all, &report, "whole").await;
}

/// Damages a copy of a store, repairs it, and compares; returns what was said.
async fn spoiled(from: &Path, all: &[Written], what: &str, spoil: impl FnOnce(&Path)) -> Repaired {
    let place = from.with_file_name("data");
    copy(from, &place);
    spoil(&place);
    let report = repair(&place, false, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
    compare(&place, all, &report, what).await;
    report
}

fn cut(file: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Overwrites whole pages.
fn blank(file: &Path, pages: impl Iterator<Item = u64>) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    for page in pages {
        file.write_all_at(&[0; 4096], (page - 1) * 4096).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_cut_off_the_rest_is_kept() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    for (which, sessions) in [("closed", &all[..FIXTURES.len()]), ("running", &all[..])] {
        let from = dir.path().join(which);
        let size = std::fs::metadata(from.join("narrows.db")).unwrap().len();
        for part in [1, 8, 16, 32, 48, 60, 63] {
            let length = size * part / 64 + part % 3 * 100;
            let what = format!("{which}, cut to {length} of {size} bytes");
            let spoil = |place: &Path| cut(&place.join("narrows.db"), length);
            let report = spoiled(&from, sessions, &what, spoil).await;
            // A write-ahead log may have all that was cut off.
            assert!(report.damaged || which == "running", "{what}");
        }
    }
    // Only the write-ahead log is left, and it has a session.
    let from = dir.path().join("running");
    let empty = |place: &Path| cut(&place.join("narrows.db"), 0);
    let report = spoiled(&from, &all, "empty", empty).await;
    assert!(report.gone.len() < all.len(), "{report:?}");
    let gone = |place: &Path| std::fs::remove_file(place.join("narrows.db")).unwrap();
    let report = spoiled(&from, &all, "deleted", gone).await;
    assert!(report.gone.len() < all.len(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_found_without_a_list_of_tables() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    let (from, all) = (dir.path().join("closed"), &all[..FIXTURES.len()]);
    let spoil = |place: &Path| blank(&place.join("narrows.db"), 1..2);
    let report = spoiled(&from, all, "without its first page", spoil).await;
    assert_eq!(report.whole, all.len() as u64, "no row was on it: {report:?}");
    let size = std::fs::metadata(from.join("narrows.db")).unwrap().len() / 4096;
    for page in 1..=size.min(40) {
        let spoil = |place: &Path| blank(&place.join("narrows.db"), page..=page);
        spoiled(&from, all, &format!("without page {page}"), spoil).await;
    }
    let spoil = |place: &Path| blank(&place.join("narrows.db"), (1..=size).step_by(2));
    spoiled(&from, all, "without every other page", spoil).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_that_is_cut_while_it_is_used_keeps_its_write_ahead_log() {
    if common::is_postgres() {
        return;
    }
    for length in [0, 4096 * 9 + 5] {
        let (dir, store) = common::fresh();
        common::written::session(&store, FIXTURES[0]).await;
        common::settled(&store).await;
        store.close().await;
        let (data, store) = (common::data(&dir), common::open(&dir));
        common::written::emptied(&store).await;
        let second = common::written::session(&store, FIXTURES[1]).await;
        let wal = std::fs::read(data.join("narrows.db-wal")).unwrap();
        cut(&data.join("narrows.db"), length);
        // Whether somebody reads or writes meanwhile, or nobody does.
        if length == 0 {
            let wrote = store.audit(narrows_store::NewAudit::default()).await;
            assert!(matches!(wrote, Err(Error::Damaged(_))), "{wrote:?}");
            assert!(!store.is_writable().await);
        }
        store.close().await;
        let left = std::fs::read(data.join("narrows.db-wal")).unwrap();
        assert!(left.starts_with(&wal[..]), "{length}: the log was moved or emptied");
        assert_eq!(std::fs::metadata(data.join("narrows.db")).unwrap().len(), length);
        if length == 0 {
            let opened = Store::open(&data, &Options::default());
            assert!(matches!(opened, Err(Error::Damaged(_))), "{opened:?}");
        }
        let report = repair(&data, false, |_| ()).unwrap();
        assert!(report.damaged && !report.gone.contains(&second.id), "{length}: {report:?}");
        let store = common::open(&dir);
        let rows = events(&store, second.key).await.unwrap();
        let same = rows.iter().filter(|row| second.events.get(&row.seq) == Some(&one(row)));
        assert!(same.count() > second.events.len() / 2, "{length}: {report:?}");
        store.close().await;
    }
}
