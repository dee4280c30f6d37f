//! Rows outside the logs: a row that does not match its checksum is reported, and not copied by a repair.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::written::{Dice, FIXTURES, copy, flip, written};
use common::{TestSession, data, steps, temp_store};
use narrows_store::{
    Append, Error, ListFilter, NewAudit, NewSession, Options, Query, StatsBy, StatsFilter, Store,
    UsageRow, repair,
};
use rusqlite::Connection;
use std::path::Path;
use std::time::Duration;

/// The damage that a full check reports.
async fn damage_lines(store: &Store, pause: Duration) -> Vec<String> {
    let checked = store.check(Duration::from_mins(1), pause).await.unwrap();
    assert!(checked.complete);
    checked.damage.iter().map(|(damage, id)| damage.words(id)).collect()
}

/// A closed store with rows in every table that has checksums of its own.
async fn full() -> (tempfile::TempDir, Vec<String>) {
    let (dir, store) = temp_store();
    let mut ids = Vec::new();
    for fixture in [FIXTURES[0], FIXTURES[2]] {
        let mut book = TestSession::new(&store, fixture).await;
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
        // Again: totals grow, and earlier rows are replaced.
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
    common::wait_for_maintenance(&store).await;
    store.close().await;
    (dir, ids)
}

/// Everything that is derived from these rows.
async fn derived_output(store: &Store, ids: &[String]) -> String {
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
async fn intact_store_has_no_damage() {
    let (dir, _) = full().await;
    let store = common::open(&dir);
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
    assert_eq!(damage_lines(&store, Duration::from_millis(1)).await, Vec::<String>::new());
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn changed_row_is_reported_and_not_repaired_from() {
    if common::is_postgres() {
        return;
    }
    let (dir, ids) = full().await;
    let (from, place) = (data(&dir), dir.path().join("place"));
    let store = Store::open(&from, &Options::default()).unwrap();
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
    let whole = derived_output(&store, &ids).await;
    store.close().await;
    // Rows that can be rebuilt from the log are equal after a repair.
    for (table, set, is_rebuilt) in [
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
            let lines = damage_lines(&store, pause).await;
            let is_reported = lines.iter().any(|line| line.contains("not match"));
            assert!(is_reported, "{sql}: {lines:?}");
            store.close().await;
        }
        let report = repair(&place, false, |_| ()).unwrap();
        assert!(report.damaged, "{sql}");
        let store = Store::open(&place, &Options::default()).unwrap();
        assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new(), "{sql}");
        if is_rebuilt {
            assert_eq!(derived_output(&store, &ids).await, whole, "{sql}: {report:?}");
        } else {
            assert!(!report.lost.is_empty(), "{sql}: {report:?}");
        }
        store.close().await;
    }
    // A changed audit log entry is shown as damaged.
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
async fn old_store_gets_side_table_checksums() {
    if common::is_postgres() {
        return;
    }
    let (dir, ids) = full().await;
    let from = data(&dir);
    let store = Store::open(&from, &Options::default()).unwrap();
    let whole = derived_output(&store, &ids).await;
    store.close().await;
    let checksums = [
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
    assert_eq!(derived_output(&store, &ids).await, whole);
    for (table, crc) in checksums {
        let sql = format!("SELECT count(*) = 0 OR count({crc}) < count(*) FROM {table}");
        assert_eq!(common::raw_sql(&store, &sql), ["0"], "{table}.{crc}");
    }
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
    // Appends continue.
    let session = store.session(&ids[0]).await.unwrap();
    let active = vec![(472_222, 5)];
    let more = Append { session: session.key, after: session.seq, active, ..Append::default() };
    let more = Append { settled: session.seq, ..more };
    let _ = common::append(&store, more).await;
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
    store.close().await;
    assert!(!repair(&from, true, |_| ()).unwrap().damaged);
}

#[tokio::test(flavor = "multi_thread")]
async fn label_missing_from_index_finds_its_session() {
    if common::is_postgres() {
        return;
    }
    let (dir, store) = temp_store();
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
    // The index now has `the-label-1c`.
    bytes[range.start + at + 11] ^= 2;
    std::fs::write(&path, bytes).unwrap();
    let store = common::open(&dir);
    assert_eq!(store.session_by_label("the-label-1a").await.unwrap().key, own.key);
    let label = Some("the-label-1a".to_owned());
    let (found, made) = store.create(NewSession { label, ..NewSession::default() }).await.unwrap();
    assert_eq!((found.key, made), (own.key, false), "a second session with the label");
    let other = store.session_by_label("the-label-1c").await;
    assert!(!other.is_ok_and(|session| session.key == own.key), "the label of another session");
    assert!(store.damaged_places() > 0);
    store.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn session_hidden_by_damage_is_reported_and_listed_again() {
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
        assert!(!damage_lines(&store, Duration::ZERO).await.is_empty(), "{set}");
        store.close().await;
        let report = repair(&place, false, |_| ()).unwrap();
        assert_eq!(report.sessions.len(), 1, "{set}: {report:?}");
        let store = Store::open(&place, &Options::default()).unwrap();
        assert_eq!(listed(&store).await, all, "{set}");
        assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new(), "{set}");
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn empty_search_index_is_reported_and_rebuilt() {
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
    // SQLite's own check does not notice this.
    let db = Connection::open(place.join("narrows.db")).unwrap();
    db.execute_batch("INSERT INTO search (search) VALUES ('delete-all')").unwrap();
    drop(db);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, 0);
    let lines = damage_lines(&store, Duration::ZERO).await;
    let is_reported = |line: &String| line.contains("search") && line.contains("index");
    assert!(lines.iter().any(is_reported), "{lines:?}");
    store.close().await;
    assert!(repair(&place, false, |_| ()).unwrap().damaged);
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(hits(&store).await, before);
    assert_eq!(damage_lines(&store, Duration::ZERO).await, Vec::<String>::new());
    store.close().await;
}

/// Whether the doctor, a repair and a server find damage.
async fn verdicts(place: &Path) -> [bool; 3] {
    let doctor = match Store::open_read_only(place) {
        Ok(store) => !damage_lines(&store, Duration::ZERO).await.is_empty(),
        Err(_) => true,
    };
    let report = repair(place, true, |_| ()).unwrap().damaged;
    let server = match Store::open(place, &Options::default()) {
        Ok(store) => {
            let lines = damage_lines(&store, Duration::from_micros(1)).await;
            store.close().await;
            !lines.is_empty()
        }
        Err(_) => true,
    };
    [doctor, report, server]
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_repair_and_server_agree_on_damage() {
    if common::is_postgres() {
        return;
    }
    let number = |name: &str| std::env::var(name).ok().and_then(|n| n.parse().ok());
    let dir = tempfile::tempdir().unwrap();
    written(dir.path()).await;
    let (from, place) = (dir.path().join("closed"), dir.path().join("data"));
    let mut dice = Dice(number("NARROWS_SEED").unwrap_or(0xa9ee));
    let (mut damaged, mut disagreements) = (0, Vec::new());
    for n in 0..number("NARROWS_FLIPS").unwrap_or(60) {
        copy(&from, &place);
        let at = flip(&place.join("narrows.db"), &mut dice);
        let all = verdicts(&place).await;
        damaged += u64::from(all[0]);
        if all.iter().any(|one| *one != all[0]) {
            let report = repair(&place, true, |_| ()).unwrap();
            disagreements
                .push(format!("flip {n} at {at} (page {}): {all:?}: {report:?}", at / 4096 + 1));
        }
    }
    assert!(damaged > 0, "the test checks nothing");
    assert!(disagreements.is_empty(), "doctor, repair, server: {disagreements:#?}");
}
