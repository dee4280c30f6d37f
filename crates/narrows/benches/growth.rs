//! How cost grows: 34 shapes of input at doubling sizes, and a session from 10^3 to 10^6 events.
//!
//! The cost per unit may not grow by more than 1.6 times from one size to the next, once it can be
//! measured. Exits with 1 when a shape is superlinear.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use std::fmt::Write as _;
use support::generate::{ROOT, Session};
use support::shapes::SHAPES;
use support::{events_only, timed, whole_pipeline};

const SIZES: [usize; 6] = [16_384, 32_768, 65_536, 131_072, 262_144, 524_288];
const LIMIT: f64 = 1.6;
/// Below this nothing is measured well.
const FLOOR_NS: u64 = 20_000_000;

fn main() {
    let mut bad = 0;
    for (name, make) in SHAPES {
        for (view, work) in
            [("items", whole_pipeline as fn(&[u8]) -> usize), ("events", events_only)]
        {
            let mut row = String::new();
            let mut verdict = "linear";
            let mut last: Option<f64> = None;
            for n in SIZES {
                let bytes = make(n);
                let best = (0..3).map(|_| timed(|| work(&bytes)).0).min().unwrap_or(0);
                let _ = write!(row, " {:>8.1}", best as f64 / 1e6);
                let per = best as f64 / n as f64;
                if best > FLOOR_NS {
                    if last.is_some_and(|last| per / last > LIMIT) {
                        verdict = "SUPERLINEAR";
                    }
                    last = Some(per);
                }
            }
            bad += usize::from(verdict != "linear");
            println!("{name:<16} {view:<7} {verdict:<12} ms at 16k…524k:{row}");
        }
    }
    println!();
    session_growth();
    if bad > 0 {
        println!("{bad} superlinear shapes");
        std::process::exit(1);
    }
    println!("no superlinear shape");
}

/// The cost of an event while one session grows.
fn session_growth() {
    let bytes = Session::new(3, 0).make(400 << 20);
    let mut config = narrows::Config::default();
    config.paths.add_root(ROOT);
    let mut packets = narrows::Packets::default();
    let mut pipeline = narrows::Pipeline::new(config);
    let mut steps = Vec::new();
    let (mut seen, mut mark, mut cost, mut at) = (0usize, 1_000usize, 0u64, 0usize);
    for chunk in bytes.chunks(64 << 10) {
        let (ns, ()) = timed(|| packets.push(chunk, |given| pipeline.push(given, &mut steps)));
        cost += ns;
        seen += steps.len();
        steps.clear();
        if seen >= mark {
            let per = cost as f64 / (seen - at) as f64;
            println!("one session, up to {seen:>8} events: {per:>7.0} ns of CPU per event");
            (cost, at) = (0, seen);
            mark *= 10;
            if mark > 1_000_000 {
                break;
            }
        }
    }
}
