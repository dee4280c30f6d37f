//! A store with a value in every column of every table.

use super::written::{FIXTURES, copy};
use super::{TestSession, data, steps, temp_store};
use narrows_store::{
    Append, BodyDigest, FileMark, MessageState, NewAudit, NewBlob, NewSession, Options, Request,
    RunRow, Scopes, SessionFacts, Sight, SourceMark, Store, Token, TokenKind, UsageRow,
};
use rusqlite::Connection;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};
use std::time::Duration;

fn token(id: &str) -> Token {
    Token {
        id: id.to_owned(),
        hash: Sha256::digest(id).into(),
        kind: TokenKind::Made,
        name: format!("the token {id}"),
        scopes: Scopes::all(),
        sight: Sight { sessions: Some(vec!["a".into()]), tags: Some(vec!["b".into()]) },
        created: 1_700_000_000_000,
        expires: Some(4_000_000_000_000),
    }
}

/// Appends with all fields set.
pub async fn session(store: &Store, fixture: &str) -> TestSession {
    let mut book = TestSession::new(store, fixture).await;
    steps(fixture).into_iter().for_each(|step| book.step(step));
    let own = book.next(true);
    let facts = SessionFacts {
        native: Some(format!("native of {fixture}")),
        project: Some("a project".into()),
        title: Some("a title".into()),
        agent: Some("an agent".into()),
        model: Some("a model".into()),
        status: Some("idle".into()),
        state: "{\"more\":1}".into(),
        ..own.facts.clone().unwrap()
    };
    let source = SourceMark {
        number: 1,
        format: Some("acp".into()),
        path: Some(format!("/somewhere/{fixture}.jsonl")),
        read: 7,
        rest: 6,
        offset: 999,
        rest_offset: 888,
        rest_order: 5,
        last: "7.1".into(),
        roots: "/somewhere\n/else".into(),
        at: 3,
    };
    let bytes = format!("no picture, but {fixture}").into_bytes();
    let hash = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    let usage = UsageRow {
        id: format!("{fixture}/1"),
        at: Some(1_700_000_000_000),
        model: Some("a model".into()),
        input: 100,
        output: 7,
        cost: Some(0.25),
        ..UsageRow::default()
    };
    let request = Request {
        key: "key".into(),
        first: 1,
        answer: Some("{\"ok\":true}".into()),
        digest: Some(BodyDigest { length: 77, sha256: [7; 32] }),
    };
    let append = Append {
        facts: Some(facts),
        sources: vec![source],
        blobs: vec![NewBlob { hash, mime: "image/png".into(), bytes: bytes.into() }],
        usage: vec![usage],
        active: vec![(472_222, 1500)],
        first_answer: Some(format!("message of {fixture}")),
        request: Some(request),
        seen: vec![1, 2, u64::MAX],
        loose: Some(vec![4, 5]),
        heard: Some(1_700_000_000_000),
        waiting: Some(1),
        ended: Some(true),
        times: Some((1_600_000_000_000, 1_700_000_000_000)),
        ..own
    };
    super::append(store, append).await.unwrap();
    // More rows of the same kinds.
    book.say("more", "words");
    let mut next = book.next(true);
    next.events[0].activity = Some("[{\"told\":\"words\"}]".into());
    let more = Append { seen: vec![9], loose: Some(vec![6]), active: vec![(472_222, 7)], ..next };
    super::append(store, more).await.unwrap();
    let key = book.key();
    let file = FileMark {
        session: key,
        number: 1,
        path: format!("/somewhere/{fixture}.jsonl"),
        node: "1:2".into(),
        size: 1000,
        changed: 1_700_000_000_000,
        head: vec![1; 8],
        tail: vec![2; 8],
        tail_at: 950,
        parent: (fixture != FIXTURES[3]).then(|| "call".into()),
        gone: false,
        parser: 3,
        ended: false,
    };
    store.keep_files(vec![file.clone()]).await.unwrap();
    if fixture == FIXTURES[0] {
        store.lose_files(vec![file]).await.unwrap();
    }
    let run = RunRow {
        session: key,
        agent: "agent".into(),
        cwd: "/somewhere".into(),
        native: Some("native".into()),
        mode: Some("mode".into()),
        model: Some("model".into()),
        runs: 2,
        directories: vec!["/else".into()],
    };
    store.keep_run(run, None).await.unwrap();
    let hour = Duration::from_hours(1);
    let taken = store.take_run(key, "node".into(), hour, false).await.unwrap().unwrap();
    store.show_run(key, taken.fence, "{\"state\":\"idle\"}".into()).await.unwrap();
    let said = Some("key".to_owned());
    store.add_message(key, said, "{\"text\":\"hello\"}".into(), None).await.unwrap();
    store.add_message(key, None, "{\"text\":\"again\"}".into(), None).await.unwrap();
    let done = (Some(3), Some(4));
    store.set_message(key, 1, MessageState::Done, done, None).await.unwrap();
    store.tag(&book.session.id, vec!["red".into(), "green".into()], Vec::new()).await.unwrap();
    let audit = NewAudit {
        token: "t".into(),
        action: "delete",
        session: Some("session".into()),
        detail: Some("why".into()),
    };
    store.audit(audit).await.unwrap();
    book
}

