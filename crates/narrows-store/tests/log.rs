//! The log: an append is there completely and in order, or not at all.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::{append, event, open, session, temp_store};
use narrows_store::{Append, Error, ItemWrite, NewSession, Store};
use std::collections::BTreeSet;

async fn write(store: &Store, session: i64, after: u64, texts: &[&str]) -> Result<u64, Error> {
    let events = (after + 1..).zip(texts).map(|(seq, text)| event(seq, text)).collect();
    append(store, Append { session, after, events, ..Append::default() }).await
}

#[tokio::test(flavor = "multi_thread")]
async fn log_is_read_in_pages() {
    let (_dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    let other = session(&store, "other", &[]).await;
    let texts: Vec<String> = (1..=10).map(|n| format!("event {n}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    assert_eq!(write(&store, made.key, 0, &texts[..4]).await, Ok(4));
    assert_eq!(write(&store, other.key, 0, &["of another"]).await, Ok(1));
    assert_eq!(write(&store, made.key, 4, &texts[4..]).await, Ok(10));

    let (mut seen, mut at) = (Vec::new(), 0);
    loop {
        let page = store.events_after(made.key, at, 3, usize::MAX).await.unwrap();
        assert_eq!((page.last, &page.epoch), (10, &made.epoch));
        let Some(last) = page.rows.last() else { break };
        assert!(page.rows.len() <= 3);
        at = last.seq;
        seen.extend(page.rows);
    }
    assert_eq!(seen.iter().map(|r| r.seq).collect::<Vec<_>>(), (1..=10).collect::<Vec<_>>());
    for (row, text) in seen.iter().zip(texts) {
        assert_eq!(row.event, event(row.seq, text).event, "served byte for byte");
        assert_eq!(row.kind, "notice");
    }
    assert!(store.events_after(made.key, 99, 5, usize::MAX).await.unwrap().rows.is_empty());
}

#[tokio::test(flavor = "multi_thread")]
async fn events_of_block_are_read_individually() {
    let (_dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    let next = session(&store, "next", &[]).await;
    let mut all = Vec::new();
    // Small ones by the dozen, single ones, large ones, and turn ends in between.
    for (some, size, kind) in [
        (30, 60, "text_chunk"),
        (1, 60, "user_message"),
        (40, 90, "text_chunk"),
        (1, 40, "prompt_response"),
        (3, 20_000, "tool_call_progress"),
        (2, 20, "notice"),
        (700, 200, "thinking_chunk"),
    ] {
        let after = all.len() as u64;
        let rows: Vec<_> = (after + 1..=after + some)
            .map(|seq| {
                let mut row = event(seq, &common::noise(size, seq));
                row.kind = kind.into();
                row.changes = seq.is_multiple_of(2).then(|| "[]".into());
                row.activity = seq.is_multiple_of(5).then(|| "{}".into());
                row
            })
            .collect();
        all.extend(rows.iter().cloned());
        let grown = Append { session: made.key, after, events: rows, ..Append::default() };
        assert_eq!(append(&store, grown).await, Ok(after + some));
    }
    write(&store, next.key, 0, &["of another session"]).await.unwrap();
    let printed = |rows: &[narrows_store::EventRow]| format!("{rows:?}");
    for (after, rows) in (0..all.len()).map(|n| (n, n % 41 + 1)) {
        let page = store.events_after(made.key, after as u64, rows, usize::MAX).await.unwrap();
        let end = all.len().min(after + rows);
        assert_eq!(printed(&page.rows), printed(&all[after..end]), "{rows} after {after}");
    }
    let end = store.events_after(made.key, all.len() as u64, 9, usize::MAX).await.unwrap();
    assert!(end.rows.is_empty() && end.last == all.len() as u64);
    // From the last prompt on, in an event block or not.
    let turn = store.last_turn(made.key, 4096).await.unwrap();
    let seqs = |rows: &[narrows_store::EventRow]| rows.iter().map(|r| r.seq).collect::<Vec<_>>();
    assert_eq!(seqs(&turn), (31..=all.len() as u64).collect::<Vec<_>>());
    let few = store.last_turn(made.key, 7).await.unwrap();
    assert_eq!(seqs(&few), seqs(&all[all.len() - 7..]));
    let rows = common::raw_sql(&store, "SELECT count(*) FROM event WHERE kind = 'bundle'");
    assert!(rows[0].parse::<u64>().unwrap() >= 3, "{rows:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn page_byte_limit_keeps_at_least_one_row() {
    let (_dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    let long = "x".repeat(1000);
    write(&store, made.key, 0, &[long.as_str(); 8]).await.unwrap();
    let rows = async |bytes| store.events_after(made.key, 0, 100, bytes).await.unwrap().rows.len();
    assert_eq!(rows(0).await, 1);
    assert_eq!(rows(1).await, 1);
    // Approximately: the row that exceeds the limit is the last one.
    assert_eq!(rows(2500).await, 3);
    assert_eq!(rows(usize::MAX).await, 8);
}

#[tokio::test(flavor = "multi_thread")]
async fn append_at_wrong_position_conflicts_without_changes() {
    let (_dir, store) = temp_store();
    let mut book = common::TestSession::new(&store, "log").await;
    book.say("a", "first");
    book.keep(&store).await;
    let before = store.session_row(&book.session.id).await.unwrap();
    let mut wrong = Append { session: book.key(), ..Append::default() };
    for after in [0, 2, 7] {
        wrong.after = after;
        wrong.events = vec![event(after + 1, "no")];
        wrong.items = vec![ItemWrite::Remove { id: "a".to_owned() }];
        let told = append(&store, std::mem::take(&mut wrong)).await;
        wrong.session = book.key();
        assert_eq!(told, Err(Error::Conflict { last: 1 }), "after {after}");
    }
    // No event reports it.
    wrong.items = vec![ItemWrite::Remove { id: "a".to_owned() }];
    let told = append(&store, std::mem::take(&mut wrong)).await;
    wrong.session = book.key();
    assert_eq!(told, Err(Error::Conflict { last: 1 }));
    // The right position, but an event with another number.
    wrong.after = 1;
    wrong.events = vec![event(2, "no"), event(4, "no")];
    wrong.items = vec![ItemWrite::Remove { id: "a".to_owned() }];
    assert_eq!(append(&store, wrong).await, Err(Error::Conflict { last: 1 }));

    let after = store.session_row(&book.session.id).await.unwrap();
    assert_eq!(
        (after.events, after.bytes, after.items, after.updated_at),
        (before.events, before.bytes, before.items, before.updated_at)
    );
    assert_eq!(common::all(&store, book.key()).await, book.printed());
    assert_eq!(store.events_after(book.key(), 0, 10, usize::MAX).await.unwrap().rows.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_session_gives_not_found() {
    let (_dir, store) = temp_store();
    let none = Error::NotFound("session");
    assert_eq!(write(&store, 77, 0, &["x"]).await, Err(none.clone()));
    assert_eq!(store.events_after(77, 0, 1, 1).await.unwrap_err(), none);
    assert_eq!(store.session("nobody").await.unwrap_err(), none);
    assert_eq!(store.session_by_label("nobody").await.unwrap_err(), none);
    assert_eq!(store.session_row("nobody").await.unwrap_err(), none);
    assert_eq!(store.items(77, narrows_store::Window::End, 1).await.unwrap_err(), none);
    assert_eq!(store.kept(77, 1).await.unwrap_err(), none);
    assert_eq!(store.item(77, "x").await.unwrap_err(), none);
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_append_does_not_affect_its_group() {
    let (_dir, store) = temp_store();
    let mut sessions = Vec::new();
    for _ in 0..40 {
        sessions.push(store.create(NewSession::default()).await.unwrap().0);
    }
    // All are queued before the first is awaited, so that they share commits.
    let mut waiting = Vec::new();
    for (at, session) in sessions.iter().enumerate() {
        let wrong = at % 8 == 3;
        let after = if wrong { 5 } else { 0 };
        let events = vec![event(after + 1, "one"), event(after + 2, "two")];
        let append = Append { session: session.key, after, events, ..Append::default() };
        waiting.push((wrong, store.append(append).await.unwrap()));
    }
    let gone = Append { session: 9999, events: vec![event(1, "x")], ..Append::default() };
    waiting.push((true, store.append(gone).await.unwrap()));
    for (wrong, answer) in waiting {
        assert_eq!(answer.await.unwrap().is_err(), wrong);
    }
    for (at, session) in sessions.iter().enumerate() {
        let page = store.events_after(session.key, 0, 9, usize::MAX).await.unwrap();
        let expected = if at % 8 == 3 { 0 } else { 2 };
        assert_eq!((page.rows.len(), page.last), (expected, expected as u64));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_at_same_position_accept_one() {
    let (_dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    let mut tasks = tokio::task::JoinSet::new();
    for n in 0..32 {
        let store = store.clone();
        tasks.spawn(async move { write(&store, made.key, 0, &[&format!("by {n}")]).await });
    }
    let told = tasks.join_all().await;
    assert_eq!(told.iter().filter(|t| **t == Ok(1)).count(), 1);
    assert_eq!(told.iter().filter(|t| **t == Err(Error::Conflict { last: 1 })).count(), 31);
    assert_eq!(store.events_after(made.key, 0, 99, usize::MAX).await.unwrap().rows.len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_share_durable_commits() {
    let (dir, store) = temp_store();
    let mut keys = Vec::new();
    for _ in 0..64 {
        keys.push(store.create(NewSession::default()).await.unwrap().0.key);
    }
    let [commits, jobs, ..] = store.counts();
    let mut waiting = Vec::new();
    for key in &keys {
        for seq in 1..=4 {
            let events = vec![event(seq, "kept")];
            let append = Append { session: *key, after: seq - 1, events, ..Append::default() };
            waiting.push(store.append(append).await.unwrap());
        }
    }
    for answer in waiting {
        answer.await.unwrap().unwrap();
    }
    let [commits_then, jobs_then, failed, slowest] = store.counts();
    assert_eq!(jobs_then - jobs, 256);
    assert!(commits_then - commits < 256, "{} commits", commits_then - commits);
    assert_eq!(failed, 0);
    assert!(slowest > 0);

    // Acknowledged appends need no orderly shutdown.
    drop(store);
    let store = reopened(&dir).await;
    let mut ends = BTreeSet::new();
    for key in keys {
        ends.insert(store.events_after(key, 0, 99, usize::MAX).await.unwrap().rows.len());
    }
    assert_eq!(ends, BTreeSet::from([4]));
}

#[tokio::test(flavor = "multi_thread")]
async fn close_completes_queued_appends() {
    let (dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    let mut waiting = Vec::new();
    for seq in 1..=50 {
        let events = vec![event(seq, "kept")];
        let append = Append { session: made.key, after: seq - 1, events, ..Append::default() };
        waiting.push(store.append(append).await.unwrap());
    }
    store.close().await;
    for (n, answer) in (1..).zip(waiting) {
        assert_eq!(answer.await.unwrap(), Ok(n));
    }
    let late = Append { session: made.key, after: 50, ..Append::default() };
    assert_eq!(append(&store, late).await, Err(Error::Closed));
    let store = open(&dir);
    assert_eq!(store.session("nobody").await, Err(Error::NotFound("session")));
    assert_eq!(store.session(&made.id).await.unwrap().seq, 50);
}

#[tokio::test(flavor = "multi_thread")]
async fn wal_is_checkpointed_in_background() {
    if common::is_postgres() {
        // This tests the files of SQLite.
        return;
    }
    let (_dir, store) = temp_store();
    let made = session(&store, "log", &[]).await;
    // Everything in the WAL at opening is checkpointed at once, later appends are not.
    common::wait_until("there is nothing to move", async || store.size().wal == 0).await;
    let long = common::noise(2 << 20, 1);
    for seq in 0..16 {
        write(&store, made.key, seq, &[&long]).await.unwrap();
    }
    let size = store.size();
    assert!(size.database + size.wal > 16 << 20, "{size:?}");
    common::wait_until("most of it is there", async || store.size().database > 8 << 20).await;
}

/// A dropped store is released as soon as its writer has stopped.
async fn reopened(dir: &tempfile::TempDir) -> Store {
    let mut opened = None;
    common::wait_until("the store is free", async || {
        opened = common::try_open(dir).ok();
        opened.is_some()
    })
    .await;
    opened.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn session_checksums_hold_after_every_change() {
    let (_dir, store) = common::temp_store();
    let mut book = common::TestSession::new(&store, "s").await;
    let hour = 3_600_000;
    for n in 0..6_i64 {
        book.say(&format!("item-{n}"), "words");
        let next = book.next(true);
        let times = Some((1_700_000_000_000 - n * hour, 1_700_000_000_000 + n * hour));
        let heard = (n > 2).then_some(1_700_000_000_000 + n);
        let waiting = (n > 3).then_some(7 - n.unsigned_abs());
        let more = Append { times, heard, waiting, ended: (n > 4).then_some(true), ..next };
        common::append(&store, more).await.unwrap();
    }
    // It was written while a clock was a day ahead.
    let ahead = "UPDATE session SET updated = updated + 300000000000, updated_era =
         (updated + 300000000000) >> 12, figures = figures + ((updated + 300000000000) % 4294967291
         - updated % 4294967291) * 16381";
    common::raw_sql(&store, ahead);
    store.tag(&book.session.id, vec!["red".into()], Vec::new()).await.unwrap();
    let now = narrows_store::now();
    let is_right = async || {
        let updated = common::raw_sql(&store, "SELECT updated FROM session");
        updated[0].parse::<i64>().unwrap() < now + hour
    };
    common::wait_until("the clock is right", is_right).await;
    book.say("last", "words");
    book.keep(&store).await;
    common::wait_for_maintenance(&store).await;
    let all = std::time::Duration::from_mins(1);
    let checked = store.check(all, std::time::Duration::ZERO).await.unwrap();
    assert!(checked.complete && checked.damage.is_empty(), "{:?}", checked.damage);
    let sums = "SELECT count(*) FROM session WHERE figures IS NULL";
    assert_eq!(common::raw_sql(&store, sums), ["0"]);
}
