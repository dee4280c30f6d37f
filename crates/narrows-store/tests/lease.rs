//! Leases of runs, fencing tokens, and commands to other nodes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may fail loudly")]

mod common;

use common::{append, event, is_postgres, postgres, raw_sql, session, temp_store, wait_until};
use narrows_store::{Append, Asked, Error, MessageState, RunRow, Session, Store, now};
use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;
use std::time::Duration;
use tempfile::TempDir;

const LONG: Duration = Duration::from_mins(1);
const SHORT: Duration = Duration::from_millis(1);

async fn run(store: &Store, label: &str) -> Session {
    let session = session(store, label, &[]).await;
    let row = RunRow {
        session: session.key,
        agent: "acp".to_owned(),
        cwd: "/somewhere".to_owned(),
        ..RunRow::default()
    };
    store.keep_run(row, None).await.unwrap();
    session
}

/// Acquires the lease of a run; returns the fencing token if it was free.
async fn take(store: &Store, session: &Session, node: &str, time: Duration) -> Option<u64> {
    let taken = store.take_run(session.key, node.to_owned(), time, false).await.unwrap();
    taken.map(|taken| taken.fence)
}

fn one(session: &Session, after: u64, fence: u64) -> Append {
    Append {
        session: session.key,
        after,
        events: vec![event(after + 1, "something")],
        settled: after + 1,
        fence: Some(fence),
        ..Append::default()
    }
}

/// Another node on the same database, if that is possible.
fn other(dir: &TempDir, store: &Store, name: &str) -> Store {
    if !is_postgres() {
        return store.clone();
    }
    postgres::connect(&dir.path().join(name), &postgres::url(dir.path())).unwrap()
}

/// Waits until a lease has expired.
async fn lost(store: &Store, session: &Session) {
    wait_until("the lease runs out", async || {
        store.lost_runs().await.unwrap().contains(&session.id)
    })
    .await;
}

#[tokio::test]
async fn lease_has_one_holder() {
    let (dir, a) = temp_store();
    let b = other(&dir, &a, "b");
    let s = run(&a, "one").await;
    assert!(!a.holding(s.key).await.unwrap().unwrap().is_held());
    let first = take(&a, &s, "a", LONG).await.unwrap();
    assert_eq!(take(&b, &s, "b", LONG).await, None, "it is held");
    let held = b.holding(s.key).await.unwrap().unwrap();
    assert!(held.is_held() && held.fence == first, "{held:?}");
    assert_eq!(held.node.as_deref(), Some("a"));
    assert_eq!(held.run.cwd, "/somewhere");
    // The holder can acquire it again, for another task of the same node.
    let second = take(&a, &s, "a", LONG).await.unwrap();
    assert!(second > first);
    // A release with an older token has no effect.
    a.give_back(s.key, first, Some("old".to_owned())).await.unwrap();
    assert_eq!(take(&b, &s, "b", LONG).await, None);
    a.give_back(s.key, second, Some("last".to_owned())).await.unwrap();
    let held = b.holding(s.key).await.unwrap().unwrap();
    assert_eq!((held.left, held.shown.as_deref()), (None, Some("last")));
    let taken = b.take_run(s.key, "b".to_owned(), LONG, false).await.unwrap().unwrap();
    assert!(taken.fence > second && !taken.lost, "{taken:?}");
    assert_eq!(taken.shown.as_deref(), Some("last"));
    // A session without a run has no holder.
    let plain = session(&a, "plain", &[]).await;
    assert_eq!(
        a.take_run(plain.key, "a".to_owned(), LONG, false).await,
        Err(Error::NotFound("run"))
    );
    assert_eq!(a.take_run(999, "a".to_owned(), LONG, false).await, Err(Error::NotFound("session")));
}

