//! Durable ingest: events a second that were acknowledged after the disk had them.

use crate::bare::{Bare, Rows};
use crate::http::Http;
use crate::inside;
use crate::{Process, Scratch, percentile, say};
use std::path::Path;
use std::time::{Duration, Instant};

/// A packet as agents send them: a call with its output, 650 bytes or so.
pub(crate) fn packet(writer: usize, n: usize) -> String {
    let output = "line of what a command printed, as they do\\n".repeat(7);
    format!(
        "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"c{writer}-{n}\",\"title\":\"bash\",\"kind\":\"execute\",\
         \"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}},\"rawOutput\":{{\"output\":\"{output}\"}}}}\n"
    )
}

/// How a writer sends its packets.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One request whose body stays open, so many packets a write.
    Stream,
    /// So many packets a request, and the answer is waited for.
    Requests,
}

/// Writers of one kind, and how much each of them sends.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) way: Way,
    pub(crate) writers: usize,
    pub(crate) batch: usize,
    pub(crate) times: usize,
}

#[derive(Default)]
pub(crate) struct Measured {
    pub(crate) events: u64,
    pub(crate) took: Duration,
    pub(crate) acks: Vec<u64>,
    pub(crate) errors: u64,
}

impl Measured {
    /// What another writer did.
    pub(crate) fn add(&mut self, other: Measured) {
        self.events += other.events;
        self.acks.extend(other.acks);
        self.errors += other.errors;
    }

    fn rate(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64()
    }
}

async fn measure(process: &Process, load: Load) -> Measured {
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..load.writers {
        let (address, token) = (process.address, process.token.clone());
        tasks.push(tokio::spawn(async move {
            let mut http = Http::open(address, &token).await;
            let session = http.session().await;
            let path = format!("/api/sessions/{session}/packets?format=acp");
            let (acks, mut errors) = write(&mut http, &path, writer, load).await;
            // Each packet is one event: what is there tells what was lost or doubled.
            let (_, body) = http.send("GET", &format!("/api/sessions/{session}"), b"").await;
            let events =
                body.split_once("\"events\":").and_then(|(_, r)| r.split(',').next()?.parse().ok());
            let events: u64 = events.expect("events");
            errors += ((load.times * load.batch) as u64).abs_diff(events);
            Measured { events, acks, errors, took: Duration::ZERO }
        }));
    }
    let mut all = Measured::default();
    for task in tasks {
        all.add(task.await.expect("writer"));
    }
    all.took = began.elapsed();
    all.acks.sort_unstable();
    all
}

/// Returns how long each answer took, and how many were not good ones.
async fn write(http: &mut Http, path: &str, writer: usize, load: Load) -> (Vec<u64>, u64) {
    let Load { way, batch, times, .. } = load;
    let some =
        |at: usize| (at * batch..(at + 1) * batch).map(|n| packet(writer, n)).collect::<String>();
    if way == Way::Stream {
        let status = http.stream("POST", path, (0..times).map(some)).await;
        return (Vec::new(), u64::from(status != 200));
    }
    let (mut acks, mut errors) = (Vec::new(), 0);
    for at in 0..times {
        let body = some(at);
        let sent = Instant::now();
        let (status, _) = http.send("POST", path, body.as_bytes()).await;
        acks.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
        errors += u64::from(status != 200);
    }
    (acks, errors)
}

/// A server that does nothing but insert these rows, asked in the same way: writers that wait for
/// each answer pay a round trip for each, whatever the server does.
async fn behind_http(from: &Path, load: Load) -> f64 {
    let scratch = Scratch::new("ingest-bare");
    let process = Process::start_with("bare", &scratch.0, &["--from", &from.display().to_string()]);
    let began = Instant::now();
    let mut tasks = Vec::new();
    for writer in 0..load.writers {
        let address = process.address;
        tasks.push(tokio::spawn(async move {
            let mut http = Http::open(address, "none").await;
            write(&mut http, &format!("/insert/{}", load.batch), writer, load).await.1
        }));
    }
    for task in tasks {
        assert_eq!(task.await.expect("writer"), 0);
    }
    let took = began.elapsed();
    process.kill();
    (load.writers * load.times * load.batch) as f64 / took.as_secs_f64()
}

