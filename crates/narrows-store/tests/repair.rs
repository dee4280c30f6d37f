//! A repair keeps everything that can be read, reports all losses, and leaves an intact store.
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

/// The number of damaged copies.
fn copy_count() -> u64 {
    std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(60)
}

/// Asserts that every session is as it was, or that the report names the differences.
async fn assert_repaired(place: &Path, all: &[Written], report: &Repaired, what: &str) {
    let store = Store::open(place, &Options::default()).unwrap();
    let mut whole = 0;
    for session in all {
        let repair = report.sessions.iter().find(|repair| repair.id == session.id);
        if report.gone.contains(&session.id) {
            assert!(matches!(store.session(&session.id).await, Err(Error::NotFound(_))), "{what}");
            continue;
        }
        let known = store.session(&session.id).await;
        let known = known.unwrap_or_else(|e| panic!("{what}: {} {e} {report:?}", session.id));
        assert_eq!(known.key, session.key, "{what}");
        let none = RepairedSession::default();
        let repair = repair.unwrap_or(&none);
        whole += u64::from(*repair == none);
        assert_log(&store, session, repair, what).await;
        let page = store.items(session.key, Window::End, usize::MAX - 1).await.unwrap();
        let mut same = 0;
        for row in &page.items {
            match session.items.get(row.item.id.as_str()) {
                // An item may lack the content of lost events.
                Some(item) if *item == print(&row.item) => same += 1,
                Some(_) => assert!(!repair.lost.is_empty(), "{what}: {:?}", row.item),
                None => assert!(row.item.id.as_str().starts_with("damaged"), "{what}"),
            }
        }
        assert!(same == session.items.len() || !repair.lost.is_empty(), "{what}: {repair:?}");
        let notices = page.items.iter().filter(|r| r.item.id.as_str().starts_with("damaged"));
        assert_eq!(notices.count(), repair.lost.len(), "{what}: one notice for each loss");
    }
    assert_eq!(whole, report.whole, "{what}: {report:?}");
    let list = ListFilter { limit: 99, ..ListFilter::default() };
    let listed = store.list(list).await.unwrap().sessions;
    assert_eq!(listed.len(), all.len() - report.gone.len(), "{what}");
    // The search index is complete.
    let query = Query { text: "the".to_owned(), limit: 5, ..Query::default() };
    let found = store.search(query).await.unwrap().hits;
    assert!(!found.is_empty() || whole == 0, "{what}: {report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    let remaining: Vec<String> = checked.damage.iter().map(|(d, id)| d.words(id)).collect();
    assert!(checked.complete && remaining.is_empty(), "{what}: {remaining:?}");
    store.close().await;
    let second = narrows_store::repair(place, false, |_| ()).unwrap();
    assert!(!second.damaged && second.aside.is_none(), "{what}: {second:?}");
}

/// Asserts that a log is as it was, with one notice in place of each range of lost events.
async fn assert_log(store: &Store, session: &Written, repair: &RepairedSession, what: &str) {
    let rows = events(store, session.key).await.unwrap();
    let (mut next, mut lost) = (1, Vec::new());
    for row in &rows {
        if row.kind == "damaged" {
            lost.push((next, row.seq));
        } else {
            assert_eq!(row.seq, next, "{what}: an unmarked gap");
            assert_eq!(one(row), session.events[&row.seq], "{what}");
        }
        next = row.seq + 1;
    }
    assert_eq!(lost, repair.lost, "{what}");
    assert_eq!(next - 1, *session.events.keys().last().unwrap(), "{what}: the log lacks its end");
    let kept = rows.iter().filter(|row| row.kind != "damaged").count() as u64;
    assert!(repair.id.is_empty() || repair.events == kept, "{what}: {repair:?}");
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
    let (mut dice, mut damaged, mut failures) = (Dice(seed), 0, Vec::new());
    let place = dir.path().join("data");
    for n in 0..copy_count() {
        copy(&dir.path().join(state), &place);
        // Later copies get more flips.
        let flips = 1 + n / 10;
        let at: Vec<u64> = (0..flips).map(|_| flip(&place.join(file), &mut dice)).collect();
        let before = std::fs::read(place.join("narrows.db")).unwrap();
        let what = format!("flip {n} of {file} at {at:?}");
        let report = match repair(&place, false, |_| ()) {
            Ok(report) => report,
            Err(error) => {
                failures.push(format!("{what}: {error}"));
                continue;
            }
        };
        damaged += u64::from(report.damaged);
        if let Some(aside) = &report.aside {
            assert_eq!(
                std::fs::read(aside).unwrap(),
                before,
                "{what}: the old database is unchanged"
            );
        }
        assert_repaired(&place, &all, &report, &what).await;
    }
    assert!(damaged > 0, "the test checks nothing");
    assert!(failures.is_empty(), "{failures:#?}");
}

/// The seed of the random offsets, from the environment.
fn seed(default: u64) -> u64 {
    std::env::var("NARROWS_SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_database_bits_lose_only_reported_content() {
    flip_bits("closed", "narrows.db", seed(0x5eed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn flipped_wal_bits_lose_only_reported_content() {
    flip_bits("running", "narrows.db-wal", seed(0xfeed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn intact_store_is_not_changed() {
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
    assert_repaired(&place, &all, &report, "whole").await;
}

/// Damages a copy of a store, repairs it and compares it; returns the report.
async fn damage_and_repair(
    from: &Path,
    all: &[Written],
    what: &str,
    damage: impl FnOnce(&Path),
) -> Repaired {
    let place = from.with_file_name("data");
    copy(from, &place);
    damage(&place);
    let report = repair(&place, false, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
    assert_repaired(&place, all, &report, what).await;
    report
}

fn truncate(file: &Path, length: u64) {
    std::fs::OpenOptions::new().write(true).open(file).unwrap().set_len(length).unwrap();
}

/// Overwrites pages with zeros.
fn zero_pages(file: &Path, pages: impl Iterator<Item = u64>) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::OpenOptions::new().write(true).open(file).unwrap();
    for page in pages {
        file.write_all_at(&[0; 4096], (page - 1) * 4096).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn truncated_database_loses_only_reported_content() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    for (state, sessions) in [("closed", &all[..FIXTURES.len()]), ("running", &all[..])] {
        let from = dir.path().join(state);
        let size = std::fs::metadata(from.join("narrows.db")).unwrap().len();
        for part in [1, 8, 16, 32, 48, 60, 63] {
            let length = size * part / 64 + part % 3 * 100;
            let what = format!("{state}, truncated to {length} of {size} bytes");
            let damage = |place: &Path| truncate(&place.join("narrows.db"), length);
            let report = damage_and_repair(&from, sessions, &what, damage).await;
            // The write-ahead log may have all truncated pages.
            assert!(report.damaged || state == "running", "{what}");
        }
    }
    // Only the write-ahead log is left, and it has a session.
    let from = dir.path().join("running");
    let empty = |place: &Path| truncate(&place.join("narrows.db"), 0);
    let report = damage_and_repair(&from, &all, "empty", empty).await;
    assert!(report.gone.len() < all.len(), "{report:?}");
    let gone = |place: &Path| std::fs::remove_file(place.join("narrows.db")).unwrap();
    let report = damage_and_repair(&from, &all, "deleted", gone).await;
    assert!(report.gone.len() < all.len(), "{report:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_salvaged_without_schema() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let all = written(dir.path()).await;
    let (from, all) = (dir.path().join("closed"), &all[..FIXTURES.len()]);
    let damage = |place: &Path| zero_pages(&place.join("narrows.db"), 1..2);
    let report = damage_and_repair(&from, all, "without its first page", damage).await;
    assert_eq!(report.whole, all.len() as u64, "no row was on the page: {report:?}");
    let size = std::fs::metadata(from.join("narrows.db")).unwrap().len() / 4096;
    for page in 1..=size.min(40) {
        let damage = |place: &Path| zero_pages(&place.join("narrows.db"), page..=page);
        damage_and_repair(&from, all, &format!("without page {page}"), damage).await;
    }
    let damage = |place: &Path| zero_pages(&place.join("narrows.db"), (1..=size).step_by(2));
    damage_and_repair(&from, all, "without every other page", damage).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn database_truncated_in_use_keeps_its_wal() {
    if common::is_postgres() {
        return;
    }
    for length in [0, 4096 * 9 + 5] {
        let (dir, store) = common::temp_store();
        common::written::session(&store, FIXTURES[0]).await;
        common::wait_for_maintenance(&store).await;
        store.close().await;
        let (data, store) = (common::data(&dir), common::open(&dir));
        common::written::emptied(&store).await;
        let second = common::written::session(&store, FIXTURES[1]).await;
        let wal = std::fs::read(data.join("narrows.db-wal")).unwrap();
        truncate(&data.join("narrows.db"), length);
        // With a write after the truncation, and without one.
        if length == 0 {
            let wrote = store.audit(narrows_store::NewAudit::default()).await;
            assert!(matches!(wrote, Err(Error::Damaged(_))), "{wrote:?}");
            assert!(!store.is_writable().await);
        }
        store.close().await;
        let left = std::fs::read(data.join("narrows.db-wal")).unwrap();
        assert!(left.starts_with(&wal[..]), "{length}: the WAL was checkpointed or truncated");
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
