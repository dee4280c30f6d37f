//! A store of an older version is brought up to date, with everything that the new one would have
//! written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::full::{full, says};
use common::older::older;
use common::{Book, data, fresh, open, print, steps, text_item};
use narrows_store::{Error, ListFilter, SCHEMA, Store, Which, Window, repair};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::path::Path;

/// Everything that is told of the sessions.
async fn told(store: &Store, books: &[Book]) -> Vec<Value> {
    let mut all = Vec::new();
    for book in books {
        let key = book.key();
        let mut row = json!(store.session_row(&book.session.id).await.unwrap());
        // An older store does not know when something arrived.
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
async fn a_store_of_version_2_has_all_that_a_new_one_has() {
    let (dir, store) = fresh();
    let mut books = Vec::new();
    for fixture in [
        "acp/opencode-1.18-c-files",
        "acp/claude-acp-g-subagent",
        "claude-stream/2.1-g-subagent",
        "claude-stream/2.1-u-bidi",
        "acp/opencode-1.18-f-todos",
    ] {
        let mut book = Book::new(&store, fixture).await;
        steps(fixture).into_iter().for_each(|step| book.step(step));
        book.keep(&store).await;
        books.push(book);
    }
    // One with texts that are packed, children without a call, and items that are only in the log.
    let mut book = Book::new(&store, "made").await;
    let below = |parent: &str, mut item: Value| {
        item["parentToolCallId"] = parent.into();
        item
    };
    book.put(&below("nobody", text_item("lost", 0, &"long ".repeat(900), false)));
    book.say("top", &"long ".repeat(900));
    book.put(&below("top", text_item("child", 2, &"long ".repeat(900), false)));
    book.put(&below("child", text_item("open", 3, "grandchild", true)));
    book.keep(&store).await;
    books.push(book);
    let expected = told(&store, &books).await;
    assert!(expected.iter().any(|v| v["row"]["calls"].as_u64().is_some_and(|n| n > 1)));
    assert!(expected.iter().any(|v| v["row"]["prompt"].is_string()));
    assert!(expected.iter().any(|v| !v["outline"]["files"].as_array().is_none_or(Vec::is_empty)));
    let path = store.dir().database();
    store.close().await;
    let newer = dir.path().join("newer.db");
    std::fs::rename(&path, &newer).unwrap();
    older(&newer, &path, 2);

    // Whoever only reads cannot bring it up to date, and says so.
    let refused = Store::open_read_only(&data(&dir)).unwrap_err();
    assert_eq!(refused, Error::Older { found: 2, known: SCHEMA });
    assert!(refused.to_string().contains("narrows index"));

    let store = open(&dir);
    assert_eq!(told(&store, &books).await, expected);
    // It goes on from there, and the index of search is filled again.
    let mut book = books.pop().unwrap();
    book.put(&below("top", text_item("child2", 4, "more", false)));
    book.change(&json!([{ "change": "append", "id": "open", "field": "content", "text": "!" }]));
    book.keep(&store).await;
    let page =
        store.items_of(book.key(), Which::Of("top".to_owned()), Window::End, 9).await.unwrap();
    assert_eq!(page.items.iter().map(|row| row.order).collect::<Vec<_>>(), [2, 4]);
    common::settled(&store).await;
    // Rows that were written without checksums have them when there was time for it.
    let without = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL)
         + (SELECT count(*) FROM item WHERE crc IS NULL)
         + (SELECT count(*) FROM session WHERE name_crc IS NULL OR tally IS NULL)";
    common::until("all rows have checksums", async || common::beside(&store, without) == ["0"])
        .await;
    let checked =
        store.check(std::time::Duration::from_mins(1), std::time::Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    store.close().await;
    // The columns and indexes are the same in a store that was always new.
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
async fn what_was_over_does_not_run_and_what_was_asked_still_waits() {
    let (dir, store) = fresh();
    let (mut over, mut asks) = (Book::new(&store, "over").await, Book::new(&store, "asks").await);
    for book in [&mut over, &mut asks] {
        book.head(&json!({ "status": "running" }));
        book.put(&json!({
            "type": "permission", "id": "p", "order": 0, "timestamp": null, "requestId": "r",
            "toolCallId": "c", "title": null, "options": [],
        }));
        book.rest(&store).await;
    }
    let last = narrows_store::Append { ended: Some(true), ..over.next(false) };
    common::append(&store, last).await.unwrap();
    let path = store.dir().database();
    store.close().await;
    let newer = dir.path().join("newer.db");
    std::fs::rename(&path, &newer).unwrap();
    older(&newer, &path, 2);
    let store = open(&dir);
    let row = async |book: &Book| json!(store.session_row(&book.session.id).await.unwrap());
    let (over, asks) = (row(&over).await, row(&asks).await);
    assert_eq!((&over["ended"], &over["info"]["status"]), (&json!(true), &json!("idle")));
    assert_eq!((&over["live"], &over["waiting"]), (&json!(false), &json!(0)));
    assert_eq!((&asks["ended"], &asks["info"]["status"]), (&json!(false), &json!("running")));
    assert_eq!((&asks["live"], &asks["waiting"]), (&json!(true), &json!(1)));
    assert!(asks["heardAt"].as_i64().is_some_and(|at| at > 0), "{asks}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_cannot_be_read_holds_nothing_up() {
    let (dir, store) = fresh();
    let mut book = Book::new(&store, "s").await;
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

/// Checksums that a row may lack: what they are of may be missing, or come later.
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
async fn a_store_of_any_version_gets_all_checksums() {
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
        let without = "SELECT (SELECT count(*) FROM event WHERE crc IS NULL)
             + (SELECT count(*) FROM item WHERE crc IS NULL)";
        // Something is written: then there is time.
        let session = store.session_by_label("acp/claude-acp-g-subagent").await.unwrap();
        store.tag(&session.id, vec!["blue".into()], Vec::new()).await.unwrap();
        let summed = async || common::beside(&store, without) == ["0"];
        common::until("all rows have checksums", summed).await;
        common::settled(&store).await;
        store.close().await;
        let db = Connection::open(&path).unwrap();
        let whole = Connection::open(&newer).unwrap();
        let sums = "SELECT m.name, c.name FROM sqlite_schema m JOIN pragma_table_info(m.name) c
             WHERE m.type = 'table' AND m.name NOT LIKE 'search%'
             AND (c.name LIKE '%crc' OR c.name IN ('tally', 'figures', 'hidden', 'who'))";
        let mut sums = db.prepare(sums).unwrap();
        let sums = sums.query_map([], |r| Ok((r.get(0)?, r.get(1)?))).unwrap();
        let mut seen = 0;
        for (table, crc) in sums.map(Result::<(String, String), _>::unwrap) {
            seen += 1;
            let lack = counts(&db, &format!("{table} WHERE {crc} IS NULL"));
            let optional = OPTIONAL.contains(&format!("{table}.{crc}").as_str());
            assert!(lack == 0 || optional, "{version}: {lack} rows of {table} lack {crc}");
        }
        assert!(seen > 30, "{seen}");
        for table in ["event", "item", "call", "edit", "usage", "source", "blob", "seen"] {
            assert_eq!(counts(&db, table), counts(&whole, table), "{version}: {table}");
        }
        assert_eq!(says(&place).await, Vec::<String>::new(), "{version}");
        let report = repair(&place, true, |_| ()).unwrap();
        // What was lost before is still said.
        let told = (&report.sessions, &report.lost, &report.database);
        assert_eq!(told, (&vec![], &vec![], &vec![]), "{version}");
    }
}