pub(crate) async fn run() {
    say("durable ingest: parsed, cleaned, acknowledged after fsync");
    say(
        "  bare: the same rows inserted with nothing around it, as many a commit as the writers got. Both built in, \
         then both asked for over HTTP",
    );
    say(
        "  writers        batch   built in/s   bare/s   ratio   ack p50/p99/worst ms    over HTTP/s   bare over HTTP/s  ratio  \
         (of bare built in)   ack p50/p99/worst ms   errors+lost+doubled",
    );
    let load = |way, writers, batch, times| Load { way, writers, batch, times };
    let requests = |writers, batch, times| load(Way::Requests, writers, batch, times);
    for load in [
        load(Way::Stream, 1, 1, 30_000),
        load(Way::Stream, 1, 100, 300),
        requests(8, 100, 100),
        requests(8, 1000, 12),
        requests(64, 1, 400),
        requests(64, 10, 80),
        requests(1, 100, 300),
        requests(1, 1, 4000),
    ] {
        one(load).await;
    }
}

async fn one(load: Load) {
    let scratch = Scratch::new("ingest-inside");
    let (inside, commits_inside) = inside::measure(&scratch.0, load).await;
    let bare_inside = bare(&scratch.0, load, &inside, commits_inside);
    let scratch = Scratch::new("ingest");
    let process = Process::start("narrows", Some(&scratch.0));
    let before = commits(&process).await;
    let asked = measure(&process, load).await;
    let commits = commits(&process).await - before;
    process.stop();
    let bare_built_in = bare(&scratch.0, load, &asked, commits);
    let bare_asked = match load.way {
        Way::Stream => None,
        Way::Requests => Some(behind_http(&scratch.0, load).await),
    };
    let of_bare = bare_asked.map_or_else(
        || format!("{:>16}  {:>5}", "", ""),
        |bare| format!("{bare:>16.0}  {:>5.2}", asked.rate() / bare),
    );
    let way = if load.way == Way::Stream { "stream" } else { "wait" };
    say(&format!(
        "  {:>7} {way:<6} {:>5}  {:>11.0}  {bare_inside:>7.0}  {:>6.2}   {}   {:>11.0}   {of_bare}   {:>17.2}   {}   {}",
        load.writers,
        load.batch,
        inside.rate(),
        inside.rate() / bare_inside,
        acks(&inside),
        asked.rate(),
        asked.rate() / bare_built_in,
        acks(&asked),
        inside.errors + asked.errors,
    ));
}

/// Bare inserts a second of the rows that were written, as many a commit.
fn bare(at: &Path, load: Load, measured: &Measured, commits: u64) -> f64 {
    let rows = (measured.events as f64 / commits.max(1) as f64).max(1.0);
    let Rows { events, items } = Rows::read(at, load.batch, 40_000);
    #[expect(clippy::cast_sign_loss, reason = "a number of rows")]
    Bare::new(at).all(&events, &items, rows as usize)
}

fn acks(measured: &Measured) -> String {
    let ms = |part| percentile(&measured.acks, part) as f64 / 1000.0;
    if measured.acks.is_empty() {
        return "      at its end      ".to_owned();
    }
    format!("{:>5.1} /{:>6.1} /{:>6.1}", ms(0.5), ms(0.99), ms(1.0))
}

async fn commits(process: &Process) -> u64 {
    let mut http = Http::open(process.address, &process.token).await;
    let (_, text) = http.send("GET", "/metrics", b"").await;
    let line = text.lines().find_map(|l| l.strip_prefix("narrows_store_commits "));
    line.and_then(|n| n.trim().parse().ok()).unwrap_or(0)
}