#[tokio::test]
async fn lease_expires_unless_renewed() {
    let (dir, a) = temp_store();
    let b = other(&dir, &a, "b");
    let (s, kept) = (run(&a, "lost").await, run(&a, "kept").await);
    let fence = take(&a, &s, "a", LONG).await.unwrap();
    let held = take(&a, &kept, "a", Duration::ZERO).await.unwrap();
    let none = b.take_run(s.key, "b".to_owned(), LONG, true).await.unwrap();
    assert_eq!(none, None, "it is not lost yet");
    // One lease is renewed, the other one expires.
    assert_eq!(a.renew_runs(vec![(kept.key, held)], LONG).await, Ok(vec![kept.key]));
    assert_eq!(a.renew_runs(vec![(s.key, fence)], SHORT).await, Ok(vec![s.key]));
    lost(&b, &s).await;
    assert_eq!(b.lost_runs().await.unwrap(), std::slice::from_ref(&s.id));
    assert_eq!(take(&b, &kept, "b", LONG).await, None);
    // The holder may renew late if no other node has acquired the lease.
    assert_eq!(a.renew_runs(vec![(s.key, fence)], LONG).await, Ok(vec![s.key]));
    assert_eq!(b.take_run(s.key, "b".to_owned(), LONG, true).await.unwrap(), None);
    assert_eq!(a.renew_runs(vec![(s.key, fence)], SHORT).await, Ok(vec![s.key]));
    lost(&b, &s).await;
    let taken = b.take_run(s.key, "b".to_owned(), LONG, true).await.unwrap().unwrap();
    assert!(taken.lost && taken.fence > fence);
    let both = vec![(s.key, fence), (kept.key, held)];
    assert_eq!(a.renew_runs(both, LONG).await, Ok(vec![kept.key]), "the other one is gone");
    assert!(!b.lost_runs().await.unwrap().contains(&s.id));
    a.give_back(s.key, fence, None).await.unwrap();
    assert!(b.holding(s.key).await.unwrap().unwrap().is_held(), "it is not the old one's any more");
}

#[tokio::test]
async fn append_with_old_fencing_token_is_rejected() {
    let (dir, a) = temp_store();
    let b = other(&dir, &a, "b");
    let s = run(&a, "fenced").await;
    let old = take(&a, &s, "a", SHORT).await.unwrap();
    assert_eq!(append(&a, one(&s, 0, old)).await, Ok(1));
    let (message, _) = a.add_message(s.key, None, "hello".to_owned(), Some(old)).await.unwrap();
    lost(&b, &s).await;
    // Expired, but not acquired by another node.
    assert_eq!(append(&a, one(&s, 1, old)).await, Ok(2));
    let new = take(&b, &s, "b", LONG).await.unwrap();
    assert_eq!(append(&a, one(&s, 2, old)).await, Err(Error::Fenced));
    // Also where the position is wrong.
    assert_eq!(append(&a, one(&s, 0, old)).await, Err(Error::Fenced));
    let running = MessageState::Running;
    let set = a.set_message(s.key, message.number, running, (Some(2), None), Some(old)).await;
    assert_eq!(set, Err(Error::Fenced));
    let mut row = a.run(s.key).await.unwrap().unwrap();
    row.runs = 7;
    assert_eq!(a.keep_run(row, Some(old)).await, Err(Error::Fenced));
    assert_eq!(a.show_run(s.key, old, "old".to_owned()).await, Err(Error::Fenced));
    let added = a.add_message(s.key, None, "more".to_owned(), Some(old)).await;
    assert_eq!(added, Err(Error::Fenced));
    // Nothing of it was written, and the new holder continues.
    assert_eq!(b.session(&s.id).await.unwrap().seq, 2);
    let rows = b.open_messages(s.key).await.unwrap();
    assert_eq!((rows.len(), rows[0].state), (1, MessageState::Queued));
    assert_eq!(b.unfinished().await.unwrap(), std::slice::from_ref(&s.id));
    assert_eq!(b.run(s.key).await.unwrap().unwrap().runs, 0);
    assert_eq!(append(&b, one(&s, 2, new)).await, Ok(3));
    let done = (Some(2), Some(3));
    b.set_message(s.key, message.number, MessageState::Done, done, Some(new)).await.unwrap();
    assert!(b.open_messages(s.key).await.unwrap().is_empty());
    // Writers without a run need no token.
    let plain = Append { fence: None, ..one(&s, 3, 0) };
    assert_eq!(append(&a, plain).await, Ok(4));
}

