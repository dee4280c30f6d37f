//! One hot session and many who follow it.

use crate::clients::{Seen, Wire, follow};
use crate::http::{Http, clock};
use crate::{Process, Scratch, percentile, say};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

struct Figures {
    rate: f64,
    /// The same from the store, where there is one: everybody reads the log from its start.
    again: f64,
    latencies: Vec<u64>,
    lost: u64,
    wrong: u64,
}

/// Packets that give one event each, of 230 bytes or so; they say when they were sent.
fn packets(from: u64, some: u64) -> String {
    let now = clock();
    (from..from + some)
        .map(|n| {
            format!(
                "{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"sent {now} number {n} \
                 and some words as a model would say them here.\\n\"}}}}\n"
            )
        })
        .collect()
}

pub(crate) fn head(address: SocketAddr, token: &str, path: &str, wire: Wire) -> Vec<u8> {
    let upgrade = match wire {
        Wire::Sse => "",
        Wire::Ws => {
            "connection: upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\n\
             sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
        }
    };
    format!(
        "GET {path} HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {token}\r\n{upgrade}\r\n"
    )
    .into_bytes()
}

/// What is measured, and where.
struct Run {
    process: Process,
    path: String,
    publish: String,
    ask: Option<Vec<u8>>,
    wire: Wire,
    clients: u64,
    events: u64,
    pace: Option<Pace>,
}

/// So many events at once, so often.
#[derive(Clone, Copy)]
struct Pace {
    events: u64,
    every: Duration,
}

impl Pace {
    fn a_second(self) -> f64 {
        self.events as f64 / self.every.as_secs_f64()
    }
}

async fn measure(run: &Run) -> Figures {
    let Run { process, path, publish, ask, wire, clients, events, pace } = run;
    let (wire, clients, events, pace) = (*wire, *clients, *events, *pace);
    let seen = Arc::new(Seen::default());
    let mut tasks = Vec::new();
    for _ in 0..clients {
        let mut head = head(process.address, &process.token, path, wire);
        head.extend_from_slice(ask.as_deref().unwrap_or_default());
        tasks.push(tokio::spawn(follow(process.address, head, wire, events, Arc::clone(&seen), 1)));
    }
    let until = Instant::now() + Duration::from_mins(1);
    while seen.ready.load(Ordering::Relaxed) < clients && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let mut http = Http::open(process.address, &process.token).await;
    let began = Instant::now();
    let mut sent = 0;
    let mut ticks = tokio::time::interval(pace.map_or(Duration::from_nanos(1), |p| p.every));
    while sent < events {
        if pace.is_some() {
            ticks.tick().await;
        }
        let some = pace.map_or(500, |p| p.events).min(events - sent);
        let (status, body) = http.send("POST", publish, packets(sent, some).as_bytes()).await;
        assert_eq!(status, 200, "{body}");
        sent += some;
    }
    let patience = began + Duration::from_mins(2);
    for task in tasks {
        let _ = tokio::time::timeout_at(patience.into(), task).await;
    }
    let took = began.elapsed();
    let delivered = seen.delivered.load(Ordering::Relaxed);
    let mut latencies = std::mem::take(&mut *seen.latencies.lock().expect("latencies"));
    latencies.sort_unstable();
    let mut again = 0.0;
    if pace.is_none() && publish != "/publish" {
        let began = Instant::now();
        let replay = Arc::new(Seen::default());
        let tasks: Vec<_> = (0..clients)
            .map(|_| {
                let mut head = head(process.address, &process.token, path, wire);
                head.extend_from_slice(ask.as_deref().unwrap_or_default());
                tokio::spawn(follow(process.address, head, wire, events, Arc::clone(&replay), 1))
            })
            .collect();
        for task in tasks {
            let _ = tokio::time::timeout(Duration::from_mins(2), task).await;
        }
        again = replay.delivered.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64();
        let lost = (clients * events).saturating_sub(replay.delivered.load(Ordering::Relaxed));
        seen.wrong.fetch_add(lost + replay.wrong.load(Ordering::Relaxed), Ordering::Relaxed);
    }
    Figures {
        rate: delivered as f64 / took.as_secs_f64(),
        again,
        latencies,
        lost: (clients * events).saturating_sub(delivered),
        wrong: seen.wrong.load(Ordering::Relaxed),
    }
}

