//! How fast cleaning alone is, relative to one search for a literal over the same bytes.
//!
//! Rounds are interleaved and the best of each counts, in CPU time: only the ratios are meant to
//! be kept. `cargo bench --bench sanitize -- FILE…` takes texts of one's own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::cast_precision_loss,
    reason = "a test may fail loudly"
)]
#![allow(clippy::print_stdout, reason = "a benchmark prints")]

mod support;

use memchr::memmem;
use narrows::sanitize::{Mode, TextStream};
use narrows::{Paths, Redactor, Secrets};
use support::generate::{ROOT, Session};
use support::timed;

const ROUNDS: usize = 7;
/// The usual size of what one tool prints.
const OUTPUT: usize = 40_000;

fn main() {
    println!(
        "{:<24} {:>7} {:>12} {:>16} {:>16} {:>16}",
        "text", "MB", "memmem GB/s", "paths GB/s", "all rules GB/s", "streamed GB/s"
    );
    let files: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    if files.is_empty() {
        row("mixed tool output", &Session::new(3, 60).mixed(64 << 20));
        row("source code", &Session::new(3, 60).code(64 << 20));
    }
    for path in files {
        let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
        row(&path, &text);
    }
}

fn row(name: &str, text: &str) {
    // `PROFILE=1` runs the cleaner alone, for a profiler.
    if std::env::var_os("PROFILE").is_some() {
        let best = (0..ROUNDS).map(|_| timed(|| whole(text, Secrets::default())).0).min();
        println!("{name}: {:.2} GB/s", text.len() as f64 / best.unwrap_or(1) as f64);
        return;
    }
    let finder = memmem::Finder::new("/sessions/");
    let mut best = [u64::MAX; 4];
    for _ in 0..ROUNDS {
        let times = [
            timed(|| finder.find_iter(text.as_bytes()).count()).0,
            timed(|| whole(text, Secrets::none())).0,
            timed(|| whole(text, Secrets::default())).0,
            timed(|| streamed(text)).0,
        ];
        best.iter_mut().zip(times).for_each(|(b, t)| *b = t.min(*b));
    }
    let rate = |ns: u64| text.len() as f64 / ns as f64;
    let cell = |ns: u64| format!("{:.2} ({:.2}x)", rate(ns), best[0] as f64 / ns as f64);
    println!(
        "{name:<24} {:>7.0} {:>12.1} {:>16} {:>16} {:>16}",
        text.len() as f64 / 1e6,
        rate(best[0]),
        cell(best[1]),
        cell(best[2]),
        cell(best[3]),
    );
}

fn paths() -> Paths {
    let mut paths = Paths::new();
    paths.add_root(ROOT);
    paths
}

/// Cleans the text in pieces as big as what a tool prints.
fn whole(text: &str, secrets: Secrets) -> usize {
    let mut cleaner = Redactor::new(paths(), secrets);
    let (mut rest, mut n) = (text, 0);
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(rest.floor_char_boundary(OUTPUT.min(rest.len())));
        n += cleaner.text(piece, Mode::Text).len();
        rest = more;
    }
    n
}

/// Cleans the text as a filter does.
fn streamed(text: &str) -> usize {
    let mut stream = TextStream::new(paths(), Secrets::default());
    let n: usize = text.as_bytes().chunks(64 << 10).map(|c| stream.push(c).len()).sum();
    n + stream.finish().len()
}
