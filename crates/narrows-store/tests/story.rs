//! A complete scenario through the public interface, valid for any store.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{TestSession, all, append, event, print, steps, text_item, wait_for_maintenance};
use narrows::stored;
use narrows_store::{
    Append, Error, KeptRequest, ListFilter, NewAudit, NewBlob, NewSession, Query, Request,
    Retention, Scopes, Sight, Store, Token, TokenKind, Window,
};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn store_fulfills_contract() {
    let (_dir, store) = common::temp_store();
    story(store).await;
}

/// The contract of a store, tested only through its public interface.
async fn story(store: Store) {
    assert!(store.is_writable().await);
    empty_store_has_nothing(&store).await;
    let recorded = record_session(&store).await;
    resume_after_interruption(&store, &recorded).await;
    let spoken = write_conversation(&store).await;
    find_sessions(&store, &recorded, &spoken).await;
    manage_store(&store).await;
    delete_sessions(&store, &recorded, &spoken).await;
    store.close().await;
    assert_eq!(store.create(NewSession::default()).await, Err(Error::Closed));
}

fn everything() -> ListFilter {
    ListFilter { limit: 10, ..ListFilter::default() }
}

async fn empty_store_has_nothing(store: &Store) {
    let page = store.list(everything()).await.unwrap();
    assert!(page.sessions.is_empty() && page.next.is_none());
    assert!(store.tokens().await.unwrap().is_empty());
    assert!(store.audited(None, 10).await.unwrap().is_empty());
    assert!(store.is_settled().await.unwrap());
    assert_eq!(store.session("nobody").await, Err(Error::NotFound("session")));
}

async fn record_session(store: &Store) -> TestSession {
    let new = NewSession { label: Some("recorded".to_owned()), tags: vec!["team".to_owned()] };
    let (session, made) = store.create(new.clone()).await.unwrap();
    assert!(made && !store.create(new).await.unwrap().1);
    let mut book = TestSession::of(session);
    let steps = steps("acp/opencode-1.18-c-files");
    let half = steps.len() / 2;
    // First event by event, then the remainder at once.
    for (n, step) in steps.into_iter().enumerate() {
        book.step(step);
        if n < half {
            book.keep(store).await;
        }
    }
    let mut last = book.next(false);
    last.request = Some(Request {
        key: "r1".to_owned(),
        first: 1,
        answer: Some("{}".to_owned()),
        digest: None,
    });
    last.ended = Some(true);
    assert_eq!(append(store, last).await, Ok(book.seq));
    assert_eq!(all(store, book.key()).await, book.printed());
    let kept = KeptRequest { first: 1, answer: Some("{}".to_owned()), digest: None };
    assert_eq!(store.request(book.key(), "r1").await.unwrap(), Some(kept));

    let (mut seqs, mut changes) = (Vec::new(), narrows::Items::new());
    while (seqs.len() as u64) < book.seq {
        let page = store.events_after(book.key(), seqs.len() as u64, 7, 20_000).await.unwrap();
        assert_eq!((page.last, &page.epoch), (book.seq, &book.session.epoch));
        for row in page.rows {
            let event = stored::event(std::str::from_utf8(&row.event).unwrap()).unwrap();
            assert_eq!(event.body.kind(), row.kind);
            let made = row.changes.map(|c| String::from_utf8(c.to_vec()).unwrap());
            let made = made.map(|c| stored::changes(&c).unwrap()).unwrap_or_default();
            made.into_iter().for_each(|change| changes.apply(change));
            seqs.push(row.seq);
        }
    }
    assert_eq!(seqs, (1..=book.seq).collect::<Vec<_>>());
    assert_eq!(changes.iter().map(print).collect::<Vec<_>>(), book.printed());
    book
}

async fn resume_after_interruption(store: &Store, book: &TestSession) {
    let kept = store.kept(book.key(), usize::MAX).await.unwrap();
    assert_eq!((kept.seq, kept.next_order), (book.seq, book.items.next_order()));
    assert_eq!(kept.items.iter().map(print).collect::<Vec<_>>(), book.printed());
    let header = |items: &narrows::Items| stored::print_info(items.info());
    assert_eq!(header(&kept.items), header(&book.items));
    // A writer that knows an older end of the log cannot append.
    let late = vec![event(book.seq, "late")];
    let wrong =
        Append { session: book.key(), after: book.seq - 1, events: late, ..Append::default() };
    assert_eq!(append(store, wrong).await, Err(Error::Conflict { last: book.seq }));
    assert_eq!(store.session(&book.session.id).await.unwrap().seq, book.seq);
}

