//! From a writer at one node to a follower at another: how long a packet takes.

use crate::follow::{Frame, follow};
use crate::http::Http;
use crate::nodes::{Bus, Cluster};
use crate::write::{check, packet, packets_of};
use crate::{Faults, ms, say};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

const PACKETS: u64 = 200;
/// Packets come at this pace, whether they were delivered or not: so they meet a node that looks now
/// and then at any moment.
const PACE: Duration = Duration::from_millis(20);
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn run() -> Faults {
    say(
        "append to delivered: one packet every 20 ms to node A, from sending it to the frame that a follower got",
    );
    say(
        "  follower at                          p50 ms   p99 ms   worst ms   times A (p50)   answer p50 ms   faults",
    );
    let mut faults = Faults::default();
    let cluster = Cluster::start("bench_deliver", 2, Bus::Nats).await;
    let (same, more) = one(&cluster, 0, "node A", None).await;
    faults += more;
    faults += one(&cluster, 1, "node B", Some(same)).await.1;
    drop(cluster);
    let cluster = Cluster::start("bench_deliver", 2, Bus::None).await;
    faults += one(&cluster, 1, "node B, without NATS: it looks", Some(same)).await.1;
    faults
}

/// Returns the p50.
async fn one(cluster: &Cluster, node: usize, name: &str, same: Option<f64>) -> (f64, Faults) {
    let mut http = Http::open(&cluster.places[0]).await.expect("connect");
    let session = http.session().await.expect("a session");
    let path = packets_of(&session);
    // Connections and statements are made before.
    let (status, body) = http.send("POST", &path, packet(0).as_bytes()).await.expect("a packet");
    assert_eq!(status, 200, "{body}");
    let (ready, wait) = oneshot::channel();
    let (place, followed) = (cluster.places[node].clone(), session.clone());
    let following = tokio::spawn(async move {
        // Each event and when it came.
        let (mut ready, mut came) = (Some(ready), Vec::new());
        let done = follow(&place, &followed, |frame| {
            match frame {
                Frame::Ready => drop(ready.take().map(|ready| ready.send(()))),
                Frame::Event(number, _) => came.push((number, Instant::now())),
            }
            if came.len() as u64 > PACKETS {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        let _ = tokio::time::timeout(PATIENCE, done).await;
        came
    });
    wait.await.expect("a follower");
    let (mut sent, mut answers, mut faults) = (Vec::new(), Vec::new(), Faults::default());
    let mut tick = tokio::time::interval(PACE);
    for n in 1..=PACKETS {
        tick.tick().await;
        let body = packet(n);
        let at = Instant::now();
        sent.push(at);
        let answer = http.send("POST", &path, body.as_bytes()).await;
        answers.push(micros(at.elapsed()));
        faults.errors += u64::from(!answer.is_ok_and(|(status, _)| status == 200));
    }
    let came = following.await.expect("a follower");
    // The first packet is the first event.
    let mut took = Vec::new();
    for (want, (number, at)) in (1..).zip(&came) {
        faults.doubled += u64::from(*number != want);
        if let Some(sent) = usize::try_from(*number).ok().and_then(|n| sent.get(n.checked_sub(2)?))
        {
            took.push(micros(at.saturating_duration_since(*sent)));
        }
    }
    faults.lost += (PACKETS + 1).saturating_sub(came.len() as u64);
    faults += check(&cluster.places[node], &session, PACKETS + 1).await;
    took.sort_unstable();
    answers.sort_unstable();
    let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|part| ms(&took, part));
    let times = same.map_or("1.00".to_owned(), |same| format!("{:.2}", p50 / same));
    say(&format!(
        "  {name:<33}  {p50:>8.2} {p99:>8.2}  {worst:>9.2}   {times:>13}   {:>13.2}   {faults}",
        ms(&answers, 0.5)
    ));
    (p50, faults)
}

fn micros(took: Duration) -> u64 {
    u64::try_from(took.as_micros()).unwrap_or(u64::MAX)
}
