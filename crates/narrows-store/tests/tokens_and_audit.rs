//! Tokens, the audit log, stored requests and checkpoints of sources.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{append, open, session, temp_store};
use narrows_store::{
    Append, Error, KeptRequest, NewAudit, Request, Scope, Scopes, Sight, SourceMark, Token,
    TokenKind, now,
};

fn token(id: &str, hash: u8, kind: TokenKind) -> Token {
    Token {
        id: id.to_owned(),
        hash: [hash; 32],
        kind,
        name: format!("name of {id}"),
        scopes: Scopes::parse("read, write").unwrap(),
        sight: Sight::default(),
        created: i64::from(hash),
        expires: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_are_valid_until_expired_or_revoked() {
    let (dir, store) = temp_store();
    let mut limited = token("b", 2, TokenKind::Made);
    limited.sight = Sight { sessions: Some(vec!["s1".into(), "s2".into()]), tags: Some(vec![]) };
    limited.expires = Some(now() + 60_000);
    let mut over = token("d", 4, TokenKind::Browser);
    over.expires = Some(now() - 1);
    let kept =
        [token("c", 3, TokenKind::Browser), over, limited.clone(), token("a", 1, TokenKind::Owner)];
    for token in kept {
        store.keep_token(token).await.unwrap();
    }
    store.close().await;

    let store = open(&dir);
    let found = store.tokens().await.unwrap();
    let ids: Vec<&str> = found.iter().map(|t| t.id.as_str()).collect();
    assert_eq!(ids, ["a", "b", "c"], "oldest first, without what has ended");
    assert_eq!(found[0].kind, TokenKind::Owner);
    assert_eq!(found[2].kind, TokenKind::Browser);
    let back = &found[1];
    assert_eq!((back.kind, back.hash, &back.name), (TokenKind::Made, [2; 32], &limited.name));
    assert_eq!((back.scopes, &back.sight), (limited.scopes, &limited.sight));
    assert_eq!((back.created, back.expires), (2, limited.expires));
    assert!(back.is_valid(now()) && !back.is_valid(now() + 60_001));
    assert_eq!(found[0].sight, Sight::default());

    let mut renamed = token("a", 9, TokenKind::Owner);
    renamed.scopes = Scopes::all();
    store.keep_token(renamed).await.unwrap();
    store.revoke_token("c").await.unwrap();
    assert_eq!(store.revoke_token("c").await, Err(Error::NotFound("token")));
    let found = store.tokens().await.unwrap();
    assert_eq!(found.iter().map(|t| t.id.as_str()).collect::<Vec<_>>(), ["b", "a"]);
    assert_eq!((found[1].hash, found[1].scopes), ([9; 32], Scopes::all()));
}

#[test]
fn scopes_parse_their_display_form() {
    let some = Scopes::parse("approve,read").unwrap();
    assert_eq!(some.to_string(), "read,approve");
    assert!(some.has(Scope::Read) && some.has(Scope::Approve) && !some.has(Scope::Admin));
    assert!(Scopes::all().covers(some) && !some.covers(Scopes::all()));
    assert_eq!(Scopes::parse("").unwrap(), Scopes::default());
    let told = Scopes::parse("read,root").unwrap_err().to_string();
    assert!(told.contains("root") && told.contains("approve"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn audit_log_lists_newest_first() {
    let (_dir, store) = temp_store();
    let began = now();
    for n in 0..5 {
        let session = (n % 2 == 0).then(|| format!("s{n}"));
        let detail = (n == 4).then(|| "all of it".to_owned());
        let token = format!("t{n}");
        store.audit(NewAudit { token, action: "delete", session, detail }).await.unwrap();
    }
    let all = store.audited(None, 10).await.unwrap();
    assert_eq!(all.iter().map(|a| a.number).collect::<Vec<_>>(), [5, 4, 3, 2, 1]);
    let last = &all[0];
    assert_eq!((last.token.as_str(), last.action.as_str()), ("t4", "delete"));
    assert_eq!((last.session.as_deref(), last.detail.as_deref()), (Some("s4"), Some("all of it")));
    assert_eq!((&all[1].session, &all[1].detail), (&None, &None));
    assert!(all.iter().all(|a| (began..=now()).contains(&a.at)));
    let page = store.audited(Some(4), 2).await.unwrap();
    assert_eq!(page.iter().map(|a| a.number).collect::<Vec<_>>(), [3, 2]);
    assert!(store.audited(Some(1), 2).await.unwrap().is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_request_finds_position_and_response() {
    let (_dir, store) = temp_store();
    let one = session(&store, "one", &[]).await;
    let two = session(&store, "two", &[]).await;
    let send = async |session: i64, key: &str, first, answer: Option<&str>| {
        let request = Some(Request {
            key: key.to_owned(),
            first,
            answer: answer.map(str::to_owned),
            digest: None,
        });
        append(&store, Append { session, request, ..Append::default() }).await.unwrap();
    };
    let kept = |first, answer: Option<&str>| {
        Some(KeptRequest { first, answer: answer.map(str::to_owned), digest: None })
    };
    assert_eq!(store.request(one.key, "k").await.unwrap(), None);
    send(one.key, "k", 7, None).await;
    assert_eq!(store.request(one.key, "k").await.unwrap(), kept(7, None));
    // The position stays that of its first packet.
    send(one.key, "k", 9, Some("{\"packets\":3}")).await;
    assert_eq!(store.request(one.key, "k").await.unwrap(), kept(7, Some("{\"packets\":3}")));
    // Keys are scoped to a session.
    assert_eq!(store.request(two.key, "k").await.unwrap(), None);
    send(two.key, "k", 1, None).await;
    assert_eq!(store.request(two.key, "k").await.unwrap(), kept(1, None));

    // A failed append stores no request.
    let request = Some(Request { key: "lost".to_owned(), first: 1, answer: None, digest: None });
    let wrong = Append { session: one.key, after: 5, request, ..Append::default() };
    assert!(append(&store, wrong).await.is_err());
    assert_eq!(store.request(one.key, "lost").await.unwrap(), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn source_checkpoint_is_stored_and_merged() {
    let (_dir, store) = temp_store();
    let made = session(&store, "s", &[]).await;
    let mark = SourceMark {
        number: 3,
        format: Some("acp".to_owned()),
        path: Some("/home/u/a.jsonl".to_owned()),
        read: 10,
        rest: 8,
        offset: 1234,
        rest_offset: 7,
        rest_order: 5,
        last: "10.1".to_owned(),
        roots: "/a\n/b".to_owned(),
        at: 17,
    };
    let keep = async |mark: &SourceMark| {
        let sources = vec![mark.clone()];
        let step = Append { session: made.key, sources, ..Append::default() };
        append(&store, step).await.unwrap();
    };
    keep(&mark).await;
    assert_eq!(store.sources(made.key).await.unwrap(), std::slice::from_ref(&mark));
    // Format and path are kept if they are not given again.
    let next = SourceMark { format: None, path: None, read: 20, rest: 20, at: 30, ..mark.clone() };
    keep(&next).await;
    let expected = SourceMark { format: mark.format.clone(), path: mark.path.clone(), ..next };
    assert_eq!(store.sources(made.key).await.unwrap(), [expected]);
    keep(&SourceMark { number: 4, rest_order: u64::MAX, ..SourceMark::default() }).await;
    assert_eq!(store.sources(made.key).await.unwrap().len(), 2);
}
