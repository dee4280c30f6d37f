//! Whoever writes sessions and waits for each answer, and what is there of it in the end.

use crate::Faults;
use crate::follow::{Frame, follow};
use crate::http::Http;
use crate::nodes::Place;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::{Error, Result};
use tokio::sync::Barrier;

/// A packet as agents send them: a call with its output, 550 bytes or so. Each gives one event.
pub(crate) fn packet(n: u64) -> String {
    let output = "line of what a command printed, as they do\\n".repeat(7);
    format!(
        "{{\"sessionUpdate\":\"tool_call\",\"toolCallId\":\"call-{n}.\",\"title\":\"bash\",\"kind\":\"execute\",\
         \"status\":\"completed\",\"rawInput\":{{\"command\":\"echo {n}\"}},\"rawOutput\":{{\"output\":\"{output}\"}}}}\n"
    )
}

pub(crate) fn packets_of(session: &str) -> String {
    format!("/api/sessions/{session}/packets?format=acp")
}

/// How a writer sends its packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// One request whose body stays open, so many packets a write.
    Stream,
    /// So many packets a request, and the answer is waited for.
    Requests,
}

/// Sessions that are written at the same time, and how many packets a request has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) way: Way,
    pub(crate) writers: usize,
    pub(crate) batch: u64,
    pub(crate) time: Duration,
}

/// What writers did.
pub(crate) struct Written {
    /// Events a second that were acknowledged.
    pub(crate) rate: f64,
    pub(crate) events: u64,
    /// How long each answer took, in microseconds, the shortest first.
    pub(crate) answers: Vec<u64>,
    errors: u64,
    /// Each session, with the packets that were acknowledged.
    sessions: Vec<(String, u64)>,
}

/// One writer: its session, the packets that were acknowledged, how long that took each time.
struct One {
    session: String,
    acknowledged: u64,
    answers: Vec<u64>,
    errors: u64,
    ended: Instant,
}

/// Writers write until the time is over, each its own session, one node after the other.
pub(crate) async fn write(places: &[Place], load: Load) -> Written {
    let ready = Arc::new(Barrier::new(load.writers + 1));
    let tasks: Vec<_> = places
        .iter()
        .cycle()
        .take(load.writers)
        .map(|place| tokio::spawn(one(place.clone(), load, Arc::clone(&ready))))
        .collect();
    ready.wait().await;
    let began = Instant::now();
    let mut all =
        Written { rate: 0.0, events: 0, answers: Vec::new(), errors: 0, sessions: Vec::new() };
    let mut ended = began;
    for task in tasks {
        let one = task.await.expect("a writer");
        // The first packet was sent before the clock ran.
        all.events += one.acknowledged.saturating_sub(1);
        all.errors += one.errors;
        all.answers.extend(one.answers);
        all.sessions.push((one.session, one.acknowledged));
        ended = ended.max(one.ended);
    }
    all.rate = all.events as f64 / (ended - began).as_secs_f64();
    all.answers.sort_unstable();
    all
}

async fn one(place: Place, load: Load, ready: Arc<Barrier>) -> One {
    let (session, acknowledged, answers) = (String::new(), 0, Vec::new());
    let mut one = One { session, acknowledged, answers, errors: 0, ended: Instant::now() };
    // Connections and statements are made before: that is not done for every packet.
    let opened = begin(&place).await;
    ready.wait().await;
    let began = Instant::now();
    match opened {
        Ok((mut http, session)) => {
            let path = packets_of(&session);
            (one.session, one.acknowledged) = (session, 1);
            if load.way == Way::Stream {
                let mut sent = 0;
                let pieces = std::iter::from_fn(|| {
                    let from = 1 + sent;
                    sent += load.batch;
                    let body = || (from..from + load.batch).map(packet).collect();
                    (began.elapsed() < load.time).then(body)
                });
                match http.stream("POST", &path, pieces).await {
                    Ok((200, _)) => one.acknowledged = 1 + sent - load.batch,
                    _ => one.errors += 1,
                }
            }
            while load.way == Way::Requests && began.elapsed() < load.time {
                let range = one.acknowledged..one.acknowledged + load.batch;
                let body: String = range.map(packet).collect();
                let sent = Instant::now();
                let answer = http.send("POST", &path, body.as_bytes()).await;
                one.answers.push(u64::try_from(sent.elapsed().as_micros()).unwrap_or(u64::MAX));
                if !answer.is_ok_and(|(status, _)| status == 200) {
                    // What is there of it is not known: the session ends here.
                    one.errors += 1;
                    break;
                }
                one.acknowledged += load.batch;
            }
        }
        Err(_) => one.errors += 1,
    }
    one.ended = Instant::now();
    one
}

async fn begin(place: &Place) -> Result<(Http, String)> {
    let mut http = Http::open(place).await?;
    let session = http.session().await?;
    let (status, body) = http.send("POST", &packets_of(&session), packet(0).as_bytes()).await?;
    if status == 200 { Ok((http, session)) } else { Err(Error::other(body)) }
}

impl Written {
    /// Reads everything back: the event of each acknowledged packet is there once, in order.
    pub(crate) async fn check(&self, place: &Place) -> Faults {
        let mut faults = Faults { errors: self.errors, ..Faults::default() };
        for (session, acknowledged) in &self.sessions {
            faults += check(place, session, *acknowledged).await;
        }
        faults
    }
}

/// Reads a session back, of which so many packets were acknowledged.
pub(crate) async fn check(place: &Place, session: &str, acknowledged: u64) -> Faults {
    let (mut next, mut faults) = (0, Faults::default());
    let read = follow(place, session, |frame| {
        let Frame::Event(_, json) = frame else { return ControlFlow::Break(()) };
        match call(json) {
            Some(n) if n >= next => {
                faults.lost += n - next;
                next = n + 1;
            }
            _ => faults.doubled += 1,
        }
        ControlFlow::Continue(())
    });
    if !matches!(tokio::time::timeout(Duration::from_secs(20), read).await, Ok(Ok(()))) {
        faults.errors += 1;
    }
    faults.lost += acknowledged.saturating_sub(next);
    faults
}

/// Which packet an event was made of.
fn call(json: &[u8]) -> Option<u64> {
    let json = std::str::from_utf8(json).ok()?;
    json.split_once("call-")?.1.split('.').next()?.parse().ok()
}
