//! Three nodes on one PostgreSQL and one NATS, while nodes and servers are killed, paused and started
//! again: what was acknowledged is there once, in order, on every node, and whoever follows hears it so.
#![allow(clippy::expect_used, clippy::panic, reason = "a test may fail loudly")]
#![allow(unreachable_pub, reason = "a test has no outside")]
#![allow(clippy::print_stdout, reason = "what was done is told when it fails")]

mod faults;
mod follow;
#[path = "../served/mod.rs"]
mod served;
mod servers;
mod write;

use follow::Follower;
use served::{Dice, truth};
use servers::{Cluster, NODES, harm, harms};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use write::{How, Writer};

/// A number of the environment.
fn number(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
}

/// Ends whoever looks at these, however the test ends.
struct End<'a>([&'a AtomicBool; 2]);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|end| end.store(true, Ordering::Relaxed));
    }
}

#[test]
fn whatever_happens_every_node_tells_the_same_and_nothing_is_lost() {
    let Some(_alone) = servers::alone() else { return };
    let (rounds, seed) = (number("NARROWS_CHAOS_ROUNDS", 1), number("NARROWS_SEED", 7));
    let cluster = Cluster::start("chaos");
    cluster.settle();
    let hows = [How::Places, How::Places, How::Keys, How::TwoAtOnce];
    let writers: Vec<Writer> =
        (0..).zip(hows).map(|(n, how)| Writer::new(&cluster, n, how)).collect();
    let followers: Vec<Follower> = writers
        .iter()
        .flat_map(|w| (0..NODES).map(|node| Follower::new(&w.session, node)))
        .collect();
    let (stop, over) = (AtomicBool::new(false), AtomicBool::new(false));
    std::thread::scope(|scope| {
        // What fails here ends the others too: the scope would wait for them for ever.
        let _end = End([&stop, &over]);
        for follower in &followers {
            scope.spawn(|| follower.follow(&cluster, &over));
        }
        let mut writing = Vec::new();
        for writer in &writers {
            for thread in 0..writer.threads() {
                let (cluster, stop) = (&cluster, &stop);
                writing.push(scope.spawn(move || writer.write(cluster, seed + thread, stop)));
            }
        }
        let mut dice = Dice(seed);
        for _ in 0..rounds {
            for what in harms(&mut dice) {
                harm(&cluster, what, &mut dice);
                std::thread::sleep(Duration::from_millis(dice.roll(1500)));
            }
        }
        stop.store(true, Ordering::Relaxed);
        for thread in writing {
            thread.join().expect("a writer");
        }
        cluster.settle();
        let mut events = 0;
        for writer in &writers {
            let packets = writer.finish(&cluster);
            let should = truth(&packets, &writer.session);
            events += should.len();
            for node in 0..NODES {
                let there = follow::all(&cluster, node, &writer.session);
                let differs = there.iter().zip(&should).position(|(a, b)| a != b);
                let first = differs.map(|n| (&there[n], &should[n]));
                assert_eq!(differs, None, "node {node}, {:?}: {first:?}", writer.how);
                assert_eq!(there.len(), should.len(), "node {node}, {:?}", writer.how);
            }
            for follower in followers.iter().filter(|f| f.session == writer.session) {
                let heard = follower.wait_for(should.len());
                assert_eq!(heard, should, "a follower of node {}", follower.node);
            }
        }
        let cuts: usize = followers.iter().map(Follower::cuts).sum();
        println!("seed {seed}: {events} events, {cuts} streams cut and resumed");
        assert!(events > 100, "{events} events");
    });
}
