//! A write-ahead log of which one frame is damaged: SQLite gives up what stands behind it. That is kept,
//! said, and brought back by a repair.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{FIXTURES, Written, copy, emptied, events, one, session};
use common::{Book, data, fresh, print};
use narrows_store::{Options, Repaired, Store, Window, repair};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FRAME: usize = 24 + 4096;
const HEAD: usize = 32;

/// A store that was killed with sessions in its write-ahead log: where it is, and the sessions. The first
/// one is in the database.
async fn killed(to: &Path) -> (PathBuf, Vec<Written>) {
    let (dir, store) = fresh();
    let mut all = vec![session(&store, FIXTURES[0]).await];
    common::settled(&store).await;
    store.close().await;
    let store = common::open(&dir);
    emptied(&store).await;
    for fixture in &FIXTURES[1..] {
        all.push(session(&store, fixture).await);
    }
    let place = to.join("killed");
    copy(&data(&dir), &place);
    store.close().await;
    (place, all)
}

fn says(damage: &[(narrows_store::Damage, String)]) -> Vec<String> {
    damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// Compares with what was written; returns how many events are there and how many are lost.
async fn compare(place: &Path, all: &[Written], report: &Repaired) -> (usize, usize) {
    let store = Store::open(place, &Options::default()).unwrap();
    let (mut there, mut lost) = (0, 0);
    for session in all {
        if report.gone.contains(&session.id) {
            lost += session.events.len();
            continue;
        }
        let known = store.session(&session.id).await.unwrap();
        let rows = events(&store, known.key).await.unwrap();
        let mut same = 0;
        for row in rows.iter().filter(|row| row.kind != "damaged") {
            assert_eq!(Some(&one(row)), session.events.get(&row.seq), "{report:?}");
            same += 1;
        }
        let page = store.items(known.key, Window::End, usize::MAX - 1).await.unwrap();
        if same == session.events.len() {
            let items: Vec<String> = page.items.iter().map(|row| print(&row.item)).collect();
            let written: Vec<&String> = session.items.values().collect();
            assert_eq!(items.len(), written.len(), "{report:?}");
            assert!(items.iter().all(|item| written.contains(&item)), "{report:?}");
        }
        there += same;
        lost += session.events.len() - same;
    }
    let first = report.sessions.iter().find(|told| told.id == all[0].id);
    // What is before the log is there, though its row may stand in the log as well.
    assert!(first.is_none_or(|told| told.lost.is_empty()), "{report:?}");
    assert!(!report.gone.contains(&all[0].id), "{report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert_eq!(says(&checked.damage), Vec::<String>::new(), "{report:?}");
    store.close().await;
    (there, lost)
}

fn copies(place: &Path, with: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains(with)).collect()
}

fn flip(place: &Path, at: usize) {
    let path = place.join("narrows.db-wal");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
}

/// Where a bit is flipped: in the page of the third frame, in its number, in its salt and its checksum, in
/// the number and the checksum of the log's header, in its salt.
const PLACES: [usize; 7] = [
    HEAD + 2 * FRAME + 24 + 2000,
    HEAD + 2 * FRAME + 3,
    HEAD + 2 * FRAME + 9,
    HEAD + 2 * FRAME + 17,
    0,
    25,
    17,
];

#[tokio::test(flavor = "multi_thread")]
async fn what_stands_behind_a_damaged_frame_is_kept_and_brought_back() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, all) = killed(dir.path()).await;
    let size = std::fs::metadata(from.join("narrows.db-wal")).unwrap().len();
    assert!(size > 30 * FRAME as u64, "{size}");
    let place = dir.path().join("data");
    let events: usize = all.iter().map(|session| session.events.len()).sum();
    for at in PLACES {
        copy(&from, &place);
        flip(&place, at);
        let log = std::fs::read(place.join("narrows.db-wal")).unwrap();
        // The doctor says so before anybody has opened it to write.
        let store = Store::open_read_only(&place).unwrap();
        let said = says(&store.damage().await.unwrap());
        assert!(said.iter().any(|line| line.contains("narrows repair")), "{at}: {said:?}");
        drop(store);
        for _ in 0..2 {
            let store = Store::open(&place, &Options::default()).unwrap();
            let said = says(&store.damage().await.unwrap());
            assert!(said.iter().any(|line| line.contains("damaged-1")), "{at}: {said:?}");
            assert!(said.iter().any(|line| line.contains("is lost")), "{at}: {said:?}");
            let first = common::written::events(&store, all[0].key).await.unwrap();
            assert_eq!(first.len(), all[0].events.len());
            store.close().await;
        }
        let kept = copies(&place, "damaged-");
        assert_eq!(kept.len(), 1, "{at}: {kept:?}");
        assert_eq!(std::fs::read(&kept[0]).unwrap(), log, "{at}: it is kept as it was");
        let mode = std::fs::metadata(&kept[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let report = repair(&place, false, |_| ()).unwrap();
        let (there, lost) = compare(&place, &all, &report).await;
        assert_eq!(there + lost, events, "{at}");
        assert!(lost * 4 < events, "{at}: {lost} of {events} are lost: {report:?}");
        // The copy goes with the old database.
        assert!(copies(&place, "narrows.db-wal.damaged").is_empty());
        assert_eq!(copies(&place, "-wal.damaged-1").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repair_alone_reads_on_behind_a_damaged_frame() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, all) = killed(dir.path()).await;
    let place = dir.path().join("data");
    let events: usize = all.iter().map(|session| session.events.len()).sum();
    let frames = std::fs::metadata(from.join("narrows.db-wal")).unwrap().len() as usize / FRAME;
    for at in PLACES
        .into_iter()
        .chain((3..frames * 3 / 4).step_by(frames / 6).map(|n| HEAD + n * FRAME + 99))
    {
        copy(&from, &place);
        flip(&place, at);
        let report = repair(&place, false, |_| ()).unwrap();
        assert!(report.damaged, "{at}");
        let (there, lost) = compare(&place, &all, &report).await;
        assert_eq!(there + lost, events, "{at}");
        assert!(lost * 4 < events, "{at}: {lost} of {events} are lost: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_went_on_since_is_not_mixed_with_what_was_lost() {
    if common::is_postgres() {
        return;
    }
    let (from, store) = fresh();
    let mut book = Book::new(&store, "first").await;
    book.say("a", "kept");
    book.keep(&store).await;
    emptied(&store).await;
    let mut other = Book::new(&store, "other").await;
    for n in 0..20 {
        book.say(&format!("lost-{n}"), "words");
        book.keep(&store).await;
        other.say(&format!("back-{n}"), "words");
        other.keep(&store).await;
    }
    let dir = tempfile::tempdir().unwrap();
    let place = dir.path().join("data");
    copy(&data(&from), &place);
    store.close().await;
    flip(&place, HEAD + FRAME + 24 + 9);
    let store = Store::open(&place, &Options::default()).unwrap();
    let known = store.session(&book.session.id).await.unwrap();
    let more = narrows_store::Append {
        session: known.key,
        after: known.seq,
        events: vec![common::event(known.seq + 1, "of another life")],
        settled: known.seq + 1,
        next_order: 1,
        ..narrows_store::Append::default()
    };
    common::append(&store, more).await.unwrap();
    // It is killed once more: nothing else of the log is damaged.
    store.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    let store = Store::open(&place, &Options::default()).unwrap();
    let known = store.session(&book.session.id).await.unwrap();
    let rows = events(&store, known.key).await.unwrap();
    let own = rows.iter().filter(|row| row.kind != "damaged").count();
    assert_eq!(own, 2, "only what it has now: {report:?}");
    let brought = store.session(&other.session.id).await.unwrap();
    assert!(events(&store, brought.key).await.unwrap().len() > 10, "{report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert_eq!(says(&checked.damage), Vec::<String>::new(), "{report:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_last_commit_that_was_torn_is_no_damage() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, _) = killed(dir.path()).await;
    let place = dir.path().join("data");
    copy(&from, &place);
    // The ends of logs are those before the last commit, as after a power cut.
    std::fs::remove_file(place.join("narrows.durable")).unwrap();
    let path = place.join("narrows.db-wal");
    let mut bytes = std::fs::read(&path).unwrap();
    let commits: Vec<usize> =
        (0..bytes.len() / FRAME).filter(|n| bytes[HEAD + n * FRAME + 4..][..4] != [0; 4]).collect();
    let [.., before, last] = commits[..] else { panic!("{commits:?}") };
    assert!(last > before + 1, "one frame is nothing that could be torn");
    bytes[HEAD + (before + 1) * FRAME + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open_read_only(&place).unwrap();
    assert_eq!(says(&store.damage().await.unwrap()), Vec::<String>::new());
    drop(store);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(says(&store.damage().await.unwrap()), Vec::<String>::new());
    assert_eq!(copies(&place, "damaged").len(), 0);
    store.close().await;
}