/// Appends and acquires concurrently, many times: an append either comes first or is rejected.
#[tokio::test(flavor = "multi_thread")]
async fn append_concurrent_with_takeover_precedes_or_fails() {
    let (dir, a) = temp_store();
    let b = other(&dir, &a, "b");
    let mut refused = 0;
    for round in 0..30 {
        let s = run(&a, &format!("race-{round}")).await;
        let old = take(&a, &s, "a", Duration::ZERO).await.unwrap();
        lost(&b, &s).await;
        let appends = tokio::spawn({
            let (a, s) = (a.clone(), s.clone());
            async move {
                let mut last = 0;
                loop {
                    match append(&a, one(&s, last, old)).await {
                        Ok(seq) => last = seq,
                        Err(Error::Fenced) => return last,
                        Err(error) => panic!("{error}"),
                    }
                    if last > 500 {
                        return last;
                    }
                }
            }
        });
        tokio::time::sleep(Duration::from_millis(round % 7)).await;
        let new = take(&b, &s, "b", LONG).await.unwrap();
        // From now on only the new holder writes the log.
        let at = b.session(&s.id).await.unwrap().seq;
        assert_eq!(append(&b, one(&s, at, new)).await, Ok(at + 1), "round {round}");
        let last = appends.await.unwrap();
        assert_eq!(last, at, "what was confirmed is there, and nothing else");
        refused += 1;
    }
    assert_eq!(refused, 30);
}

