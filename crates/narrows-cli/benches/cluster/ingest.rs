//! Durable ingest: events a second that were acknowledged after PostgreSQL had them on disk.

use crate::bare::Bare;
use crate::behind;
use crate::http::Http;
use crate::nodes::{Bus, Cluster, checkpoint};
use crate::processes::Used;
use crate::write::{Load, Way, write};
use crate::{Faults, ms, say};
use std::time::Duration;

const TIME: Duration = Duration::from_secs(3);

pub(crate) async fn run() -> Faults {
    say("durable ingest through one node: parsed, cleaned, answered over HTTP after the commit");
    say(
        "  bare: the same rows of events, items and calls, inserted into tables of the same definition, as many a \
         commit as the node made, over as many connections as there are writers (4 at most): as texts, one \
         row an event; over HTTP: the same, one commit a request, asked for by the same writers",
    );
    say(
        "  CPU: microseconds of a core for an event: the node's, PostgreSQL's, PostgreSQL's for the bare rows",
    );
    say(
        "  writers x packets   events/s     bare/s   ratio   over HTTP/s   ratio   CPU node   PostgreSQL   bare   ratio   answer p50 / p99 / worst ms   rows a commit   faults",
    );
    let mut faults = Faults::default();
    for (way, writers, batch) in [
        (Way::Stream, 1, 1),
        (Way::Stream, 8, 1),
        (Way::Requests, 1, 100),
        (Way::Requests, 8, 100),
        (Way::Requests, 8, 1000),
        (Way::Requests, 64, 10),
        (Way::Requests, 64, 1),
        (Way::Requests, 1, 1),
    ] {
        faults += one(Load { way, writers, batch, time: TIME }).await;
    }
    faults
}

async fn one(load: Load) -> Faults {
    let cluster = Cluster::start("bench_ingest", 1, Bus::Nats).await;
    let place = &cluster.places[0];
    let mut http = Http::open(place).await.expect("connect");
    checkpoint().await;
    let before = http.commits().await.expect("commits");
    let used = Used::now(&[cluster.nodes[0].child.id()]);
    let written = write(&cluster.places, load).await;
    let (node, postgres) = used.seconds();
    let commits = http.commits().await.expect("commits") - before;
    let faults = written.check(place).await;
    let database = cluster.database.clone();
    // Nothing of the node goes on meanwhile.
    drop(cluster);
    // Making the sessions and their first packets are commits too, few beside the others.
    let rows = (written.events as f64 / commits.max(1) as f64).max(1.0);
    let Load { way, writers, batch, .. } = load;
    #[expect(clippy::cast_sign_loss, reason = "a number of rows")]
    let of = rows.round() as usize;
    let (bare, bare_cpu) = Bare { database: &database, writers, batch, rows: of }.run().await;
    let rate = written.rate;
    let behind = match way {
        Way::Stream => "          -       -".to_owned(),
        Way::Requests => {
            let behind = behind::run(&database, writers, batch).await;
            format!("{behind:>11.0}  {:>6.2}", rate / behind)
        }
    };
    let micros = |seconds: f64| seconds * 1e6 / written.events.max(1) as f64;
    let stream = if way == Way::Stream { "stream " } else { "" };
    let shape = format!("{stream}{writers} x {batch}");
    let [p50, p99, worst] = [0.5, 0.99, 1.0].map(|part| ms(&written.answers, part));
    say(&format!(
        "  {shape:>17}  {rate:>9.0}  {bare:>9.0}  {:>6.2}   {behind}   {:>8.0}   {:>10.0}   {:>4.0}   {:>5.2}   {p50:>10.1} / {p99:>5.1} / {worst:>6.1}   {rows:>13.1}   {faults}",
        rate / bare,
        micros(node),
        micros(postgres),
        bare_cpu * 1e6,
        bare_cpu * 1e6 / micros(postgres),
    ));
    faults
}
