//! What nodes cost that share one PostgreSQL and one NATS: durable ingest, how soon another node
//! delivers, idle nodes, and three nodes beside one.
//!
//! Run it by `make bench-cluster`, which starts both servers. Every figure stands beside one that was
//! measured in the same run, and beside what went wrong: errors, lost and doubled must be zero.
//! `--only ingest|deliver|idle|spread` does one part.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly, and its figures are rough"
)]

mod bare;
mod behind;
mod deliver;
mod follow;
mod http;
mod idle;
mod ingest;
mod nodes;
mod processes;
#[path = "../../tests/served/mod.rs"]
mod served;
mod spread;
mod write;

use std::ops::AddAssign;

fn main() {
    let words: Vec<String> = std::env::args().collect();
    let after = |name: &str| words.iter().position(|w| w == name).and_then(|at| words.get(at + 1));
    let only = after("--only");
    let wanted = |name: &str| only.is_none_or(|o| o == name);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("runtime");
    if after("--role").is_some_and(|role| role == "bare") {
        let number =
            |name: &str| after(name).and_then(|n| n.parse::<u64>().ok()).expect("a number");
        let writers = usize::try_from(number("--writers")).expect("a number");
        let database = after("--database").expect("a database");
        runtime.block_on(behind::serve(database, writers, number("--batch")));
        return;
    }
    let faults = runtime.block_on(async {
        let mut faults = Faults::default();
        if wanted("ingest") {
            faults += ingest::run().await;
        }
        if wanted("deliver") {
            faults += deliver::run().await;
        }
        if wanted("idle") {
            faults += idle::run().await;
        }
        if wanted("spread") {
            faults += spread::run().await;
        }
        faults
    });
    say(&format!("in all: {faults}"));
    assert!(faults.is_none(), "{faults}");
}

/// What must not be.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Faults {
    /// Requests that were not answered well.
    pub(crate) errors: u64,
    /// Acknowledged packets whose event is not there.
    pub(crate) lost: u64,
    /// Events that are there more than once, or out of order.
    pub(crate) doubled: u64,
}

impl Faults {
    fn is_none(&self) -> bool {
        self.errors + self.lost + self.doubled == 0
    }
}

impl AddAssign for Faults {
    fn add_assign(&mut self, more: Faults) {
        self.errors += more.errors;
        self.lost += more.lost;
        self.doubled += more.doubled;
    }
}

impl std::fmt::Display for Faults {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "errors {}, lost {}, doubled {}", self.errors, self.lost, self.doubled)
    }
}

/// The value below which so much of the list lies: microseconds to milliseconds.
pub(crate) fn ms(sorted: &[u64], part: f64) -> f64 {
    #[expect(clippy::cast_sign_loss, reason = "a part of a length")]
    let at = (sorted.len() as f64 * part) as usize;
    let found = sorted.get(at.min(sorted.len().saturating_sub(1)));
    found.copied().unwrap_or(0) as f64 / 1000.0
}

#[expect(clippy::print_stdout, reason = "this is what a benchmark is for")]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
