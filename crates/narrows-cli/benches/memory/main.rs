//! Memory over the growth of what is read: it stays flat.
//!
//! `FULL=1` measures the sizes of the promise (a text of 1 GB, ten sessions of 80 000 calls, 100 000
//! sessions); else a tenth of them. `ONLY=text,calls` names some of the cases. `MINUTES=35` lets a
//! server work for so long instead.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a benchmark may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

#[path = "../../../narrows/benches/support/generate.rs"]
#[allow(dead_code, reason = "shared with the other benchmarks")]
mod generate;
mod measure;
mod parse;
#[path = "../../tests/served/mod.rs"]
mod served;
mod sessions;
mod soak;
mod wire;

use measure::MB;

fn main() {
    let minutes = std::env::var("MINUTES").ok().and_then(|n| n.parse::<f64>().ok());
    if let Some(minutes) = minutes {
        assert!(soak::run(minutes), "something grows");
        return;
    }
    let full = std::env::var_os("FULL").is_some_and(|full| full == "1");
    let only = std::env::var("ONLY").unwrap_or_default();
    let wanted = |case: &str| only.is_empty() || only.split(',').any(|name| name == case);
    let part = if full { 1 } else { 10 };
    if wanted("parse") {
        parse::session(if full { 1024 * MB } else { 256 * MB });
        parse::line(if full { 1024 * MB } else { 256 * MB });
    }
    let mut flat = true;
    if wanted("text") {
        flat &= sessions::text(1000 / part);
    }
    if wanted("calls") {
        flat &= sessions::calls(10, 80_000 / part);
    }
    if wanted("sent") {
        flat &= sessions::sent(100_000 / part);
    }
    if wanted("index") {
        flat &= sessions::index(100_000 / part);
    }
    assert!(flat, "something grows");
}