/// The same where the append certainly waits for the row.
#[tokio::test(flavor = "multi_thread")]
async fn append_waiting_for_row_sees_new_fencing_token() {
    if !is_postgres() {
        return;
    }
    let (dir, a) = temp_store();
    let s = run(&a, "waits").await;
    let old = take(&a, &s, "a", LONG).await.unwrap();
    // Acquires the lease and holds the row until the append waits for it.
    let mut psql = postgres::client("psql");
    psql.args(["-v", "ON_ERROR_STOP=1", "-qAt", "-d", &postgres::name(dir.path())]);
    let mut taker = psql.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (mut input, output) = (taker.stdin.take().unwrap(), taker.stdout.take().unwrap());
    writeln!(
        input,
        "BEGIN; SELECT key FROM session WHERE key = {0} FOR UPDATE;
         UPDATE run SET fence = fence + 1, node = 'b' WHERE session = {0};\n\\echo held",
        s.key
    )
    .unwrap();
    assert!(BufReader::new(output).lines().map_while(Result::ok).any(|line| line == "held"));
    let appends = tokio::spawn({
        let (a, s) = (a.clone(), s.clone());
        async move { append(&a, one(&s, 0, old)).await }
    });
    let waiting = "SELECT count(*) FROM pg_stat_activity
                   WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait_until("the append waits", async || postgres::ask(dir.path(), waiting).trim() != "0").await;
    writeln!(input, "COMMIT;").unwrap();
    drop(input);
    assert_eq!(appends.await.unwrap(), Err(Error::Fenced));
    assert!(taker.wait().unwrap().success());
    assert_eq!(a.session(&s.id).await.unwrap().seq, 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_acquisitions_grant_one_lease() {
    let (dir, a) = temp_store();
    let nodes: Vec<Store> = (0..3).map(|n| other(&dir, &a, &format!("n{n}"))).collect();
    for round in 0..5 {
        let s = run(&a, &format!("many-{round}")).await;
        let before = take(&a, &s, "lost", Duration::ZERO).await.unwrap();
        lost(&a, &s).await;
        let takers = (0..8).map(|n| {
            let (store, s) = (nodes[n % 3].clone(), s.clone());
            tokio::spawn(async move {
                store.take_run(s.key, format!("t{n}"), LONG, n % 2 == 0).await.unwrap()
            })
        });
        let takers: Vec<_> = takers.collect();
        let mut won = Vec::new();
        for taker in takers {
            won.extend(taker.await.unwrap());
        }
        assert_eq!(won.len(), 1, "{won:?}");
        assert!(won[0].lost && won[0].fence == before + 1, "{won:?}");
    }
}

#[tokio::test]
async fn command_is_executed_once() {
    let (dir, a) = temp_store();
    let b = other(&dir, &a, "b");
    let (s, age) = (run(&a, "asked").await, LONG);
    let fence = take(&a, &s, "a", LONG).await.unwrap();
    let one = b.ask(s.key, "one".to_owned()).await.unwrap();
    // They are claimed in the order of their creation.
    let asked = now();
    wait_until("the clock goes on", async || now() > asked).await;
    let two = b.ask(s.key, "two".to_owned()).await.unwrap();
    assert_eq!(b.asked(one.clone()).await, Ok(Asked::Open));
    assert_eq!(a.asked_sessions().await.unwrap(), [s.key]);
    let open = a.commands(s.key, age).await.unwrap();
    let bodies: Vec<&str> = open.iter().map(|(_, body)| body.as_str()).collect();
    assert_eq!(bodies, ["one", "two"], "in their order");
    assert_eq!(a.take_command(one.clone(), s.key, fence, age).await, Ok(true));
    assert_eq!(a.take_command(one.clone(), s.key, fence, age).await, Ok(false));
    assert_eq!(b.asked(one.clone()).await, Ok(Asked::Taken));
    // Its body is erased; it cannot be cancelled any more.
    assert_eq!(raw_sql(&a, "SELECT body FROM command WHERE answer = ''"), [""]);
    assert_eq!(b.withdraw(one.clone()).await, Ok(Asked::Taken));
    a.answer_command(one.clone(), "done".to_owned()).await.unwrap();
    a.answer_command(one.clone(), "twice".to_owned()).await.unwrap();
    assert_eq!(b.asked(one.clone()).await, Ok(Asked::Answered("done".to_owned())));
    assert_eq!(b.withdraw(one.clone()).await, Ok(Asked::Answered("done".to_owned())));
    assert_eq!(b.asked(one).await, Ok(Asked::Gone));
    // A cancelled command is not executed.
    assert_eq!(b.withdraw(two.clone()).await, Ok(Asked::Open));
    assert_eq!(a.take_command(two, s.key, fence, age).await, Ok(false));
    // Nor one that is too old, nor one claimed with an older token.
    let three = b.ask(s.key, "three".to_owned()).await.unwrap();
    let old = Duration::from_millis(1);
    wait_until("it is too old", async || a.commands(s.key, old).await.unwrap().is_empty()).await;
    assert_eq!(a.take_command(three.clone(), s.key, fence, old).await, Ok(false));
    let stale = a.take_command(three.clone(), s.key, fence - 1, age).await;
    assert_eq!(stale, Err(Error::Fenced));
    let four = b.ask(s.key, "four".to_owned()).await.unwrap();
    assert_eq!(a.take_command(four.clone(), s.key, fence, age).await, Ok(true));
    // The new holder completes both.
    let new = take(&a, &s, "a", LONG).await.unwrap();
    let words = || ("nobody".to_owned(), "lost".to_owned());
    let (open, taken) = words();
    assert_eq!(b.answer_commands(s.key, fence, open, taken).await, Err(Error::Fenced));
    let (open, taken) = words();
    b.answer_commands(s.key, new, open, taken).await.unwrap();
    assert_eq!(b.asked(three).await, Ok(Asked::Answered("nobody".to_owned())));
    assert_eq!(b.asked(four.clone()).await, Ok(Asked::Answered("lost".to_owned())));
    a.answer_command(four.clone(), "late".to_owned()).await.unwrap();
    assert_eq!(b.asked(four).await, Ok(Asked::Answered("lost".to_owned())));
    assert_eq!(b.forget_commands(LONG).await, Ok(0));
    let mut forgotten = 0;
    wait_until("both are forgotten", async || {
        forgotten += b.forget_commands(Duration::from_millis(1)).await.unwrap();
        forgotten == 2
    })
    .await;
    // A lease outlives the process of its holder.
    b.close().await;
    a.close().await;
    let again = common::open(&dir);
    assert!(again.holding(s.key).await.unwrap().unwrap().is_held());
}
