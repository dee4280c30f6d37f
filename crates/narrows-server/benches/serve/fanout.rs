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

/// Events of a request or of a piece of it, where they are sent as fast as they are taken.
const AT_ONCE: u64 = 500;
/// What is measured flat out is measured so often; the one in the middle counts.
const ROUNDS: usize = 3;
/// An agent says about so many pieces before it thinks again.
const PIECES: u64 = 200;

/// Packets that give one event each, of 230 bytes or so; they say when they were sent.
fn packets(from: u64, some: u64) -> String {
    let now = clock();
    (from..from + some)
        .map(|n| {
            let thinks = (n / PIECES).is_multiple_of(2);
            let kind = if thinks { "agent_thought_chunk" } else { "agent_message_chunk" };
            format!(
                "{{\"sessionUpdate\":\"{kind}\",\"content\":{{\"type\":\"text\",\"text\":\"sent {now} number {n} \
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
    case: Case,
}

/// Who follows, and how what they follow is sent.
#[derive(Clone, Copy)]
struct Case {
    wire: Wire,
    clients: u64,
    events: u64,
    way: Way,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Some events at a time, as often as is said.
    Paced(Pace),
    /// In one request, as fast as it is taken.
    Streams,
    /// Some events a request; each answer is waited for.
    Waits,
}

impl Way {
    fn pace(self) -> Option<Pace> {
        match self {
            Way::Paced(pace) => Some(pace),
            Way::Streams | Way::Waits => None,
        }
    }
}

/// So many events at once, so often.
#[derive(Clone, Copy, PartialEq)]
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
    let Run { process, path, publish, ask, case } = run;
    let Case { wire, clients, events, way } = case;
    let (wire, clients, events, pace) = (*wire, *clients, *events, way.pace());
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
    if *way == Way::Streams {
        let pieces = (0..events.div_ceil(AT_ONCE)).map(|n| n * AT_ONCE);
        let pieces = pieces.map(|from| packets(from, AT_ONCE.min(events - from)));
        assert_eq!(http.stream("POST", publish, pieces).await, 200);
        sent = events;
    }
    while sent < events {
        if pace.is_some() {
            ticks.tick().await;
        }
        let some = pace.map_or(AT_ONCE, |p| p.events).min(events - sent);
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
    if *way == Way::Streams && publish != "/publish" {
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
        "fan-out of one hot session, relative to a minimal server that formats each event once and shares the bytes; \
         narrows tells events when the disk has them, the minimal server at once, or (kept) when it has them in a table too",
    );
    offered().await;
    flat_out().await;
}

/// As many as 500 000 messages a second, but for one client.
const CASES: [(u64, u64, u64); 3] = [(1, 100_000, 200), (100, 20_000, 50), (1000, 4_000, 5)];

async fn offered() {
    say("  the same events a second offered to both, some every 10 ms; p50 / p99 in ms");
    say(
        "  wire  clients   offered/s    msg/s   minimal   ratio      narrows       minimal          kept   lost+doubled+reordered",
    );
    for wire in [Wire::Sse, Wire::Ws] {
        for (clients, _, at_once) in CASES {
            let pace = Pace { events: at_once, every: Duration::from_millis(10) };
            let case = Case { wire, clients, events: at_once * 200, way: Way::Paced(pace) };
            let narrows = one("narrows", case).await;
            let minimal = one("minimal", case).await;
            let kept = one("kept", case).await;
            let ms = |f: &Figures, part| percentile(&f.latencies, part) as f64 / 1000.0;
            let latency = [&narrows, &minimal, &kept]
                .map(|f| format!("{:.1} / {:.1}", ms(f, 0.5), ms(f, 0.99)));
            let [ours, theirs, theirs_kept] = latency;
            say(&format!(
                "  {wire:?}   {clients:>7}   {:>9.0}  {:>7.0}   {:>7.0}  {:>6.2}   {ours:>10}   {theirs:>11}   {theirs_kept:>11}   {}",
                pace.a_second(),
                narrows.rate,
                minimal.rate,
                narrows.rate / minimal.rate,
                narrows.lost + narrows.wrong,
            ));
        }
    }
}

async fn flat_out() {
    say(
        "  flat out: one writer that streams, as fast as it is taken. waits: one that waits for the answer to each 500 \
         packets. from the log: everybody reads what narrows has kept. The middle of 3 runs",
    );
    say(
        "  wire  clients      msg/s   minimal   ratio      kept   ratio   waits msg/s   minimal   ratio   from the log msg/s   lost+doubled+reordered",
    );
    for wire in [Wire::Sse, Wire::Ws] {
        for (clients, events, _) in CASES {
            let case = |way| Case { wire, clients, events, way };
            let roles = ["narrows", "minimal", "kept"].map(|role| (role, case(Way::Streams)));
            let waits = ["narrows", "minimal"].map(|role| (role, case(Way::Waits)));
            let (mut rates, mut again, mut faults) = ([const { Vec::new() }; 5], Vec::new(), 0);
            for _ in 0..ROUNDS {
                for (at, (role, case)) in roles.iter().chain(&waits).enumerate() {
                    let figures = one(role, *case).await;
                    rates[at].push(figures.rate);
                    if *role == "narrows" {
                        faults += figures.lost + figures.wrong;
                    }
                    if figures.again > 0.0 {
                        again.push(figures.again);
                    }
                }
            }
            let [narrows, minimal, kept, waits, minimal_waits] = rates.map(middle);
            say(&format!(
                "  {wire:?}   {clients:>7}   {narrows:>8.0}   {minimal:>7.0}  {:>6.2}   {kept:>7.0}  {:>6.2}   {waits:>11.0}   {minimal_waits:>7.0}  {:>6.2}   {:>18.0}   {faults}",
                narrows / minimal,
                narrows / kept,
                waits / minimal_waits,
                middle(again),
            ));
        }
    }
}

/// The one in the middle.
fn middle(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}

async fn one(role: &str, case: Case) -> Figures {
    let scratch = Scratch::new("fanout");
    let (process, path, publish, ask);
    if role == "narrows" {
        process = Process::start("narrows", Some(&scratch.0));
        let session = Http::open(process.address, &process.token).await.session().await;
        publish = format!("/api/sessions/{session}/packets?format=acp");
        (path, ask) = match case.wire {
            Wire::Sse => (format!("/api/sessions/{session}/events?view=events"), None),
            Wire::Ws => ("/api/ws".to_owned(), Some(subscribe(&session, None))),
        };
    } else {
        process = match role {
            "kept" => Process::start_with("minimal", &scratch.0, &[]),
            _ => Process::start("minimal", None),
        };
        publish = "/publish".to_owned();
        path = if case.wire == Wire::Sse { "/events" } else { "/ws" }.to_owned();
        ask = None;
    }
    let run = Run { process, path, publish, ask, case };
    let figures = measure(&run).await;
    run.process.kill();
    figures
}
