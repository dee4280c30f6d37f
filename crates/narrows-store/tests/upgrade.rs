//! A store of an older version is brought up to date, with everything that the new one would have
//! written.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{Book, data, fresh, open, print, steps, text_item};
use narrows_store::{Error, ListFilter, SCHEMA, Store, Which, Window};
use rusqlite::Connection;
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The schema of version 2, as it was released.
const VERSION_2: [&str; 2] =
    [include_str!("../src/sql/001.sql"), include_str!("../src/sql/002.sql")];

/// Makes a store of version 2 with the rows of another.
fn older(from: &Path, to: &Path) {
    let db = Connection::open(to).unwrap();
    for step in VERSION_2 {
        db.execute_batch(step).unwrap();
    }
    db.execute("ATTACH ?1 AS newer", [from.to_str().unwrap()]).unwrap();
    let mut tables = db
        .prepare(
            "SELECT name FROM main.sqlite_schema WHERE type = 'table' AND sql NOT LIKE '%VIRTUAL%'",
        )
        .unwrap();
    let tables = tables.query_map([], |r| r.get::<_, String>(0)).unwrap();
    for table in tables.map(Result::unwrap) {
        // The tables of the index belong to it.
        if table.starts_with("search") || table.starts_with("sqlite_") {
            continue;
        }
        let mut columns = db.prepare(&format!("PRAGMA main.table_info({table})")).unwrap();
        let columns = columns.query_map([], |r| r.get::<_, String>(1)).unwrap();
        let columns = columns.map(|c| format!("\"{}\"", c.unwrap())).collect::<Vec<_>>().join(",");
        let copy =
            format!("INSERT INTO main.{table} ({columns}) SELECT {columns} FROM newer.{table}");
        db.execute_batch(&copy).unwrap();
    }
    // How far checksums were given is no fact of that version.
    db.execute_batch("DELETE FROM main.meta WHERE key LIKE 'summed%'").unwrap();
    db.execute_batch("PRAGMA main.user_version = 2").unwrap();
    std::fs::set_permissions(to, std::fs::Permissions::from_mode(0o600)).unwrap();
}

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
    older(&newer, &path);

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
    older(&newer, &path);
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
    older(&newer, &path);
    let db = Connection::open(&path).unwrap();
    db.execute("UPDATE item SET body = x'0102' WHERE id = 'a'", []).unwrap();
    drop(db);
    let store = open(&dir);
    let all = ListFilter { limit: 9, ..ListFilter::default() };
    assert_eq!(store.list(all).await.unwrap().sessions.len(), 1);
    assert_eq!(print(&store.item(book.key(), "b").await.unwrap().0), book.printed()[1]);
}
