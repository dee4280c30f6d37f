//! Migrating a store of an older version gives everything that the new version would have written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::full::{full, says};
use common::older::older;
use common::{TestSession, data, open, print, steps, temp_store, text_item};
use narrows_store::{Error, ListFilter, SCHEMA, Store, Which, Window, repair};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;

/// Everything that the store returns for the sessions.
async fn snapshot(store: &Store, books: &[TestSession]) -> Vec<Value> {
    let mut all = Vec::new();
    for book in books {
        let key = book.key();
        let mut row = json!(store.session_row(&book.session.id).await.unwrap());
        // An older store has no arrival times.
        row["heardAt"] = 0.into();
        row["live"] = false.into();
        all.push(json!({ "row": row, "outline": store.outline(key, None, 99).await.unwrap() }));
        let mut which = vec![Which::All, Which::Top, Which::Prompts, Which::TodoLists];
        which.extend(book.items.iter().map(|item| Which::Of(item.id.as_str().to_owned())));
        which.push(Which::Of("nobody".to_owned()));
        for which in which {
            let page = store.items_of(key, which.clone(), Window::End, 9999).await.unwrap();
            let items: Vec<String> = page.items.iter().map(|row| print(&row.item)).collect();
            all.push(json!([format!("{which:?}"), items]));
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn store_of_schema_2_migrates_completely() {
    let (dir, store) = temp_store();
    let mut books = Vec::new();
    for fixture in [
        "acp/opencode-1.18-c-files",
        "acp/claude-acp-g-subagent",
        "claude-stream/2.1-g-subagent",
        "claude-stream/2.1-u-bidi",
        "acp/opencode-1.18-f-todos",
    ] {
        let mut book = TestSession::new(&store, fixture).await;
        steps(fixture).into_iter().for_each(|step| book.step(step));
        book.keep(&store).await;
        books.push(book);
    }
    // A session with compressed texts, children without a parent, and items that are only in the log.
    let mut book = TestSession::new(&store, "made").await;
    let child_of = |parent: &str, mut item: Value| {
        item["parentToolCallId"] = parent.into();
        item
    };
    book.put(&child_of("nobody", text_item("lost", 0, &"long ".repeat(900), false)));
    book.say("top", &"long ".repeat(900));
    book.put(&child_of("top", text_item("child", 2, &"long ".repeat(900), false)));
    book.put(&child_of("child", text_item("open", 3, "grandchild", true)));
    book.keep(&store).await;
    books.push(book);
    let expected = snapshot(&store, &books).await;
    assert!(expected.iter().any(|v| v["row"]["calls"].as_u64().is_some_and(|n| n > 1)));
    assert!(expected.iter().any(|v| v["row"]["prompt"].is_string()));
    assert!(expected.iter().any(|v| !v["outline"]["files"].as_array().is_none_or(Vec::is_empty)));
    let path = store.dir().database();
    store.close().await;
    let newer = dir.path().join("newer.db");
    std::fs::rename(&path, &newer).unwrap();
    older(&newer, &path, 2);

    // A read-only open cannot migrate the store.
    let refused = Store::open_read_only(&data(&dir)).unwrap_err();
    assert_eq!(refused, Error::Older { found: 2, known: SCHEMA });
    assert!(refused.to_string().contains("narrows index"));

    let store = open(&dir);
    assert_eq!(snapshot(&store, &books).await, expected);
    // Appends continue, and the search index is built again.
    let mut book = books.pop().unwrap();
    book.put(&child_of("top", text_item("child2", 4, "more", false)));
    book.change(&json!([{ "change": "append", "id": "open", "field": "content", "text": "!" }]));
    book.keep(&store).await;
    let page =
        store.items_of(book.key(), Which::Of("top".to_owned()), Window::End, 9).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.order).collect::<Vec<_>>(), [2, 4]);
    common::wait_for_maintenance(&store).await;
    // Maintenance backfills checksums.
    let missing = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL)
         + (SELECT count(*) FROM item WHERE crc IS NULL)
         + (SELECT count(*) FROM session WHERE name_crc IS NULL OR tally IS NULL)";
    common::wait_until("all rows have checksums", async || {
        common::raw_sql(&store, missing) == ["0"]
    })
    .await;
    let checked =
        store.check(std::time::Duration::from_mins(1), std::time::Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    store.close().await;
    // The columns and indexes are the same as in a new store.
    let schema = |path: &Path| {
        let db = Connection::open(path).unwrap();
        let mut query = db
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")
            .unwrap();
        let rows = query.query_map([], |r| r.get::<_, String>(0)).unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>()
    };
    assert_eq!(schema(&path), schema(&newer));
}

#[tokio::test(flavor = "multi_thread")]
async fn migrated_sessions_keep_ended_and_pending_states() {
    let (dir, store) = temp_store();
    let (mut ended, mut pending) =
        (TestSession::new(&store, "ended").await, TestSession::new(&store, "pending").await);
    for book in [&mut ended, &mut pending] {
        book.head(&json!({ "status": "running" }));
        book.put(&json!({
            "type": "permission", "id": "p", "order": 0, "timestamp": null, "requestId": "r",
            "toolCallId": "c", "title": null, "options": [],
        }));
        book.rest(&store).await;
    }
    let last = narrows_store::Append { ended: Some(true), ..ended.next(false) };
    common::append(&store, last).await.unwrap();
    let path = store.dir().database();
    store.close().await;
    let newer = dir.path().join("newer.db");
    std::fs::rename(&path, &newer).unwrap();
    older(&newer, &path, 2);
    let store = open(&dir);
    let row = async |book: &TestSession| json!(store.session_row(&book.session.id).await.unwrap());
    let (ended, pending) = (row(&ended).await, row(&pending).await);
    assert_eq!((&ended["ended"], &ended["info"]["status"]), (&json!(true), &json!("idle")));
    assert_eq!((&ended["live"], &ended["waiting"]), (&json!(false), &json!(0)));
    assert_eq!((&pending["ended"], &pending["info"]["status"]), (&json!(false), &json!("running")));
    assert_eq!((&pending["live"], &pending["waiting"]), (&json!(true), &json!(1)));
    assert!(pending["heardAt"].as_i64().is_some_and(|at| at > 0), "{pending}");
}

#[tokio::test(flavor = "multi_thread")]
async fn unreadable_row_does_not_stop_migration() {
    let (dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    book.say("a", "said");
    book.say("b", "more");
    book.keep(&store).await;
    let path = store.dir().database();
    store.close().await;
    let newer = dir.path().join("newer.db");
    std::fs::rename(&path, &newer).unwrap();
    older(&newer, &path, 2);
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE item SET body = x'0102' WHERE id = 'a'", []).unwrap();
    drop(db);
    let store = open(&dir);
    let all = ListFilter { limit: 9, ..ListFilter::default() };
    assert_eq!(store.list(all).await.unwrap().sessions.len(), 1);
    assert_eq!(print(&store.item(book.key(), "b").await.unwrap().0), book.printed()[1]);
}

/// Checksums that a row may lack, because the columns they cover may be empty or written later.
const OPTIONAL: [&str; 8] = [
    "blob.crc",
    "meta.crc",
    "run.lease_crc",
    "run.shown_crc",
    "source.crc",
    "source.file_crc",
    "source.format_crc",
    "source.path_crc",
];

#[tokio::test(flavor = "multi_thread")]
async fn store_of_any_schema_gets_all_checksums() {
    if common::is_postgres() {
        return;
    }
    let (dir, newest) = full().await;
    let newer = newest.join("narrows.db");
    let counts = |db: &Connection, table: &str| {
        let sql = format!("SELECT count(*) FROM {table}");
        db.query_row(&sql, [], |r| r.get::<_, u64>(0)).unwrap()
    };
    for version in [2, 7, 8, 13, 16] {
        let place = dir.path().join(format!("of-{version}"));
        std::fs::create_dir(&place).unwrap();
        let path = place.join("narrows.db");
        older(&newer, &path, version);
        assert!(matches!(Store::open_read_only(&place), Err(Error::Older { .. })), "{version}");
        let store = Store::open(&place, &narrows_store::Options::default()).unwrap();
        let missing = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL)
             + (SELECT count(*) FROM item WHERE crc IS NULL)";
        // Maintenance runs after a write.
        let session = store.session_by_label("acp/claude-acp-g-subagent").await.unwrap();
        store.tag(&session.id, vec!["blue".into()], Vec::new()).await.unwrap();
        let is_done = async || common::raw_sql(&store, missing) == ["0"];
        common::wait_until("all rows have checksums", is_done).await;
        common::wait_for_maintenance(&store).await;
        store.close().await;
        let db = Connection::open(&path).unwrap();
        let newest = Connection::open(&newer).unwrap();
        let columns = "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'search%'
             AND (c.name LIKE '%crc' OR c.name IN ('tally', 'figures', 'hidden', 'who'))";
        let mut columns = db.prepare(columns).unwrap();
        let columns = columns.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        let mut checked = 0;
        for (table, crc) in columns.map(Result::<(String, String), _>::unwrap) {
            checked += 1;
            let missing = counts(&db, &format!("{table} WHERE {crc} IS NULL"));
            let optional = OPTIONAL.contains(&format!("{table}.{crc}").as_str());
            assert!(missing == 0 || optional, "{version}: {missing} rows of {table} lack {crc}");
        }
        assert!(checked > 30, "{checked}");
        for table in ["event", "item", "call", "edit", "usage", "source", "blob", "seen"] {
            assert_eq!(counts(&db, table), counts(&newest, table), "{version}: {table}");
        }
        assert_eq!(says(&place).await, Vec::<String>::new(), "{version}");
        let report = repair(&place, true, |_| ()).unwrap();
        // Earlier losses are still reported.
        let reported = (&report.sessions, &report.lost, &report.database);
        assert_eq!(reported, (&vec![], &vec![], &vec![]), "{version}");
    }
}
