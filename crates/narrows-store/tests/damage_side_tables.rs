//! Rows beside the logs: what is not as it was written is said, by whoever looks, and not kept.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{Dice, FIXTURES, copy, flip, written};
use common::{Book, data, fresh, steps};
use narrows_store::{
    Append, Error, ListFilter, NewAudit, NewSession, Options, Query, StatsBy, StatsFilter, Store,
    UsageRow, repair,
};
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// What whoever looks at everything says.
async fn says(store: &Store, pause: Duration) -> Vec<String> {
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// A store with something in every table that has checksums of its own, closed.
async fn full() -> (tempfile::TempDir, Vec<String>) {
    let (dir, store) = fresh();
    let mut ids = Vec::new();
    for fixture in [FIXTURES[0], FIXTURES[2]] {
        let mut book = Book::new(&store, fixture).await;
        steps(fixture).into_iter().for_each(|step| book.step(step));
        let at = 1_700_000_000_000;
        let usage = |n: i64| UsageRow {
            id: format!("{fixture}/{n}"),
            at: (n > 0).then_some(at + n),
            model: (n > 1).then(|| "a model".to_owned()),
            input: 100 + n.unsigned_abs(),
            output: 7,
            cost: Some(0.25),
            ..UsageRow::default()
        };
        let next = book.next(true);
        let more = Append {
            usage: vec![usage(0), usage(1), usage(2), UsageRow { output: 9, ..usage(1) }],
            active: vec![(472_222, 1500), (472_223, 20)],
            ..next
        };
        common::append(&store, more).await.unwrap();
        // Again: sums grow, and what was told before is told otherwise.
        book.say("more", "words");
        let next = book.next(true);
        let usage = vec![UsageRow { at: Some(at), model: Some("another".into()), ..usage(0) }];
        common::append(&store, Append { usage, active: vec![(472_222, 33)], ..next })
            .await
            .unwrap();
        store.tag(&book.session.id, vec!["red".into(), "green".into()], Vec::new()).await.unwrap();
        let detail = Some("why".to_owned());
        let audit = NewAudit { token: "t".into(), action: "delete", session: None, detail };
        store.audit(audit).await.unwrap();
        ids.push(book.session.id.clone());
    }
    common::settled(&store).await;
    store.close().await;
    (dir, ids)
}

/// Everything that is made of these rows.
async fn told(store: &Store, ids: &[String]) -> String {
    let mut all = Vec::new();
    for by in [StatsBy::Day, StatsBy::Tool, StatsBy::Model, StatsBy::Session] {
        let filter = StatsFilter { by, ..StatsFilter::default() };
        all.push(format!("{:?}", store.stats(filter).await.unwrap()));
    }
    for id in ids {
        let session = store.session(id).await.unwrap();
        all.push(format!("{:?}", session.tags));
        all.push(format!("{:?}", store.outline(session.key, None, 99).await.unwrap().files));
    }
    all.push(format!("{:?}", store.audited(None, 99).await.unwrap()));
    all.join("\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn of_a_store_that_is_whole_nothing_is_said() {
    let (dir, _) = full().await;
    let store = common::open(&dir);
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
    assert_eq!(says(&store, Duration::from_millis(1)).await, Vec::<String>::new());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_changed_is_said_and_is_not_kept() {
    if common::is_postgres() {
        return;
    }
    let (dir, ids) = full().await;
    let (from, place) = (data(&dir), dir.path().join("place"));
    let store = Store::open(&from, &Options::default()).unwrap();
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
    let whole = told(&store, &ids).await;
    store.close().await;
    // What can be made anew from the log is as it was after a repair.
    for (table, set, made_anew) in [
        ("audit", "detail = 'whx'", false),
        ("audit", "at = at + 4", false),
        ("tag", "tag = 'rex'", false),
        ("usage", "output = output + 64", false),
        ("usage", "cost = 0.75", false),
        ("usage", "model = 'b model'", false),
        ("usage", "at = 5", false),
        ("active", "ms = ms + 1024", false),
        ("call", "ms = 77", true),
        ("call", "name = 'other'", true),
        ("call", "failed = 1 - failed", true),
        ("edit", "added = added + 2", true),
        ("edit", "path = 'x' || path", true),
    ] {
        copy(&from, &place);
        let db = Connection::open(place.join("narrows.db")).unwrap();
        let key = match table {
            "audit" | "call" => "key",
            "usage" => "id",
            "active" => "(session, hour)",
            "edit" => "(key, path)",
            _ => "(session, tag)",
        };
        let one = key.trim_matches(['(', ')']);
        let sql =
            format!("UPDATE {table} SET {set} WHERE {key} = (SELECT {one} FROM {table} LIMIT 1)");
        assert_eq!(db.execute(&sql, []).unwrap(), 1, "{sql}");
        drop(db);
        for pause in [Duration::ZERO, Duration::from_millis(1)] {
            let store = Store::open(&place, &Options::default()).unwrap();
            let said = says(&store, pause).await;
            assert!(
                said.iter().any(|line| line.contains("not as it was written")),
                "{sql}: {said:?}"
            );
            store.close().await;
        }
        let report = repair(&place, false, |_| ()).unwrap();
        assert!(report.damaged, "{sql}");
        let store = Store::open(&place, &Options::default()).unwrap();
        assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new(), "{sql}");
        if made_anew {
            assert_eq!(told(&store, &ids).await, whole, "{sql}: {report:?}");
        } else {
            assert!(!report.lost.is_empty(), "{sql}: {report:?}");
        }
        store.close().await;
    }
    // An entry of the audit log that changed is shown as such.
    copy(&from, &place);
    let db = Connection::open(place.join("narrows.db")).unwrap();
    db.execute("UPDATE audit SET token = 'x' WHERE key = 1", []).unwrap();
    drop(db);
    let store = Store::open(&place, &Options::default()).unwrap();
    let audited = store.audited(None, 9).await.unwrap();
    assert_eq!((audited[1].number, audited[1].action.as_str()), (1, "damaged"));
    assert!(store.damaged_places() > 0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_of_the_version_before_gets_these_checksums() {
    if common::is_postgres() {
        return;
    }
    let (dir, ids) = full().await;
    let from = data(&dir);
    let store = Store::open(&from, &Options::default()).unwrap();
    let whole = told(&store, &ids).await;
    store.close().await;
    let sums = [
        ("audit", "crc"),
        ("tag", "crc"),
        ("call", "crc"),
        ("edit", "crc"),
        ("usage", "crc"),
        ("usage", "at_crc"),
        ("usage", "model_crc"),
        ("active", "crc"),
    ];
    let (newer, path) = (from.join("newer.db"), from.join("narrows.db"));
    std::fs::rename(&path, &newer).unwrap();
    common::older::older(&newer, &path, 13);
    assert!(matches!(Store::open_read_only(&from), Err(Error::Older { found: 13, .. })));
    let store = Store::open(&from, &Options::default()).unwrap();
    assert_eq!(told(&store, &ids).await, whole);
    for (table, crc) in sums {
        let sql = format!("SELECT count(*) = 0 OR count({crc}) < count(*) FROM {table}");
        assert_eq!(common::beside(&store, &sql), ["0"], "{table}.{crc}");
    }
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
    // It goes on from there.
    let session = store.session(&ids[0]).await.unwrap();
    let active = vec![(472_222, 5)];
    let more = Append { session: session.key, after: session.seq, active, ..Append::default() };
    let more = Append { settled: session.seq, ..more };
    let _ = common::append(&store, more).await;
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
    store.close().await;
    assert!(!repair(&from, true, |_| ()).unwrap().damaged);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_label_that_the_index_lacks_still_leads_to_its_session() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = fresh();
    for n in 0..3 {
        let label = Some(format!("the-label-{n}a"));
        store.create(NewSession { label, ..NewSession::default() }).await.unwrap();
    }
    let own = store.session_by_label("the-label-1a").await.unwrap();
    store.close().await;
    let path = data(&dir).join("narrows.db");
    let db = Connection::open(&path).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = 'sqlite_autoindex_session_2'";
    let page: usize = db.query_row(sql, [], |r| r.get(0)).unwrap();
    drop(db);
    let mut bytes = std::fs::read(&path).unwrap();
    let range = (page - 1) * 4096..page * 4096;
    let at = bytes[range.clone()].windows(12).position(|w| w == b"the-label-1a").unwrap();
    // Now it is called `the-label-1c` there.
    bytes[range.start + at + 11] ^= 2;
    std::fs::write(&path, bytes).unwrap();
    let store = common::open(&dir);
    assert_eq!(store.session_by_label("the-label-1a").await.unwrap().key, own.key);
    let label = Some("the-label-1a".to_owned());
    let (found, made) = store.create(NewSession { label, ..NewSession::default() }).await.unwrap();
    assert_eq!((found.key, made), (own.key, false), "another one of the same label");
    let other = store.session_by_label("the-label-1c").await;
    assert!(!other.is_ok_and(|session| session.key == own.key), "it leads to another's session");
    assert!(store.damaged_places() > 0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_damage_hides_is_said_and_shown_again() {
    if common::is_postgres() {
        return;
    }
    let (dir, ids) = full().await;
    let (from, place) = (data(&dir), dir.path().join("place"));
    let listed = async |store: &Store| {
        let list = ListFilter { limit: 9, ..ListFilter::default() };
        let mut ids: Vec<String> =
            store.list(list).await.unwrap().sessions.into_iter().map(|row| row.id).collect();
        ids.sort();
        ids
    };
    let mut all = ids.clone();
    all.sort();
    for set in ["left_out = 1", "left_out = 64", "copy_of = 2", "copy_of = 77", "hidden = 3"] {
        copy(&from, &place);
        let db = Connection::open(place.join("narrows.db")).unwrap();
        db.execute(&format!("UPDATE session SET {set} WHERE key = 1"), []).unwrap();
        drop(db);
        let store = Store::open(&place, &Options::default()).unwrap();
        assert!(!says(&store, Duration::ZERO).await.is_empty(), "{set}");
        store.close().await;
        let report = repair(&place, false, |_| ()).unwrap();
        assert_eq!(report.sessions.len(), 1, "{set}: {report:?}");
        let store = Store::open(&place, &Options::default()).unwrap();
        assert_eq!(listed(&store).await, all, "{set}");
        assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new(), "{set}");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_search_that_leads_nowhere_is_said_and_made_anew() {
    if common::is_postgres() {
        return;
    }
    let (dir, _) = full().await;
    let place = data(&dir);
    let hits = async |store: &Store| {
        let query = Query { text: "the".to_owned(), limit: 9, ..Query::default() };
        store.search(query).await.unwrap().hits.len()
    };
    let store = Store::open(&place, &Options::default()).unwrap();
    let before = hits(&store).await;
    assert!(before > 0);
    store.close().await;
    // SQLite itself finds nothing wrong with this.
    let db = Connection::open(place.join("narrows.db")).unwrap();
    db.execute_batch("INSERT INTO search (search) VALUES ('delete-all')").unwrap();
    drop(db);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, 0);
    let said = says(&store, Duration::ZERO).await;
    assert!(said.iter().any(|line| line.contains("index of search")), "{said:?}");
    store.close().await;
    assert!(repair(&place, false, |_| ()).unwrap().damaged);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, before);
    assert_eq!(says(&store, Duration::ZERO).await, Vec::<String>::new());
    store.close().await;
}

/// Whether the doctor, a server and a repair find damage.
async fn verdicts(place: &Path) -> [bool; 3] {
    let doctor = match Store::open_read_only(place) {
        Ok(store) => !says(&store, Duration::ZERO).await.is_empty(),
        Err(_) => true,
    };
    let report = repair(place, true, |_| ()).unwrap().damaged;
    let server = match Store::open(place, &Options::default()) {
        Ok(store) => {
            let said = says(&store, Duration::from_micros(1)).await;
            store.close().await;
            !said.is_empty()
        }
        Err(_) => true,
    };
    [doctor, report, server]
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_looks_comes_to_the_same_verdict() {
    if common::is_postgres() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (from, place) = (dir.path().join("closed"), dir.path().join("data"));
    let mut dice = Dice(number("NARROWS_SEED").unwrap_or(0xa9ee));
    let (mut damaged, mut other) = (0, Vec::new());
    for n in 0..number("NARROWS_FLIPS").unwrap_or(60) {
        copy(&from, &place);
        let at = flip(&place.join("narrows.db"), &mut dice);
        let all = verdicts(&place).await;
        damaged += u64::from(all[0]);
        if all.iter().any(|one| *one != all[0]) {
            let report = repair(&place, true, |_| ()).unwrap();
            other.push(format!("flip {n} at {at} (page {}): {all:?}: {report:?}", at / 4096 + 1));
        }
    }
    assert!(damaged > 0, "the test looks at nothing");
    assert!(other.is_empty(), "doctor, repair, server: {other:#?}");
}
