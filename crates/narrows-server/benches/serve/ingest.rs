//! Durable ingest: events a second that were acknowledged after the disk had them.

use crate::http::Http;
use crate::{Process, Scratch, percentile, say};
use rusqlite::{Connection, params};
use std::path::Path;
use std::time::{Duration, Instant};

/// A packet as agents send them: a call with its output, 650 bytes or so.
fn packet(writer: usize, n: usize) -> String {
    let output = "line of what a command printed, as they do\\n".repeat(7);
    format!(
        "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{writer}-{n}\",\"title\":\"bash\",\"kind\":\"execute\",\
         \"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}},\"rawOutput\":{{\"output\":\"{output}\"}}}}\n"
    )
}

struct Measured {
    events: u64,
    took: Duration,
    acks: Vec<u64>,
    errors: u64,
}

async fn measure(process: &Process, writers: usize, batch: usize, requests: usize) -> Measured {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..writers {
        let (address, token) = (process.address, process.token.clone());
        tasks.push(tokio::spawn(async move {
            let mut http = Http::open(address, &token).await;
            let session = http.session().await;
            let path = format!("/api/sessions/{session}/packets?format=acp");
            let (mut acks, mut errors) = (Vec::new(), 0);
            for request in 0..requests {
                let first = request * batch;
                let body: String = (first..first + batch).map(|n| packet(writer, n)).collect();
                let sent = Instant::now();
                let (status, _) = http.send("POST", &path, body.as_bytes()).await;
                acks.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
                errors += u64::from(status != 200);
            }
            // Each packet is one event: what is there tells what was lost or doubled.
            let (_, body) = http.send("GET", &format!("/api/sessions/{session}"), b"").await;
            let events =
                body.split_once("\"events\":").and_then(|(_, r)| r.split(',').next()?.parse().ok());
            let events: u64 = events.expect("events");
            let should = (requests * batch) as u64;
            (events, acks, errors + should.abs_diff(events))
        }));
    }
    let mut all = Measured { events: 0, took: Duration::ZERO, acks: Vec::new(), errors: 0 };
    for task in tasks {
        let (events, acks, errors) = task.await.expect("writer");
        all.events += events;
        all.acks.extend(acks);
        all.errors += errors;
    }
    all.took = began.elapsed();
    all.acks.sort_unstable();
    all
}

/// The same rows into bare tables without an index, under the same keys, in the order in which
/// writers that take turns send them, so many events a transaction. Returns events a second, with
/// the rows of items and without them.
fn bare(from: &Path, to: &Path, turn: usize, batch: usize, most: usize) -> (f64, f64) {
    type Event = (i64, String, String, Option<String>, Option<String>);
    let source = Connection::open(from.join("narrows.db")).expect("open");
    let taking_turns = "((key & 0xffffffff) - 1) / ?2, key LIMIT ?1";
    let mut query = source
        .prepare(&format!(
            "SELECT key, kind, event, changes, activity FROM event ORDER BY {taking_turns}"
        ))
        .expect("query");
    let events: Vec<Event> = query
        .query_map([most, turn], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?, r.get(4)?)))
        .expect("rows")
        .map(|r| r.expect("row"))
        .collect();
    let mut query = source
        .prepare(&format!("SELECT key, id, kind, body FROM item ORDER BY {taking_turns}"))
        .expect("query");
    let items: Vec<(i64, String, String, String)> = query
        .query_map([most, turn], |r| Ok((r.get(0)?, r.get(1)?, r.get(2)?, r.get(3)?)))
        .expect("rows")
        .map(|r| r.expect("row"))
        .collect();
    let run = |items: &[(i64, String, String, String)]| {
        let path = to.join("bare.db");
        for end in ["", "-wal", "-shm"] {
            let _ = std::fs::remove_file(format!("{}{end}", path.display()));
        }
        let db = Connection::open(path).expect("open");
        db.execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
             CREATE TABLE event (key INTEGER PRIMARY KEY, kind TEXT, event TEXT, changes TEXT, activity TEXT);
             CREATE TABLE item (key INTEGER PRIMARY KEY, session INTEGER, id TEXT, seq INTEGER, kind TEXT,
                                open INTEGER, indexed INTEGER, body TEXT);",
        )
        .expect("tables");
        let mut items = items.iter();
        let began = Instant::now();
        for some in events.chunks(batch.max(1)) {
            db.execute_batch("BEGIN").expect("begin");
            let mut insert =
                db.prepare_cached("INSERT INTO event VALUES (?1, ?2, ?3, ?4, ?5)").expect("insert");
            let mut put = db
                .prepare_cached("INSERT INTO item VALUES (?1, 1, ?2, ?1, ?3, 0, 0, ?4)")
                .expect("insert");
            for (key, kind, event, changes, activity) in some {
                insert.execute(params![key, kind, event, changes, activity]).expect("row");
                if let Some((key, id, kind, body)) = items.next() {
                    put.execute(params![key, id, kind, body]).expect("row");
                }
            }
            db.execute_batch("COMMIT").expect("commit");
        }
        events.len() as f64 / began.elapsed().as_secs_f64()
    };
    (run(&items), run(&[]))
}

pub(crate) async fn run() {
    say("durable ingest, parsed, cleaned, acknowledged after fsync, over HTTP");
    say(
        "  writers  batch   events/s   bare/s   ratio   (events only/s   ratio)   ack p50/p99/worst ms   rows a commit   errors+lost+doubled",
    );
    for (writers, batch, requests) in
        [(1, 1, 400), (1, 100, 300), (8, 100, 100), (8, 1000, 12), (64, 1, 400), (64, 10, 80)]
    {
        let scratch = Scratch::new("ingest");
        let process = Process::start("narrows", Some(&scratch.0));
        let before = commits(&process).await;
        let measured = measure(&process, writers, batch, requests).await;
        let commits = commits(&process).await - before;
        process.stop();
        let rows = (measured.events as f64 / commits.max(1) as f64).max(1.0);
        let rate = measured.events as f64 / measured.took.as_secs_f64();
        #[expect(clippy::cast_sign_loss, reason = "a number of rows")]
        let (bare, events_only) = bare(&scratch.0, &scratch.0, batch, rows as usize, 40_000);
        let ms = |part| percentile(&measured.acks, part) as f64 / 1000.0;
        say(&format!(
            "  {writers:>7}  {batch:>5}  {rate:>9.0}  {bare:>7.0}  {:>6.2}   ({events_only:>13.0}  {:>6.2})   {:>6.1} /{:>6.1} /{:>6.1}   {rows:>13.1}   {}",
            rate / bare,
            rate / events_only,
            ms(0.5),
            ms(0.99),
            ms(1.0),
            measured.errors
        ));
    }
}

async fn commits(process: &Process) -> u64 {
    let mut http = Http::open(process.address, &process.token).await;
    let (_, text) = http.send("GET", "/metrics", b"").await;
    let line = text.lines().find_map(|l| l.strip_prefix("narrows_store_commits "));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}
