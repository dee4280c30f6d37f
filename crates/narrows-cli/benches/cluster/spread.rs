//! Three nodes beside one, on the same machine: what is gained, and what it costs that they share.

use crate::follow::{Frame, follow};
use crate::http::Http;
use crate::nodes::{Bus, Cluster, checkpoint};
use crate::write::{Load, Way, check, packets_of, write};
use crate::{Faults, ms, say};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const LOAD: Load =
    Load { way: Way::Requests, writers: 48, batch: 10, time: Duration::from_secs(4) };
const FOLLOWERS: u64 = 300;
const EVENTS: u64 = 10_000;
/// Packets of a request to the session that they follow.
const BATCH: u64 = 500;
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) async fn run() -> Faults {
    let mut faults = Faults::default();
    say("three nodes beside one, all on this machine");
    let mut before = None;
    for nodes in [1, 3] {
        let cluster = Cluster::start("bench_spread", nodes, Bus::Nats).await;
        checkpoint().await;
        let written = write(&cluster.places, LOAD).await;
        let wrong = written.check(&cluster.places[nodes - 1]).await;
        faults += wrong;
        say(&format!(
            "  48 writers x 10 packets to {nodes} node(s): {:>8.0} events/s, ratio {:.2}, answer p50 / p99 {:.1} / {:.1} ms; {wrong}",
            written.rate,
            written.rate / *before.get_or_insert(written.rate),
            ms(&written.answers, 0.5),
            ms(&written.answers, 0.99),
        ));
    }
    let mut before = None;
    for nodes in [1, 3] {
        let (rate, writing, wrong) = fan_out(nodes).await;
        faults += wrong;
        say(&format!(
            "  300 followers of one session at {nodes} node(s): {rate:>8.0} messages/s, ratio {:.2}, written in {writing:.0} % of the time; {wrong}",
            rate / *before.get_or_insert(rate),
        ));
    }
    faults
}

/// A piece of what a model says, one event each: they are soon written, so that delivering is what
/// takes the time.
fn words(n: u64) -> String {
    format!(
        "{{\"sessionUpdate\":\"agent_message_chunk\",\"content\":{{\"type\":\"text\",\"text\":\"call-{n}. \
         and some words as a model would say them here.\\n\"}}}}\n"
    )
}

/// One hot session, written at the first node; returns the messages a second that all got together,
/// and the part of the time in which it was still written.
async fn fan_out(nodes: usize) -> (f64, f64, Faults) {
    let cluster = Cluster::start("bench_spread", nodes, Bus::Nats).await;
    let mut http = Http::open(&cluster.places[0]).await.expect("connect");
    let session = http.session().await.expect("a session");
    let ready = Arc::new(AtomicU64::new(0));
    let mut tasks = Vec::new();
    for place in cluster.places.iter().cycle().take(FOLLOWERS as usize) {
        let (place, session, ready) = (place.clone(), session.clone(), Arc::clone(&ready));
        tasks.push(tokio::spawn(async move {
            let (mut next, mut faults) = (1, Faults::default());
            let done = follow(&place, &session, |frame| {
                match frame {
                    Frame::Ready => drop(ready.fetch_add(1, Ordering::Relaxed)),
                    Frame::Event(n, _) if n >= next => {
                        faults.lost += n - next;
                        next = n + 1;
                    }
                    Frame::Event(..) => faults.doubled += 1,
                }
                if next > EVENTS { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            let done = tokio::time::timeout(PATIENCE, done).await;
            faults.errors += u64::from(!matches!(done, Ok(Ok(()))));
            faults.lost += EVENTS + 1 - next;
            faults
        }));
    }
    let until = Instant::now() + PATIENCE;
    while ready.load(Ordering::Relaxed) < FOLLOWERS && Instant::now() < until {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let (mut faults, path) = (Faults::default(), packets_of(&session));
    let began = Instant::now();
    for from in (0..EVENTS).step_by(BATCH as usize) {
        let body: String = (from..from + BATCH).map(words).collect();
        let answer = http.send("POST", &path, body.as_bytes()).await;
        faults.errors += u64::from(!answer.is_ok_and(|(status, _)| status == 200));
    }
    let written = began.elapsed();
    for task in tasks {
        faults += task.await.expect("a follower");
    }
    let delivered = (FOLLOWERS * EVENTS).saturating_sub(faults.lost);
    let took = began.elapsed().as_secs_f64();
    faults += check(&cluster.places[nodes - 1], &session, EVENTS).await;
    (delivered as f64 / took, written.as_secs_f64() / took * 100.0, faults)
}