/// A store with a value in every column, closed.
pub async fn full() -> (tempfile::TempDir, PathBuf) {
    let (dir, store) = temp_store();
    fill(&store).await;
    store.close().await;
    with_marks(dir).await
}

/// Writes every kind of object.
pub async fn fill(store: &Store) {
    for fixture in &FIXTURES[..3] {
        session(store, fixture).await;
    }
    store.keep_token(token("maker")).await.unwrap();
    store.keep_made_token(token("made"), "maker").await.unwrap();
    // Deleting a session that was read from files leaves a tombstone.
    let gone = session(store, FIXTURES[3]).await;
    store.delete(&gone.session.id).await.unwrap();
    super::wait_for_maintenance(store).await;
}

/// Adds what results from losses, deletions and hidden copies.
async fn with_marks(dir: tempfile::TempDir) -> (tempfile::TempDir, PathBuf) {
    let (place, later) = (dir.path().join("place"), dir.path().join("later"));
    copy(&data(&dir), &place);
    // Later events are lost.
    copy(&data(&dir), &later);
    let store = Store::open(&later, &Options::default()).unwrap();
    let (session, _) = store.create(NewSession::default()).await.unwrap();
    let lost =
        Append { session: session.key, events: vec![super::event(1, "lost")], ..Append::default() };
    super::append(&store, lost).await.unwrap();
    store.close().await;
    std::fs::copy(later.join("narrows.durable"), place.join("narrows.durable")).unwrap();
    let store = Store::open(&place, &Options::default()).unwrap();
    assert_eq!(store.damage().await.unwrap().len(), 1);
    store.close().await;
    let db = Connection::open(place.join("narrows.db")).unwrap();
    // A session pending deletion, and one listed instead of another.
    db.execute_batch("INSERT INTO doomed VALUES (9, 9 * 8191 + 127)").unwrap();
    let copies = "UPDATE session SET copy_of = 2, hidden = 2 * 8191 + 1 WHERE key = 1";
    db.execute_batch(copies).unwrap();
    (dir, place)
}

/// The findings of a check, except earlier losses.
pub async fn says(place: &Path) -> Vec<String> {
    let store = match Store::open_read_only(place) {
        Ok(store) => store,
        Err(error) => return vec![error.to_string()],
    };
    let checked = store.check(Duration::from_mins(1), Duration::ZERO).await.unwrap();
    let said = if checked.complete { None } else { Some("it does not end".to_owned()) };
    let told = checked.damage.iter().map(|(damage, id)| damage.words(id));
    said.into_iter().chain(told).filter(|line| !line.ends_with("is lost")).collect()
}
