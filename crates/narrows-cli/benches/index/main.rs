//! All sessions of a machine into the store: two thousand kept sessions of Claude Code read by
//! `narrows index`, then asked for by `ls`, `search` and `show`, then a thousand files followed.
//! Beside it, in the same run and in turn: `cat`, `find`, `grep` and `tail` on the same files, and
//! what others make of such files where they install.
//!
//! Ratios are what is meant to be kept; the machine may be busy with other things.
//! `NARROWS_BENCH_MB` (500) and `NARROWS_BENCH_ROUNDS` (3) make it smaller.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    clippy::cast_sign_loss,
    clippy::format_push_string,
    reason = "a benchmark may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]
#![allow(dead_code, reason = "the generator serves other benchmarks too")]

#[path = "../history/corpus.rs"]
mod corpus;
mod first;
mod follow;
#[path = "../../../narrows/benches/support/generate.rs"]
mod generate;
mod latency;
mod measure;
mod peers;
mod place;

use place::Place;
use std::path::Path;

fn main() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|n| n.parse().ok()).unwrap_or(usual)
    };
    let mb = number("NARROWS_BENCH_MB", 500).max(4);
    let rounds = number("NARROWS_BENCH_ROUNDS", 3).max(1) as usize;
    let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
    // Not in memory: the store waits for the disk.
    let folder = tmp.parent().expect("the target folder").join("bench/index");
    let files = corpus::files(tmp, mb * 4, mb << 20).expect("the corpus");
    let place = Place::make(&folder, &files);
    let faults = [
        first::report(&place, rounds),
        latency::report(&place),
        follow::report(&place, &corpus::files(tmp, follow::FILES, 4 << 20).expect("small files")),
    ];
    place.remove();
    let faults = faults.concat();
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}
