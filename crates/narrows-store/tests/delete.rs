//! What is deleted is gone: at once for whoever asks, and soon from the disk.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{Book, append, data, event, fresh, session, settled, steps};
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

/// Rows of every table, read beside the store.
fn rows(store: &Store) -> Vec<(String, i64)> {
    let count = |table: &&str| format!("SELECT '{table}', count(*) FROM {table}");
    let tables = [
        "session", "tag", "event", "item", "search", "blob", "blob_use", "source", "request",
        "call", "edit", "doomed",
    ];
    let counts = tables.iter().map(count).collect::<Vec<_>>().join(" UNION ALL ");
    let told = common::beside(store, &counts).into_iter().map(|line| {
        let (table, n) = line.split_once('|').unwrap();
        (table.to_owned(), n.parse().unwrap())
    });
    told.filter(|(_, n)| *n > 0).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_is_kept_once_and_seen_only_through_its_sessions() {
    let (_dir, store) = fresh();
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
    settled(&store).await;
    assert_eq!(store.blob(one.key, &picture.hash).await.unwrap_err(), none);
    assert_eq!(store.blob(two.key, &picture.hash).await.unwrap().bytes, picture.bytes);
    assert!(kept(1), "{:?}", rows(&store));
    store.delete(&two.id).await.unwrap();
    settled(&store).await;
    assert_eq!(rows(&store), [("session".to_owned(), 1)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_picture_of_a_recorded_session_is_there() {
    let (_dir, store) = fresh();
    let mut book = Book::new(&store, "pictures").await;
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
async fn full(store: &Store, label: &str, text: &str) -> Book {
    let mut book = Book::of(session(store, label, &["some-tag"]).await);
    // More than is removed in one go.
    for n in 0..1200 {
        book.say(&format!("i{n}"), &format!("{n} {text}"));
    }
    // A call that changed many files.
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
async fn a_deleted_session_is_gone_at_once_and_its_rows_soon() {
    let (_dir, store) = fresh();
    let book = full(&store, "doomed", "needle").await;
    let other = full(&store, "stays", "needle").await;
    settled(&store).await;
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
    // Its label is free.
    let again = session(&store, "doomed", &[]).await;
    assert!(again.key > other.key() && again.id != book.session.id, "keys are never used again");

    settled(&store).await;
    let left = rows(&store);
    store.delete(&again.id).await.unwrap();
    store.delete(&other.session.id).await.unwrap();
    settled(&store).await;
    assert_eq!(rows(&store), []);
    let of = |table: &str| left.iter().find(|(t, _)| t == table).map(|(_, n)| *n);
    assert_eq!((of("item"), of("search")), (Some(1201), Some(1201)));
    // Those of an append share rows.
    assert!(of("event").is_some_and(|rows| rows > 1 && rows < 100));
    assert_eq!((of("call"), of("edit")), (Some(1), Some(700)));
    assert_eq!((of("tag"), of("source"), of("request")), (Some(1), Some(1), Some(1)));
    assert_eq!((of("blob"), of("blob_use"), of("session")), (Some(1), Some(1), Some(2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_index_forgets_a_deleted_session_in_whatever_order_its_rows_lie() {
    let (_dir, store) = fresh();
    let mut book = Book::new(&store, "s").await;
    // More than is removed in one go; the first ones are written again, so that they lie behind.
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
    settled(&store).await;
    store.delete(&book.session.id).await.unwrap();
    settled(&store).await;
    assert_eq!(rows(&store), []);
}

/// How often a text stands in the files of the data directory.
fn planted(dir: &tempfile::TempDir, text: &str) -> usize {
    let files = std::fs::read_dir(data(dir)).unwrap();
    let bytes = files.map(|f| std::fs::read(f.unwrap().path()).unwrap_or_default());
    bytes.map(|b| b.windows(text.len()).filter(|w| *w == text.as_bytes()).count()).sum()
}

/// A page that rows of two sessions share may keep what stood there when it was split: not so here,
/// where rows come in their order.
#[tokio::test(flavor = "multi_thread")]
async fn what_was_deleted_is_nowhere_on_the_disk() {
    if common::is_postgres() {
        // It keeps what was deleted until it needs the room: that is not ours to change.
        return;
    }
    let (dir, store) = fresh();
    let other = full(&store, "stays", "of no interest").await;
    let text = "correct-horse-battery-staple";
    let mut book = full(&store, "doomed", text).await;
    // Texts that take pages of their own, and versions of them that were replaced.
    for n in 0..5 {
        book.put(&common::text_item("i7", 7, &format!("{n} {text}").repeat(2000), false));
        book.keep(&store).await;
    }
    settled(&store).await;
    assert!(planted(&dir, text) > 1000);
    store.delete(&book.session.id).await.unwrap();
    settled(&store).await;
    common::until("the text is nowhere", async || planted(&dir, text) == 0).await;
    assert_eq!(common::all(&store, other.key()).await, other.printed());
}

/// The labels of the sessions that are left.
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
        common::beside(store, &old);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_old_is_cleared() {
    let (_dir, store) = fresh();
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
    settled(&store).await;
    assert!(rows(&store).contains(&("event".to_owned(), 2)));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_too_much_is_cleared_oldest_first() {
    let (_dir, store) = fresh();
    four(&store).await;
    let each = store.session_row(&store.session_by_label("a").await.unwrap().id).await.unwrap();
    let most = |bytes| Retention { max_bytes: Some(bytes), ..Retention::default() };
    assert_eq!(store.clear(most(4 * each.bytes), false).await.unwrap(), Cleared::default());
    let told = store.clear(most(3 * each.bytes), true).await.unwrap();
    assert_eq!(told, Cleared { sessions: vec![each.id.clone()], bytes: each.bytes });
    assert_eq!(left(&store).await.len(), 4);
    // What is kept counts, but others go for it.
    let mut keep = most(2 * each.bytes);
    keep.keep_tags = vec!["keep".to_owned()];
    let told = store.clear(keep, false).await.unwrap();
    assert_eq!((told.sessions.len(), told.bytes), (2, 2 * each.bytes));
    assert_eq!(left(&store).await, ["b", "d"]);
    // Only those with a tag count, and go.
    let tagged = Retention { tag: Some("keep".to_owned()), ..most(0) };
    assert_eq!(store.clear(tagged, false).await.unwrap().sessions.len(), 1);
    assert_eq!(left(&store).await, ["d"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_forgotten_after_a_day() {
    let (_dir, store) = fresh();
    let made = session(&store, "s", &[]).await;
    for key in ["old", "new"] {
        let request = Some(Request { key: key.to_owned(), first: 1, answer: None, digest: None });
        append(&store, Append { session: made.key, request, ..Append::default() }).await.unwrap();
    }
    let day = 24 * HOUR + 1000;
    let old = format!("UPDATE request SET created = created - {day} WHERE key = 'old'");
    common::beside(&store, &old);
    store.clear(Retention::default(), false).await.unwrap();
    assert_eq!(store.request(made.key, "old").await.unwrap(), None);
    assert!(store.request(made.key, "new").await.unwrap().is_some());
}
