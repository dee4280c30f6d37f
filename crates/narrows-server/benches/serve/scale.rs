//! Idle clients, resuming them all, and a large session.

use crate::clients::{Seen, Wire, follow};
use crate::fanout::{head, subscribe};
use crate::http::{Http, field};
use crate::{Process, Scratch, say};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const CLIENTS: u64 = 10_000;

pub(crate) async fn run() {
    idle(Wire::Sse).await;
    idle(Wire::Ws).await;
    resume().await;
    large().await;
}

/// Clients that wait; returns them when all are ready.
async fn wait_for(
    process: &Process,
    session: &str,
    wire: Wire,
    after: Option<&str>,
    last: u64,
    start: u64,
) -> (Arc<Seen>, Vec<tokio::task::JoinHandle<u64>>, Duration) {
    let seen = Arc::new(Seen::default());
    let began = Instant::now();
    let mut tasks = Vec::new();
    for n in 0..CLIENTS {
        let mut ask = match wire {
            Wire::Sse => {
                let after = after.map(|a| format!("&after={a}")).unwrap_or_default();
                let path = format!("/api/sessions/{session}/events?view=events{after}");
                head(process.address, &process.token, &path, wire)
            }
            Wire::Ws => head(process.address, &process.token, "/api/ws", wire),
        };
        if wire == Wire::Ws {
            ask.extend_from_slice(&subscribe(session, after));
        }
        tasks.push(tokio::spawn(follow(
            process.address,
            ask,
            wire,
            last,
            Arc::clone(&seen),
            start,
        )));
        // The queue of connections that wait to be accepted is short.
        if n % 100 == 99 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let until = Instant::now() + Duration::from_mins(1);
    while seen.ready.load(Ordering::Relaxed) < CLIENTS && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let took = began.elapsed();
    (seen, tasks, took)
}

async fn idle(wire: Wire) {
    let scratch = Scratch::new("idle");
    let process = Process::start("narrows", Some(&scratch.0));
    let mut http = Http::open(process.address, &process.token).await;
    let session = http.session().await;
    let before = process.memory();
    let (seen, tasks, _) = wait_for(&process, &session, wire, None, u64::MAX, 1).await;
    let ready = seen.ready.load(Ordering::Relaxed);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let after = process.memory();
    say(&format!(
        "idle {wire:?} clients: {ready} of {CLIENTS} connected, {:.1} KB of server memory each ({} MB in all)",
        (after - before) as f64 / 1024.0 / ready.max(1) as f64,
        after >> 20
    ));
    tasks.iter().for_each(tokio::task::JoinHandle::abort);
    process.kill();
}

async fn resume() {
    let scratch = Scratch::new("resume");
    let process = Process::start("narrows", Some(&scratch.0));
    let mut http = Http::open(process.address, &process.token).await;
    let session = http.session().await;
    let path = format!("/api/sessions/{session}/packets?format=acp");
    let packets: String = (0..200).map(|n| format!(
        "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\"kind\":\"execute\",\"status\":\"completed\"}}\n"
    )).collect();
    let (status, _) = http.send("POST", &path, packets.as_bytes()).await;
    assert_eq!(status, 200);
    let (_, shown) = http.send("GET", &format!("/api/sessions/{session}"), b"").await;
    let head = field(&shown, "cursor").expect("cursor");
    let middle = format!("{}-100", head.split('-').next().expect("epoch"));
    process.kill();
    let process = Process::start("narrows", Some(&scratch.0));
    let (seen, tasks, took) =
        wait_for(&process, &session, Wire::Sse, Some(&middle), 200, 101).await;
    for task in tasks {
        let _ = tokio::time::timeout(Duration::from_secs(30), task).await;
    }
    let (delivered, wrong) =
        (seen.delivered.load(Ordering::Relaxed), seen.wrong.load(Ordering::Relaxed));
    say(&format!(
        "restart: {CLIENTS} clients resumed in {:.2} s, 100 events each; lost {}, doubled or reordered {wrong}",
        took.as_secs_f64(),
        (CLIENTS * 100).saturating_sub(delivered)
    ));
    process.kill();
}

async fn large() {
    let scratch = Scratch::new("large");
    let process = Process::start("narrows", Some(&scratch.0));
    let mut http = Http::open(process.address, &process.token).await;
    let session = http.session().await;
    let path = format!("/api/sessions/{session}/packets?format=acp");
    let began = Instant::now();
    for batch in 0..200 {
        let packets: String = (0..5000)
            .map(|n| {
                let n = batch * 5000 + n;
                format!("{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{n}\",\"title\":\"bash\",\"kind\":\"execute\",\"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}}}}\n")
            })
            .collect();
        let (status, body) = http.send("POST", &path, packets.as_bytes()).await;
        assert_eq!(status, 200, "{body}");
    }
    let filled = began.elapsed();
    process.kill();
    let began = Instant::now();
    let process = Process::start("narrows", Some(&scratch.0));
    let started = began.elapsed();
    let mut http = Http::open(process.address, &process.token).await;
    let before = process.memory();
    let window = format!("/api/sessions/{session}/items?limit=100");
    let began = Instant::now();
    let (status, body) = http.send("GET", &window, b"").await;
    let first = began.elapsed();
    assert_eq!((status, body.matches("\"order\"").count()), (200, 100));
    let began = Instant::now();
    let middle = format!("/api/sessions/{session}/items?limit=100&around=500000");
    assert_eq!(http.send("GET", &middle, b"").await.0, 200);
    let jump = began.elapsed();
    let began = Instant::now();
    let (status, _) =
        http.send("POST", &path, b"{\"sessionUpdate\":\"plan\",\"entries\":[]}\n").await;
    assert_eq!(status, 200);
    let goes_on = began.elapsed();
    say(&format!(
        "a session of 1 000 000 events: filled in {:.1} s; server starts in {:.0} ms, first window {:.1} ms, \
         jump to the middle {:.1} ms, first new packet {:.0} ms, memory {} MB ({} MB more)",
        filled.as_secs_f64(),
        started.as_secs_f64() * 1e3,
        first.as_secs_f64() * 1e3,
        jump.as_secs_f64() * 1e3,
        goes_on.as_secs_f64() * 1e3,
        process.memory() >> 20,
        process.memory().saturating_sub(before) >> 20
    ));
    process.kill();
}
