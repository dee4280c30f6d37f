//! Deletion: immediate for readers, soon on disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, append, data, event, session, steps, temp_store, wait_for_maintenance};
use narrows_store::{
    Append, Cleared, Error, ListFilter, NewBlob, Query, Request, Retention, SourceMark, Store,
};
use serde_json::json;
use sha2::{Digest, Sha256};

fn blob(content: &[u8]) -> NewBlob {
    let hash = Sha256::digest(content).iter().map(|b| format!("{b:02x}")).collect();
    NewBlob { hash, mime: "image/png".to_owned(), bytes: content.to_vec().into() }
}

async fn show(store: &Store, session: i64, blob: &NewBlob) {
    let blobs = vec![blob.clone()];
    append(store, Append { session, blobs, ..Append::default() }).await.unwrap();
}

/// The row counts of all tables.
fn rows(store: &Store) -> Vec<(String, i64)> {
    let count = |table: &&str| format!("SELECT '{table}', count(*) FROM {table}");
    let tables = [
        "session", "tag", "event", "item", "search", "blob", "blob_use", "source", "request",
        "call", "edit", "doomed",
    ];
    let counts = tables.iter().map(count).collect::<Vec<_>>().join(" UNION ALL ");
    let told = common::raw_sql(store, &counts).into_iter().map(|line| {
        let (table, n) = line.split_once('|').unwrap();
        (table.to_owned(), n.parse().unwrap())
    });
    told.filter(|(_, n)| *n > 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn blob_is_stored_once_and_visible_only_in_its_sessions() {
    let (_dir, store) = temp_store();
    let one = session(&store, "one", &[]).await;
    let two = session(&store, "two", &[]).await;
    let three = session(&store, "three", &[]).await;
    let picture = blob(b"\x89PNG a picture");
    show(&store, one.key, &picture).await;
    show(&store, one.key, &picture).await;
    show(&store, two.key, &picture).await;
    let own = blob(b"of one alone");
    show(&store, one.key, &own).await;
    let found = store.blob(two.key, &picture.hash).await.unwrap();
    assert_eq!((found.mime.as_str(), &found.bytes), ("image/png", &picture.bytes));
    let none = Error::NotFound("picture");
    assert_eq!(store.blob(three.key, &picture.hash).await.unwrap_err(), none);
    assert_eq!(store.blob(two.key, &own.hash).await.unwrap_err(), none);
    assert_eq!(store.blob(one.key, "no such hash").await.unwrap_err(), none);
    let kept = |n| rows(&store).contains(&("blob".to_owned(), n));
    assert!(kept(2), "{:?}", rows(&store));

    store.delete(&one.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert_eq!(store.blob(one.key, &picture.hash).await.unwrap_err(), none);
    assert_eq!(store.blob(two.key, &picture.hash).await.unwrap().bytes, picture.bytes);
    assert!(kept(1), "{:?}", rows(&store));
    store.delete(&two.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert_eq!(rows(&store), [("session".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn blob_of_recorded_session_is_readable() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "pictures").await;
    let steps = steps("acp/claude-acp-m-image");
    let shown: Vec<String> =
        steps.iter().flat_map(|s| &s.blobs).map(|blob| blob.hash.clone()).collect();
    assert!(!shown.is_empty());
    steps.into_iter().for_each(|step| book.step(step));
    book.rest(&store).await;
    for hash in shown {
        let found = store.blob(book.key(), &hash).await.unwrap();
        assert_eq!(blob(&found.bytes).hash, hash);
    }
}

/// A session with a row in every table.
async fn full(store: &Store, label: &str, text: &str) -> TestSession {
    let mut book = TestSession::of(session(store, label, &["some-tag"]).await);
    // More rows than one slice deletes.
    for n in 0..1200 {
        book.say(&format!("i{n}"), &format!("{n} {text}"));
    }
    // A call that edited many files.
    let file = |n| json!({ "path": format!("{n} {text}"), "newText": "1\n", "scope": "file" });
    book.put(&json!({
        "type": "tool_call", "id": "edit", "order": 1200, "timestamp": null,
        "toolCall": {
            "id": "edit", "toolName": "edit", "kind": "edit", "status": "completed",
            "isTodo": false, "diffs": (0..700).map(file).collect::<Vec<_>>(),
        },
    }));
    book.head(&json!({ "title": format!("about {text}") }));
    let mut next = book.next(false);
    next.blobs = vec![blob(text.as_bytes())];
    next.sources = vec![SourceMark { roots: text.to_owned(), ..SourceMark::default() }];
    next.request = Some(Request {
        key: "k".to_owned(),
        first: 1,
        answer: Some(text.to_owned()),
        digest: None,
    });
    append(store, next).await.unwrap();
    book
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_session_disappears_at_once_and_rows_later() {
    let (_dir, store) = temp_store();
    let book = full(&store, "doomed", "needle").await;
    let other = full(&store, "stays", "needle").await;
    wait_for_maintenance(&store).await;
    let before = rows(&store);
    assert_eq!(before.len(), 11, "{before:?}");
    store.delete(&book.session.id).await.unwrap();

    let none = Error::NotFound("session");
    assert_eq!(store.session(&book.session.id).await.unwrap_err(), none);
    assert_eq!(store.session_by_label("doomed").await.unwrap_err(), none);
    assert_eq!(store.events_after(book.key(), 0, 1, 1).await.unwrap_err(), none);
    assert_eq!(store.item(book.key(), "i1").await.unwrap_err(), none);
    assert_eq!(store.delete(&book.session.id).await.unwrap_err(), none);
    let late = Append {
        session: book.key(),
        after: book.seq,
        events: vec![event(book.seq + 1, "late")],
        ..Append::default()
    };
    assert_eq!(append(&store, late).await.unwrap_err(), none);
    let asked = || Query { text: "needle".to_owned(), limit: 5000, ..Query::default() };
    let hits = store.search(asked()).await.unwrap().hits;
    assert_eq!(hits.iter().filter(|hit| hit.session_id == book.session.id).count(), 0);
    let listed = store.list(ListFilter { limit: 9, ..ListFilter::default() }).await.unwrap();
    assert_eq!(listed.sessions.len(), 1);
    assert!(store.blob(book.key(), &blob(b"needle").hash).await.is_err(), "no way to a picture");
    // Its label can be used again.
    let again = session(&store, "doomed", &[]).await;
    assert!(again.key > other.key() && again.id != book.session.id, "keys are never used again");

    wait_for_maintenance(&store).await;
    let left = rows(&store);
    store.delete(&again.id).await.unwrap();
    store.delete(&other.session.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert_eq!(rows(&store), []);
    let of = |table: &str| left.iter().find(|(t, _)| t == table).map(|(_, n)| *n);
    assert_eq!((of("item"), of("search")), (Some(1201), Some(1201)));
    // Events of an append share rows.
    assert!(of("event").is_some_and(|rows| rows > 1 && rows < 100));
    assert_eq!((of("call"), of("edit")), (Some(1), Some(700)));
    assert_eq!((of("tag"), of("source"), of("request")), (Some(1), Some(1), Some(1)));
    assert_eq!((of("blob"), of("blob_use"), of("session")), (Some(1), Some(1), Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_session_leaves_index_for_any_row_order() {
    let (_dir, store) = temp_store();
    let mut book = TestSession::new(&store, "s").await;
    // More rows than one slice deletes; the first ones are rewritten, so that they are out of
    // order.
    for part in [0..600, 0..300] {
        for n in part {
            book.put(&common::text_item(
                &format!("i{n}"),
                n,
                &format!("said at {}", book.seq),
                false,
            ));
        }
        book.keep(&store).await;
    }
    wait_for_maintenance(&store).await;
    store.delete(&book.session.id).await.unwrap();
    wait_for_maintenance(&store).await;
    assert_eq!(rows(&store), []);
}

/// How often a text occurs in the files of the data directory.
fn planted(dir: &tempfile::TempDir, text: &str) -> usize {
    let files = std::fs::read_dir(data(dir)).unwrap();
    let bytes = files.map(|f| std::fs::read(f.unwrap().path()).unwrap_or_default());
    bytes.map(|b| b.windows(text.len()).filter(|w| *w == text.as_bytes()).count()).sum()
}

/// A page shared by rows of two sessions may keep old content when it is split: not here, where
/// rows are inserted in order.
#[tokio::test(flavor = "multi_thread")]
async fn deleted_text_is_erased_from_disk() {
    if common::is_postgres() {
        // PostgreSQL keeps deleted rows until it needs the space.
        return;
    }
    let (dir, store) = temp_store();
    let other = full(&store, "stays", "of no interest").await;
    let text = "correct-horse-battery-staple";
    let mut book = full(&store, "doomed", text).await;
    // Texts with pages of their own, and replaced versions of them.
    for n in 0..5 {
        book.put(&common::text_item("i7", 7, &format!("{n} {text}").repeat(2000), false));
        book.keep(&store).await;
    }
    wait_for_maintenance(&store).await;
    assert!(planted(&dir, text) > 1000);
    store.delete(&book.session.id).await.unwrap();
    wait_for_maintenance(&store).await;
    common::wait_until("the text is nowhere", async || planted(&dir, text) == 0).await;
    assert_eq!(common::all(&store, other.key()).await, other.printed());
}

/// The labels of the remaining sessions.
async fn left(store: &Store) -> Vec<String> {
    let page = store.list(ListFilter { limit: 99, ..ListFilter::default() }).await.unwrap();
    let mut labels: Vec<String> = page.sessions.into_iter().map(|s| s.label.unwrap()).collect();
    labels.sort();
    labels
}

const HOUR: i64 = 3600 * 1000;

/// Four sessions of about 1000 bytes each, four, three, two and one hours old.
async fn four(store: &Store) {
    for (label, tags, hours) in
        [("d", &["web"][..], 1), ("c", &[], 2), ("b", &["web", "keep"], 3), ("a", &["web"], 4)]
    {
        let made = session(store, label, tags).await;
        let events = vec![event(1, &"x".repeat(975))];
        append(store, Append { session: made.key, events, ..Append::default() }).await.unwrap();
        let (key, age) = (made.key, hours * HOUR);
        let old = format!("UPDATE session SET updated = updated - {age} WHERE key = {key}");
        common::raw_sql(store, &old);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_deletes_old_sessions() {
    let (_dir, store) = temp_store();
    four(&store).await;
    let old = |age| Retention { max_age: Some(age), ..Retention::default() };
    assert_eq!(store.clear(Retention::default(), false).await.unwrap(), Cleared::default());
    assert_eq!(store.clear(old(5 * HOUR), false).await.unwrap(), Cleared::default());
    let told = store.clear(old(2 * HOUR + HOUR / 2), true).await.unwrap();
    assert_eq!((told.sessions.len(), left(&store).await.len()), (2, 4), "only told");
    let mut keep = old(2 * HOUR + HOUR / 2);
    keep.keep_tags = vec!["other".to_owned(), "keep".to_owned()];
    let a = store.session_by_label("a").await.unwrap().id;
    assert_eq!(store.clear(keep, false).await.unwrap().sessions, [a]);
    assert_eq!(left(&store).await, ["b", "c", "d"]);
    assert_eq!(store.clear(old(2 * HOUR + HOUR / 2), false).await.unwrap().sessions.len(), 1);
    assert_eq!(left(&store).await, ["c", "d"]);
    assert_eq!(store.clear(old(i64::MAX), false).await.unwrap(), Cleared::default());
    wait_for_maintenance(&store).await;
    assert!(rows(&store).contains(&("event".to_owned(), 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn retention_deletes_oldest_sessions_above_size() {
    let (_dir, store) = temp_store();
    four(&store).await;
    let each = store.session_row(&store.session_by_label("a").await.unwrap().id).await.unwrap();
    let most = |bytes| Retention { max_bytes: Some(bytes), ..Retention::default() };
    assert_eq!(store.clear(most(4 * each.bytes), false).await.unwrap(), Cleared::default());
    let told = store.clear(most(3 * each.bytes), true).await.unwrap();
    assert_eq!(told, Cleared { sessions: vec![each.id.clone()], bytes: each.bytes });
    assert_eq!(left(&store).await.len(), 4);
    // Retained sessions count, but others are deleted.
    let mut keep = most(2 * each.bytes);
    keep.keep_tags = vec!["keep".to_owned()];
    let told = store.clear(keep, false).await.unwrap();
    assert_eq!((told.sessions.len(), told.bytes), (2, 2 * each.bytes));
    assert_eq!(left(&store).await, ["b", "d"]);
    // Only sessions with the tag count and are deleted.
    let tagged = Retention { tag: Some("keep".to_owned()), ..most(0) };
    assert_eq!(store.clear(tagged, false).await.unwrap().sessions.len(), 1);
    assert_eq!(left(&store).await, ["d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_expire_after_a_day() {
    let (_dir, store) = temp_store();
    let made = session(&store, "s", &[]).await;
    for key in ["old", "new"] {
        let request = Some(Request { key: key.to_owned(), first: 1, answer: None, digest: None });
        append(&store, Append { session: made.key, request, ..Append::default() }).await.unwrap();
    }
    let day = 24 * HOUR + 1000;
    let old = format!("UPDATE request SET created = created - {day} WHERE key = 'old'");
    common::raw_sql(&store, &old);
    store.clear(Retention::default(), false).await.unwrap();
    assert_eq!(store.request(made.key, "old").await.unwrap(), None);
    assert!(store.request(made.key, "new").await.unwrap().is_some());
}
