//! Several nodes on one PostgreSQL. Skipped unless `NARROWS_TEST_STORE=postgres`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test may fail loudly"
)]

mod common;

use common::postgres::{ask, connect, env, url};
use common::{
    TestSession, append, event, is_postgres, raw_sql, session, steps, wait_for_maintenance,
};
use narrows_store::{
    Append, Error, EventRow, Hit, NewBlob, NewSession, Options, Query, Store, UsageRow,
};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tempfile::TempDir;

/// Whether the tests run on PostgreSQL; then a server must be available.
fn is_tried() -> bool {
    is_postgres() && !env("NARROWS_TEST_POSTGRES").is_empty()
}

/// The URL of an empty database.
fn database() -> Option<(TempDir, String)> {
    if !is_tried() {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    let url = url(dir.path());
    Some((dir, url))
}

/// Two nodes on one database.
fn nodes() -> Option<(TempDir, [Store; 2])> {
    let (dir, url) = database()?;
    let node = |name| connect(&dir.path().join(name), &url).unwrap();
    let nodes = [node("one"), node("two")];
    Some((dir, nodes))
}

fn events(after: u64, texts: &[&str]) -> Vec<EventRow> {
    (after + 1..).zip(texts).map(|(seq, text)| event(seq, text)).collect()
}

async fn log(store: &Store, session: i64) -> Vec<EventRow> {
    store.events_after(session, 0, usize::MAX, usize::MAX).await.unwrap().rows
}

/// Follows a log until stopped; fails if there is ever a gap. Returns the last event read.
fn follow(store: Store, session: i64, stop: Arc<AtomicBool>) -> tokio::task::JoinHandle<u64> {
    tokio::spawn(async move {
        let mut at = 0;
        loop {
            // Read the flag before the log, so that the last read sees everything.
            let last = stop.load(Ordering::Relaxed);
            match store.events_after(session, at, usize::MAX, usize::MAX).await {
                Ok(page) => {
                    let seqs: Vec<u64> = page.rows.iter().map(|row| row.seq).collect();
                    assert_eq!(seqs, (at + 1..=page.last).collect::<Vec<_>>(), "after {at}");
                    at = page.last;
                }
                Err(error) => assert!(error.is_retryable(), "{error:?}"),
            }
            if last {
                return at;
            }
            tokio::task::yield_now().await;
        }
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_appends_of_two_nodes_accept_one() {
    let Some((_dir, [one, two])) = nodes() else { return };
    let key = session(&one, "log", &[]).await.key;
    let stop = Arc::new(AtomicBool::new(false));
    let followers = [&one, &two].map(|node| follow(node.clone(), key, Arc::clone(&stop)));
    let (mut at, mut expected, mut won) = (0, Vec::new(), [0, 0]);
    for round in 0..200 {
        // Of different lengths: a mixture of both would leave a gap.
        let told = [vec!["of one"], vec!["of two", "its second", "its third"]];
        let next = |texts: &[&str]| {
            let events = events(at, texts);
            Append { session: key, after: at, events, ..Append::default() }
        };
        // Either of them may be slightly earlier.
        let late = |is: bool| async move {
            if is {
                tokio::time::sleep(Duration::from_micros(round % 7 * 100)).await;
            }
        };
        let (a, b) = tokio::join!(
            async {
                late(round % 2 == 1).await;
                append(&one, next(&told[0])).await
            },
            async {
                late(round % 2 == 0).await;
                append(&two, next(&told[1])).await
            }
        );
        let winner = usize::from(a.is_err());
        let last = at + told[winner].len() as u64;
        let (first, second) = if winner == 0 { (a, b) } else { (b, a) };
        assert_eq!((first, second), (Ok(last), Err(Error::Conflict { last })));
        won[winner] += 1;
        expected.extend(&told[winner]);
        at = last;
    }
    assert!(won.iter().all(|n| *n > 0), "the same one always wins: {won:?}");
    stop.store(true, Ordering::Relaxed);
    for follower in followers {
        assert_eq!(follower.await.unwrap(), at);
    }
    for node in [&one, &two] {
        let rows = log(node, key).await;
        assert_eq!(rows.len(), expected.len());
        for (row, expected) in rows.iter().zip(events(0, &expected)) {
            assert_eq!((row.seq, &row.event), (expected.seq, &expected.event));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn shared_blobs_and_usage_of_two_nodes_are_all_stored() {
    const SESSIONS: u64 = 24;
    const ROUNDS: u64 = 8;
    const SHARED: u64 = 6;
    let Some((_dir, nodes)) = nodes() else { return };
    // Each session refers to the same ones in a different order.
    let named = |s: u64, n: u64| [s + n, s * 5 + 2 * n + 1].map(|n| n % SHARED);
    let blob = |n: u64| {
        let bytes = format!("picture {n}").into_bytes();
        // Blobs are named by their content.
        let hash = Sha256::digest(&bytes).iter().map(|b| format!("{b:02x}")).collect();
        NewBlob { hash, mime: "image/png".to_owned(), bytes: bytes.into() }
    };
    let usage = |n: u64| UsageRow { id: format!("answer {n}"), input: n, ..UsageRow::default() };
    let (mut tasks, mut keys) = (tokio::task::JoinSet::new(), Vec::new());
    for s in 0..SESSIONS {
        let key = session(&nodes[0], &format!("s{s}"), &[]).await.key;
        keys.push(key);
        let nodes = nodes.clone();
        tasks.spawn(async move {
            for after in 0..ROUNDS {
                let next = Append {
                    session: key,
                    after,
                    events: events(after, &["with pictures"]),
                    blobs: named(s, after).map(blob).to_vec(),
                    usage: named(s, after).map(usage).to_vec(),
                    ..Append::default()
                };
                // No deadlock.
                let last = append(&nodes[((s + after) % 2) as usize], next).await;
                assert_eq!(last, Ok(after + 1));
            }
        });
    }
    tasks.join_all().await;
    for (s, key) in (0..).zip(keys) {
        let node = &nodes[(s % 2) as usize];
        assert_eq!(log(node, key).await.len() as u64, ROUNDS);
        for n in (0..ROUNDS).flat_map(|n| named(s, n)) {
            let found = node.blob(key, &blob(n).hash).await.unwrap();
            assert_eq!(found.bytes, blob(n).bytes);
        }
    }
    let kept = "SELECT (SELECT count(*) FROM blob), (SELECT count(*) FROM usage)";
    assert_eq!(raw_sql(&nodes[0], kept), [format!("{SHARED}|{SHARED}")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_creation_by_label_gives_one_session() {
    let Some((_dir, [one, two])) = nodes() else { return };
    let make = async |node: &Store, n: u32, tag: &str| {
        let new = NewSession { label: Some(format!("order-{n}")), tags: vec![tag.to_owned()] };
        node.create(new).await.unwrap()
    };
    for n in 0..40 {
        let (a, b) = tokio::join!(make(&one, n, "red"), make(&two, n, "blue"));
        assert_eq!((a.0.key, &a.0.id, &a.0.epoch), (b.0.key, &b.0.id, &b.0.epoch));
        assert!(a.1 != b.1, "one of them has made it");
        assert_eq!(two.session(&a.0.id).await.unwrap().tags, ["blue", "red"]);
    }
    assert_eq!(raw_sql(&one, "SELECT count(*) FROM session"), ["40"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn newer_schema_is_rejected_on_postgres() {
    let Some((dir, url)) = database() else { return };
    connect(&common::data(&dir), &url).unwrap().close().await;
    ask(dir.path(), "UPDATE meta SET value = '99' WHERE key = 'schema'");
    let told = connect(&common::data(&dir), &url).unwrap_err();
    assert_eq!(told, Error::Newer { found: 99, known: narrows_store::SCHEMA });
    assert_eq!(ask(dir.path(), "SELECT value = '99' FROM meta WHERE key = 'schema'"), "t\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn older_schema_is_migrated_on_postgres() {
    let Some((dir, url)) = database() else { return };
    connect(&common::data(&dir), &url).unwrap().close().await;
    let columns = "SELECT table_name, column_name, data_type FROM information_schema.columns
         WHERE table_schema = 'public' ORDER BY 1, 2";
    let expected = ask(dir.path(), columns);
    // The first schema on PostgreSQL, as it was released.
    let first = include_str!("../src/migrations/postgres/005_initial.sql");
    ask(dir.path(), "DROP SCHEMA public CASCADE; CREATE SCHEMA public");
    ask(dir.path(), &format!("{first}; INSERT INTO meta VALUES ('schema', '5')"));
    assert_ne!(ask(dir.path(), columns), expected);
    connect(&common::data(&dir), &url).unwrap().close().await;
    assert_eq!(ask(dir.path(), columns), expected);
    let now = format!("SELECT value = '{}' FROM meta WHERE key = 'schema'", narrows_store::SCHEMA);
    assert_eq!(ask(dir.path(), &now), "t\n");
}

#[test]
fn concurrent_nodes_create_one_schema() {
    for _ in 0..3 {
        let Some((dir, url)) = database() else { return };
        let nodes: Vec<_> = (0..4)
            .map(|n| {
                let (data, url) = (dir.path().join(format!("node-{n}")), url.clone());
                std::thread::spawn(move || Store::connect(&data, &url).unwrap())
            })
            .collect();
        let nodes: Vec<Store> = nodes.into_iter().map(|node| node.join().unwrap()).collect();
        assert!(nodes.iter().all(|node| node.mark_key() == nodes[0].mark_key()));
    }
}

/// A PostgreSQL server of its own, which can be restarted.
struct Server {
    dir: TempDir,
    env: HashMap<String, String>,
}

fn services(what: &str, dir: &TempDir) -> Output {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services");
    Command::new(script).arg(what).arg(dir.path().join("services")).output().unwrap()
}

impl Server {
    fn start() -> Server {
        let dir = tempfile::tempdir().unwrap();
        let up = services("up", &dir);
        assert!(up.status.success(), "{}", String::from_utf8_lossy(&up.stderr));
        let told = String::from_utf8(up.stdout).unwrap();
        let pair = |line: &str| line.split_once('=').map(|(k, v)| (k.to_owned(), v.to_owned()));
        Server { dir, env: told.lines().filter_map(pair).collect() }
    }

    fn url(&self) -> String {
        format!("{}?sslmode=disable", self.env["NARROWS_TEST_POSTGRES"])
    }

    /// Stops without a shutdown, as in a power failure, and restarts.
    fn restart(&self) {
        let of = |name: &str| &self.env[&format!("NARROWS_TEST_PG_{name}")];
        let mut pg_ctl = Command::new(format!("{}/pg_ctl", of("BIN")));
        // PostgreSQL refuses to run as root.
        if std::fs::metadata("/proc/self").unwrap().uid() == 0 {
            pg_ctl = Command::new("runuser");
            pg_ctl.args(["-u", of("USER"), "--", &format!("{}/pg_ctl", of("BIN"))]);
        }
        pg_ctl.args(["-D", of("DATA"), "-l", of("LOG"), "-m", "immediate", "-w", "-s", "restart"]);
        assert!(pg_ctl.current_dir("/").status().unwrap().success(), "it does not start again");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        services("down", &self.dir);
    }
}

/// Appends one event after the other until stopped, and retries failures. Returns the acknowledged
/// events, by number.
async fn insist(
    node: Store,
    session: i64,
    done: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) -> HashMap<u64, String> {
    let (mut kept, mut tries, mut unclear) = (HashMap::new(), 0, false);
    while !stop.load(Ordering::Relaxed) {
        let after = done.load(Ordering::Relaxed);
        tries += 1;
        let text = format!("at try {tries}");
        let next = Append { session, after, events: events(after, &[&text]), ..Append::default() };
        match append(&node, next).await {
            Ok(last) => {
                assert_eq!(last, after + 1);
                kept.insert(last, text);
            }
            // An append whose reply was lost may have been committed.
            Err(Error::Conflict { last }) => assert_eq!((unclear, last), (true, after + 1)),
            Err(error) => {
                assert!(error.is_retryable(), "{error:?}");
                unclear = true;
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            }
        }
        unclear = false;
        done.store(after + 1, Ordering::Relaxed);
    }
    kept
}

#[tokio::test(flavor = "multi_thread")]
async fn acknowledged_appends_survive_server_crashes_once() {
    if !is_tried() {
        return;
    }
    let server = tokio::task::spawn_blocking(Server::start).await.unwrap();
    let node = |name| connect(&server.dir.path().join(name), &server.url()).unwrap();
    let nodes = [node("one"), node("two")];
    let stop = Arc::new(AtomicBool::new(false));
    let mut writers = Vec::new();
    for n in 0..6 {
        let (node, other) = (&nodes[n % 2], &nodes[(n + 1) % 2]);
        let key = session(node, &format!("s{n}"), &[]).await.key;
        let done = Arc::new(AtomicU64::new(0));
        let write = insist(node.clone(), key, Arc::clone(&done), Arc::clone(&stop));
        let read = follow(other.clone(), key, Arc::clone(&stop));
        writers.push((key, done, tokio::spawn(write), read));
    }
    let server = Arc::new(server);
    for restart in [true, true, true, false] {
        let before: Vec<u64> = writers.iter().map(|w| w.1.load(Ordering::Relaxed)).collect();
        common::wait_until("every session goes on by itself", async || {
            let now = writers.iter().map(|w| w.1.load(Ordering::Relaxed));
            now.zip(&before).all(|(now, before)| now > before + 20)
        })
        .await;
        let server = Arc::clone(&server);
        let restarted = tokio::task::spawn_blocking(move || restart.then(|| server.restart()));
        restarted.await.unwrap();
    }
    stop.store(true, Ordering::Relaxed);
    for (key, done, write, read) in writers {
        let (kept, read) = (write.await.unwrap(), read.await.unwrap());
        let rows = log(&nodes[0], key).await;
        let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        // An append in flight when the writer was stopped may have been committed too.
        assert!(rows.len() as u64 >= done.load(Ordering::Relaxed) && read <= rows.len() as u64);
        for row in rows {
            if let Some(text) = kept.get(&row.seq) {
                assert_eq!(row.event, event(row.seq, text).event, "another one was answered");
            }
        }
    }
}

/// Words, code, phrases, other scripts, parts of words, and absent terms.
const LOOKED_FOR: &str = "the|THE FILE|file|le|e|fn main|def |->|()|\"hello|hello world|\
    \"Hello, world\"|日本|日本語|語|こんにちは|é|ÜBER|src/|.txt|echo|ls -la|100%|{\"|\\n|nowhere to be found";

/// Recorded sessions of several agents.
const RECORDED: &str = "acp/claude-acp-c-files acp/codex-acp-a-plain-text acp/gemini-acp-n-partial \
    acp/opencode-1.18-c-files acp/opencode-1.18-k-parallel-tools claude-history/2.1-q-compact \
    claude-stream/2.1-g-subagent claude-stream/2.1-v-ask-user";

/// All hits, page by page, without generated ids.
async fn hits(store: &Store, text: &str, limit: usize, one_each: bool) -> Vec<Hit> {
    let mut query = Query { text: text.to_owned(), limit, one_each, ..Query::default() };
    let mut hits = Vec::new();
    loop {
        let page = store.search(query.clone()).await.unwrap();
        hits.extend(page.hits.into_iter().map(|hit| Hit { session_id: String::new(), ..hit }));
        match page.next {
            Some(next) => query.after = Some(next),
            None => return hits,
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn search_results_equal_on_both_databases() {
    let Some((dir, url)) = database() else { return };
    let stores = [
        Store::open(&dir.path().join("sqlite"), &Options::default()).unwrap(),
        connect(&common::data(&dir), &url).unwrap(),
    ];
    for store in &stores {
        for fixture in RECORDED.split(' ') {
            let mut book = TestSession::new(store, fixture).await;
            steps(fixture).into_iter().for_each(|step| book.step(step));
            book.say("own", "ÜBER uns: fn main() -> { 日本語の全文検索 } \"hello world\" 100%");
            book.rest(store).await;
            // Sessions changed at the same moment have no defined order.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    let mut found = 0;
    for indexed in [false, true] {
        for store in stores.iter().filter(|_| indexed) {
            wait_for_maintenance(store).await;
        }
        for text in LOOKED_FOR.split('|') {
            for (limit, one_each) in [(1000, false), (7, false), (3, true)] {
                let [sqlite, postgres] = &stores;
                let expected = hits(sqlite, text, limit, one_each).await;
                let told = hits(postgres, text, limit, one_each).await;
                assert_eq!(common::print(&told), common::print(&expected), "{text} by {limit}");
                found += usize::from(!told.is_empty());
            }
        }
    }
    assert!(found > 120, "most of it is somewhere: {found}");
}
