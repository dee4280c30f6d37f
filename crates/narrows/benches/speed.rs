//! How fast the whole pipeline is, relative to parsing the same bytes into a tree.
//!
//! Rounds are interleaved and the best of each counts, in CPU time: only the ratios are meant to
//! be kept. `cargo bench --bench speed` prints a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use support::generate::Session;
use support::{events_only, timed, value_baseline, whole_pipeline};

const ROUNDS: usize = 7;

fn main() {
    // `cargo bench --bench speed -- --corpus results > file` writes a corpus for other tools.
    let args: Vec<String> = std::env::args().collect();
    if let Some(at) = args.iter().position(|a| a == "--corpus") {
        let big = if args.get(at + 1).is_some_and(|a| a == "results") { 60 } else { 1 };
        let bytes = Session::new(1, big).make(96 << 20);
        return std::io::Write::write_all(&mut std::io::stdout(), &bytes).unwrap_or_default();
    }
    // `-- --profile results` runs the pipeline alone, for a profiler.
    if let Some(at) = args.iter().position(|a| a == "--profile") {
        let big = if args.get(at + 1).is_some_and(|a| a == "results") { 60 } else { 1 };
        let bytes = Session::new(1, big).make(96 << 20);
        let best = (0..ROUNDS).map(|_| timed(|| whole_pipeline(&bytes)).0).min();
        println!("{:.0} MB/s", bytes.len() as f64 * 1e3 / best.unwrap_or(1) as f64);
        return;
    }
    println!(
        "{:<28} {:>9} {:>12} {:>12} {:>9}",
        "corpus", "MB", "Value MB/s", "narrows MB/s", "ratio"
    );
    let stream = Session::new(1, 1).make(96 << 20);
    let packets = memchr::memchr_iter(b'\n', &stream).count();
    let best = compare("acp stream, items", &stream, whole_pipeline);
    compare("acp stream, events", &stream, events_only);
    let results = Session::new(2, 60).make(192 << 20);
    compare("big tool results, items", &results, whole_pipeline);
    compare("big tool results, events", &results, events_only);
    println!();
    println!(
        "acp stream: {packets} packets of {} bytes on average, {:.2} µs of CPU each",
        stream.len() / packets,
        best as f64 / 1000.0 / packets as f64
    );
    small_packets();
}

fn compare(name: &str, bytes: &[u8], work: fn(&[u8]) -> usize) -> u64 {
    let (mut base, mut ours) = (u64::MAX, u64::MAX);
    for _ in 0..ROUNDS {
        base = base.min(timed(|| value_baseline(bytes)).0);
        ours = ours.min(timed(|| work(bytes)).0);
    }
    let rate = |ns: u64| bytes.len() as f64 / 1e6 / (ns as f64 / 1e9);
    let (mb, ratio) = (bytes.len() as f64 / 1e6, base as f64 / ours as f64);
    println!("{name:<28} {mb:>9.1} {:>12.0} {:>12.0} {ratio:>8.2}x", rate(base), rate(ours));
    ours
}

/// Text chunks as they stream: the smallest packets there are.
fn small_packets() {
    let bytes = support::shapes::SHAPES.iter().find(|s| s.0 == "chunks").map(|s| s.1(400_000));
    let bytes = bytes.unwrap_or_default();
    let best = (0..ROUNDS).map(|_| timed(|| whole_pipeline(&bytes)).0).min().unwrap_or(0);
    println!(
        "small packets: {} bytes, {:.2} µs of CPU each",
        bytes.len() / 400_000,
        best as f64 / 4e8
    );
}
