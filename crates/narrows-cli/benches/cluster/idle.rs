//! What a node costs that has nothing to do.

use crate::nodes::{Bus, Cluster, connect};
use crate::processes::{Share, Used, memory};
use crate::write::{Load, Way, write};
use crate::{Faults, say};
use std::time::Duration;

const WATCH: Duration = Duration::from_secs(10);
/// What is done at the start is over by then.
const SETTLE: Duration = Duration::from_secs(2);

pub(crate) async fn run() -> Faults {
    say("idle nodes, in percent of one core, over 10 s");
    say(
        "  nodes                        a node   PostgreSQL    NATS   memory of a node   connections of a node",
    );
    let mut cluster = Cluster::start("bench_idle", 1, Bus::Nats).await;
    let one = watch(&cluster, "1 idle").await;
    cluster.grow(3).await;
    let three = watch(&cluster, "3 idle").await;
    say(&format!(
        "  one more idle node costs {:.1} % of itself, {:.1} % of PostgreSQL, {:.1} % of NATS",
        mean(&three.nodes),
        (three.postgres - one.postgres).max(0.0) / 2.0,
        (three.nats - one.nats).max(0.0) / 2.0,
    ));
    let used = Used::now(&pids(&cluster));
    let load = Load { way: Way::Requests, writers: 8, batch: 100, time: Duration::from_secs(4) };
    let written = write(&cluster.places[..1], load).await;
    let share = used.since();
    line(&cluster, "2 idle, another ingests", &share.nodes[1..], &share).await;
    let faults = written.check(&cluster.places[1]).await;
    say(&format!(
        "    the other one: {:.0} events/s, {:.0} % of a core; {faults}",
        written.rate, share.nodes[0]
    ));
    faults
}

fn pids(cluster: &Cluster) -> Vec<u32> {
    cluster.nodes.iter().map(|node| node.child.id()).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

async fn watch(cluster: &Cluster, name: &str) -> Share {
    tokio::time::sleep(SETTLE).await;
    let used = Used::now(&pids(cluster));
    tokio::time::sleep(WATCH).await;
    let share = used.since();
    line(cluster, name, &share.nodes, &share).await;
    share
}

/// `nodes` are the shares of those that are idle.
async fn line(cluster: &Cluster, name: &str, nodes: &[f64], share: &Share) {
    // The last one is always idle.
    let memory = pids(cluster).last().map_or(0, |pid| memory(*pid));
    let count = "SELECT count(*) FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid()";
    let held = connect(&cluster.database).await.query_one(count, &[]).await.expect("connections");
    let held = held.get::<_, i64>(0) as f64 / cluster.nodes.len() as f64;
    say(&format!(
        "  {name:<25}  {:>6.1} %   {:>8.1} %  {:>4.1} %   {:>13.1} MB   {held:>21.1}",
        mean(nodes),
        share.postgres,
        share.nats,
        memory as f64 / f64::from(1 << 20),
    ));
}
