//! A write-ahead log with one damaged frame: SQLite ignores all frames behind it. The log is copied, the
//! damage is reported, and a repair recovers the frames.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{FIXTURES, Written, copy, emptied, events, one, session};
use common::{TestSession, data, print, temp_store};
use narrows_store::{Options, Repaired, Store, Window, repair};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FRAME_BYTES: usize = 24 + 4096;
const HEADER_BYTES: usize = 32;

/// A store that was killed with sessions in its write-ahead log: its directory, and the sessions. The
/// first session is in the database.
async fn killed_store(to: &Path) -> (PathBuf, Vec<Written>) {
    let (dir, store) = temp_store();
    let mut all = vec![session(&store, FIXTURES[0]).await];
    common::wait_for_maintenance(&store).await;
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

fn describe(damage: &[(narrows_store::Damage, String)]) -> Vec<String> {
    damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// Compares a repaired store with what was written; returns the numbers of present and of lost events.
async fn compare(place: &Path, all: &[Written], report: &Repaired) -> (usize, usize) {
    let store = Store::open(place, &Options::default()).unwrap();
    let (mut present, mut lost) = (0, 0);
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
        present += same;
        lost += session.events.len() - same;
    }
    let first = report.sessions.iter().find(|session| session.id == all[0].id);
    // A session from before the WAL is intact, although the WAL may have its row as well.
    assert!(first.is_none_or(|session| session.lost.is_empty()), "{report:?}");
    assert!(!report.gone.contains(&all[0].id), "{report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert_eq!(describe(&checked.damage), Vec::<String>::new(), "{report:?}");
    store.close().await;
    (present, lost)
}

fn files_with(place: &Path, infix: &str) -> Vec<PathBuf> {
    let files = std::fs::read_dir(place).unwrap().map(|file| file.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains(infix)).collect()
}

fn flip(place: &Path, at: usize) {
    let path = place.join("narrows.db-wal");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
}

/// Offsets of flipped bits: the page of the third frame, its page number, salt and checksum; the magic
/// number, the checksum and the salt of the WAL header.
const OFFSETS: [usize; 7] = [
    HEADER_BYTES + 2 * FRAME_BYTES + 24 + 2000,
    HEADER_BYTES + 2 * FRAME_BYTES + 3,
    HEADER_BYTES + 2 * FRAME_BYTES + 9,
    HEADER_BYTES + 2 * FRAME_BYTES + 17,
    0,
    25,
    17,
];

#[tokio::test(flavor = "multi_thread")]
async fn frames_behind_damaged_frame_are_copied_and_recovered() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, all) = killed_store(dir.path()).await;
    let size = std::fs::metadata(from.join("narrows.db-wal")).unwrap().len();
    assert!(size > 30 * FRAME_BYTES as u64, "{size}");
    let place = dir.path().join("data");
    let events: usize = all.iter().map(|session| session.events.len()).sum();
    for at in OFFSETS {
        copy(&from, &place);
        flip(&place, at);
        let log = std::fs::read(place.join("narrows.db-wal")).unwrap();
        // The doctor reports it before the store is opened for writing.
        let store = Store::open_read_only(&place).unwrap();
        let lines = describe(&store.damage().await.unwrap());
        assert!(lines.iter().any(|line| line.contains("narrows repair")), "{at}: {lines:?}");
        drop(store);
        for _ in 0..2 {
            let store = Store::open(&place, &Options::default()).unwrap();
            let lines = describe(&store.damage().await.unwrap());
            assert!(lines.iter().any(|line| line.contains("damaged-1")), "{at}: {lines:?}");
            assert!(lines.iter().any(|line| line.contains("is lost")), "{at}: {lines:?}");
            let first = common::written::events(&store, all[0].key).await.unwrap();
            assert_eq!(first.len(), all[0].events.len());
            store.close().await;
        }
        let copies = files_with(&place, "damaged-");
        assert_eq!(copies.len(), 1, "{at}: {copies:?}");
        assert_eq!(std::fs::read(&copies[0]).unwrap(), log, "{at}: the copy is exact");
        let mode = std::fs::metadata(&copies[0]).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let report = repair(&place, false, |_| ()).unwrap();
        let (present, lost) = compare(&place, &all, &report).await;
        assert_eq!(present + lost, events, "{at}");
        assert!(lost * 4 < events, "{at}: {lost} of {events} are lost: {report:?}");
        // The copy is moved aside with the old database.
        assert!(files_with(&place, "narrows.db-wal.damaged").is_empty());
        assert_eq!(files_with(&place, "-wal.damaged-1").len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn repair_reads_frames_behind_damaged_frame() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, all) = killed_store(dir.path()).await;
    let place = dir.path().join("data");
    let events: usize = all.iter().map(|session| session.events.len()).sum();
    let frames =
        std::fs::metadata(from.join("narrows.db-wal")).unwrap().len() as usize / FRAME_BYTES;
    for at in OFFSETS
        .into_iter()
        .chain((3..frames * 3 / 4).step_by(frames / 6).map(|n| HEADER_BYTES + n * FRAME_BYTES + 99))
    {
        copy(&from, &place);
        flip(&place, at);
        let report = repair(&place, false, |_| ()).unwrap();
        assert!(report.damaged, "{at}");
        let (present, lost) = compare(&place, &all, &report).await;
        assert_eq!(present + lost, events, "{at}");
        assert!(lost * 4 < events, "{at}: {lost} of {events} are lost: {report:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn continued_session_is_not_mixed_with_lost_events() {
    if common::is_postgres() {
        return;
    }
    let (from, store) = temp_store();
    let mut book = TestSession::new(&store, "first").await;
    book.say("a", "kept");
    book.keep(&store).await;
    emptied(&store).await;
    let mut other = TestSession::new(&store, "other").await;
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
    flip(&place, HEADER_BYTES + FRAME_BYTES + 24 + 9);
    let store = Store::open(&place, &Options::default()).unwrap();
    let known = store.session(&book.session.id).await.unwrap();
    let more = narrows_store::Append {
        session: known.key,
        after: known.seq,
        events: vec![common::event(known.seq + 1, "of another epoch")],
        settled: known.seq + 1,
        next_order: 1,
        ..narrows_store::Append::default()
    };
    common::append(&store, more).await.unwrap();
    // Nothing else of the log is damaged.
    store.close().await;
    let report = repair(&place, false, |_| ()).unwrap();
    let store = Store::open(&place, &Options::default()).unwrap();
    let known = store.session(&book.session.id).await.unwrap();
    let rows = events(&store, known.key).await.unwrap();
    let own = rows.iter().filter(|row| row.kind != "damaged").count();
    assert_eq!(own, 2, "only its current events: {report:?}");
    let recovered = store.session(&other.session.id).await.unwrap();
    assert!(events(&store, recovered.key).await.unwrap().len() > 10, "{report:?}");
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    assert_eq!(describe(&checked.damage), Vec::<String>::new(), "{report:?}");
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn torn_last_commit_is_not_damage() {
    if common::is_postgres() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (from, _) = killed_store(dir.path()).await;
    let place = dir.path().join("data");
    copy(&from, &place);
    // The log ends are those before the last commit, as after a power cut.
    std::fs::remove_file(place.join("narrows.durable")).unwrap();
    let path = place.join("narrows.db-wal");
    let mut bytes = std::fs::read(&path).unwrap();
    let commits: Vec<usize> = (0..bytes.len() / FRAME_BYTES)
        .filter(|n| bytes[HEADER_BYTES + n * FRAME_BYTES + 4..][..4] != [0; 4])
        .collect();
    let [.., before, last] = commits[..] else { panic!("{commits:?}") };
    assert!(last > before + 1, "a commit of one frame cannot be torn");
    bytes[HEADER_BYTES + (before + 1) * FRAME_BYTES + 100] ^= 1;
    std::fs::write(&path, bytes).unwrap();
    let store = Store::open_read_only(&place).unwrap();
    assert_eq!(describe(&store.damage().await.unwrap()), Vec::<String>::new());
    drop(store);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(describe(&store.damage().await.unwrap()), Vec::<String>::new());
    assert_eq!(files_with(&place, "damaged").len(), 0);
    store.close().await;
}
