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
    assert!(!store.search(query).await.unwrap().hits.is_empty(), "{what}");
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

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_flipped_in_the_database_the_rest_is_kept() {
    flips("closed", "narrows.db", 0x5eed).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_is_flipped_in_the_write_ahead_log_the_rest_is_kept() {
    flips("running", "narrows.db-wal", 0xfeed).await;
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
