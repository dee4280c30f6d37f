//! What the benchmarks share: packets made up to look real, CPU time, and the pipeline as a user
//! runs it.
#![allow(dead_code, reason = "each benchmark uses a part of it")]

pub(crate) mod generate;
pub(crate) mod shapes;

use narrows::{Config, Items, Packets, Pipeline};

/// CPU nanoseconds of this thread. The machines are noisy: wall time says little.
pub(crate) fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split(' ').next().and_then(|n| n.parse().ok()).unwrap_or(0)
}

/// Runs `work` and returns its CPU nanoseconds.
pub(crate) fn timed<T>(work: impl FnOnce() -> T) -> (u64, T) {
    let before = cpu();
    let out = std::hint::black_box(work());
    (cpu() - before, out)
}

/// Split, parse, clean, complete, fold, and print the final items; returns the bytes printed.
pub(crate) fn whole_pipeline(bytes: &[u8]) -> usize {
    let mut packets = Packets::default();
    let mut config = Config { join: true, ..Config::default() };
    config.paths.add_root(generate::ROOT);
    let mut pipeline = Pipeline::new(config);
    let mut items = Items::new();
    let mut steps = Vec::new();
    for chunk in bytes.chunks(1 << 20) {
        packets.push(chunk, |given| {
            pipeline.push(given, &mut steps);
            for change in steps.drain(..).flat_map(|step| step.changes) {
                items.apply(change);
            }
        });
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    for change in steps.drain(..).flat_map(|step| step.changes) {
        items.apply(change);
    }
    let mut printed = 0;
    let mut line = Vec::new();
    for item in items.ordered() {
        line.clear();
        narrows::json::to_writer(&mut line, item).expect("items are JSON");
        printed += line.len();
    }
    printed
}

/// Split, parse, clean, complete and print the events; returns the bytes printed.
pub(crate) fn events_only(bytes: &[u8]) -> usize {
    let mut packets = Packets::default();
    let mut config = Config { events_only: true, ..Config::default() };
    config.paths.add_root(generate::ROOT);
    let mut pipeline = Pipeline::new(config);
    let (mut steps, mut line, mut printed) = (Vec::new(), Vec::new(), 0);
    let mut print = |steps: &mut Vec<narrows::Step>| {
        for step in steps.drain(..) {
            line.clear();
            let row = narrows::PrintedEvent::new(1, "s", &step.event);
            narrows::json::to_writer(&mut line, &row).expect("events are JSON");
            printed += line.len();
        }
    };
    for chunk in bytes.chunks(1 << 20) {
        packets.push(chunk, |given| {
            pipeline.push(given, &mut steps);
            print(&mut steps);
        });
    }
    packets.finish(|given| pipeline.push(given, &mut steps));
    pipeline.finish(&mut steps);
    print(&mut steps);
    printed
}

/// What a naive port does: every line to a tree, dropped.
pub(crate) fn value_baseline(bytes: &[u8]) -> usize {
    let mut n = 0;
    for line in bytes.split(|c| *c == b'\n').filter(|l| !l.is_empty()) {
        let value: serde_json::Value =
            serde_json::from_slice(line).expect("made-up packets are JSON");
        n += usize::from(std::hint::black_box(value).is_object());
    }
    n
}
