//! Whatever stands where the rows of sessions were: after a repair each of them is listed and read.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::full::{self, says};
use common::written::{Dice, FIXTURES, copy, events};
use narrows_store::{Append, ListFilter, Options, SessionFacts, Store, Window, repair};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// What the rows of sessions say beside their logs.
type Names = BTreeMap<String, [Option<String>; 4]>;

/// A store of which the rows of sessions need pages of their own, closed.
async fn long(dir: &Path) -> PathBuf {
    let (from, store) = common::temp_store();
    for (n, fixture) in FIXTURES.iter().enumerate() {
        let mut book = full::session(&store, fixture).await;
        // What its log tells, too.
        let native = book.items.info().native_id.as_ref().map(|id| id.as_str().to_owned());
        let facts = SessionFacts {
            info: common::print(book.items.info()),
            state: format!("{{\"more\":\"{}\"}}", "x".repeat(3500 + 1800 * n)),
            native,
            project: Some("a project".into()),
            ..SessionFacts::default()
        };
        let more = Append { facts: Some(facts), ..book.next(true) };
        common::append(&store, more).await.unwrap();
    }
    common::wait_for_maintenance(&store).await;
    store.close().await;
    let place = dir.join("long");
    copy(&common::data(&from), &place);
    place
}

/// The pages that only hold the rest of a session's row.
fn overflow(database: &Path) -> Vec<u64> {
    let db = Connection::open(database).unwrap();
    let sql = "SELECT pageno FROM dbstat WHERE name = 'session' AND pagetype = 'overflow'";
    let mut pages = db.prepare(sql).unwrap();
    pages.query_map([], |r| r.get(0)).unwrap().map(Result::unwrap).collect()
}

/// Lists and reads every session; what cannot be listed or read fails.
async fn read_all(place: &Path, what: &str) -> Names {
    let store = Store::open(place, &Options::default()).unwrap();
    let list = ListFilter { limit: 99, ..ListFilter::default() };
    let listed = store.list(list).await.unwrap_or_else(|e| panic!("{what}: list: {e}")).sessions;
    let mut names = Names::new();
    for row in listed {
        let session = store.session(&row.id).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        let again = store.session_row(&row.id).await.unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(again.native_id, row.native_id, "{what}");
        events(&store, session.key).await.unwrap_or_else(|e| panic!("{what}: events: {e}"));
        let items = store.items(session.key, Window::End, usize::MAX - 1).await;
        items.unwrap_or_else(|e| panic!("{what}: items: {e}"));
        names.insert(row.id, [row.native_id, row.project, row.prompt, row.label]);
    }
    assert_eq!(store.damaged_places(), 0, "{what}: {:?}", store.damage().await);
    store.close().await;
    names
}

#[tokio::test(flavor = "multi_thread")]
async fn whatever_stands_in_the_rows_of_sessions_each_is_listed_and_read() {
    if common::is_postgres() {
        return;
    }
    let places = std::env::var("NARROWS_FLIPS").ok().and_then(|n| n.parse().ok()).unwrap_or(40);
    let dir = tempfile::tempdir().unwrap();
    let long = long(dir.path()).await;
    assert_eq!(says(&long).await, Vec::<String>::new(), "of what is whole");
    let pages = overflow(&long.join("narrows.db"));
    assert!(pages.len() >= FIXTURES.len(), "{pages:?}");
    let whole = read_all(&long, "whole").await;
    assert_eq!(whole.len(), FIXTURES.len());
    let (place, mut dice, mut damaged) = (dir.path().join("data"), Dice(0xaa), 0);
    for n in 0..places {
        copy(&long, &place);
        let page = pages[usize::try_from(dice.next(pages.len() as u64)).unwrap()];
        // At the end of a page stands what rows have beside their headers, and that is often missed.
        let (at, length) = match n % 4 {
            0 => (3584, 512),
            1 => (0, 4096),
            2 => (4 + dice.next(3900), 100),
            _ => (4 + dice.next(4000), 8),
        };
        let length = usize::try_from(length.min(4096 - at)).unwrap();
        let junk: Vec<u8> = match n % 3 {
            0 => vec![0xaa; length],
            1 => (0..length).map(|_| u8::try_from(dice.next(256)).unwrap()).collect(),
            _ => b"lorem ipsum ".iter().copied().cycle().take(length).collect(),
        };
        let what = format!("{n}: {length} bytes in page {page} at {at}");
        let database = place.join("narrows.db");
        let file = std::fs::OpenOptions::new().write(true).open(&database).unwrap();
        file.write_all_at(&junk, (page - 1) * 4096 + at).unwrap();
        drop(file);
        let said = says(&place).await;
        let dry = repair(&place, true, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
        assert_eq!(said.is_empty(), !dry.damaged, "{what}: one verdict: {said:?} {dry:?}");
        let report = repair(&place, false, |_| ()).unwrap_or_else(|e| panic!("{what}: {e}"));
        damaged += u64::from(report.damaged);
        let names = read_all(&place, &what).await;
        assert_eq!(names.len(), whole.len() - report.gone.len(), "{what}: {report:?}");
        for (id, is) in &names {
            // What cannot be known is not there; what is not as it was is told.
            let was = whole.get(id).unwrap_or_else(|| panic!("{what}: {id} {report:?}"));
            let told = report.sessions.iter().any(|told| told.id == *id);
            assert!(told || is == was, "{what}: {is:?} {was:?} {report:?}");
            for (is, was) in is.iter().zip(was) {
                assert!(is.is_none() || is == was, "{what}: {is:?} {was:?} {report:?}");
            }
        }
        assert_eq!(says(&place).await, Vec::<String>::new(), "{what}: {report:?}");
        let again = repair(&place, true, |_| ()).unwrap();
        assert!(!again.damaged, "{what}: {again:?}");
    }
    assert!(damaged > places / 2, "the test looks at nothing: {damaged}");
}