/// A text message as a client must send it: masked, here with zeros.
pub(crate) fn masked(text: &str) -> Vec<u8> {
    let length = u8::try_from(text.len()).ok().filter(|n| *n < 126);
    let mut frame = vec![0x81];
    if let Some(length) = length {
        frame.push(0x80 | length);
    } else {
        frame.push(0x80 | 0x7e);
        let length = u16::try_from(text.len()).expect("short");
        frame.extend_from_slice(&length.to_be_bytes());
    }
    frame.extend_from_slice(&[0; 4]);
    frame.extend_from_slice(text.as_bytes());
    frame
}

/// Asks to follow the events of a session.
pub(crate) fn subscribe(session: &str, after: Option<&str>) -> Vec<u8> {
    let after = after.map(|a| format!(",\"after\":\"{a}\"")).unwrap_or_default();
    masked(&format!(
        "{{\"type\":\"subscribe\",\"view\":\"events\",\"sessionId\":\"{session}\"{after}}}"
    ))
}

pub(crate) async fn run() {
    say(
        "fan-out of one hot session, relative to a minimal server that formats each event once and shares the bytes",
    );
    say(
        "  offered: the same events a second to both. flat out: as fast as one writer gets its answers; narrows gives \
         them when the disk has the events, the minimal server at once, or (kept) when it has them in a table too. \
         from the log: everybody reads what narrows has kept",
    );
    say(
        "  wire  clients   offered/s   msg/s   minimal   ratio   p50/p99 ms (minimal)    flat out msg/s   minimal   ratio   \
         minimal kept   ratio   from the log msg/s   lost+doubled+reordered",
    );
    for wire in [Wire::Sse, Wire::Ws] {
        // As many as 500 000 messages a second, but for one client.
        for (clients, events, at_once) in [(1, 40_000, 200), (100, 20_000, 50), (1000, 4_000, 5)] {
            let pace = Pace { events: at_once, every: Duration::from_millis(10) };
            let paced = one("narrows", wire, clients, at_once * 200, Some(pace)).await;
            let their_paced = one("minimal", wire, clients, at_once * 200, Some(pace)).await;
            let all = one("narrows", wire, clients, events, None).await;
            let their_all = one("minimal", wire, clients, events, None).await;
            let their_kept = one("kept", wire, clients, events, None).await;
            let ms = |f: &Figures, part| percentile(&f.latencies, part) as f64 / 1000.0;
            let latency = format!(
                "{:.1} / {:.1} ({:.1} / {:.1})",
                ms(&paced, 0.5),
                ms(&paced, 0.99),
                ms(&their_paced, 0.5),
                ms(&their_paced, 0.99),
            );
            say(&format!(
                "  {wire:?}   {clients:>7}   {:>9.0}  {:>6.0}   {:>7.0}  {:>6.2}   {latency:<24}   {:>11.0}   {:>7.0}  {:>6.2}   {:>12.0}  {:>6.2}   {:>18.0}   {}",
                pace.a_second(),
                paced.rate,
                their_paced.rate,
                paced.rate / their_paced.rate,
                all.rate,
                their_all.rate,
                all.rate / their_all.rate,
                their_kept.rate,
                all.rate / their_kept.rate,
                all.again,
                [&all, &paced].iter().map(|f| f.lost + f.wrong).sum::<u64>(),
            ));
        }
    }
}

async fn one(role: &str, wire: Wire, clients: u64, events: u64, pace: Option<Pace>) -> Figures {
    let scratch = Scratch::new("fanout");
    let (process, path, publish, ask);
    if role == "narrows" {
        process = Process::start("narrows", Some(&scratch.0));
        let session = Http::open(process.address, &process.token).await.session().await;
        publish = format!("/api/sessions/{session}/packets?format=acp");
        (path, ask) = match wire {
            Wire::Sse => (format!("/api/sessions/{session}/events?view=events"), None),
            Wire::Ws => ("/api/ws".to_owned(), Some(subscribe(&session, None))),
        };
    } else {
        process = match role {
            "kept" => Process::start_with("minimal", &scratch.0, &[]),
            _ => Process::start("minimal", None),
        };
        publish = "/publish".to_owned();
        path = if wire == Wire::Sse { "/events" } else { "/ws" }.to_owned();
        ask = None;
    }
    let run = Run { process, path, publish, ask, wire, clients, events, pace };
    let figures = measure(&run).await;
    run.process.kill();
    figures
}