async fn write_conversation(store: &Store) -> TestSession {
    let mut book = TestSession::new(store, "spoken").await;
    book.head(&json!({ "title": "A talk", "status": "running", "agent": "parrot" }));
    book.say("a", "Grüße aus 東京");
    book.put(&text_item("b", 1, "it is still", true));
    book.say("c", "to be taken back");
    book.keep(store).await;
    book.change(
        &json!([{ "change": "append", "id": "b", "field": "content", "text": " raining" }]),
    );
    book.change(&json!([{ "change": "remove", "id": "c" }]));
    book.put(&text_item("a", 9, "Grüße aus 東京!", false));
    let mut next = book.next(false);
    next.blobs = vec![NewBlob {
        hash: "a1".to_owned(),
        mime: "image/png".to_owned(),
        bytes: b"picture".to_vec().into(),
    }];
    assert_eq!(append(store, next).await, Ok(book.seq));
    assert_eq!(all(store, book.key()).await, book.printed());
    let (item, ended) = store.item(book.key(), "b").await.unwrap();
    assert!(print(&item).contains("it is still raining") && item.is_open() && !ended);
    assert_eq!(store.item(book.key(), "c").await.unwrap_err(), Error::NotFound("item"));
    let page = store.items(book.key(), Window::From(1), 5).await.unwrap();
    assert_eq!((page.items.len(), page.before, page.after), (1, true, false));
    assert_eq!((page.seq, &page.epoch), (book.seq, &book.session.epoch));
    assert_eq!(store.blob(book.key(), "a1").await.unwrap().bytes, &b"picture"[..]);
    book.rest(store).await;
    book
}

async fn find_sessions(store: &Store, recorded: &TestSession, spoken: &TestSession) {
    let listed = async |filter: ListFilter| {
        let page = store.list(filter).await.unwrap();
        page.sessions.into_iter().map(|s| s.id).collect::<Vec<_>>()
    };
    let (one, two) = (&recorded.session.id, &spoken.session.id);
    assert_eq!(listed(everything()).await, [two.as_str(), one], "the newest first");
    let tags = vec!["team".to_owned()];
    assert_eq!(listed(ListFilter { tags, ..everything() }).await, [one.as_str()]);
    let agent = Some("parrot".to_owned());
    assert_eq!(listed(ListFilter { agent, ..everything() }).await, [two.as_str()]);
    let text = Some("a TALK".to_owned());
    assert_eq!(listed(ListFilter { text, ..everything() }).await, [two.as_str()]);
    let sight = Sight { sessions: None, tags: Some(vec!["team".to_owned()]) };
    assert_eq!(listed(ListFilter { sight: sight.clone(), ..everything() }).await, [one.as_str()]);

    for indexed in [false, true] {
        if indexed {
            wait_for_maintenance(store).await;
        }
        let found = async |text: &str, sight: &Sight| {
            let asked =
                Query { text: text.to_owned(), sight: sight.clone(), limit: 9, ..Query::default() };
            let hits = store.search(asked).await.unwrap().hits;
            hits.into_iter().map(|hit| (hit.session_id, hit.item_id)).collect::<Vec<_>>()
        };
        let a = (two.clone(), "a".to_owned());
        for text in ["GRÜSSE AUS", "taken back"] {
            assert_eq!(found(text, &Sight::default()).await, [], "{text}");
        }
        for text in ["GRÜßE aus", "東京", "京", "\"aus 東京!\""] {
            assert_eq!(found(text, &Sight::default()).await, std::slice::from_ref(&a), "{text}");
            assert_eq!(found(text, &sight).await, [], "{text}");
        }
    }
}

async fn manage_store(store: &Store) {
    let token = Token {
        id: "t".to_owned(),
        hash: [7; 32],
        kind: TokenKind::Made,
        name: "for a friend".to_owned(),
        scopes: Scopes::parse("read").unwrap(),
        sight: Sight { sessions: None, tags: Some(vec!["team".to_owned()]) },
        created: narrows_store::now(),
        expires: None,
    };
    store.keep_token(token.clone()).await.unwrap();
    let found = store.tokens().await.unwrap();
    assert_eq!((found.len(), &found[0].sight, found[0].hash), (1, &token.sight, token.hash));
    store.revoke_token("t").await.unwrap();
    assert!(store.tokens().await.unwrap().is_empty());
    let done = NewAudit { token: "t".to_owned(), action: "revoke", ..NewAudit::default() };
    store.audit(done).await.unwrap();
    assert_eq!(store.audited(None, 9).await.unwrap()[0].action, "revoke");
}

async fn delete_sessions(store: &Store, recorded: &TestSession, spoken: &TestSession) {
    store.delete(&spoken.session.id).await.unwrap();
    let none = Error::NotFound("session");
    assert_eq!(store.session(&spoken.session.id).await.unwrap_err(), none);
    assert!(store.blob(spoken.key(), "a1").await.is_err());
    assert_eq!(all(store, recorded.key()).await, recorded.printed());
    let small = Retention { max_bytes: Some(0), ..Retention::default() };
    let told = store.clear(small.clone(), true).await.unwrap();
    assert_eq!(told.sessions, [recorded.session.id.as_str()]);
    assert!(told.bytes > 0);
    assert_eq!(store.clear(small, false).await.unwrap(), told);
    assert!(store.list(everything()).await.unwrap().sessions.is_empty());
    wait_for_maintenance(store).await;
}
